//! Changes made as the administrator of a data folder: in the running server, or in the folder if none runs.

use crate::provider::provider;
use clap::Args;
use keyway_config::Running;
use keyway_host::failure::Failure;
use keyway_server::ADMINISTRATOR_DN;
use keyway_service::changing::{self, PlannedChange};
use keyway_watch::ldap::SearchClient;
use std::path::{Path, PathBuf};

/// How the administrator is let in.
#[derive(Debug, Args)]
pub struct Administrator {
    /// The administrator's password [default: the file admin-password in the data folder]
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
}

impl Administrator {
    /// Makes changes one after the other; `go_on` says what to do if one is refused.
    ///
    /// # Errors
    /// If the administrator is not let in, or a change is refused.
    pub fn make(&self, folder: &Path, all: &[PlannedChange], go_on: &str) -> Result<(), Failure> {
        let Some(running) = Running::look(folder) else {
            return changing::in_folder(folder, all, go_on);
        };
        let ldaps = running.ldaps.ok_or_else(changing::not_reached)?;
        let login = (ADMINISTRATOR_DN, self.password_file.as_deref());
        let mut client = SearchClient::open_own(folder, ldaps, login, provider)?;
        changing::carry_out(all, go_on, |change| {
            Ok(client.change(&change.record, &change.only_if)?.map_err(Failure::from))
        })
    }
}
