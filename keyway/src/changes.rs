//! `keyway directory changes`, and the flags that it has in common with `keyway history`.

use crate::data_flag::Data;
use crate::value::count_within;
use clap::Args;
use keyway_host::failure::Failure;
use keyway_service::changes::{self, Asked, Form, Showing};

/// Show the changes of the directory in their order, with their times and authors
///
/// The store keeps them for seven days, up to 1 GiB (section feed of keyway.toml). Each is put there in its own transaction:
/// all that has become of the directory is in this list, and nothing else. Each commit has a position: 1, 2, 3, without
/// a gap. It works while a server runs, too, and does not disturb it.
///
/// It shows all of the directory, whatever the access rules say: it is for those who may read the data folder. Values
/// of passwords and keys are counted. The server's own notes in entries after binds (last login, failures) are left
/// out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway directory changes
      all that are kept, oldest first
  keyway directory changes --from 1200 --to 1300
      some of them: 1200.0 at the beginning of one is its position and its place in the commit
  keyway directory changes --follow --subtree ou=People,dc=example,dc=com
      those of a subtree, and what is moved out of or into it, as they come; Ctrl-C ends it
  keyway directory changes --follow --json --from 1200
      a line of JSON for each, for a program; none is missed and none comes twice. One that was
      stopped goes on from the last position that it has seen, and 'index' says what of it is known
  keyway directory changes --ldif --with-passwords --from 1200 > since.ldif
      change records of all that was stored, also of what only a server sets (modifyTimestamp)

A position that is not kept any more, or that the store has not come to (it was restored from a
copy), is an error. With --json a line before it says what there is:
  {\"event\":\"trimmed\",\"position\":7,\"first\":1200}   {\"event\":\"ahead\",\"position\":1200,\"last\":7}")]
pub struct Changes {
    /// The first position [default: the first that is kept]
    #[arg(long, value_name = "N", value_parser = count_within::<1, { u64::MAX }>)]
    pub from: Option<u64>,
    /// The last position [default: the last that there is]
    #[arg(long, value_name = "N", value_parser = count_within::<1, { u64::MAX }>)]
    pub to: Option<u64>,
    /// Go on with further changes as they are made
    #[arg(long)]
    pub follow: bool,
    /// Changes of this entry and all below it only
    #[arg(long, value_name = "DN")]
    pub subtree: Option<String>,
    #[command(flatten)]
    pub showing: ShowingFlags,
}

/// Whose changes are shown, and how.
#[derive(Debug, Args)]
pub struct ShowingFlags {
    #[command(flatten)]
    pub data: Data,
    /// Show the server's notes in entries after binds too
    #[arg(long)]
    pub binds: bool,
    /// Show the values of passwords and keys as they are stored, hashed mostly
    #[arg(long)]
    pub with_passwords: bool,
    /// A line of JSON for each
    #[arg(long, conflicts_with = "ldif")]
    pub json: bool,
    /// Change records (RFC 2849), with comments on who has made each and when
    #[arg(long)]
    pub ldif: bool,
}

impl ShowingFlags {
    /// As the reader of the feed takes them.
    pub fn showing(&self) -> Showing {
        Showing {
            folder: self.data.folder.clone(),
            form: match (self.json, self.ldif) {
                (true, _) => Form::Json,
                (_, true) => Form::Ldif,
                _ => Form::Text,
            },
            binds: self.binds,
            passwords: self.with_passwords,
        }
    }
}

/// Shows changes.
///
/// # Errors
/// If there is no feed, or it does not have what was asked for.
pub fn run(arguments: &Changes) -> Result<(), Failure> {
    let Changes { from, to, follow, subtree, showing } = arguments;
    if from.zip(*to).is_some_and(|(from, to)| from > to) {
        return Err(Failure::usage("--from is behind --to"));
    }
    let asked = Asked { from: *from, to: *to, follows: *follow, subtree: subtree.clone() };
    changes::show(&showing.showing(), &asked)
}
