//! `keyway snapshot`.

mod arguments;

pub use arguments::Snapshot;

use arguments::{Create, Delete, List, Rollback};
use keyway_folder::user::become_owner;
use keyway_host::failure::Failure;
use keyway_host::limits::yield_to_others;
use keyway_host::progress::Progress;
use keyway_service::snapshot::{self, told};

/// Does what the arguments ask for. Returns whether all is well; what is not has been said.
///
/// # Errors
/// Whatever keeps it from being done.
pub fn run(command: &Snapshot) -> Result<bool, Failure> {
    match command {
        Snapshot::Create(create) => created(create).map(|()| true),
        Snapshot::List(list) => listed(list),
        Snapshot::Delete(delete) => deleted(delete).map(|()| true),
        Snapshot::Rollback(rollback) => rolled_back(rollback).map(|()| true),
    }
}

fn created(create: &Create) -> Result<(), Failure> {
    become_owner(&create.data.folder)?;
    yield_to_others();
    let progress = Progress::bytes("copying", None);
    let told = &mut |done, total| bytes(&progress, done, total);
    let made = snapshot::create(&create.data.folder, create.name.as_deref(), told)?;
    drop(progress);
    made.say(create.data.json)
}

fn listed(list: &List) -> Result<bool, Failure> {
    become_owner(&list.data.folder)?;
    told::list(&snapshot::list(&list.data.folder)?, list.data.json)
}

fn deleted(delete: &Delete) -> Result<(), Failure> {
    become_owner(&delete.data.folder)?;
    snapshot::delete(&delete.data.folder, &delete.names)?;
    told::deleted(&delete.names, delete.data.json)
}

fn rolled_back(rollback: &Rollback) -> Result<(), Failure> {
    let (folder, name) = (&rollback.data.folder, &rollback.name);
    become_owner(folder)?;
    let progress = Progress::bytes("copying", None);
    let told = &mut |done, total| bytes(&progress, done, total);
    let done = snapshot::rollback(folder, name, rollback.discard, told)?;
    drop(progress);
    done.say(folder, name, rollback.data.json)
}

fn bytes(progress: &Progress, done: u64, total: u64) {
    progress.of(total);
    progress.step(done, "");
}
