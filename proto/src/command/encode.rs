//! Duty: commands as a client writes them: the client library, the proxy, tools and tests. Values come in, bytes go out;
//! what is put in is not checked against a server's limits.

use bytes::BufMut;

use super::publish::NewMessage;
use super::subscribe::{StartOffset, Subscribe};
use super::verb::Verb;
use crate::message::MessageId;
use crate::name::TopicRef;

/// IDENTIFY; `body` comes from [`super::identify::IdentifyRequest::to_json`].
pub fn identify(out: &mut impl BufMut, body: &[u8]) {
    put_line(out, Verb::Identify, &[]);
    put_sized(out, body);
}

/// AUTH.
pub fn auth(out: &mut impl BufMut, secret: &[u8]) {
    put_line(out, Verb::Auth, &[]);
    put_sized(out, secret);
}

/// SUB and its forms. A start offset is written only with SUB_ADVANCED and then brings a partition, -1 by default, with
/// it.
pub fn subscribe(out: &mut impl BufMut, subscribe: &Subscribe<'_>) {
    let partition = subscribe.partition.unwrap_or(-1).to_string();
    let start = subscribe.start.map(start_offset);
    let mut words = vec![subscribe.topic.as_str(), subscribe.channel.as_str()];
    if subscribe.partition.is_some() || start.is_some() {
        words.push(&partition);
    }
    words.extend(start.as_deref());
    put_line(out, subscribe.mode.verb(), &words);
}

/// PUB, PUB_TRACE or PUB_EXT.
pub fn publish(
    out: &mut impl BufMut,
    verb: Verb,
    topic: TopicRef<'_>,
    partition: Option<i32>,
    message: &NewMessage<'_>,
) {
    put_target(out, verb, topic, partition);
    put_message(out, verb, message);
}

/// MPUB, MPUB_TRACE or MPUB_EXT.
pub fn publish_batch(
    out: &mut impl BufMut,
    verb: Verb,
    topic: TopicRef<'_>,
    partition: Option<i32>,
    messages: &[NewMessage<'_>],
) {
    put_target(out, verb, topic, partition);
    let size = messages
        .iter()
        .map(|message| 4 + content_len(verb, message))
        .sum::<usize>();
    out.put_u32(4 + size as u32);
    out.put_u32(messages.len() as u32);
    for message in messages {
        put_message(out, verb, message);
    }
}

/// DPUB; the delay is in milliseconds.
pub fn publish_deferred(out: &mut impl BufMut, topic: TopicRef<'_>, delay_ms: u64, body: &[u8]) {
    put_line(out, Verb::Dpub, &[topic.as_str(), &delay_ms.to_string()]);
    put_sized(out, body);
}

/// RDY.
pub fn ready(out: &mut impl BufMut, count: u64) {
    put_line(out, Verb::Rdy, &[&count.to_string()]);
}

/// FIN.
pub fn finish(out: &mut impl BufMut, id: MessageId) {
    out.put_slice(b"FIN ");
    out.put_slice(id.as_bytes());
    out.put_u8(b'\n');
}

/// REQ; the delay is in milliseconds.
pub fn requeue(out: &mut impl BufMut, id: MessageId, delay_ms: u64) {
    out.put_slice(b"REQ ");
    out.put_slice(id.as_bytes());
    out.put_u8(b' ');
    out.put_slice(delay_ms.to_string().as_bytes());
    out.put_u8(b'\n');
}

/// TOUCH.
pub fn touch(out: &mut impl BufMut, id: MessageId) {
    out.put_slice(b"TOUCH ");
    out.put_slice(id.as_bytes());
    out.put_u8(b'\n');
}

/// CLS.
pub fn close(out: &mut impl BufMut) {
    put_line(out, Verb::Cls, &[]);
}

/// NOP, the answer to a heartbeat.
pub fn nop(out: &mut impl BufMut) {
    put_line(out, Verb::Nop, &[]);
}

/// INTERNAL_CREATE_TOPIC.
pub fn create_topic(out: &mut impl BufMut, topic: TopicRef<'_>, partition: i32, extended: bool) {
    let words = [topic.as_str(), &partition.to_string(), &extended.to_string()];
    put_line(out, Verb::InternalCreateTopic, &words);
}

fn put_target(out: &mut impl BufMut, verb: Verb, topic: TopicRef<'_>, partition: Option<i32>) {
    match partition {
        None => put_line(out, verb, &[topic.as_str()]),
        Some(number) => put_line(out, verb, &[topic.as_str(), &number.to_string()]),
    }
}

fn put_line(out: &mut impl BufMut, verb: Verb, words: &[&str]) {
    out.put_slice(verb.name().as_bytes());
    for word in words {
        out.put_u8(b' ');
        out.put_slice(word.as_bytes());
    }
    out.put_u8(b'\n');
}

fn put_sized(out: &mut impl BufMut, body: &[u8]) {
    out.put_u32(body.len() as u32);
    out.put_slice(body);
}

fn put_message(out: &mut impl BufMut, verb: Verb, message: &NewMessage<'_>) {
    out.put_u32(content_len(verb, message) as u32);
    match verb {
        Verb::PubTrace | Verb::MpubTrace => out.put_u64(message.trace_id),
        Verb::PubExt | Verb::MpubExt => {
            let header = message.header.unwrap_or_default();
            out.put_u16(header.len() as u16);
            out.put_slice(header);
        }
        _ => {}
    }
    out.put_slice(message.body);
}

fn content_len(verb: Verb, message: &NewMessage<'_>) -> usize {
    let prefix = match verb {
        Verb::PubTrace | Verb::MpubTrace => 8,
        Verb::PubExt | Verb::MpubExt => 2 + message.header.map_or(0, <[u8]>::len),
        _ => 0,
    };
    prefix + message.body.len()
}

fn start_offset(start: StartOffset) -> String {
    match start {
        StartOffset::Timestamp(seconds) => format!("timestamp:{seconds}"),
        StartOffset::End => "special:-1".to_owned(),
        StartOffset::VirtualQueue(bytes) => format!("virtual_queue:{bytes}"),
        StartOffset::MessageCount(count) => format!("msgcount:{count}"),
    }
}
