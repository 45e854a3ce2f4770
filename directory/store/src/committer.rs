//! The committer: one thread that gathers waiting changes, commits them together, answers them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::limits::{GROUP_BYTES_MAX, GROUP_JOBS_MAX};
use crate::open::{Options, Shared};
use crate::{Error, OpenError, Read, Write};

/// An open store. Cloning is cheap and all clones are one store; when the last is dropped, the
/// accepted changes are committed and answered, and the files are closed.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    committer: Mutex<Option<Committer>>,
    queue: SyncSender<Message>,
}

struct Committer {
    thread: JoinHandle<()>,
}

enum Message {
    Job(Box<dyn Task>),
    Close,
}

impl Store {
    /// Opens the store in `dir`; creates it, and the folder, if there is none.
    pub fn open(dir: &Path, options: Options) -> Result<Store, OpenError> {
        let shared = Arc::new(Shared::open(dir, &options)?);
        let (queue, jobs) = sync_channel(options.queue_jobs_max.max(1));
        let thread = thread::Builder::new()
            .name("store-committer".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || commit_all(&shared, &jobs)
            })
            .map_err(|e| OpenError::system("starting the committer", e))?;
        let committer = Mutex::new(Some(Committer { thread }));
        Ok(Store { inner: Arc::new(Inner { shared, committer, queue }) })
    }

    /// Begins a read transaction on the last committed state.
    ///
    /// Errors: [`Error::TooManyReaders`]; [`Error::Failed`].
    pub fn read(&self) -> Result<Read, Error> {
        Read::begin(&self.inner.shared)
    }

    /// Hands a change to the committer and returns; `done` is called exactly once with its result,
    /// after the commit that holds it is on the disk.
    ///
    /// The job may run several times, each time on the state it would have found had no failed
    /// neighbour been there; only its last run counts. An `Err` before its first put is answered
    /// as it is; an `Err` after a put undoes the job and no other.
    ///
    /// Job and `done` run on the committer's thread: they must not wait for anything.
    ///
    /// Errors: [`Error::Busy`] if the queue is full, [`Error::Failed`]; `done` is not called then.
    pub fn submit<T, E>(
        &self,
        job: impl FnMut(&mut Write<'_>) -> Result<T, E> + Send + 'static,
        done: impl FnOnce(Result<T, E>) + Send + 'static,
    ) -> Result<(), Error>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if let Some(why) = self.inner.shared.failure() {
            return Err(Error::Failed { why });
        }
        let task = Box::new(Typed { job, done, result: None });
        self.inner.queue.try_send(Message::Job(task)).map_err(|error| match error {
            TrySendError::Full(_) => Error::Busy,
            TrySendError::Disconnected(_) => closed(),
        })
    }

    /// Hands a change to the committer and waits for its result; waits for room in the queue too.
    ///
    /// Not for an asynchronous task, and never from a job or a `done`: it blocks the thread.
    pub fn write_now<T, E>(
        &self,
        job: impl FnMut(&mut Write<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        if let Some(why) = self.inner.shared.failure() {
            return Err(Error::Failed { why }.into());
        }
        let (answer, answered) = sync_channel(1);
        // The receiver is waiting below, so the answer cannot go astray.
        let done = move |result| drop(answer.send(result));
        let task = Box::new(Typed { job, done, result: None });
        self.inner.queue.send(Message::Job(task)).map_err(|_| closed())?;
        answered.recv().unwrap_or_else(|_| Err(closed().into()))
    }

    /// Why the store takes no more changes, if it does not: it has to be opened again.
    pub fn failed(&self) -> Option<String> {
        self.inner.shared.failure()
    }

    /// Random identity (UUID version 4) of this store, given when it was created.
    pub fn incarnation(&self) -> [u8; 16] {
        self.inner.shared.incarnation
    }

    /// Commits and answers all accepted changes and ends a bulk load: after `Ok` everything is on
    /// the disk, whatever [`Options::sync`] was. Other clones can still read.
    pub fn close(self) -> Result<(), Error> {
        self.inner.join();
        self.inner.shared.close()
    }
}

fn closed() -> Error {
    Error::Failed { why: "it was closed".into() }
}

impl Inner {
    /// Ends the committer after the jobs accepted so far.
    fn join(&self) {
        let committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Committer { thread }) = committer else { return };
        // A send fails only if the committer is gone already.
        let _ = self.queue.send(Message::Close);
        // The last handle may be dropped by a `done`, on the committer's own thread.
        if thread.thread().id() != thread::current().id() {
            let _ = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.join();
        // Nobody is left to hear of it, and the mark that stays will tell.
        let _ = self.shared.close();
    }
}

