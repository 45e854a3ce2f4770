//! The arguments of `keyway snapshot`.

use crate::data_flag::DataAndForm;
use clap::{Args, Subcommand};

/// Keep this moment of a directory in its data folder, before a risky change, and go back to it
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Before and after a risky change:
  keyway snapshot create before-import            the server goes on
  keyway directory import people.ldif             what was risky, and goes wrong
  keyway snapshot rollback before-import          the server is stopped for that; then keyway up

A snapshot is the store alone: entries, passwords, the schema and access rules that were changed
over LDAP. keyway.toml, DIR/schema, keys and logs stay as they are. It lies in DIR/snapshots, and
so is lost with the disk: for that case make backups (keyway backup).")]
pub enum Snapshot {
    Create(Create),
    List(List),
    Delete(Delete),
    Rollback(Rollback),
}

/// Keep the directory as it is now, also while a server runs
///
/// It has all that was acknowledged before it begins. On a file system that can share blocks (XFS, Btrfs) it is made at
/// once and takes room only for what changes later; elsewhere it is a copy of the pages in use.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway snapshot create
      named by the time in UTC, as in 20261124T083000Z
  keyway snapshot create before-upgrade --data /srv/directory --json")]
pub struct Create {
    /// Its name: letters, digits, '-', '_' and '.' [default: the time]
    pub name: Option<String>,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// List the snapshots, oldest first
///
/// The exit status is 1 if one is damaged. Bytes are those on the disk, shared ones counted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway snapshot list
      name, time, entries, position of the feed, bytes")]
pub struct List {
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Delete snapshots
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway snapshot delete before-import 20261124T083000Z")]
pub struct Delete {
    /// Their names
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Put a snapshot in the place of the store, which is kept as a snapshot itself
///
/// No server may run on the folder. The store of before is there as before-rollback-TIME, and so a rollback can be
/// undone by another one. A rollback that is killed has been done whole or not at all. The store gets an identity of
/// its own, so that nothing that followed the old one takes it for that. The snapshot stays.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway snapshot rollback before-import
      then: keyway up
  keyway snapshot rollback before-import --discard
      give up the store of before, which may be damaged")]
pub struct Rollback {
    /// The snapshot
    pub name: String,
    /// Do not keep the store of before
    #[arg(long)]
    pub discard: bool,
    #[command(flatten)]
    pub data: DataAndForm,
}
