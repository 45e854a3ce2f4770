//! The results of requests: told to a listener as they come, and summed up.

use super::replayed::Replayed;
use crate::replay::{Comparison, Difference, Now, Request};
use keyway_host::failure::Failure;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Display};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

/// How many connections that could not be opened are told one by one.
const NOT_OPENED_TOLD_MAX: u64 = 3;

/// Hears what a replay comes upon.
pub trait ReplayListener {
    /// A request came to something else than before.
    ///
    /// # Errors
    /// If it cannot be told: then nothing is sent any more.
    fn difference(&self, difference: &Difference<'_>) -> Result<(), Failure>;

    /// A remark, a line.
    fn remark(&self, text: &dyn Display);
}

/// The results of requests so far, for all connections.
#[derive(Clone)]
pub(super) struct Telling(Rc<Told>);

struct Told {
    listener: Box<dyn ReplayListener>,
    comparison: RefCell<Comparison>,
    differences_max: u64,
    told: Cell<u64>,
    /// Why nothing can be said any more.
    failed: RefCell<Option<Failure>>,
    unheard: Notify,
    not_opened: Cell<u64>,
}

impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").field("told", &self.0.told).finish_non_exhaustive()
    }
}

impl Telling {
    /// Tells this listener, of so many differences at most.
    pub fn new(listener: Box<dyn ReplayListener>, differences_max: u64) -> Telling {
        Telling(Rc::new(Told {
            listener,
            comparison: RefCell::default(),
            differences_max,
            told: Cell::new(0),
            failed: RefCell::new(None),
            unheard: Notify::new(),
            not_opened: Cell::new(0),
        }))
    }

    /// Notes the result of a request.
    pub fn result(&self, connection: u64, request: &Request, now: Now) {
        let told = &self.0;
        let mut comparison = told.comparison.borrow_mut();
        let Some(difference) = comparison.add(connection, request, now) else { return };
        if told.told.get() >= told.differences_max || told.failed.borrow().is_some() {
            return;
        }
        told.told.set(told.told.get() + 1);
        if let Err(why) = told.listener.difference(&difference) {
            *told.failed.borrow_mut() = Some(why);
            told.unheard.notify_one();
        }
    }

    /// A request was sent so long after its time.
    pub fn late(&self, late: Duration) {
        let ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.0.comparison.borrow_mut().was_late(ns);
    }

    /// The server does not take the account: nothing is sent any more.
    pub fn refused(&self, why: &str) {
        let mut failed = self.0.failed.borrow_mut();
        failed.get_or_insert_with(|| Failure::refused(why));
        self.0.unheard.notify_one();
    }

    /// A connection is of no use, for this reason. Where that is so for many, a few are told.
    pub fn connection(&self, number: u64, why: &str) {
        if self.0.failed.borrow().is_some() {
            return;
        }
        let count = self.0.not_opened.get() + 1;
        self.0.not_opened.set(count);
        if count <= NOT_OPENED_TOLD_MAX {
            self.0.listener.remark(&format_args!("c{number}: {why}"));
        }
    }

    /// Waits until nothing can be told any more.
    pub async fn unheard(&self) {
        self.0.unheard.notified().await;
    }

    /// The sum of all results.
    pub fn end(&self, sent_all: bool) -> Result<Replayed, Failure> {
        let told = &self.0;
        if let Some(why) = told.failed.borrow_mut().take() {
            return Err(why);
        }
        let untold = told.not_opened.get().saturating_sub(NOT_OPENED_TOLD_MAX);
        if untold > 0 {
            told.listener.remark(&format_args!("and {untold} connections more"));
        }
        let comparison = told.comparison.take();
        Ok(Replayed { comparison, differences_told: told.told.get(), sent_all })
    }
}