/// A job with the types of its result taken away.
trait Task: Send {
    /// Runs the job; whether it succeeded.
    fn run(&mut self, write: &mut Write<'_>) -> bool;
    /// Answers with the result of the last run, or with what became of its commit.
    fn finish(self: Box<Self>, committed: Result<(), Error>);
}

struct Typed<J, D, T, E> {
    job: J,
    done: D,
    result: Option<Result<T, E>>,
}

impl<J, D, T, E> Task for Typed<J, D, T, E>
where
    J: FnMut(&mut Write<'_>) -> Result<T, E> + Send,
    D: FnOnce(Result<T, E>) + Send,
    T: Send,
    E: From<Error> + Send,
{
    fn run(&mut self, write: &mut Write<'_>) -> bool {
        let mut result = catch_unwind(AssertUnwindSafe(|| (self.job)(write)))
            .unwrap_or_else(|_| Err(Error::JobPanicked.into()));
        if let (Ok(_), Some(error)) = (&result, write.broken()) {
            result = Err(error.clone().into());
        }
        let good = result.is_ok();
        self.result = Some(result);
        good
    }

    fn finish(self: Box<Self>, committed: Result<(), Error>) {
        let result = match (self.result, committed) {
            (Some(Err(refused)), _) => Err(refused),
            (_, Err(error)) => Err(error.into()),
            (Some(done), Ok(())) => done,
            (None, Ok(())) => Err(closed().into()),
        };
        let done = self.done;
        // A panic of one `done` must not keep the others from being answered.
        let _ = catch_unwind(AssertUnwindSafe(|| done(result)));
    }
}

fn commit_all(shared: &Shared, jobs: &Receiver<Message>) {
    let mut waiting: Vec<Box<dyn Task>> = Vec::new();
    let mut open = true;
    while open || !waiting.is_empty() {
        if waiting.is_empty() {
            match jobs.recv() {
                Ok(Message::Job(job)) => waiting.push(job),
                Ok(Message::Close) | Err(_) => {
                    open = false;
                    waiting.extend(jobs.try_iter().filter_map(job_of));
                    continue;
                }
            }
        }
        while open && waiting.len() < GROUP_JOBS_MAX {
            match jobs.try_recv() {
                Ok(Message::Job(job)) => waiting.push(job),
                Ok(Message::Close) => open = false,
                Err(_) => break,
            }
        }
        run_group(shared, &mut waiting);
    }
}

fn job_of(message: Message) -> Option<Box<dyn Task>> {
    match message {
        Message::Job(job) => Some(job),
        Message::Close => None,
    }
}

/// Runs jobs from the front of `waiting` in one transaction, commits and answers them.
fn run_group(shared: &Shared, waiting: &mut Vec<Box<dyn Task>>) {
    if let Some(why) = shared.failure() {
        return answer(waiting.drain(..), &Err(Error::Failed { why }));
    }
    let mut write = match Write::begin(shared) {
        Ok(write) => write,
        Err(error) => {
            shared.fail(error.to_string());
            return answer(waiting.drain(..), &Err(error));
        }
    };
    let mut ran = 0;
    while let Some(job) = waiting.get_mut(ran) {
        if write.bytes() > GROUP_BYTES_MAX {
            break;
        }
        let puts = write.puts();
        let good = job.run(&mut write);
        if !good && write.puts() != puts {
            write.abort();
            return undo(shared, waiting, ran);
        }
        ran += 1;
    }
    let committed = commit(shared, write);
    answer(waiting.drain(..ran), &committed);
}

/// The job at `failed` has put something and then failed: those before it run again, and commit,
/// without it; those after it are left for the next group.
fn undo(shared: &Shared, waiting: &mut Vec<Box<dyn Task>>, failed: usize) {
    let culprit = waiting.remove(failed);
    let mut before: Vec<_> = waiting.drain(..failed).collect();
    while !before.is_empty() {
        run_group(shared, &mut before);
    }
    culprit.finish(Ok(()));
}

fn commit(shared: &Shared, write: Write<'_>) -> Result<(), Error> {
    write.commit().map_err(|error| {
        let error = shared.error("committing", error);
        if !matches!(error, Error::DiskFull | Error::MapFull { .. }) || poisoned(shared) {
            shared.fail(error.to_string());
        }
        error
    })
}

/// Whether LMDB itself has given up the environment.
fn poisoned(shared: &Shared) -> bool {
    match shared.env.write_txn() {
        Ok(txn) => {
            txn.abort();
            false
        }
        Err(_) => true,
    }
}

fn answer(jobs: impl Iterator<Item = Box<dyn Task>>, committed: &Result<(), Error>) {
    for job in jobs {
        job.finish(committed.clone());
    }
}
