//! Duty: percentiles of the time a message needs from publish to finish, over a window that slides in two halves
//! (nsq-http 1.10, `--e2e-processing-latency-*`). Must not know where samples come from; `now` is an argument.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::clock::Moment;

/// The latencies of one channel: the running half of the window and the half before it.
///
/// Values are kept to two significant digits between 1 µs and 26 days; 36 KiB per channel.
#[derive(Clone, Debug)]
pub struct LatencyWindow {
    running: Histogram<u32>,
    previous: Histogram<u32>,
    half: Duration,
    turns: Moment,
}

/// The `e2e_processing_latency` object of `/stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Samples in the window.
    pub count: u64,
    /// In the configured order; `None` when none are configured, or for a topic without channels.
    pub percentiles: Option<Vec<Percentile>>,
}

/// One percentile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentile {
    /// Above 0, at most 1.
    pub quantile: f64,
    /// Nanoseconds; 0 without samples.
    pub value: f64,
}

impl LatencyWindow {
    /// An empty window of the given length that starts at `now`.
    pub fn new(window: Duration, now: Moment) -> Self {
        let half = (window / 2).max(Duration::from_nanos(1));
        Self {
            running: histogram(),
            previous: histogram(),
            half,
            turns: now + half,
        }
    }

    /// Takes one sample of `nanos` nanoseconds.
    pub fn record(&mut self, now: Moment, nanos: u64) {
        self.slide(now);
        self.running.saturating_record(nanos);
    }

    fn slide(&mut self, now: Moment) {
        if now < self.turns {
            return;
        }
        std::mem::swap(&mut self.running, &mut self.previous);
        self.running.reset();
        if now >= self.turns + self.half {
            self.previous.reset();
        }
        self.turns = now + self.half;
    }
}

/// One summary over the windows of any number of channels.
pub fn summarize<'a>(
    windows: impl IntoIterator<Item = &'a mut LatencyWindow>,
    quantiles: &[f64],
    now: Moment,
) -> LatencySummary {
    let mut windows = windows.into_iter().peekable();
    if quantiles.is_empty() || windows.peek().is_none() {
        return LatencySummary::default();
    }
    let mut sum = histogram();
    for window in windows {
        window.slide(now);
        for half in [&window.running, &window.previous] {
            // All histograms have the same bounds, so that addition cannot fail.
            let _ = sum.add(half);
        }
    }
    let percentiles = quantiles.iter().map(|quantile| Percentile {
        quantile: *quantile,
        value: sum.value_at_quantile(*quantile) as f64,
    });
    LatencySummary {
        count: sum.len(),
        percentiles: Some(percentiles.collect()),
    }
}

fn histogram() -> Histogram<u32> {
    Histogram::new_with_bounds(SHORTEST, LONGEST, 2).expect("the bounds are constants in the allowed range")
}

const SHORTEST: u64 = 1_000;
const LONGEST: u64 = 1 << 51;

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    fn median(window: &mut LatencyWindow, now: Moment) -> (u64, f64) {
        let summary = summarize([window], &[0.5], now);
        (summary.count, summary.percentiles.unwrap()[0].value)
    }

    #[test]
    fn percentiles_are_right_to_a_hundredth() {
        let mut window = LatencyWindow::new(WINDOW, at(0));
        for millis in 1..=1000 {
            window.record(at(0), millis * 1_000_000);
        }
        let summary = summarize([&mut window], &[1.0, 0.99, 0.5], at(1));
        assert_eq!(summary.count, 1000);
        let percentiles = summary.percentiles.unwrap();
        for (percentile, expected) in percentiles.iter().zip([1000e6, 990e6, 500e6]) {
            assert!((percentile.value / expected - 1.0).abs() < 0.01, "{percentile:?}");
        }
    }

    #[test]
    fn samples_leave_with_their_half_of_the_window() {
        let mut window = LatencyWindow::new(WINDOW, at(0));
        window.record(at(1), 5_000_000);
        assert_eq!(median(&mut window, at(4)).0, 1);
        window.record(at(6), 5_000_000);
        assert_eq!(median(&mut window, at(6)).0, 2);
        assert_eq!(median(&mut window, at(11)).0, 1);
        assert_eq!(median(&mut window, at(40)), (0, 0.0));
    }

    #[test]
    fn any_sample_is_taken() {
        let mut window = LatencyWindow::new(WINDOW, at(0));
        window.record(at(0), 0);
        window.record(at(0), u64::MAX);
        assert_eq!(median(&mut window, at(0)).0, 2);
    }

    #[test]
    fn h_48_without_percentiles_or_channels_there_is_no_list() {
        let mut window = LatencyWindow::new(WINDOW, at(0));
        assert_eq!(summarize([&mut window], &[], at(0)), LatencySummary::default());
        assert_eq!(summarize([], &[0.5], at(0)), LatencySummary::default());
    }

    #[test]
    fn a_topic_sums_up_its_channels() {
        let mut windows = [
            LatencyWindow::new(WINDOW, at(0)),
            LatencyWindow::new(WINDOW, at(0)),
        ];
        windows[0].record(at(0), 1_000_000);
        windows[1].record(at(0), 3_000_000);
        let summary = summarize(&mut windows, &[1.0], at(0));
        assert_eq!(summary.count, 2);
        assert!(summary.percentiles.unwrap()[0].value >= 3e6);
    }
}
