//! `keyway undo`: the reverse of commits, made as new changes.

use crate::administrator::Administrator;
use crate::data_flag::Data;
use clap::Args;
use keyway_host::failure::Failure;
use keyway_service::undo::{self, UndoPosition};

/// Undo changes: make the reverse of a commit as new changes
///
/// An entry that was deleted comes back as it was, with its entryUUID, its passwords, and its memberships in groups;
/// one that was added goes; values and names are changed back. The changes are made in the running server, as its
/// administrator, or in the data folder if no server runs. They are in the feed like others, so that they can be
/// undone, too.
///
/// All is checked first. If something was changed again since, it says which position has done that, and changes
/// nothing. The schema and naming contexts are not undone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway history uid=ann,ou=People,dc=example,dc=com
      what became of the entry: the number before the dot is the position of a commit
  keyway undo 1207 --dry-run
      show what would be changed, as change records
  keyway undo 1207
      undo all that commit 1207 has changed; it says at which positions that was done
  keyway undo 1207.3
      only the request that has made change 3, of a commit with several that came at one time
  keyway undo 1207 1209 1210
      several commits, the last one first")]
pub struct Undo {
    /// Positions of commits, as keyway directory changes shows them
    #[arg(value_name = "POSITION", required = true)]
    pub positions: Vec<UndoPosition>,
    #[command(flatten)]
    pub data: Data,
    /// Undo all requests of a commit that has several
    #[arg(long)]
    pub all: bool,
    /// Show the changes as LDIF, and make none
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub administrator: Administrator,
    /// Answer with lines of JSON
    #[arg(long)]
    pub json: bool,
}

/// Undoes them.
///
/// # Errors
/// If they cannot be undone, or the server refuses a change.
pub fn run(arguments: &Undo) -> Result<(), Failure> {
    let Undo { positions, data, all, dry_run, administrator, json } = arguments;
    let undo = undo::Undo::plan(&data.folder, positions, *all)?;
    if *dry_run {
        return undo.show(*json);
    }
    if !undo.changes.is_empty() {
        let go_on = "the same command undoes the rest";
        administrator.make(&data.folder, &undo.changes, go_on)?;
    }
    undo.report(*json)
}
