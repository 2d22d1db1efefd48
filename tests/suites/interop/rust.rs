//! Duty: what tokio-nsq plays. It has no backoff, so that scenario is left out.

scenarios! { Library::Rust =>
    publish_single,
    publish_multi,
    publish_deferred,
    consume_and_finish,
    requeue_with_delay,
    touch_beyond_the_timeout,
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
