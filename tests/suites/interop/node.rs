//! Duty: what nsqjs plays.

scenarios! { Library::Node =>
    publish_single,
    publish_multi,
    publish_deferred,
    consume_and_finish,
    requeue_with_delay,
    touch_beyond_the_timeout,
    back_off_and_recover,
    tls,
    snappy,
    deflate,
    tls_and_snappy,
    auth,
    sample_rate,
    reconnect_after_a_kill,
    two_consumers_share,
    max_in_flight,
    discovery,
}
