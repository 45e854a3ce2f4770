//! A member whose writer holds a lease in etcd: what its thread for etcd changes of it.

use super::appending::ToEtcd;
use super::node::{Leased, Node};
use super::row;
use super::row_header::{header, is_cluster_row};
use keyway_cluster::message::{Digest, MemberId, Refusal};
use keyway_cluster::role::Standing;
use keyway_cluster_etcd::Point;
use keyway_cluster_etcd::limits::ROW_BYTES_MAX;
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::log::Severity;
use keyway_store::{Error, RawRow};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Rows, and bytes of them, that an etcd which has none is given at most.
const ROWS_BEGUN: u64 = 1000;
const BYTES_BEGUN: usize = 8 << 20;

impl Node {
    /// Whether it decides by a lease in etcd who writes.
    pub(super) fn is_leased(&self) -> bool {
        self.has_etcd && self.standing().row().is_some()
    }

    /// Whether it writes by its lease.
    pub(super) fn is_open(&self) -> bool {
        self.leased.lock().unpoisoned().is_open
    }

    /// Whether a change may be committed here now.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn may_write(&self) -> Result<(), Refusal> {
        self.may(Standing::may_write)
    }

    /// Whether others may follow.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn may_serve(&self) -> Result<(), Refusal> {
        self.may(Standing::may_serve)
    }

    fn may(
        &self,
        may: impl FnOnce(&mut Standing, Duration) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let is_closed = self.is_leased() && !self.is_open();
        let now = self.now();
        let mut standing = self.standing();
        match may(&mut standing, now) {
            Ok(()) if is_closed => {
                Err(Refusal::NotWriter { writer_url: standing.writer_url().map(str::to_owned) })
            }
            answer => answer,
        }
    }

    /// It writes no more until it has what etcd has.
    pub(super) fn close(self: &Arc<Self>, why: &str, is_in_doubt: bool) {
        let was_open = {
            let mut leased = self.leased.lock().unpoisoned();
            if leased.is_open {
                leased.closed = Some(why.to_owned());
            }
            std::mem::take(&mut leased.is_open)
        };
        if !was_open {
            return;
        }
        // The commit that is under way may be the one that has found it out.
        self.parts.store.follow(true);
        self.parts.store.append_to(None);
        let text = match is_in_doubt {
            true => format!("this server writes no more until it has what etcd has: {why}"),
            false => format!("this server writes no more: {why}"),
        };
        self.say(Severity::Warning, &text);
        self.settle();
    }

    /// Notes a change of what is wrong. Clients whose changes are refused are told of it from now on.
    pub(super) fn note_trouble(self: &Arc<Self>, note: impl FnOnce(&mut Leased)) {
        let is_told = {
            let mut leased = self.leased.lock().unpoisoned();
            let before = leased.trouble().cloned();
            note(&mut leased);
            before.as_ref() != leased.trouble() && !leased.is_open
        };
        if is_told {
            self.settle();
        }
    }

    /// Whether the changes in etcd cannot be applied here.
    pub(super) fn is_stuck(&self) -> bool {
        self.leased.lock().unpoisoned().stuck.is_some()
    }

    /// Whether another process is this member too.
    pub(super) fn has_twin(&self) -> bool {
        self.leased.lock().unpoisoned().twin.is_some()
    }

    /// The changes in etcd cannot be applied here. It is said once.
    pub(super) fn stuck(self: &Arc<Self>, text: &str) {
        let is_new = self.leased.lock().unpoisoned().stuck.as_deref() != Some(text);
        if is_new {
            self.note_trouble(|leased| leased.stuck = Some(text.to_owned()));
            self.say(Severity::Error, text);
        }
    }

    /// The digest of this member's row at a position, if that is kept.
    pub(super) fn digest_at(&self, position: u64) -> Option<Digest> {
        let read = self.parts.store.read().ok()?;
        let head = read.view().feed_head().ok()??;
        if head.position == position {
            return Some(Digest(head.digest.0));
        }
        // The row behind it names it.
        let mut rows = read.view().feed_after(position).ok()?.raw();
        rows.next()?.ok().map(|row| Digest(row.before().0))
    }

    /// This member's rows behind a position, up to another one.
    ///
    /// # Errors
    /// If they are not kept.
    pub(super) fn rows_between(&self, after: u64, to: u64) -> Result<Vec<RawRow>, Failure> {
        if after >= to {
            return Ok(Vec::new());
        }
        let lacking = |why: Error| Failure::new(format!("what etcd lacks is not here: {why}"));
        let read = self.parts.store.read().map_err(lacking)?;
        let rows = read.view().feed_after(after).map_err(lacking)?.raw();
        let rows = rows.take_while(|row| row.as_ref().map_or(true, |row| row.position() <= to));
        rows.collect::<Result<_, _>>().map_err(lacking)
    }

    /// Behind which point this member's rows are put into an etcd that has none: its last ones, as far as they are kept and
    /// fit there.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn feed_start(&self) -> Result<Point, Failure> {
        let unreadable = |why: Error| Failure::new(format!("cannot read the feed: {why}"));
        let read = self.parts.store.read().map_err(unreadable)?;
        let Some(head) = read.view().feed_head().map_err(unreadable)? else {
            return Ok(Point::START);
        };
        let least = head.first.saturating_sub(1).max(head.position.saturating_sub(ROWS_BEGUN));
        let (mut rows, mut bytes) = (VecDeque::new(), 0);
        for row in read.view().feed_after(least).map_err(unreadable)?.raw() {
            let row = row.map_err(unreadable)?;
            let length = row.bytes().len();
            if length > ROW_BYTES_MAX {
                (rows, bytes) = (VecDeque::new(), 0);
                continue;
            }
            rows.push_back((row.position(), Digest(row.before().0), length));
            bytes += length;
            while bytes > BYTES_BEGUN {
                bytes -= rows.pop_front().map_or(bytes, |(_, _, length)| length);
            }
        }
        Ok(match rows.front() {
            Some((position, before, _)) => Point { position: position - 1, digest: *before },
            None => Point { position: head.position, digest: Digest(head.digest.0) },
        })
    }

    /// Applies a row that etcd has. Blocks until it is on the disk.
    ///
    /// # Errors
    /// If it does not follow what is here, or cannot be applied.
    pub(super) fn apply_of_etcd(self: &Arc<Self>, row: RawRow) -> Result<(), Failure> {
        let header = header(&row)?;
        let _turn = self.applying.blocking_lock();
        if self.is_open() {
            return Ok(());
        }
        let is_of_cluster = row.changes().any(is_cluster_row);
        let applied = self.parts.directory.apply(Arc::new([row]));
        applied.map_err(|why| {
            Failure::new(format!("position {} cannot be applied: {why}", header.position))
        })?;
        if is_of_cluster {
            self.look();
        }
        Ok(())
    }

    /// Begins to write by a lease: the first change of the next epoch says so, in etcd before it is here.
    ///
    /// # Errors
    /// If that is not done.
    pub(super) fn begin_reign(
        self: &Arc<Self>,
        last: u64,
        etcd: u64,
        append: Arc<ToEtcd>,
    ) -> Result<(), Failure> {
        let _turn = self.applying.blocking_lock();
        let row = self.standing().leased(last, Some(etcd)).map_err(Failure::new)?;
        let store = &self.parts.store;
        store.append_to(Some(append));
        if let Err(why) = row::begin(store, last, &row) {
            store.follow(true);
            store.append_to(None);
            self.settle();
            return Err(why);
        }
        let epoch = row.epoch;
        self.standing().applied(Some(row));
        {
            let mut leased = self.leased.lock().unpoisoned();
            *leased = Leased { is_open: true, ..Leased::default() };
        }
        self.say(Severity::Info, &format!("this server writes from now on, in epoch {epoch}"));
        self.settle();
        Ok(())
    }

    /// A member has all rows up to this position.
    pub(super) fn acknowledged(&self, member: MemberId, position: u64) {
        self.progress.lock().unpoisoned().acknowledged(member, position, self.now());
    }

    /// Up to which position rows may be removed in etcd, of those up to `wanted`.
    pub(super) fn trim_until(&self, wanted: u64) -> Option<u64> {
        let limit: Duration = self.settings().member_age_max;
        self.progress.lock().unpoisoned().trim_until(self.now(), limit, wanted)
    }

    /// Whether it follows the writer over a connection; with etcd it follows etcd.
    pub(super) fn follows_writer(&self) -> bool {
        !self.is_leased() && self.standing().may_follow()
    }
}
