//! The handle through which every part of the server writes lines.

use super::record::{Access, Field, LogKind, Record, Severity};
use keyway_meter::{Counter, counter};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::SystemTime;

/// The handle. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Log(Option<Arc<Inner>>);

struct Inner {
    put: Box<dyn Fn(&Record<'_>) + Send + Sync>,
    sync: Box<dyn Fn() -> bool + Send + Sync>,
    access: AtomicU8,
    one_in: AtomicU32,
    audit: AtomicBool,
    left_out: Counter,
    /// Number of the first kept line of the audit log that was not handed over yet.
    said: AtomicU64,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Log" } else { "Log(none)" })
    }
}

impl Log {
    /// A log whose lines go to `put`, which is called by any thread and must not wait for long. `sync` brings
    /// those of the audit log that came before to the disk, waits for that, and says whether it could.
    pub fn new(
        put: impl Fn(&Record<'_>) + Send + Sync + 'static,
        sync: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Log {
        Log(Some(Arc::new(Inner {
            put: Box::new(put),
            sync: Box::new(sync),
            access: AtomicU8::new(Access::Refused as u8),
            one_in: AtomicU32::new(1),
            audit: AtomicBool::new(true),
            left_out: counter("log.left_out"),
            said: AtomicU64::new(0),
        })))
    }

    /// Sets what is written down from now on. With [`Access::Everything`], one in so many (at least
    /// 1) of the operations that went well is, and all others.
    pub fn set(&self, access: Access, one_in: u32, audit: bool) {
        if let Some(inner) = &self.0 {
            inner.access.store(access as u8, Ordering::Relaxed);
            inner.one_in.store(one_in.max(1), Ordering::Relaxed);
            inner.audit.store(audit, Ordering::Relaxed);
        }
    }

    /// Which operations are written down.
    pub fn access(&self) -> Access {
        match self.0.as_ref().map(|inner| inner.access.load(Ordering::Relaxed)) {
            None | Some(0) => Access::Off,
            Some(1) => Access::Refused,
            Some(_) => Access::Everything,
        }
    }

    /// Whether the one of this number among many that went well is written down.
    pub fn takes(&self, number: u64) -> bool {
        let one_in = self.0.as_ref().map_or(1, |inner| inner.one_in.load(Ordering::Relaxed));
        // Most take all, and need no division.
        one_in == 1 || number.is_multiple_of(one_in.into())
    }

    /// Counts a line that was not written because others stand for it.
    pub fn left_out(&self) {
        if let Some(inner) = &self.0 {
            inner.left_out.increment();
        }
    }

    /// Whether changes are written down.
    pub fn audits(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.audit.load(Ordering::Relaxed))
    }

    /// Brings lines of the audit log to the disk; says whether it could. It waits for the disk.
    pub(crate) fn sync(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| (inner.sync)())
    }

    /// Notes that kept lines of the audit log before this number were handed over.
    pub(crate) fn said(&self, next: u64) {
        if let Some(inner) = &self.0 {
            inner.said.fetch_max(next, Ordering::Release);
        }
    }

    /// The number of the first kept line that was not.
    pub(crate) fn said_until(&self) -> u64 {
        self.0.as_ref().map_or(0, |inner| inner.said.load(Ordering::Acquire))
    }

    /// Writes a line, if there is somewhere to write to. Whether its kind is wanted the caller has
    /// asked; lines of the error log always are.
    pub fn put(&self, record: &Record<'_>) {
        if let Some(inner) = &self.0 {
            (inner.put)(record);
        }
    }

    /// Writes a line of the error log.
    pub fn say(&self, at: SystemTime, severity: Severity, event: &str, fields: &[Field<'_>]) {
        self.put(&Record { at, kind: LogKind::Error(severity), event, fields });
    }
}
