//! The handle of an open store.

use keyway_lock::Unpoisoned;
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use keyway_meter::Gauge;

use crate::committer::{Committer, Message, waiting};
use crate::open;
use crate::shared::Shared;
use crate::task::Typed;
use crate::{Append, Error, OpenError, Options, Read, Size, Snapshot, Write, size};

/// An open store. Cloning is cheap and all clones are one store; when the last is dropped, the
/// accepted changes are committed and answered, and the files are closed.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    queue: SyncSender<Message>,
    committer: Mutex<Option<JoinHandle<Result<(), Error>>>>,
    waiting: Gauge,
}

impl Store {
    /// Opens the store in `dir`; creates it, and the folder, if there is none.
    pub fn open(dir: &Path, options: Options) -> Result<Store, OpenError> {
        let shared = Arc::new(open::open(dir, &options)?);
        let (queue, jobs) = sync_channel(options.queue_jobs_max.max(1));
        let committer = thread::Builder::new()
            .name("store-committer".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || {
                    Committer::new(&shared).run(&jobs);
                    shared.finish_loading()
                }
            })
            .map_err(|e| OpenError::system("starting the committer", e))?;
        let committer = Mutex::new(Some(committer));
        Ok(Store { inner: Arc::new(Inner { shared, queue, committer, waiting: waiting() }) })
    }

    /// Opens the store in `dir` to look at it, also while another process has it open. Changes are
    /// refused with [`Error::Failed`].
    ///
    /// Damage can end this process, as LMDB believes what it reads: a store that no process has open is
    /// better opened with [`Store::open`], which looks first.
    ///
    /// # Errors
    /// As [`Store::open`], and if there is none.
    pub fn open_to_read(dir: &Path, options: &Options) -> Result<Store, OpenError> {
        let shared = Arc::new(open::open_to_read(dir, options)?);
        // No committer takes messages out of it.
        let (queue, _) = sync_channel(1);
        let (committer, waiting) = (Mutex::new(None), waiting());
        Ok(Store { inner: Arc::new(Inner { shared, queue, committer, waiting }) })
    }

    /// Whether there is a store in `dir`, whatever state it is in. Changes nothing.
    pub fn is_at(dir: &Path) -> bool {
        open::is_ours(dir)
    }

    /// Begins a read transaction on the last committed state.
    ///
    /// Errors: [`Error::TooManyReaders`]; [`Error::Failed`] after a commit that damaged the
    /// environment.
    pub fn read(&self) -> Result<Read, Error> {
        Read::begin(&self.inner.shared)
    }

    /// The data file as it is in the last committed state, to be copied.
    ///
    /// # Errors
    /// As [`Store::read`]; [`Error::Displaced`] if the data file is not the one that is open;
    /// [`Error::Damaged`] if it has no head of this state, or no sound list of its free pages.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        Snapshot::begin(&self.inner.shared)
    }

    /// How often this store, or the one that it was restored from, was restored; 1 if it never was.
    ///
    /// # Errors
    /// The store's.
    pub fn epoch(&self) -> Result<u64, Error> {
        self.read()?.view().epoch()
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
        self.refuse_if_failed()?;
        let task = Box::new(Typed::new(job, done));
        let (message, error) = match self.inner.queue.try_send(Message::Job(task)) {
            Ok(()) => {
                self.inner.waiting.move_by(1);
                return Ok(());
            }
            Err(TrySendError::Full(message)) => (message, Error::Busy),
            Err(TrySendError::Disconnected(message)) => (message, Error::closed()),
        };
        if let Message::Job(mut task) = message {
            task.forget();
        }
        Err(error)
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
        self.refuse_if_failed()?;
        let (answer, answered) = sync_channel(1);
        // The receiver is waiting below, so the answer cannot go astray.
        let done = move |result| drop(answer.send(result));
        let task = Box::new(Typed::new(job, done));
        // A task that does not reach the queue is dropped, and that answers it.
        if self.inner.queue.send(Message::Job(task)).is_ok() {
            self.inner.waiting.move_by(1);
        }
        answered.recv().unwrap_or_else(|_| Err(Error::closed().into()))
    }

    /// Whether it makes the changes of another store again and none of its own from the next job on: a job that would
    /// make one fails with [`Error::Following`]. Rows of [`Write::local_put`] are no such changes.
    pub fn follow(&self, follows: bool) {
        self.inner.shared.follow(follows);
    }

    /// Whether it does: see [`Store::follow`].
    pub fn is_following(&self) -> bool {
        self.inner.shared.is_following()
    }

    /// Has each commit that extends the feed taken by `append` before it is on the disk, from the next one on.
    pub fn append_to(&self, append: Option<Arc<dyn Append>>) {
        self.inner.shared.append_to(append);
    }

    /// Asks `confirms` about each commit of the store's own that extends the feed and is on the disk, before it is answered,
    /// on the committer's thread, from the next one on. A commit that is not confirmed stays, and is answered with the error,
    /// [`Error::NotConfirmed`].
    pub fn confirm_by(&self, confirms: impl Fn() -> Result<(), Error> + Send + Sync + 'static) {
        self.inner.shared.confirm_by(Arc::new(confirms));
    }

    /// Calls `heard` with each position of the feed when it is on the disk, and whether it is another store's that was
    /// applied, on the committer's thread, from the next one on.
    pub fn tell_positions(&self, heard: impl Fn(u64, bool) + Send + Sync + 'static) {
        self.inner.shared.tell(Arc::new(heard));
    }

    /// How large it is, and the reader that holds it up. Readers whose process has died are let go
    /// of first.
    ///
    /// # Errors
    /// As [`Store::read`], and the system's.
    pub fn size(&self) -> Result<Size, Error> {
        size::of(&self.inner.shared)
    }

    /// Why the last commit was refused, if it was: a full disk, mostly, and there may be room by the next.
    pub fn refused(&self) -> Option<Error> {
        self.inner.shared.refusal()
    }

    /// Why the store takes no more changes, if it does not: it has to be opened again.
    pub fn failed(&self) -> Option<String> {
        self.inner.shared.failure()
    }

    /// Whether the data file that is open is still the one in the folder: commits of other processes go there.
    ///
    /// # Errors
    /// [`Error::Displaced`] if it is not; the system's, if it does not say.
    pub fn is_in_place(&self) -> Result<(), Error> {
        self.inner.shared.is_in_place()
    }

    /// Whether changes are put into the feed ([`Options::feed`]).
    pub fn keeps_feed(&self) -> bool {
        self.inner.shared.feed.is_some()
    }

    /// Random identity (UUID version 4) of this store, given when it was created.
    pub fn incarnation(&self) -> [u8; 16] {
        self.inner.shared.incarnation
    }

    /// Commits and answers all accepted changes and ends a bulk load: after `Ok` everything is on
    /// the disk, whatever [`Options::sync`] was. Other clones can still read.
    ///
    /// The files are closed, and can be opened again, when all clones and reads are dropped.
    pub fn close(self) -> Result<(), Error> {
        self.inner.join()
    }

    fn refuse_if_failed(&self) -> Result<(), Error> {
        match self.inner.shared.failure() {
            Some(why) => Err(Error::Failed { why }),
            None => Ok(()),
        }
    }
}

