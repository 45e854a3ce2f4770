//! The arguments of `keyway directory` about indexes.

use crate::data_flag::{Data, DataAndForm};
use clap::{Args, ValueEnum};
use keyway_codec::message;

/// List the indexes, and how far those are that are being built
///
/// Searches use an index when it is whole. It can be asked while a server has the folder open, and
/// nothing is changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory indexes
      each attribute's indexes, and what is still to be done
  keyway directory indexes --json
      as one line of JSON

Which there are is said in [indexes] of DIR/keyway.toml. After a change SIGHUP (or a start) has a
running server build what is new and drop what is not wanted any more, while it serves.")]
pub struct Indexes {
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Rebuild indexes from the entries
///
/// A running server does it itself, in pieces between which it goes on serving; searches do not use
/// these indexes until they are complete. The server also reloads its configuration, as
/// with SIGHUP. The indexes of references, groups and unique values can be rebuilt only
/// while no server runs. If it is killed in the middle, it goes on at the next start.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory reindex
      all of them
  keyway directory reindex mail sn --data /srv/directory
      those of two attributes
  keyway directory reindex mail --json
      one line of JSON when it is done")]
pub struct Reindex {
    /// The attributes whose indexes are made anew [default: all that are indexed]
    #[arg(value_name = "ATTRIBUTE")]
    pub attributes: Vec<String>,
    #[command(flatten)]
    pub data: Data,
    /// Say how it went as one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Show how a search would be done: which index leads to how many entries
///
/// The shortest list of entries is walked. Entries that other lists do not have are left out, where that
/// is cheaper than to look at the entries; each entry that is left is read and put to the whole filter.
/// The numbers of the plan are counted in the present state of the directory, also while a server has it
/// open.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory explain '(&(objectClass=person)(mail=ann@*))'
      in the whole directory
  keyway directory explain '(description=*printer*)' --base ou=Hosts,dc=example,dc=com --scope one
      in one level below an entry
  keyway directory explain '(sn~=meier)' --json
      as one line of JSON")]
pub struct Explain {
    /// The filter (RFC 4515)
    #[arg(value_name = "FILTER")]
    pub filter: String,
    /// The entry that it is searched from [default: all naming contexts]
    #[arg(long, value_name = "DN", default_value = "", hide_default_value = true)]
    pub base: String,
    /// How much of the tree
    #[arg(long, value_enum, default_value_t = Scope::Sub)]
    pub scope: Scope,
    #[command(flatten)]
    pub data: DataAndForm,
}

/// Say which indexes the searches of a running server lack, and what that costs
///
/// The server counts searches that no index helps, what they look at and how long they take, since it
/// was started. The index that would help most comes first, with the line for `indexes` in
/// DIR/keyway.toml; after SIGHUP the server builds it while it runs. These counters are in keyway
/// metrics, too, and with access = "everything" each such search has the field 'unindexed' in
/// DIR/log/access.log.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory advise
  keyway directory advise --data /srv/directory --json")]
pub struct Advise {
    #[command(flatten)]
    pub data: DataAndForm,
}

/// How much of the tree a search goes through.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Scope {
    /// The entry and all below it
    Sub,
    /// The entries one level below it
    One,
    /// All below it, without itself
    Children,
}

impl From<Scope> for message::Scope {
    fn from(scope: Scope) -> message::Scope {
        match scope {
            Scope::Sub => message::Scope::Subtree,
            Scope::One => message::Scope::One,
            Scope::Children => message::Scope::Subordinate,
        }
    }
}
