//! Duty: whether the broker can write, as `/ping` tells it (nsq-http 1.4). Comes in: outcomes of writes. Goes out: OK or
//! the last failure. Must not know who wrote what.

use parking_lot::Mutex;

use crate::log::engine::LogError;

/// The last known state of the disk.
#[derive(Debug, Default)]
pub struct Health {
    fault: Mutex<Option<String>>,
}

impl Health {
    /// A write failed, or works again.
    pub fn report(&self, state: Result<(), &LogError>) {
        let mut fault = self.fault.lock();
        match state {
            Err(error) => {
                tracing::error!(%error, "can not write");
                *fault = Some(error.to_string());
            }
            Ok(()) if fault.take().is_some() => tracing::info!("writes work again"),
            Ok(()) => {}
        }
    }

    /// `Err` with the reason while writes fail.
    pub fn state(&self) -> Result<(), String> {
        self.fault.lock().clone().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_shown_until_a_write_works_again() {
        let health = Health::default();
        assert_eq!(health.state(), Ok(()));
        health.report(Err(&LogError::Closed));
        assert_eq!(health.state(), Err("exiting".to_owned()));
        health.report(Ok(()));
        assert_eq!(health.state(), Ok(()));
    }
}
