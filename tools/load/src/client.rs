//! A connection that waits for its answers, for monitors and for what is asked before a run: one question
//! at a time.

use crate::entries::Makers;
use crate::limits::{MESSAGE_BYTES_MAX, MONITOR_PATIENCE};
use crate::request::Request;
use crate::server::{Address, REFUSED, Server};
use crate::text::Drawn;
use crate::trust::{is_of_tls, tls_words};
use fastrand::Rng;
use keyway_codec::message::{ExtendedRequest, Message, ResultCode};
use keyway_codec::{Op, ber, extended};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// RFC 4511 § A.2.
const INVALID_CREDENTIALS: u32 = 49;

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

pub(crate) struct Client {
    stream: Box<dyn Stream>,
    input: Vec<u8>,
    id: u32,
}

impl Client {
    /// Connects, with TLS and a bind where that is wanted.
    pub(crate) fn open(
        server: &Server,
        tls: Option<&Arc<ClientConfig>>,
        start_tls: bool,
        bind: Option<&Request>,
    ) -> io::Result<Client> {
        let mut client = match &server.address {
            Address::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(MONITOR_PATIENCE))?;
                Client::on(socket)
            }
            Address::Tcp(address) => {
                let socket = TcpStream::connect_timeout(address, MONITOR_PATIENCE)?;
                socket.set_read_timeout(Some(MONITOR_PATIENCE))?;
                socket.set_nodelay(true)?;
                match (server.tls || start_tls, tls, &server.name) {
                    (true, Some(config), Some(name)) => {
                        if !server.tls {
                            Client::on(socket.try_clone()?).start_tls()?;
                        }
                        let tls = ClientConnection::new(config.clone(), name.clone());
                        let tls = tls.map_err(io::Error::other)?;
                        Client::on(secured(tls, socket, &server.host)?)
                    }
                    _ => Client::on(socket),
                }
            }
        };
        if let Some(bind) = bind {
            client.bind(bind)?;
        }
        Ok(client)
    }

    fn on(stream: impl Stream + 'static) -> Client {
        Client { stream: Box::new(stream), input: Vec::new(), id: 0 }
    }

    fn start_tls(&mut self) -> io::Result<()> {
        let request = ExtendedRequest { oid: extended::START_TLS, value: None };
        self.ask(Op::ExtendedRequest(request), &mut |_| ())
    }

    fn bind(&mut self, request: &Request) -> io::Result<()> {
        self.id += 1;
        let (mut random, mut scratch, mut out) = (Rng::with_seed(0), Vec::new(), Vec::new());
        let mut makers = Makers::default();
        let mut drawn = Drawn {
            sources: &[],
            indices: &[],
            taken: &[],
            random: &mut random,
            makers: &mut makers,
        };
        request.write(self.id, &mut drawn, &mut scratch, &mut out);
        self.stream.write_all(&out)?;
        let answered = self.answer(&mut |_| ());
        answered.map_err(|why| match refused(&why) {
            Some(INVALID_CREDENTIALS) => io::Error::new(ErrorKind::PermissionDenied, REFUSED),
            _ => why,
        })
    }

    /// Asks, hands over what comes before the result, and waits for that; an error if it is none.
    pub(crate) fn ask(&mut self, op: Op<'_>, each: &mut dyn FnMut(&Message<'_>)) -> io::Result<()> {
        self.id += 1;
        let mut out = Vec::new();
        Message::new(self.id, op).encode(&mut out);
        self.stream.write_all(&out)?;
        self.answer(each)
    }

    fn answer(&mut self, each: &mut dyn FnMut(&Message<'_>)) -> io::Result<()> {
        self.stream.flush()?;
        let wrong = |why: String| io::Error::new(ErrorKind::InvalidData, why);
        loop {
            if is_of_tls(&self.input) {
                return Err(wrong("the server speaks TLS on this port; write ldaps://".into()));
            }
            while let Some(length) =
                ber::frame(&self.input, MESSAGE_BYTES_MAX).map_err(|why| wrong(why.to_string()))?
            {
                let message: Vec<u8> = self.input.drain(..length).collect();
                let message = Message::decode(&message).map_err(|why| wrong(why.to_string()))?;
                match (message.id == self.id, message.op.result()) {
                    (true, Some(result)) if result.code.code() == 0 => return Ok(()),
                    (true, Some(result)) => {
                        return Err(io::Error::other(Refused(result.code)));
                    }
                    (true, None) => each(&message),
                    (false, _) => {}
                }
            }
            let mut room = [0; 16 << 10];
            let bytes = match self.stream.read(&mut room) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => bytes,
                Err(why) if why.kind() == ErrorKind::WouldBlock => {
                    return Err(io::Error::other("no answer in time"));
                }
                Err(why) => return Err(why),
            };
            self.input.extend_from_slice(room.get(..bytes).unwrap_or_default());
        }
    }
}

/// Has TLS come about before anything is said over it, so that what keeps it from that can be told.
fn secured(
    mut tls: ClientConnection,
    mut socket: TcpStream,
    host: &str,
) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
    while tls.is_handshaking() {
        let went = tls.complete_io(&mut socket);
        went.map_err(|why| io::Error::new(why.kind(), tls_words(&why, host)))?;
    }
    Ok(StreamOwned::new(tls, socket))
}

/// A server's answer instead of success.
#[derive(Debug)]
struct Refused(ResultCode);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered {}", self.0)
    }
}

impl std::error::Error for Refused {}

/// The result code, if the server has answered with one.
pub(crate) fn refused(why: &io::Error) -> Option<u32> {
    let refused = why.get_ref()?.downcast_ref::<Refused>()?;
    Some(refused.0.code())
}
