//! The server of a data folder, as its administrator.

use super::client::SearchClient;
use super::connect::ConnectOptions;
use super::url::ServerUrl;
use crate::limits::{OWN_ANSWER_WAIT, OWN_CONNECT_WAIT};
use keyway_codec::message::Scope;
use keyway_folder::data::{name, read_password};
use keyway_host::failure::Failure;
use keyway_load::Trust;
use rustls::crypto::CryptoProvider;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

impl SearchClient {
    /// Has a server of this machine, that listens at these addresses for LDAPS and LDAP, answer a search without a login.
    ///
    /// # Errors
    /// If it does not answer. A refusal is an answer.
    pub fn probe_own(
        ldaps: Option<SocketAddr>,
        ldap: Option<SocketAddr>,
        provider: fn() -> Arc<CryptoProvider>,
    ) -> Result<(), Failure> {
        let url = match (ldaps, ldap) {
            (Some(address), _) => ServerUrl::of_own(address),
            (None, Some(address)) => ServerUrl::parse("it", &format!("ldap://{address}"))?,
            (None, None) => {
                let text = "it listens neither for LDAPS nor for LDAP (listen_tls, listen)";
                return Err(Failure::new(text));
            }
        };
        let options = ConnectOptions {
            // It is told no secret, and asked for none.
            trust: Trust { insecure: true, ..Trust::default() },
            start_tls: false,
            connect_wait: OWN_CONNECT_WAIT,
            answer_wait: OWN_CONNECT_WAIT,
            provider,
        };
        let mut client = SearchClient::open(&url, &options, &None)?;
        client.search("", Scope::Base, "(objectClass=*)", &["1.1"]).map(drop)
    }

    /// Connects to the server of a data folder that listens there for LDAPS, and binds as its administrator, by the
    /// password in a file; that in the folder if none is named.
    ///
    /// # Errors
    /// As [`SearchClient::open`], and if the file cannot be read.
    pub fn open_own(
        folder: &Path,
        ldaps: SocketAddr,
        (administrator, password_file): (&str, Option<&Path>),
        provider: fn() -> Arc<CryptoProvider>,
    ) -> Result<SearchClient, Failure> {
        let options = ConnectOptions {
            trust: Trust { own_ca: Some(folder.join(name::CA_CERTIFICATE)), ..Trust::default() },
            start_tls: false,
            connect_wait: OWN_CONNECT_WAIT,
            answer_wait: OWN_ANSWER_WAIT,
            provider,
        };
        let own = folder.join(name::ADMIN_PASSWORD);
        let password = read_password(password_file.unwrap_or(&own))?;
        let login = Some((administrator.to_owned(), password));
        SearchClient::open(&ServerUrl::of_own(ldaps), &options, &login)
    }
}
