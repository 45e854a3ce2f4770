//! Changes, noted while they are made.

use super::change::{DELETED, INSERTED, LargeValuesEdit, META, MOVED, UPDATED};
use super::edits::put_edits;
use crate::parts::{put_slice, put_varint};
use crate::{Entry, EntryId, EntryRef, ValueKey};

/// The changes of a transaction, job by job, in the form in which a row has them.
#[derive(Default)]
pub(crate) struct Recorder {
    note: Vec<u8>,
    /// Changes of the job that is running.
    job: Vec<u8>,
    job_changes: u64,
    /// Jobs that have changed something: `(note | varint changes | change…)…`.
    jobs: Vec<u8>,
    jobs_count: u64,
    changes: u64,
}

impl Recorder {
    /// The next changes are those of another job.
    pub fn begin_job(&mut self) {
        if self.job_changes > 0 {
            put_slice(&mut self.jobs, &self.note);
            put_varint(&mut self.jobs, self.job_changes);
            self.jobs.append(&mut self.job);
            self.jobs_count += 1;
            self.job_changes = 0;
        }
        self.note.clear();
    }

    /// The caller's note on the changes of this job.
    pub fn note(&mut self, note: &[u8]) {
        self.note.clear();
        self.note.extend_from_slice(note);
    }

    /// Takes a change.
    pub fn push(&mut self, change: &[u8]) {
        self.job.extend_from_slice(change);
        self.job_changes += 1;
        self.changes += 1;
    }

    /// All jobs, as the end of a row, and how many changes there are.
    pub fn finish(mut self) -> (Vec<u8>, u64) {
        self.begin_job();
        let mut body = Vec::with_capacity(self.jobs.len() + 10);
        put_varint(&mut body, self.jobs_count);
        body.append(&mut self.jobs);
        (body, self.changes)
    }
}

/// Gathers what becomes of large values, if the feed is to have it.
pub(crate) struct LargeNotes(Option<Vec<LargeValuesEdit>>);

impl LargeNotes {
    /// Takes notes, or none.
    pub fn new(are_taken: bool) -> LargeNotes {
        LargeNotes(are_taken.then(Vec::new))
    }

    /// The attributes so far; none if no notes are taken.
    pub fn edits(&self) -> &[LargeValuesEdit] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Notes an attribute; the edit to be filled in.
    pub fn attribute(&mut self, name: &str, is_named: bool) -> Option<&mut LargeValuesEdit> {
        let edits = self.0.as_mut()?;
        let edit =
            LargeValuesEdit { name: name.to_owned(), is_named, ..LargeValuesEdit::default() };
        edits.push(edit);
        edits.last_mut()
    }
}

/// Which of the two a [`put_whole`] is.
#[derive(Clone, Copy)]
pub(crate) enum Came {
    Inserted,
    Deleted,
}

/// An entry that came or went. `body` is its record without the checksum.
pub(crate) fn put_whole(
    came: Came,
    id: EntryId,
    (above, component): (&str, &[u8]),
    body: &[u8],
    large: &[LargeValuesEdit],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + above.len() + component.len() + 32);
    out.push(match came {
        Came::Inserted => INSERTED,
        Came::Deleted => DELETED,
    });
    put_varint(&mut out, id.0);
    put_slice(&mut out, above.as_bytes());
    put_slice(&mut out, component);
    put_slice(&mut out, body);
    put_varint(&mut out, large.len() as u64);
    for edit in large {
        put_slice(&mut out, edit.name.as_bytes());
        put_values(
            &mut out,
            match came {
                Came::Inserted => &edit.added,
                Came::Deleted => &edit.removed,
            },
        );
    }
    out
}

/// The change of an entry in its place, without its large attributes.
pub(crate) fn put_update(
    id: EntryId,
    identity: &[u8],
    above: &str,
    old: &EntryRef<'_>,
    new: &Entry,
) -> Vec<u8> {
    let mut out = vec![UPDATED];
    put_varint(&mut out, id.0);
    put_slice(&mut out, identity);
    for text in [above, old.rdn(), &new.rdn] {
        put_slice(&mut out, text.as_bytes());
    }
    put_edits(&mut out, old, &new.attributes);
    out
}

/// The end of a [`put_update`].
pub(crate) fn put_large(out: &mut Vec<u8>, large: &[LargeValuesEdit]) {
    put_varint(out, large.len() as u64);
    for edit in large {
        put_slice(out, edit.name.as_bytes());
        put_varint(out, edit.is_named.into());
        put_values(out, &edit.removed);
        put_values(out, &edit.added);
    }
}

/// A move.
pub(crate) fn put_move(
    id: EntryId,
    identity: &[u8],
    rdn: &str,
    parent: [EntryId; 2],
    above: [&str; 2],
    component: [&[u8]; 2],
) -> Vec<u8> {
    let mut out = vec![MOVED];
    put_varint(&mut out, id.0);
    put_slice(&mut out, identity);
    put_slice(&mut out, rdn.as_bytes());
    parent.iter().for_each(|parent| put_varint(&mut out, parent.0));
    above.iter().for_each(|above| put_slice(&mut out, above.as_bytes()));
    component.iter().for_each(|component| put_slice(&mut out, component));
    out
}

/// A row that was put or removed.
pub(crate) fn put_meta(name: &str, value: [Option<&[u8]>; 2]) -> Vec<u8> {
    let mut out = vec![META];
    put_slice(&mut out, name.as_bytes());
    for value in value {
        put_varint(&mut out, value.is_some().into());
        if let Some(value) = value {
            put_slice(&mut out, value);
        }
    }
    out
}

fn put_values(out: &mut Vec<u8>, values: &[(ValueKey, Vec<u8>)]) {
    put_varint(out, values.len() as u64);
    for (key, value) in values {
        out.extend_from_slice(&key.0);
        put_slice(out, value);
    }
}
