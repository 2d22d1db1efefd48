//! Duty: frames of one connection that wait for its socket, and the rule when they may leave (nsq-tcp 4.9). Must not
//! know sockets, clocks or what the frames mean.

/// How a connection wants its messages buffered, settled by IDENTIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffering {
    /// Bytes that may wait; 1 = unbuffered.
    pub size: usize,
    /// False when the client switched the timed flush off: then messages wait for one of the other triggers.
    pub timed: bool,
}

/// The ordered output of a connection. Messages may wait here, everything else leaves at the end of the turn and
/// takes them along.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    sent: usize,
    urgent: bool,
}

impl Output {
    /// Where a response, an error or a heartbeat is appended.
    pub fn reply(&mut self) -> &mut Vec<u8> {
        self.urgent = true;
        &mut self.bytes
    }

    /// Where a message is appended.
    pub fn message(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is to be written next, or nothing while it may wait. `client_is_full` = the client takes no more messages
    /// now (RDY reached or 0, channel paused, CLS).
    ///
    /// Messages leave at the end of the turn that took them; a client that wants a timed flush only gets them sooner
    /// than it asked for.
    pub fn due(&self, buffering: Buffering, client_is_full: bool) -> &[u8] {
        // What has begun to leave goes on.
        let leaves =
            self.urgent || self.sent > 0 || buffering.timed || client_is_full || self.len() >= buffering.size;
        if leaves { &self.bytes[self.sent..] } else { &[] }
    }

    /// The first `count` of the bytes from [`Output::due`] have been taken.
    pub fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.bytes.clear();
            self.sent = 0;
            self.urgent = false;
        }
    }

    /// Lets go of the memory while nothing waits; answers it for someone else to use.
    pub fn release(&mut self) -> Option<Vec<u8>> {
        (self.is_empty() && self.bytes.capacity() > 0).then(|| std::mem::take(&mut self.bytes))
    }

    /// Gives an output without memory a buffer to fill.
    pub fn adopt(&mut self, buffer: impl FnOnce() -> Option<Vec<u8>>) {
        if self.bytes.capacity() == 0 {
            self.bytes = buffer().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMED: Buffering = Buffering {
        size: 16384,
        timed: true,
    };
    const HELD: Buffering = Buffering {
        size: 16384,
        timed: false,
    };

    #[test]
    fn c_81_without_a_timed_flush_messages_wait_for_the_next_reply() {
        let mut output = Output::default();
        output.message().extend_from_slice(b"message");
        assert_eq!(output.due(HELD, false), b"");
        output.reply().extend_from_slice(b"OK");
        assert_eq!(output.due(HELD, false), b"messageOK");
        output.advance(9);
        output.message().extend_from_slice(b"next");
        assert_eq!(output.due(HELD, false), b"");
    }

    #[test]
    fn c_82_a_full_client_gets_its_messages_at_once() {
        let mut output = Output::default();
        output.message().extend_from_slice(b"message");
        assert_eq!(output.due(HELD, true), b"message");
    }

    #[test]
    fn c_83_unbuffered_and_timed_connections_wait_for_nothing() {
        let mut output = Output::default();
        output.message().extend_from_slice(b"message");
        assert_eq!(output.due(TIMED, false), b"message");
        let mut output = Output::default();
        output.message().extend_from_slice(b"message");
        assert_eq!(
            output.due(
                Buffering {
                    size: 1,
                    timed: false
                },
                false
            ),
            b"message"
        );
    }

    #[test]
    fn a_buffer_that_is_full_leaves_and_what_is_written_in_part_goes_on() {
        let mut output = Output::default();
        output.message().extend_from_slice(&vec![7; 20_000]);
        assert_eq!(output.due(HELD, false).len(), 20_000);
        output.advance(15_000);
        assert_eq!(output.due(HELD, false).len(), 5_000);
        assert_eq!(output.release(), None);
    }
}
