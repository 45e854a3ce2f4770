//! The server that requests are sent to: a connection opened, with TLS and bound where that is wanted.

use crate::ServerAddress;
use crate::limits::REPLAY_ANSWER_BYTES_MAX;
use keyway_codec::message::{Authentication, BindRequest, ExtendedRequest, ResultCode};
use keyway_codec::{Message, Op, ber, extended};
use keyway_host::failure::{Failure, plain};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// The id of messages that are ours: clients count from 1, and none gets there.
const OUR_ID: u32 = i32::MAX as u32;

/// A connection, over TLS or not.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// How TLS is spoken with the server.
#[derive(Clone, Debug)]
pub struct ReplayTls {
    /// The configuration of trust.
    pub config: Arc<ClientConfig>,
    /// Words for a handshake with this host that has failed.
    pub words: fn(&io::Error, &str) -> String,
}

/// An account of the server.
pub struct ReplayAccount {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: Zeroizing<Vec<u8>>,
}

/// A server that requests are sent to, and how.
pub struct DestinationOptions {
    /// The server.
    pub to: ServerAddress,
    /// How TLS is spoken with it, where it is.
    pub tls: Option<ReplayTls>,
    /// Whether StartTLS is asked for.
    pub start_tls: bool,
    /// The account that binds on each connection before anything else is sent.
    pub bind: Option<ReplayAccount>,
    /// How long a connection and an answer may take.
    pub timeout: Duration,
}

/// TLS with this server.
struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
    /// Words for a handshake with this host that has failed.
    words: fn(&io::Error, &str) -> String,
}

/// The server that requests are sent to.
pub struct Destination {
    pub(super) to: ServerAddress,
    pub(super) timeout: Duration,
    tls: Option<Tls>,
    start_tls: bool,
    /// A bind that is sent before anything else.
    bind: Option<Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("to", &self.to).finish_non_exhaustive()
    }
}

impl Destination {
    /// The server of these options.
    ///
    /// # Errors
    /// If its host is no name and no address for TLS.
    pub fn new(options: DestinationOptions) -> Result<Destination, Failure> {
        let DestinationOptions { to, tls, start_tls, bind, timeout } = options;
        let named = |tls: ReplayTls| match ServerName::try_from(to.host.clone()) {
            Ok(name) => {
                Ok(Tls { connector: TlsConnector::from(tls.config), name, words: tls.words })
            }
            Err(_) => Err(Failure::usage(format!("{} is no host", to.host))),
        };
        let tls = tls.map(named).transpose()?;
        let bind = bind.map(|ReplayAccount { name, password }| {
            let authentication = Authentication::Simple(&password);
            encoded(Op::BindRequest(BindRequest { version: 3, name: &name, authentication }))
        });
        Ok(Destination { to, timeout, tls, start_tls, bind })
    }

    /// Looks whether there is such a server, before all connections find out.
    ///
    /// # Errors
    /// If it cannot be connected to, or not as is asked for.
    pub async fn probe(&self) -> Result<(), Failure> {
        let opened = match timeout(self.timeout, self.open()).await {
            Ok(opened) => opened.map(drop),
            Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "it takes too long to connect")),
        };
        opened.map_err(|why| Failure::new(format!("{}: {}", self.to, plain(&why))))
    }

    /// Connects, with TLS and bound where that is asked for.
    pub(super) async fn open(&self) -> io::Result<Box<dyn Stream>> {
        let address = (self.to.host.as_str(), self.to.port);
        let mut tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        if self.start_tls {
            let request = ExtendedRequest { oid: extended::START_TLS, value: None };
            let request = encoded(Op::ExtendedRequest(request));
            ask(&mut tcp, &request, "StartTLS").await?;
        }
        let mut stream: Box<dyn Stream> = match &self.tls {
            Some(Tls { connector, name, words }) => {
                let shaken = connector.connect(name.clone(), tcp).await;
                let said = |why| io::Error::other(words(&why, &self.to.host));
                Box::new(shaken.map_err(said)?)
            }
            None => Box::new(tcp),
        };
        if let Some(bind) = &self.bind {
            ask(&mut stream, bind, "the bind").await?;
        }
        Ok(stream)
    }
}

fn encoded(op: Op<'_>) -> Zeroizing<Vec<u8>> {
    let mut octets = Zeroizing::new(Vec::new());
    Message::new(OUR_ID, op).encode(&mut octets);
    octets
}

/// Sends a request of ours, and waits until it is granted.
async fn ask(stream: &mut (impl Stream + ?Sized), request: &[u8], what: &str) -> io::Result<()> {
    stream.write_all(request).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    let whole = loop {
        match ber::frame(&answer, REPLAY_ANSWER_BYTES_MAX) {
            Ok(Some(length)) => break answer.get(..length).unwrap_or_default(),
            // An octet at a time: what follows the answer may be TLS.
            Ok(None) => answer.push(stream.read_u8().await?),
            Err(_) => return Err(no_ldap(&answer)),
        }
    };
    let message = Message::decode(whole).map_err(io::Error::other)?;
    match message.op.result() {
        Some(result) if result.code == ResultCode::Success => Ok(()),
        Some(result) if result.code == ResultCode::InvalidCredentials => {
            let words = "the server does not take the account (invalidCredentials): --bind-dn or the \
                         password is wrong; it is not tried again";
            Err(io::Error::new(ErrorKind::PermissionDenied, words))
        }
        Some(result) => {
            let (code, why) = (result.code, &result.diagnostic);
            Err(io::Error::other(format!("the server refuses {what}: {code} {why}")))
        }
        None => Err(io::Error::other(format!("the server's answer to {what} is none"))),
    }
}

/// Why octets are no answer of LDAP: the first of a record of TLS (RFC 8446, section 5.1) is its kind.
pub(super) fn no_ldap(octets: &[u8]) -> io::Error {
    io::Error::other(match octets.first() {
        Some(0x15 | 0x16) => {
            "the server speaks TLS on this port; write ldaps:// instead of ldap://"
        }
        _ => "the server does not speak LDAP",
    })
}
