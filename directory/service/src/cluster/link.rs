//! A connection to a member, for a command: it waits for each answer, and starts no thread.

use super::limits::{ANSWER_WAIT, CONNECT_WAIT, KEPT_WAIT, SEND_WAIT};
use keyway_cluster::message::{Answer, Decoder, Frame, LARGE_FRAME, Refusal, Request};
use keyway_config::MemberUrl;
use keyway_folder::member::MEMBER_PROTOCOL;
use keyway_host::failure::{Failure, plain};
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Octets that are read at once.
const READ_BYTES: usize = 256 << 10;
/// Members know each other by their certificates, not by their hosts' names.
const NAME: &str = "keyway-cluster";

/// A connection to a member.
pub struct Link {
    url: MemberUrl,
    tls: StreamOwned<ClientConnection, TcpStream>,
    decoder: Decoder,
    input: Vec<u8>,
}

/// Why a member did not do what it was asked to.
#[derive(Debug)]
pub enum LinkError {
    /// It says no.
    Refused(Refusal, Failure),
    /// It could not be asked, or the connection broke.
    Broken(Failure),
}

impl From<LinkError> for Failure {
    fn from(why: LinkError) -> Failure {
        match why {
            LinkError::Refused(_, why) | LinkError::Broken(why) => why,
        }
    }
}

impl Link {
    /// Connects, and shakes hands.
    ///
    /// # Errors
    /// If it cannot be reached, or is no member that this configuration takes.
    pub fn connect(url: &MemberUrl, config: ClientConfig) -> Result<Link, Failure> {
        let tcp = reach(url)?;
        let timeouts = tcp
            .set_read_timeout(Some(CONNECT_WAIT))
            .and_then(|()| tcp.set_write_timeout(Some(SEND_WAIT)))
            .and_then(|()| tcp.set_nodelay(true));
        timeouts.map_err(|why| unreachable(url, &why))?;
        let name = ServerName::try_from(NAME).map_err(Failure::new)?;
        let connection = ClientConnection::new(Arc::new(config), name).map_err(Failure::new)?;
        let mut tls = StreamOwned::new(connection, tcp);
        while tls.conn.is_handshaking() {
            tls.conn.complete_io(&mut tls.sock).map_err(|why| not_taken(url, &why))?;
        }
        if tls.conn.alpn_protocol() != Some(MEMBER_PROTOCOL) {
            return Err(Failure::new(format!(
                "{url} is no server with which others form a cluster: it does not speak {}; name the LDAPS address of a \
                 Keyway server of this version",
                String::from_utf8_lossy(MEMBER_PROTOCOL)
            )));
        }
        tls.sock.set_read_timeout(Some(ANSWER_WAIT)).map_err(|why| unreachable(url, &why))?;
        let input = vec![0; READ_BYTES];
        Ok(Link { url: url.clone(), tls, decoder: Decoder::new(), input })
    }

    /// Asks for something, and waits for the answer.
    ///
    /// # Errors
    /// If it is refused, or the connection breaks.
    pub fn ask(&mut self, request: Request) -> Result<Answer, LinkError> {
        self.send(&Frame::Request(request)).map_err(LinkError::Broken)?;
        match self.next_frame().map_err(LinkError::Broken)? {
            Frame::Answer(Answer::Refused { reason, text, .. }) => {
                // Versions that know the reason may know more than its text says.
                let failure = Failure::new(format!("{}: {text}", self.url));
                Err(LinkError::Refused(reason, failure))
            }
            Frame::Answer(answer) => Ok(answer),
            _ => Err(LinkError::Broken(self.unexpected())),
        }
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// If the connection breaks.
    pub fn send(&mut self, frame: &Frame) -> Result<(), Failure> {
        let mut out = Zeroizing::new(Vec::new());
        frame.encode(&mut out).map_err(|why| self.broke(&why))?;
        let sent = self.tls.write_all(&out).and_then(|()| self.tls.flush());
        sent.map_err(|why| self.broke(&why))
    }

    /// Takes large frames from now on.
    pub fn allow_large(&mut self) {
        self.decoder.allow(LARGE_FRAME);
    }

    /// Waits for longer from now on: the other end has much to do.
    ///
    /// # Errors
    /// The system's.
    pub fn wait_long(&mut self) -> Result<(), Failure> {
        let set = self.tls.sock.set_read_timeout(Some(KEPT_WAIT));
        set.map_err(|why| unreachable(&self.url, &why))
    }

    /// The next frame.
    ///
    /// # Errors
    /// If the connection breaks, or the peer is silent for [`ANSWER_WAIT`].
    pub fn next_frame(&mut self) -> Result<Frame, Failure> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(frame)) => return Ok(frame),
                Ok(None) => {}
                Err(why) => return Err(self.broke(&why)),
            }
            match self.tls.read(&mut self.input) {
                Ok(0) => return Err(self.broke(&"it has closed the connection")),
                Ok(bytes) => self.decoder.push(self.input.get(..bytes).unwrap_or_default()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(self.broke(&io_words(&why))),
            }
        }
    }

    /// The error for an answer that is none to what was asked.
    pub fn unexpected(&self) -> Failure {
        Failure::new(format!(
            "{}: its answer is none to the request; is it of another version?",
            self.url
        ))
    }

    fn broke(&self, why: &dyn std::fmt::Display) -> Failure {
        Failure::new(format!("the connection to {} broke: {why}", self.url))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tls.conn.send_close_notify();
        // One that is gone does not hear it.
        let _ = self.tls.conn.complete_io(&mut self.tls.sock);
    }
}

/// Tries the addresses of a member, one after the other.
fn reach(url: &MemberUrl) -> Result<TcpStream, Failure> {
    let addresses = url.addresses().map_err(|why| unreachable(url, &why))?;
    let mut last = io::Error::new(ErrorKind::NotFound, "its name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(tcp) => return Ok(tcp),
            Err(why) => last = why,
        }
    }
    Err(unreachable(url, &last))
}

fn unreachable(url: &MemberUrl, why: &io::Error) -> Failure {
    Failure::new(format!(
        "cannot reach {url}: {}; is its server running, and listening there (listen_tls)?",
        io_words(why)
    ))
}

fn io_words(why: &io::Error) -> String {
    match why.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "it does not answer in time".to_owned(),
        ErrorKind::UnexpectedEof => "it has closed the connection".to_owned(),
        _ => plain(why),
    }
}

/// Why a handshake failed.
fn not_taken(url: &MemberUrl, why: &io::Error) -> Failure {
    let tls = why.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    Failure::new(match tls {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => format!(
            "{url} is no server of this cluster (at a join: of the token's), or its authority is another one by now: its \
             certificate is not issued by the authority that this server trusts; nothing was sent to it"
        ),
        Some(rustls::Error::InvalidCertificate(
            CertificateError::ApplicationVerificationFailure,
        )) => {
            format!(
                "{url} does not show a certificate of a member: it is no server of a Keyway cluster; is that its LDAPS \
                 address, and was a token made there (keyway cluster token)?"
            )
        }
        Some(rustls::Error::AlertReceived(
            AlertDescription::AccessDenied | AlertDescription::HandshakeFailure,
        )) => format!(
            "{url} is no member of a cluster; make a token there first: keyway cluster token"
        ),
        Some(rustls::Error::InvalidMessage(_)) => format!(
            "{url} does not speak TLS: name the address of the server's LDAPS (listen_tls, port 636), not of its LDAP"
        ),
        Some(why) => format!("{url} does not take this server as a member: {why}"),
        None => format!("cannot reach {url}: {}", io_words(why)),
    })
}
