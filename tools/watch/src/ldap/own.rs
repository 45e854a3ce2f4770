//! The server of a data folder, as its administrator.

use super::client::SearchClient;
use super::connect::ConnectOptions;
use super::url::ServerUrl;
use crate::limits::{OWN_ANSWER_WAIT, OWN_CONNECT_WAIT};
use keyway_folder::data::{name, read_password};
use keyway_host::failure::Failure;
use keyway_load::Trust;
use rustls::crypto::CryptoProvider;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

impl SearchClient {
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
