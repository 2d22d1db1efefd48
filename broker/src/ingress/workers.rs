//! Duty: the data threads. Each runs its own single-threaded runtime, accepts connections and keeps them for life, so
//! that a connection, its topic's appends and its wake-ups need no other thread. Must not know what a connection does.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::runtime::Builder;
use tokio::sync::watch;

use super::listener::{Accepted, Listener, StdListener};

/// The running data threads.
pub struct Workers {
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` threads that share the listening socket. Each accepted connection is given to `serve`.
    ///
    /// The threads stop accepting when `stop` turns true and end when their last connection has.
    ///
    /// # Errors
    /// When a thread or its runtime can not be made.
    pub fn start<F, C>(
        count: usize,
        listener: &StdListener,
        stop: &watch::Receiver<bool>,
        serve: F,
    ) -> io::Result<Self>
    where
        F: Fn(Accepted) -> C + Send + Sync + 'static,
        C: Future<Output = ()> + Send + 'static,
    {
        let serve = Arc::new(serve);
        let mut threads = Vec::with_capacity(count);
        for index in 0..count {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let listener = listener.try_clone()?;
            let serve = Arc::clone(&serve);
            let stop = stop.clone();
            let work = move || {
                runtime.block_on(async move {
                    match Listener::adopt(listener) {
                        Ok(listener) => accept(listener, stop, &*serve).await,
                        Err(error) => tracing::error!(%error, "a data thread can not listen"),
                    }
                });
            };
            threads.push(
                std::thread::Builder::new()
                    .name(format!("data-{index}"))
                    .spawn(work)?,
            );
        }
        Ok(Self { threads })
    }

    /// Waits until all threads have ended.
    pub fn join(self) {
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a data thread panicked");
            }
        }
    }
}

async fn accept<C>(listener: Listener, mut stop: watch::Receiver<bool>, serve: &impl Fn(Accepted) -> C)
where
    C: Future<Output = ()> + Send + 'static,
{
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => break,
            _ = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => {
                connections.spawn(serve(accepted));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}
