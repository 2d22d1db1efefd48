//! Duty: bytes of commands (nsq-tcp 1.3 and 2).

/// `line` LF.
pub fn line(line: &str) -> Vec<u8> {
    format!("{line}\n").into_bytes()
}

/// `line` LF, four bytes of length, `body`.
pub fn sized(line: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{line}\n").into_bytes();
    push_sized(&mut bytes, body);
    bytes
}

/// `line` LF and a length with no body behind it.
pub fn only_size(line: &str, size: i32) -> Vec<u8> {
    let mut bytes = format!("{line}\n").into_bytes();
    bytes.extend_from_slice(&size.to_be_bytes());
    bytes
}

/// `PUB`.
pub fn publish(topic: &str, body: &[u8]) -> Vec<u8> {
    sized(&format!("PUB {topic}"), body)
}

/// `DPUB`, delay in milliseconds.
pub fn publish_deferred(topic: &str, delay: u64, body: &[u8]) -> Vec<u8> {
    sized(&format!("DPUB {topic} {delay}"), body)
}

/// `MPUB`.
pub fn publish_many(topic: &str, bodies: &[&[u8]]) -> Vec<u8> {
    sized(&format!("MPUB {topic}"), &batch(bodies))
}

/// `IDENTIFY`.
pub fn identify(json: &str) -> Vec<u8> {
    sized("IDENTIFY", json.as_bytes())
}

/// `AUTH`.
pub fn auth(secret: &str) -> Vec<u8> {
    sized("AUTH", secret.as_bytes())
}

/// The body of `MPUB` and of a binary `/mpub`: count, then sized messages.
pub fn batch(bodies: &[&[u8]]) -> Vec<u8> {
    let mut bytes = (bodies.len() as i32).to_be_bytes().to_vec();
    for body in bodies {
        push_sized(&mut bytes, body);
    }
    bytes
}

fn push_sized(bytes: &mut Vec<u8>, body: &[u8]) {
    bytes.extend_from_slice(&(body.len() as i32).to_be_bytes());
    bytes.extend_from_slice(body);
}
