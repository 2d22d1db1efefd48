//! Duty: nsqlookupd's side of a broker's connection: bytes in, commands out, one step at a time. Must not know
//! registrations. Every error ends the connection.

use super::command::{self, Command};
use super::peer::PeerInfo;
use crate::code::ErrorCode;
use crate::coding::i32_at;
use crate::limits::LINE_MAX;
use crate::refusal::WireError;

/// The command decoder of one connection.
#[derive(Clone, Debug)]
pub struct Session {
    max_body_size: u64,
    /// Set by the first IDENTIFY: true for a broker of Youzan's fork.
    partitioned: Option<bool>,
    /// Bytes below which looking again is useless.
    need: usize,
    /// Bytes known to hold no line end.
    scanned: usize,
}

/// What [`Session::next`] found at the start of its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Call again with the same bytes and more behind them.
    NeedMore,
    /// A command; the next one starts after `consumed` bytes.
    Command {
        /// The command.
        command: Command,
        /// Bytes it took.
        consumed: usize,
    },
    /// Answer with the error, then close.
    Refuse(WireError),
    /// Close without an answer: the line is longer than 16384 bytes.
    Close,
}

impl Session {
    /// A connection whose magic was read. Stock has no bound for the body of IDENTIFY; ours is `max_body_size` bytes.
    pub fn new(max_body_size: u64) -> Self {
        Self { max_body_size, partitioned: None, need: 1, scanned: 0 }
    }

    /// Looks at `input`, which starts with the first byte that no command has taken yet. After [`Step::Refuse`] and
    /// [`Step::Close`] there is no next step.
    pub fn next(&mut self, input: &[u8]) -> Step {
        if input.len() < self.need {
            return Step::NeedMore;
        }
        let line = &input[..input.len().min(LINE_MAX)];
        let Some(end) = memchr::memchr(b'\n', &line[self.scanned..]) else {
            if line.len() == LINE_MAX {
                return Step::Close;
            }
            self.scanned = line.len();
            return self.more(line.len() + 1);
        };
        let end = self.scanned + end;
        match self.decode(&input[..end], input) {
            Ok(Some((command, consumed))) => {
                if let Command::Identify(peer) = &command {
                    self.partitioned = Some(!peer.distributed_id.is_empty());
                }
                (self.need, self.scanned) = (1, 0);
                Step::Command { command, consumed }
            }
            Ok(None) => Step::NeedMore,
            Err(error) => Step::Refuse(error),
        }
    }

    /// What to answer when the peer ends after [`Session::next`] wanted more than `input`: nothing while a line is
    /// awaited.
    pub fn interrupted(&self, input: &[u8]) -> Option<WireError> {
        let line = memchr::memchr(b'\n', input)?;
        let part = if i32_at(input, line + 1).is_none() { "body size" } else { "body" };
        Some(WireError::new(ErrorCode::BadBody, format!("IDENTIFY failed to read {part}")))
    }

    fn decode(&mut self, line: &[u8], input: &[u8]) -> Result<Option<(Command, usize)>, WireError> {
        let consumed = line.len() + 1;
        let mut words = line.trim_ascii().split(|byte| *byte == b' ');
        let verb = words.next().unwrap_or_default();
        let command = match verb {
            b"PING" => Command::Ping,
            b"IDENTIFY" => return self.identify(consumed, input),
            b"REGISTER" => Command::Register(command::registration("REGISTER", words, self.partitioned()?)?),
            b"UNREGISTER" => Command::Unregister(command::registration("UNREGISTER", words, self.partitioned()?)?),
            _ => return Err(WireError::quoting(ErrorCode::Invalid, &[b"invalid command ", verb])),
        };
        Ok(Some((command, consumed)))
    }

    fn partitioned(&self) -> Result<bool, WireError> {
        self.partitioned.ok_or_else(|| WireError::new(ErrorCode::Invalid, "client must IDENTIFY"))
    }

    fn identify(&mut self, at: usize, input: &[u8]) -> Result<Option<(Command, usize)>, WireError> {
        if self.partitioned.is_some() {
            return Err(WireError::new(ErrorCode::Invalid, "cannot IDENTIFY again"));
        }
        let Some(size) = i32_at(input, at) else {
            self.more(at + 4);
            return Ok(None);
        };
        // Stock crashes on a negative size and reads any other; neither is copied.
        let len = u32::try_from(size).ok().filter(|len| u64::from(*len) <= self.max_body_size);
        let Some(len) = len else {
            return Err(WireError::new(ErrorCode::BadBody, format!("IDENTIFY invalid body size {size}")));
        };
        let (start, end) = (at + 4, at + 4 + len as usize);
        let Some(body) = input.get(start..end) else {
            self.more(end);
            return Ok(None);
        };
        Ok(Some((Command::Identify(PeerInfo::decode(body)?), end)))
    }

