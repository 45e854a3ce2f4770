//! A server that is looked at over LDAP, by one connection as long as that holds.

use crate::ldap::{ConnectOptions, Login, ServerUrl};
use crate::monitor::MonitorClient;
use keyway_host::failure::Failure;

/// A server by its address, or one whose address is still to be found.
pub struct LdapSource {
    pub(crate) url: Option<ServerUrl>,
    options: ConnectOptions,
    pub(crate) login: Login,
    pub(crate) connection: Option<MonitorClient>,
    /// Why the login is not taken: it is not tried again.
    pub(crate) refused: Option<String>,
}

impl LdapSource {
    pub(crate) fn new(url: Option<ServerUrl>, options: ConnectOptions, login: Login) -> LdapSource {
        LdapSource { url, options, login, connection: None, refused: None }
    }

    /// Asks over the connection that there is, or a new one. One that broke is not used again.
    pub(crate) fn with<T>(
        &mut self,
        ask: impl FnOnce(&mut MonitorClient) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut remote = match (self.connection.take(), &self.url, &self.refused) {
            (Some(remote), ..) => remote,
            (None, _, Some(why)) => return Err(Failure::refused(why)),
            (None, Some(url), None) => {
                let connected = MonitorClient::connect(url, &self.options, &self.login);
                connected.inspect_err(|why| {
                    self.refused = why.is_refused().then(|| why.to_string());
                })?
            }
            (None, None, None) => return Err(Failure::new("there is no address")),
        };
        let answer = ask(&mut remote)?;
        self.connection = Some(remote);
        Ok(answer)
    }
}
