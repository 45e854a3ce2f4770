//! How a server stands in its cluster by its store alone, for one that neither follows nor is followed yet.

use super::limits::SEND_WAIT;
use super::row;
use super::service::{Boxed, Follow, MemberService, Refused};
use super::stream::MemberStream;
use keyway_cluster::message::{ClusterRow, Digest, MemberId, Refusal, RoleName, Status};
use keyway_config::MemberUrl;
use keyway_folder::member;
use keyway_host::failure::Failure;
use keyway_store::Store;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// A server that says how it stands, and adds members if it writes. It sends no rows and takes no operations.
pub struct Standing {
    store: Store,
    folder: PathBuf,
    own_url: MemberUrl,
}

impl Standing {
    /// Of the server on a data folder, which others reach by that URL.
    pub fn new(store: Store, folder: PathBuf, own_url: MemberUrl) -> Arc<Standing> {
        Arc::new(Standing { store, folder, own_url })
    }
}

/// How the server on a data folder stands, by its store.
///
/// # Errors
/// If it is no member, or the store cannot be read.
pub fn status_of(store: &Store, folder: &Path, own_url: &MemberUrl) -> Result<Status, Failure> {
    let unreadable = |why| Failure::new(format!("cannot read the store: {why}"));
    let own = member::read(folder)?.ok_or_else(|| Failure::new("this server is no member"))?;
    let id = MemberId(own.number().unwrap_or_default());
    let row = row::read(store)?;
    let head = store.read().map_err(unreadable)?.view().feed_head().map_err(unreadable)?;
    let position = head.as_ref().map_or(0, |head| head.position);
    Ok(Status {
        role: role(row.as_ref(), id),
        member: id,
        name: own.name,
        url: Some(own_url.to_string()),
        epoch: row.as_ref().map_or(0, |row| row.epoch),
        writer: row.as_ref().map(|row| row.writer),
        heard: None,
        is_connected: false,
        position,
        digest: Digest(head.map_or([0; 32], |head| head.digest.0)),
        head: position,
        lag_changes: 0,
        lag_seconds: None,
        last_error: None,
        followers: Vec::new(),
        contents: None,
    })
}

fn role(row: Option<&ClusterRow>, own: MemberId) -> RoleName {
    match row {
        Some(row) if row.writer == own => RoleName::Writer,
        Some(_) => RoleName::Follower,
        None => RoleName::Alone,
    }
}

impl MemberService for Standing {
    fn may_add(&self) -> Result<(), Refused> {
        // The row says which member writes, and is looked at where it is changed.
        Ok(())
    }

    fn status(&self) -> Boxed<Result<Status, Refused>> {
        let (store, folder, url) = (self.store.clone(), self.folder.clone(), self.own_url.clone());
        Box::pin(async move {
            let status = spawn_blocking(move || status_of(&store, &folder, &url)).await;
            status.map_err(Refused::because)?.map_err(Refused::because)
        })
    }

    fn promote(&self) -> Boxed<Result<u64, Refused>> {
        Box::pin(async { Err(Refused::because("this server follows no other: it writes already")) })
    }

    fn follow(&self, stream: MemberStream, _: Follow) -> Boxed<()> {
        refuse(stream)
    }

    fn forward(&self, stream: MemberStream, _: MemberId) -> Boxed<()> {
        refuse(stream)
    }
}

fn refuse(mut stream: MemberStream) -> Boxed<()> {
    Box::pin(async move {
        // A peer that is gone needs no answer.
        let _ = stream.answer(Refused::from(Refusal::Busy).answer(), SEND_WAIT).await;
    })
}
