//! A job with the types of its result taken away.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, Write};

/// A change that waits to be run, committed and answered.
///
/// Whatever happens to it, its `done` is called once: one that is dropped is answered too.
pub(crate) trait Task: Send {
    /// Runs the job; whether it succeeded. A panic is a failure.
    fn run(&mut self, write: &mut Write<'_>) -> bool;

    /// Answers with the result of the last run, or with what became of its commit.
    fn finish(&mut self, committed: Result<(), Error>);

    /// Takes the `done` away: the caller hears in another way.
    fn forget(&mut self);
}

/// The task that [`crate::Store::submit`] makes of a job and its `done`.
pub(crate) struct Typed<J, D, T, E>
where
    D: FnOnce(Result<T, E>),
    E: From<Error>,
{
    job: J,
    done: Option<D>,
    result: Option<Result<T, E>>,
}

impl<J, D, T, E> Typed<J, D, T, E>
where
    D: FnOnce(Result<T, E>),
    E: From<Error>,
{
    pub(crate) fn new(job: J, done: D) -> Self {
        Typed { job, done: Some(done), result: None }
    }

    fn answer(&mut self, committed: Result<(), Error>) {
        let Some(done) = self.done.take() else { return };
        let result = match (self.result.take(), committed) {
            (Some(Err(refused)), _) => Err(refused),
            (_, Err(error)) => Err(error.into()),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(Error::closed().into()),
        };
        // A panic of one `done` must not keep the others from being answered.
        let _ = catch_unwind(AssertUnwindSafe(|| done(result)));
    }
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
        // The first failure is the reason, whatever LMDB says to later attempts.
        if let Some(error) = write.broken() {
            result = Err(error.clone().into());
        }
        let good = result.is_ok();
        self.result = Some(result);
        good
    }

    fn finish(&mut self, committed: Result<(), Error>) {
        self.answer(committed);
    }

    fn forget(&mut self) {
        self.done = None;
    }
}

impl<J, D, T, E> Drop for Typed<J, D, T, E>
where
    D: FnOnce(Result<T, E>),
    E: From<Error>,
{
    fn drop(&mut self) {
        self.answer(Err(Error::closed()));
    }
}
