//! Duty: how many files and sockets the process may have open: as many as the system lets it, as Go's runtime does for stock
//! nsqd. Must not know what they are for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit as far as it goes without privileges; answers it. `None` = there is none.
pub(super) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, limit = current, "can not raise the limit of open files");
            current
        }
    }
}
