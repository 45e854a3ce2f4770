//! Changes made in the directory of a data folder that no process serves.

use super::planned::PlannedChange;
use super::sending::carry_out;
use crate::instance::describe;
use crate::offline::{self, Offline};
use keyway_codec::Filter;
use keyway_codec::message::Op;
use keyway_host::failure::Failure;
use keyway_server::controls::RequestControls;
use keyway_server::{ADMINISTRATOR_DN, Subject};
use std::path::Path;
use tokio::runtime::{self, Runtime};

/// Makes changes in a folder, as [`carry_out`].
///
/// # Errors
/// If there is no directory in it, another process uses it, it has no administrator, or a change is refused.
pub fn in_folder(folder: &Path, changes: &[PlannedChange], go_on: &str) -> Result<(), Failure> {
    let opened = FolderChanges::open(folder)?;
    let made = carry_out(changes, go_on, |change| Ok(opened.make(change)));
    opened.offline.instance.close().and(made)
}

/// The directory of a folder, opened for changes by its administrator.
struct FolderChanges {
    offline: Offline,
    subject: Subject,
    runtime: Runtime,
}

impl FolderChanges {
    fn open(folder: &Path) -> Result<FolderChanges, Failure> {
        let offline = offline::open(folder)?;
        let found = offline.instance.directory.credentials(ADMINISTRATOR_DN);
        let found = found.map_err(|why| Failure::new(describe(&why)))?;
        let found = found.ok_or_else(|| {
            Failure::new("the directory has no administrator: keyway admin password makes one")
        })?;
        let runtime = runtime::Builder::new_current_thread()
            .build()
            .map_err(|why| Failure::new(format!("cannot make changes: {why}")))?;
        Ok(FolderChanges { offline, subject: found.subject, runtime })
    }

    fn make(&self, change: &PlannedChange) -> Result<(), Failure> {
        let (directory, subject) = (&self.offline.instance.directory, &self.subject);
        let asserted = change.only_if.iter().map(|(attribute, value)| Filter::Equality {
            attribute: attribute.into(),
            value: value.into(),
        });
        let asserted: Vec<Filter<'_>> = asserted.collect();
        let controls = RequestControls {
            assertion: (!asserted.is_empty()).then_some(Filter::And(asserted)),
            manage_dsa_it: true,
            relax: true,
            ..RequestControls::default()
        };
        let done = match &change.record.request() {
            Op::AddRequest(request) => {
                self.runtime.block_on(directory.add(subject, request, &controls))
            }
            Op::DeleteRequest(dn) => {
                self.runtime.block_on(directory.delete(subject, dn, &controls))
            }
            Op::ModifyRequest(request) => {
                self.runtime.block_on(directory.modify(subject, request, &controls))
            }
            Op::ModifyDnRequest(request) => {
                self.runtime.block_on(directory.modify_dn(subject, request, &controls))
            }
            other => return Err(Failure::new(format!("{other:?} is no change"))),
        };
        done.map(drop).map_err(|why| Failure::new(describe(&why)))
    }
}