impl Inner {
    /// Ends the committer after the jobs accepted so far; what became of a bulk load.
    fn join(&self) -> Result<(), Error> {
        let committer = self.committer.lock().unpoisoned().take();
        let Some(committer) = committer else { return Ok(()) };
        // The last handle may be dropped by a `done`, on the committer's own thread. It cannot
        // wait for itself; the queue ends when this handle is gone.
        if committer.thread().id() == thread::current().id() {
            return Ok(());
        }
        // A send fails only if the committer is gone already.
        let _ = self.queue.send(Message::Close);
        committer.join().unwrap_or_else(|_| Err(Error::closed()))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // An error cannot be reported here; the mark that then stays will tell.
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, EntryId};
    use std::sync::mpsc::channel;

    #[test]
    fn a_store_that_has_failed_answers_all_and_accepts_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { sync: false, map_bytes_max: 64 << 20, ..Options::default() };
        let store = Store::open(dir.path(), options.clone()).unwrap();
        let add = |w: &mut Write<'_>| w.insert(EntryId::ROOT, b"a", &Entry::default(), &[]);
        let id = store.write_now(add).unwrap();
        let (answer, answers) = channel();
        let (hold, held) = channel::<()>();
        let wait = move |_: &mut Write<'_>| -> Result<(), Error> {
            let _ = held.recv();
            Ok(())
        };
        store.submit(wait, drop).unwrap();
        for _ in 0..3 {
            let answer = answer.clone();
            store.submit(add, move |result| answer.send(result).unwrap()).unwrap();
        }
        let why = std::io::Error::from_raw_os_error(5);
        store.inner.shared.fail(&Error::system("committing", why));
        drop((hold, answer));
        let answers: Vec<_> = answers.iter().collect();
        assert_eq!(answers.len(), 3);
        assert!(answers.iter().all(|a| matches!(a, Err(Error::Failed { .. }))), "{answers:?}");
        assert!(store.failed().is_some_and(|why| why.starts_with("committing: ")));
        assert!(matches!(store.submit(add, drop), Err(Error::Failed { .. })));
        assert!(matches!(store.write_now(add), Err(Error::Failed { .. })));
        assert!(store.read().unwrap().view().entry(id).unwrap().is_some(), "reading goes on");
        store.close().unwrap();
        let again = Store::open(dir.path(), options);
        assert!(matches!(again, Err(OpenError::Unfinished)), "a load that failed is not whole");
    }
}
