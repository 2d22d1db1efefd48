//! Duty: when to send a heartbeat and when to give a silent peer up (nsq-tcp 2.1.5 and 3.2), given now. Nanoseconds of
//! a monotonic clock come in, what is due goes out. Must not know sockets or timers.

use std::time::Duration;

use crate::dialect::Dialect;

/// The two deadlines of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Heartbeat {
    /// Nanoseconds between beats; 0 = no beats and no deadline.
    interval: u64,
    /// Silence after which the peer is given up, nanoseconds.
    patience: u64,
    next_beat: u64,
    last_command: u64,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Send a heartbeat, then ask again.
    Beat,
    /// The peer was silent for too long: [`crate::session::Session::interrupted`], then close.
    GiveUp,
    /// Nothing before this time, nanoseconds.
    At(u64),
    /// Nothing ever: heartbeats are off.
    Never,
}

impl Heartbeat {
    /// Starts both deadlines at `now`; `interval` is none when heartbeats are off.
    pub fn start(now: u64, interval: Option<Duration>, dialect: Dialect) -> Self {
        let interval = interval.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Self {
            interval,
            patience: interval.saturating_mul(dialect.silent_heartbeats()),
            next_beat: now.saturating_add(interval),
            last_command: now,
        }
    }

    /// The connection has shown its dialect after IDENTIFY, by SUB_ADVANCED or SUB_ORDERED; the beat goes on as it was.
    pub fn set_dialect(&mut self, dialect: Dialect) {
        self.patience = self.interval.saturating_mul(dialect.silent_heartbeats());
    }

    /// A command was handled at `now`. Bytes of an unfinished command do not count.
    pub fn heard(&mut self, now: u64) {
        self.last_command = now;
    }

    /// What is due at `now`. Beats that were missed are not made up for; the peer's last beat comes before the end.
    pub fn poll(&mut self, now: u64) -> Due {
        if self.interval == 0 {
            return Due::Never;
        }
        if now >= self.next_beat {
            self.next_beat = self.next_beat.saturating_add(self.interval);
            if self.next_beat <= now {
                self.next_beat = now.saturating_add(self.interval);
            }
            return Due::Beat;
        }
        let end = self.last_command.saturating_add(self.patience);
        if now >= end {
            Due::GiveUp
        } else {
            Due::At(end.min(self.next_beat))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn start(dialect: Dialect) -> Heartbeat {
        Heartbeat::start(0, Some(Duration::from_secs(1)), dialect)
    }

    #[test]
    fn c_34_a_silent_stock_client_gets_two_beats_and_is_given_up_after_two() {
        let mut heartbeat = start(Dialect::Stock);
        assert_eq!(heartbeat.poll(0), Due::At(SECOND));
        assert_eq!(heartbeat.poll(SECOND), Due::Beat);
        assert_eq!(heartbeat.poll(SECOND), Due::At(2 * SECOND));
        assert_eq!(heartbeat.poll(2 * SECOND), Due::Beat);
        assert_eq!(heartbeat.poll(2 * SECOND), Due::GiveUp);
    }

    #[test]
    fn y_43_a_silent_youzan_client_is_given_up_after_three() {
        let mut heartbeat = start(Dialect::Stock);
        heartbeat.set_dialect(Dialect::Youzan);
        assert_eq!(heartbeat.poll(5 * SECOND / 2), Due::Beat);
        assert_eq!(heartbeat.poll(5 * SECOND / 2), Due::At(3 * SECOND));
        assert_eq!(heartbeat.poll(3 * SECOND), Due::GiveUp);
    }

    #[test]
    fn c_33_a_command_after_each_beat_keeps_the_connection() {
        let mut heartbeat = start(Dialect::Stock);
        for second in 1..=100 {
            assert_eq!(heartbeat.poll(second * SECOND), Due::Beat);
            heartbeat.heard(second * SECOND);
            assert_eq!(heartbeat.poll(second * SECOND), Due::At((second + 1) * SECOND));
        }
    }

    #[test]
    fn c_36_without_an_interval_nothing_is_ever_due() {
        let mut heartbeat = Heartbeat::start(0, None, Dialect::Stock);
        assert_eq!(heartbeat.poll(u64::MAX), Due::Never);
    }

    #[test]
    fn missed_beats_are_not_made_up_for() {
        let mut heartbeat = start(Dialect::Stock);
        heartbeat.heard(10 * SECOND);
        assert_eq!(heartbeat.poll(10 * SECOND), Due::Beat);
        assert_eq!(heartbeat.poll(10 * SECOND), Due::At(11 * SECOND));
    }
}