    fn more(&mut self, need: usize) -> Step {
        self.need = need;
        Step::NeedMore
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lookup::client;
    use crate::name::{ChannelName, ChannelRef, TopicRef};

    fn peer(distributed_id: &str) -> PeerInfo {
        PeerInfo {
            broadcast_address: "10.0.0.1".into(),
            distributed_id: distributed_id.into(),
            hostname: "h".into(),
            http_port: 4151,
            tcp_port: 4150,
            version: "1.3.0".into(),
        }
    }

    fn identified(distributed_id: &str) -> Session {
        let mut session = Session::new(1000);
        let mut bytes = Vec::new();
        client::put_identify(&mut bytes, &peer(distributed_id));
        let Step::Command { command, consumed } = session.next(&bytes) else { panic!("no command") };
        assert_eq!((command, consumed), (Command::Identify(peer(distributed_id)), bytes.len()));
        session
    }

    fn refusal(session: &mut Session, input: &[u8]) -> String {
        match session.next(input) {
            Step::Refuse(error) => String::from_utf8(error.text()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn registration(session: &mut Session, line: &str) -> command::Registration {
        match session.next(line.as_bytes()) {
            Step::Command { command: Command::Register(it) | Command::Unregister(it), consumed } => {
                assert_eq!(consumed, line.len());
                it
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn c_109_ping_needs_no_identify_and_register_does() {
        let mut session = Session::new(1000);
        assert_eq!(session.next(b" PING\r\n"), Step::Command { command: Command::Ping, consumed: 7 });
        assert_eq!(refusal(&mut session, b"REGISTER t c\n"), "E_INVALID client must IDENTIFY");
    }

    #[test]
    fn c_110_identify_needs_four_fields() {
        for missing in ["broadcast_address", "tcp_port", "http_port", "version"] {
            let mut json: serde_json::Value = serde_json::from_slice(&peer("").to_json()).unwrap();
            json.as_object_mut().unwrap().remove(missing);
            let error = PeerInfo::decode(json.to_string().as_bytes()).unwrap_err();
            assert_eq!(error.text(), b"E_BAD_BODY IDENTIFY missing fields", "{missing}");
        }
        assert!(PeerInfo::decode(br#"{"broadcast_address":"a","tcp_port":1,"http_port":2,"version":"v"}"#).is_ok());
    }

    #[test]
    fn c_111_a_second_identify_is_refused_before_its_body() {
        let mut session = identified("");
        assert_eq!(refusal(&mut session, b"IDENTIFY\n"), "E_INVALID cannot IDENTIFY again");
    }

    #[test]
    fn bodies_are_bounded_in_both_directions() {
        for size in [-1_i32, 1001, i32::MAX, i32::MIN] {
            let input = [b"IDENTIFY\n".as_slice(), &size.to_be_bytes()].concat();
            let text = refusal(&mut Session::new(1000), &input);
            assert_eq!(text, format!("E_BAD_BODY IDENTIFY invalid body size {size}"));
        }
        let mut session = Session::new(1000);
        assert_eq!(session.next(b"IDENTIFY\n\0\0"), Step::NeedMore);
        let error = session.interrupted(b"IDENTIFY\n\0\0").unwrap();
        assert_eq!(error.text(), b"E_BAD_BODY IDENTIFY failed to read body size");
        assert_eq!(session.next(b"IDENTIFY\n\0\0\0\x02{"), Step::NeedMore);
        let error = session.interrupted(b"IDENTIFY\n\0\0\0\x02{").unwrap();
        assert_eq!(error.text(), b"E_BAD_BODY IDENTIFY failed to read body");
        assert_eq!(session.interrupted(b"IDENT"), None);
    }

    #[test]
    fn c_112_register_names_a_topic_and_perhaps_a_channel() {
        let mut session = identified("");
        let it = registration(&mut session, "REGISTER t c extra\n");
        assert_eq!((it.topic.as_str(), it.channel.as_ref().map(ChannelName::as_str)), ("t", Some("c")));
        assert_eq!(registration(&mut session, "UNREGISTER t \n").channel, None);
        assert_eq!(refusal(&mut session, b"REGISTER\n"), "E_INVALID REGISTER insufficient number of params");
        assert_eq!(refusal(&mut session, b"REGISTER $\n"), "E_BAD_TOPIC REGISTER topic name '$' is not valid");
        let text = refusal(&mut session, b"UNREGISTER t $\n");
        assert_eq!(text, "E_BAD_CHANNEL UNREGISTER channel name '$' is not valid");
        assert_eq!(refusal(&mut session, b"\n"), "E_INVALID invalid command ");
    }

    #[test]
    fn a_broker_with_a_distributed_id_puts_the_partition_before_the_channel() {
        let mut session = identified("10.0.0.1:1:2:3");
        let it = registration(&mut session, "REGISTER t 7 c\n");
        assert_eq!((it.partition, it.channel.as_ref().map(ChannelName::as_str)), (Some(7), Some("c")));
        assert_eq!(registration(&mut session, "REGISTER t -11\n").partition, Some(-11));
        for bad in ["255", "-1", "x", ""] {
            let text = refusal(&mut session, format!("REGISTER t {bad} c\n").as_bytes());
            assert_eq!(text, format!("E_BAD_PARTITIONID REGISTER partition '{bad}' is not valid"));
        }
    }

    #[test]
    fn a_line_without_end_closes() {
        let mut session = Session::new(1000);
        let line = vec![b'x'; LINE_MAX];
        assert_eq!(session.next(&line[..LINE_MAX - 1]), Step::NeedMore);
        assert_eq!(session.next(&line), Step::Close);
    }

    #[test]
    fn what_the_client_writes_is_read_back() {
        let mut session = identified("");
        let (topic, channel) = (TopicRef::parse(b"t").unwrap(), ChannelRef::parse(b"c#ephemeral").unwrap());
        let mut bytes = Vec::new();
        client::put_register(&mut bytes, topic, Some(channel));
        assert_eq!(bytes, b"REGISTER t c#ephemeral\n");
        bytes.clear();
        client::put_unregister(&mut bytes, topic, None);
        assert_eq!(bytes, b"UNREGISTER t\n");
        assert!(matches!(session.next(&bytes), Step::Command { command: Command::Unregister(_), .. }));
    }

}
