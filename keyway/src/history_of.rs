//! `keyway history`: the changes of one entry.

use crate::changes::ShowingFlags;
use clap::Args;
use keyway_host::failure::Failure;
use keyway_service::changes;

/// Show the changes of an entry, with their times and authors
///
/// It is followed by what it is and not by its name: through renames and moves, its own and those of entries above
/// it, and to its end if it was deleted. If another entry had that name before or has it now, its changes are shown
/// too, and which entry each is of. The first line says from when on changes are kept (keyway directory changes
/// --help says how long).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway history uid=ann,ou=People,dc=example,dc=com
      from the oldest change that is kept to the last one
  keyway history uid=ann,ou=People,dc=example,dc=com --data /srv/directory --json
      a line of JSON for each, for programs
  keyway history uid=ann,ou=People,dc=example,dc=com --binds
      with the binds that the password policy has noted in the entry
  keyway history cn=admins,ou=Groups,dc=example,dc=com --ldif
      as change records: who has put which member into a group, and when")]
pub struct HistoryOf {
    /// The name that the entry has, or had
    #[arg(value_name = "DN")]
    pub dn: String,
    #[command(flatten)]
    pub showing: ShowingFlags,
}

/// Shows them.
///
/// # Errors
/// If there is no feed, or it knows no entry of that name.
pub fn run(arguments: &HistoryOf) -> Result<(), Failure> {
    changes::entry_history(&arguments.showing.showing(), &arguments.dn)
}
