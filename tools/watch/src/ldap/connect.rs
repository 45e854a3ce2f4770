//! A connection to an LDAP server, with TLS or without.

use super::url::ServerUrl;
use keyway_data::Client;
use keyway_host::failure::{Failure, plain};
use keyway_load::{Trust, tls_words};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// A connection of either kind.
pub trait LdapStream: Read + Write + Send {}
impl<S: Read + Write + Send> LdapStream for S {}

/// How a server is connected to.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// How the right server is known.
    pub trust: Trust,
    /// Begin TLS on ldap:// with StartTLS.
    pub start_tls: bool,
    /// How long a connection may take.
    pub connect_wait: Duration,
    /// How long an answer may take.
    pub answer_wait: Duration,
    /// Makes what TLS is done with, if there is TLS.
    pub provider: fn() -> Arc<CryptoProvider>,
}

impl ConnectOptions {
    /// Connects, with TLS if that is asked for.
    ///
    /// # Errors
    /// If no server is there, or TLS does not come about.
    pub fn connect(&self, url: &ServerUrl) -> Result<Box<dyn LdapStream>, Failure> {
        let ServerUrl { host, port, tls } = url;
        let stream = self.connect_tcp(host, *port).map_err(|why| {
            Failure::new(format!("cannot connect to {host} port {port}: {}", plain(&why)))
        })?;
        let stream = match self.start_tls && !tls {
            true => Client::new(stream, 1)
                .start_tls()
                .map_err(|why| Failure::new(format!("{host} port {port}: {why}")))?,
            false => stream,
        };
        if !tls && !self.start_tls {
            return Ok(Box::new(stream));
        }
        self.secure(host, stream)
    }

    /// Connects to the first address of a host that answers.
    fn connect_tcp(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut last = None;
        for address in (host, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.connect_wait) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(self.answer_wait))?;
                    stream.set_write_timeout(Some(self.answer_wait))?;
                    return Ok(stream);
                }
                Err(why) => last = Some(why),
            }
        }
        Err(last.unwrap_or(ErrorKind::HostUnreachable.into()))
    }

    fn secure(&self, host: &str, mut stream: TcpStream) -> Result<Box<dyn LdapStream>, Failure> {
        let config = self.trust.config(&(self.provider)())?;
        let server = ServerName::try_from(host.to_owned())
            .map_err(|_| Failure::usage(format!("{host} is no name of a server")))?;
        let mut connection = ClientConnection::new(config, server)
            .map_err(|why| Failure::new(format!("cannot use TLS: {why}")))?;
        while connection.is_handshaking() {
            connection.complete_io(&mut stream).map_err(|why| {
                Failure::new(format!("no TLS with {host}: {}", tls_words(&why, host)))
            })?;
        }
        Ok(Box::new(StreamOwned::new(connection, stream)))
    }
}
