//! Duty: the bytes of the lookup protocol V1 as a node writes and reads them (nsq-tcp 7.1, 7.2). Comes in:
//! commands, answers' lengths. Goes out: bytes, facts. Must not know sockets.

use serde::{Deserialize, Serialize};

/// What opens a connection.
pub(super) const MAGIC: &[u8] = b"  V1";

/// Who this node is; the body of IDENTIFY, its keys in alphabetical order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Host that clients are told to connect to.
    pub broadcast_address: String,
    /// Host name of the machine.
    pub hostname: String,
    /// HTTP port that clients are told, not 0.
    pub http_port: u16,
    /// TCP port that clients are told, not 0.
    pub tcp_port: u16,
    /// Version that clients are told.
    pub version: String,
}

/// What a node says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Identify(Identity),
    /// A topic, or a channel of it.
    Register(String, Option<String>),
    Unregister(String, Option<String>),
    Ping,
}

/// What a lookupd tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct LookupdInfo {
    #[serde(default)]
    pub(super) broadcast_address: String,
    #[serde(default)]
    pub(super) http_port: u16,
}

impl Command {
    /// Appends the command to `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        match self {
            Self::Identify(identity) => {
                let body = serde_json::to_vec(identity)?;
                out.extend_from_slice(b"IDENTIFY\n");
                out.extend_from_slice(&(body.len() as u32).to_be_bytes());
                out.extend_from_slice(&body);
            }
            Self::Register(topic, channel) => encode_line(out, "REGISTER", topic, channel.as_deref()),
            Self::Unregister(topic, channel) => encode_line(out, "UNREGISTER", topic, channel.as_deref()),
            Self::Ping => out.extend_from_slice(b"PING\n"),
        }
        Ok(())
    }
}

/// Length of the answer that `head` announces; `None` when it is negative or above `max`.
pub(super) fn answer_length(head: [u8; 4], max: usize) -> Option<usize> {
    usize::try_from(i32::from_be_bytes(head))
        .ok()
        .filter(|length| *length <= max)
}

fn encode_line(out: &mut Vec<u8>, verb: &str, topic: &str, channel: Option<&str>) {
    out.extend_from_slice(verb.as_bytes());
    for name in std::iter::once(topic).chain(channel) {
        out.push(b' ');
        out.extend_from_slice(name.as_bytes());
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(command: &Command) -> Vec<u8> {
        let mut out = Vec::new();
        command.encode(&mut out).unwrap();
        out
    }

    #[test]
    fn commands_have_their_documented_bytes() {
        let identity = Identity {
            broadcast_address: "b".to_owned(),
            hostname: "h".to_owned(),
            http_port: 4151,
            tcp_port: 4150,
            version: "1.3.0".to_owned(),
        };
        let body =
            r#"{"broadcast_address":"b","hostname":"h","http_port":4151,"tcp_port":4150,"version":"1.3.0"}"#;
        let expected = [b"IDENTIFY\n\0\0\0\x5b", body.as_bytes()].concat();
        assert_eq!(encoded(&Command::Identify(identity)), expected);
        let topic = || "t".to_owned();
        assert_eq!(encoded(&Command::Register(topic(), None)), b"REGISTER t\n");
        assert_eq!(
            encoded(&Command::Unregister(topic(), Some("c".to_owned()))),
            b"UNREGISTER t c\n"
        );
        assert_eq!(encoded(&Command::Ping), b"PING\n");
    }

    #[test]
    fn impossible_answer_lengths_are_refused() {
        assert_eq!(answer_length([0, 0, 1, 0], 256), Some(256));
        assert_eq!(answer_length([0, 0, 1, 1], 256), None);
        assert_eq!(answer_length([0xff; 4], 256), None);
    }
}
