//! Duty: the store for async callers. One thread owns it; all requests that wait are applied and then made
//! durable by one flush. Must not know what the requests do.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll};
use std::thread::{Builder, JoinHandle};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::catalogue::Catalogue;
use super::cursor::{ChannelNumber, CursorDelta};
use super::state::State;
use super::transaction::Transaction;
use super::{Store, StoreError};

/// Reaches the store's thread. Cheap to clone. The queue to the thread has no bound of its own: everyone who
/// puts something in waits for the answer, so it is never longer than there are callers.
#[derive(Clone, Debug)]
pub struct StoreHandle {
    requests: Sender<Request>,
    fault: Fault,
}

/// Why the store is broken, as the last request left it. Set before that request is answered.
type Fault = Arc<Mutex<Option<StoreError>>>;

/// Sees whether the store is broken; see [`StoreHandle::fault`].
#[derive(Clone, Debug)]
pub struct FaultWatch(Fault);

impl FaultWatch {
    /// Why the store is broken; `None` = it works.
    pub fn fault(&self) -> Option<StoreError> {
        self.0.lock().clone()
    }
}

/// The thread that owns the store. It ends when the last handle is gone.
#[derive(Debug)]
pub struct StoreThread {
    thread: JoinHandle<()>,
}

impl StoreThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(store: Store) -> io::Result<(StoreHandle, Self)> {
        let (requests, queue) = channel();
        let fault = Fault::default();
        let told = Arc::clone(&fault);
        let thread = Builder::new()
            .name("metadata store".into())
            .spawn(move || serve(&store, &queue, &told))?;
        Ok((StoreHandle { requests, fault }, Self { thread }))
    }

    /// Waits until the thread has ended and the store is closed. Blocks until every handle is dropped.
    pub fn join(self) {
        if self.thread.join().is_err() {
            tracing::error!("the metadata store's thread has panicked");
        }
    }
}

impl StoreHandle {
    /// As [`Store::transact`], answered later. The work is done even when the answer is dropped.
    pub fn transact<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<R, StoreError> + Send + 'static,
    ) -> Answer<R> {
        let (sender, receiver) = oneshot::channel();
        self.send(Request::Transact(Box::new(move |state| {
            let answer = state.apply(work);
            Box::new(move |flushed| {
                // Whoever asked may have lost interest.
                let _ = sender.send(answer.and_then(|answer| flushed.map(|()| answer)));
            })
        })));
        Answer { receiver }
    }

    /// Applies deltas of many channels, all or none; see [`Transaction::save_cursor`].
    pub fn save_cursors(&self, batch: Vec<(ChannelNumber, CursorDelta)>) -> Answer<()> {
        self.transact(move |transaction| {
            batch
                .iter()
                .try_for_each(|(channel, delta)| transaction.save_cursor(*channel, delta))
        })
    }

    /// Why the store is broken; `None` = it works. Waits for nothing: the store's thread keeps it up to date.
    pub fn fault(&self) -> Option<StoreError> {
        self.fault.lock().clone()
    }

    /// Tells the same without keeping the store's thread alive.
    pub fn watch_fault(&self) -> FaultWatch {
        FaultWatch(Arc::clone(&self.fault))
    }

    /// As [`Store::reopen`], answered later.
    pub fn reopen(
        &self,
        cursors: impl FnOnce(&Catalogue) -> Vec<(ChannelNumber, CursorDelta)> + Send + 'static,
    ) -> Answer<()> {
        let (sender, receiver) = oneshot::channel();
        self.send(Request::Reopen(Box::new(move |store| {
            let reopened = store.reopen(cursors);
            Box::new(move || {
                let _ = sender.send(reopened);
            })
        })));
        Answer { receiver }
    }

    fn send(&self, request: Request) {
        // A request that finds no thread is dropped with its sender: the answer is then `Closed`.
        let _ = self.requests.send(request);
    }
}

/// An answer of the store's thread: a future, or a value to wait for outside of async code. Cancel safe.
#[derive(Debug)]
#[must_use = "what was asked for may have failed"]
pub struct Answer<R> {
    receiver: oneshot::Receiver<Result<R, StoreError>>,
}

impl<R> Answer<R> {
    /// Blocks until the answer is there; not for use in a task.
    ///
    /// # Errors
    /// That of the request, or [`StoreError::Closed`].
    pub fn wait(self) -> Result<R, StoreError> {
        self.receiver.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }
}

impl<R> Future for Answer<R> {
    type Output = Result<R, StoreError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver)
            .poll(cx)
            .map(|answer| answer.unwrap_or(Err(StoreError::Closed)))
    }
}

enum Request {
    Transact(Box<dyn FnOnce(&mut State) -> Reply + Send>),
    Reopen(Box<dyn FnOnce(&Store) -> Afterwards + Send>),
}

/// Tells whoever asked how it went.
type Afterwards = Box<dyn FnOnce() + Send>;

/// Answers one request once it is known whether the flush it waited for has worked.
type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

fn serve(store: &Store, queue: &Receiver<Request>, fault: &Fault) {
    let mut next = queue.recv().ok();
    while let Some(request) = next.take() {
        match request {
            Request::Reopen(reopen) => {
                let answer = reopen(store);
                *fault.lock() = store.fault();
                answer();
            }
            Request::Transact(work) => next = serve_group(store, work, queue, fault),
        }
        next = next.or_else(|| queue.recv().ok());
    }
}

/// Serves one transaction and all that wait behind it; answers the request that ended the group.
fn serve_group(
    store: &Store,
    first: Box<dyn FnOnce(&mut State) -> Reply + Send>,
    queue: &Receiver<Request>,
    fault: &Fault,
) -> Option<Request> {
    let mut state = store.state.lock();
    let mut replies = vec![first(&mut state)];
    let mut next = None;
    while let Ok(request) = queue.try_recv() {
        match request {
            Request::Transact(work) => replies.push(work(&mut state)),
            reopen @ Request::Reopen(_) => {
                next = Some(reopen);
                break;
            }
        }
    }
    let flushed = state.flush();
    *fault.lock() = state.database().err();
    drop(state);
    for reply in replies {
        reply(flushed.clone());
    }
    next
}
