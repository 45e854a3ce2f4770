//! A server, found: the address that one answers at, and what it has to prove.

use crate::error::Error;
use crate::target::{Endpoint, Url};
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// WorkerMessage of an account that the server does not take.
pub(crate) const REFUSED: &str = "the server does not take the account (invalidCredentials): the name \
                                  (--bind-dn, target.admin) or the password is wrong; it is not tried again";

/// A server, resolved.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: Address,
    /// Its name in its URL.
    pub(crate) host: String,
    /// The name that its certificate has to have.
    pub(crate) name: Option<ServerName<'static>>,
    /// Whether TLS comes first.
    pub(crate) tls: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The address of a server that answers there.
pub(crate) fn resolve(url: &Url, start_tls: bool, patience: Duration) -> Result<Server, Error> {
    let has_tls = url.tls || start_tls;
    let (host, port) = match &url.endpoint {
        Endpoint::Socket(path) => {
            if has_tls {
                return Err(Error::Usage(format!("{url}: there is no TLS over a socket file")));
            }
            let (address, host) = (Address::Unix(path.clone()), path.display().to_string());
            return Ok(Server { address, host, name: None, tls: false });
        }
        Endpoint::Host { host, port } => (host.as_str(), *port),
    };
    let cannot = |why: &str| Error::Server(format!("{url}: {why}"));
    let name = match has_tls {
        true => {
            let name = ServerName::try_from(host.to_owned());
            Some(name.map_err(|_| cannot("its host is not a name that a certificate can have"))?)
        }
        false => None,
    };
    let found = (host, port).to_socket_addrs().map_err(|why| cannot(&why.to_string()))?;
    let found: Vec<SocketAddr> = found.collect();
    let mut last = cannot("the name has no address");
    for address in found {
        match TcpStream::connect_timeout(&address, patience) {
            // It only shows that the address answers: each thread opens its own connections.
            Ok(_) => {
                let (address, host) = (Address::Tcp(address), host.to_owned());
                return Ok(Server { address, host, name, tls: url.tls });
            }
            Err(why) => last = cannot(&format!("cannot connect to {address}: {why}")),
        }
    }
    Err(last)
}
