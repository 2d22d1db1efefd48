//! Duty: the two clocks. Timeouts, heartbeats and delays run on the monotonic one; wall time only stamps
//! records and stores due times. Pure code takes a [`Moment`] as an argument and never calls a clock.

use std::ops::{Add, Sub};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point of the monotonic clock: nanoseconds since the clock was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The moment `nanos` after the clock was made.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock was made.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to this moment; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, time: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// The clocks of this process. Copies share the same origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The monotonic clock.
    pub fn now(self) -> Moment {
        Moment(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The moment as tokio and std know it.
    pub fn instant(self, moment: Moment) -> Instant {
        self.origin + Duration::from_nanos(moment.0)
    }

    /// Nanoseconds since the Unix epoch.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    pub fn wall(self) -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
    }
}
