//! Who speaks to a server that entries are for, and how.

use crate::provider::provider;
use clap::Args;
use keyway_folder::data::read_password;
use keyway_folder::trust;
use keyway_host::failure::Failure;
use keyway_load::Trust;
use keyway_watch::ldap::{ConnectOptions, Login, ServerUrl};
use std::path::PathBuf;
use std::time::Duration;

const CONNECT_WAIT: Duration = Duration::from_secs(10);
/// How long a server may think about an answer.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Who speaks to a server, and how.
#[derive(Debug, Args)]
pub struct Access {
    /// The DN to bind as
    #[arg(short = 'D', long, value_name = "DN", requires = "to")]
    pub bind_dn: Option<String>,
    /// The file with the password of --bind-dn (0600)
    #[arg(short = 'y', long, value_name = "FILE", requires = "bind_dn")]
    pub password_file: Option<PathBuf>,
    /// Certificate authorities to trust, PEM [default: the system's, and keyway-data/ca.pem]
    #[arg(long, value_name = "FILE", requires = "to", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate: an attacker on the network path can then read and change everything
    #[arg(long, requires = "to")]
    pub insecure: bool,
    /// Ask an ldap:// server for TLS
    #[arg(long, requires = "to")]
    pub start_tls: bool,
}

impl Access {
    /// How the server is connected to.
    pub fn connect_options(&self) -> ConnectOptions {
        trust::warn(self.insecure);
        ConnectOptions {
            trust: Trust {
                ca: self.ca.clone(),
                own_ca: Some(trust::usual_authority()),
                insecure: self.insecure,
                ..Trust::default()
            },
            start_tls: self.start_tls,
            connect_wait: CONNECT_WAIT,
            answer_wait: ANSWER_WAIT,
            provider,
        }
    }

    /// The account to bind as, if any.
    ///
    /// # Errors
    /// If there is no password, or others could read it.
    pub fn login(&self, server: &ServerUrl) -> Result<Login, Failure> {
        let Some(dn) = &self.bind_dn else { return Ok(None) };
        let password = self.password_file.as_deref().map(read_password).transpose()?;
        let Some(password) = password.filter(|password| !password.is_empty()) else {
            return Err(Failure::usage("--bind-dn needs a password: --password-file FILE"));
        };
        server.may_carry_password(self.start_tls)?;
        Ok(Some((dn.clone(), password)))
    }
}
