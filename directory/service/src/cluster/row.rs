//! The cluster's row in the store: read, and changed by the member that writes.

use keyway_cluster::message::{ClusterId, ClusterRow, MEMBERS_LIMIT, Member, MemberId, Refusal};
use keyway_host::failure::Failure;
use keyway_server::{ChangeNote, Reason};
use keyway_store::{Error, Store};
use std::fmt::{self, Display};
use std::time::SystemTime;

/// Why the row was not changed.
#[derive(Debug)]
pub enum NotChanged {
    /// Another member will not have it so.
    Refused(Refusal),
    /// The store's reason, or the row is none.
    Failed(String),
}

impl From<Error> for NotChanged {
    fn from(why: Error) -> NotChanged {
        NotChanged::Failed(why.to_string())
    }
}

impl Display for NotChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotChanged::Refused(why) => why.fmt(f),
            NotChanged::Failed(why) => f.write_str(why),
        }
    }
}

/// The row of a store; `None` if it is in no cluster.
///
/// # Errors
/// If the store cannot be read, or its row is none.
pub fn read(store: &Store) -> Result<Option<ClusterRow>, Failure> {
    let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
    let read = store.read().map_err(unreadable)?;
    let row = read.view().meta_get(ClusterRow::NAME).map_err(unreadable)?;
    row.map(|row| ClusterRow::parse(row).map_err(Failure::new)).transpose()
}

/// Puts the row of a reign that begins, as the change behind this position, and waits until that is on the disk.
///
/// # Errors
/// [`Error::Busy`] if that is not the last position, and the store's.
pub fn begin(store: &Store, last: u64, row: &ClusterRow) -> Result<(), Failure> {
    let json = row.to_json().map_err(Failure::new)?;
    let note = ChangeNote::own(Reason::Server, SystemTime::now()).encode();
    let written = store.write_now(move |write| -> Result<(), Error> {
        let head = write.view().feed_head()?;
        if head.map_or(0, |head| head.position) != last {
            return Err(Error::Busy);
        }
        write.lead();
        write.note(&note);
        write.meta_put(ClusterRow::NAME, &json)
    });
    written.map_err(Failure::new)
}

/// Adds a member, and waits until that is on the disk. The first one makes the store a cluster's, in which `own` writes.
///
/// # Errors
/// If `own` does not write, there are too many members or one with that name, or the store's.
pub fn add(
    store: &Store,
    own: &Member,
    new: &Member,
    cluster: ClusterId,
) -> Result<ClusterRow, NotChanged> {
    let (own, new) = (own.clone(), new.clone());
    let note = ChangeNote::own(Reason::Server, SystemTime::now()).encode();
    store.write_now(move |write| {
        let invalid = |why| NotChanged::Failed(format!("the row of the cluster: {why}"));
        let found = write.view().meta_get(ClusterRow::NAME)?.map(ClusterRow::parse);
        let mut row = match found.transpose().map_err(invalid)? {
            Some(row) => row,
            None => ClusterRow {
                cluster,
                epoch: 1,
                writer: own.id,
                members: vec![own.clone()],
                began: Vec::new(),
                etcd: None,
            },
        };
        writes(&row, own.id)?;
        let is_like = |member: &Member| member.id == new.id || member.name == new.name;
        if row.members.len() >= MEMBERS_LIMIT || row.members.iter().any(is_like) {
            return Err(NotChanged::Refused(Refusal::NoRoom));
        }
        row.members.push(new.clone());
        let json = row.to_json().map_err(invalid)?;
        write.note(&note);
        write.meta_put(ClusterRow::NAME, &json)?;
        Ok(row)
    })
}

/// Has a member reached at another URL, and waits until that is on the disk.
///
/// # Errors
/// If `own` does not write, another member is reached there, or the store's.
pub fn move_to(
    store: &Store,
    own: MemberId,
    member: MemberId,
    url: &str,
) -> Result<(), NotChanged> {
    let url = url.to_owned();
    let note = ChangeNote::own(Reason::Server, SystemTime::now()).encode();
    store.write_now(move |write| {
        let invalid = |why| NotChanged::Failed(format!("the row of the cluster: {why}"));
        let found = write.view().meta_get(ClusterRow::NAME)?.map(ClusterRow::parse);
        let Some(mut row) = found.transpose().map_err(invalid)? else { return Ok(()) };
        writes(&row, own)?;
        if let Some(other) = row.members.iter().find(|one| one.url == url && one.id != member) {
            let name = &other.name;
            return Err(NotChanged::Failed(format!("{url} is where {name} is reached")));
        }
        match row.members.iter_mut().find(|one| one.id == member) {
            Some(found) if found.url != url => found.url.clone_from(&url),
            _ => return Ok(()),
        }
        let json = row.to_json().map_err(invalid)?;
        write.note(&note);
        Ok(write.meta_put(ClusterRow::NAME, &json)?)
    })
}

/// Removes a member whose join was not done.
///
/// # Errors
/// The store's.
pub fn remove(store: &Store, member: MemberId) -> Result<(), NotChanged> {
    let note = ChangeNote::own(Reason::Server, SystemTime::now()).encode();
    store.write_now(move |write| {
        let invalid = |why| NotChanged::Failed(format!("the row of the cluster: {why}"));
        let found = write.view().meta_get(ClusterRow::NAME)?.map(ClusterRow::parse);
        let Some(mut row) = found.transpose().map_err(invalid)? else { return Ok(()) };
        row.members.retain(|one| one.id != member);
        let json = row.to_json().map_err(invalid)?;
        write.note(&note);
        Ok(write.meta_put(ClusterRow::NAME, &json)?)
    })
}

/// That a member writes.
fn writes(row: &ClusterRow, own: MemberId) -> Result<(), NotChanged> {
    if row.writer == own {
        return Ok(());
    }
    let writer_url = row.member(row.writer).map(|writer| writer.url.clone());
    Err(NotChanged::Refused(Refusal::NotWriter { writer_url }))
}
