//! Who speaks to a server that entries are for, and how.

use crate::ldap::{Manner, Url};
use crate::search::{Login, first_line};
use clap::Args;
use keyway_folder::data::read_secret;
use keyway_folder::trust;
use keyway_host::failure::Failure;
use std::path::PathBuf;
use std::time::Duration;

const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long a server may think about an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Who speaks to a server, and how.
#[derive(Debug, Args)]
pub struct Access {
    /// Who speaks to the server
    #[arg(short = 'D', long, value_name = "DN", requires = "to")]
    pub bind_dn: Option<String>,
    /// The file with his password (0600)
    #[arg(short = 'y', long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// Certificate authorities to trust, PEM [default: the system's, and keyway-data/ca.pem]
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Take any certificate: whoever is on the way can read and change everything
    #[arg(long, requires = "to")]
    pub insecure: bool,
    /// Ask an ldap:// server for TLS
    #[arg(long, requires = "to")]
    pub start_tls: bool,
}

impl Access {
    /// How the server is connected to.
    pub fn manner(&self) -> Manner {
        trust::warn(self.insecure);
        Manner {
            ca: self.ca.clone(),
            own_ca: trust::usual_authority(),
            insecure: self.insecure,
            start_tls: self.start_tls,
            connect_wait: CONNECT_WAIT,
            answer_wait: ANSWER_WAIT,
        }
    }

    /// Who binds, if somebody does.
    ///
    /// # Errors
    /// If there is no password, or others could read it.
    pub fn login(&self, server: &Url) -> Result<Login, Failure> {
        let Some(dn) = &self.bind_dn else { return Ok(None) };
        let password = self.password_file.as_deref().map(read_secret).transpose()?;
        let password = password.map(|password| first_line(&password));
        let Some(password) = password.filter(|password| !password.is_empty()) else {
            return Err(Failure::usage("--bind-dn needs a password: --password-file FILE"));
        };
        server.may_carry_password(self.start_tls)?;
        Ok(Some((dn.clone(), password)))
    }
}
