//! A connection of the capture, opened again: requests out when they are due, answers in.

use super::{Clock, Telling, secret};
use crate::decode::arguments::{Replay, Target};
use crate::limits::REPLAY_ANSWER_BYTES_MAX;
use keyway_codec::message::{
    Authentication, BindRequest, ExtendedRequest, LdapResult, ResultCode, tag,
};
use keyway_codec::{Message, Op, ber, extended};
use keyway_decode::replay::{Conversation, Now, Request, Speed};
use keyway_folder::trust;
use keyway_host::failure::{Failure, plain};
use keyway_load::{Trust, tls_words};
use rustls::crypto::CryptoProvider;
use rustls_pki_types::ServerName;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

/// The id of messages that are ours: clients count from 1, and none gets there.
const OUR_ID: u32 = i32::MAX as u32;

/// The longest password in a file, in bytes.
const PASSWORD_BYTES_MAX: u64 = 4096;

const READ_BYTES: usize = 1 << 16;

trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The server that requests are sent to.
pub struct Server {
    target: Target,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    start_tls: bool,
    /// What is sent first, if somebody binds for every connection.
    bind: Option<Zeroizing<Vec<u8>>>,
    timeout: Duration,
}

impl Server {
    /// # Errors
    /// If it cannot be spoken to over TLS, or the password cannot be read.
    pub fn new(arguments: &Replay, provider: &Arc<CryptoProvider>) -> Result<Server, Failure> {
        let target = arguments.to.clone();
        if target.tls && arguments.start_tls {
            return Err(Failure::usage(
                "--start-tls is for ldap:// URLs; ldaps:// has TLS from the start",
            ));
        }
        let tls = if target.tls || arguments.start_tls {
            let wanted = Trust {
                ca: arguments.ca.clone(),
                own_ca: Some(trust::usual_authority()),
                insecure: arguments.insecure,
                resume: false,
                own: None,
            };
            trust::warn(arguments.insecure);
            let config = wanted.config(provider).map_err(Failure::new)?;
            let name = ServerName::try_from(target.host.clone());
            let name = name.map_err(|_| Failure::usage(format!("{} is no host", target.host)))?;
            Some((TlsConnector::from(config), name))
        } else {
            None
        };
        let (start_tls, timeout) = (arguments.start_tls, arguments.timeout);
        Ok(Server { target, tls, start_tls, bind: bind(arguments)?, timeout })
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
        opened.map_err(|why| Failure::new(format!("{}: {}", self.target, plain(&why))))
    }

    /// Connects, with TLS and bound where that is asked for.
    async fn open(&self) -> io::Result<Box<dyn Stream>> {
        let address = (self.target.host.as_str(), self.target.port);
        let mut tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        if self.start_tls {
            let request = ExtendedRequest { oid: extended::START_TLS, value: None };
            let request = encoded(Op::ExtendedRequest(request));
            ask(&mut tcp, &request, "StartTLS").await?;
        }
        let mut stream: Box<dyn Stream> = match &self.tls {
            Some((connector, name)) => {
                let shaken = connector.connect(name.clone(), tcp).await;
                let words = |why| io::Error::other(tls_words(&why, &self.target.host));
                Box::new(shaken.map_err(words)?)
            }
            None => Box::new(tcp),
        };
        if let Some(bind) = &self.bind {
            ask(&mut stream, bind, "the bind").await?;
        }
        Ok(stream)
    }
}

/// The bind of --bind-dn.
fn bind(arguments: &Replay) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
    let (Some(name), Some(file)) = (&arguments.bind_dn, &arguments.password_file) else {
        return Ok(None);
    };
    let text = secret(file, PASSWORD_BYTES_MAX)?;
    let password = text.strip_suffix(b"\n").unwrap_or(&text);
    let password = password.strip_suffix(b"\r").unwrap_or(password);
    let authentication = Authentication::Simple(password);
    Ok(Some(encoded(Op::BindRequest(BindRequest { version: 3, name, authentication }))))
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
    match result(&message.op) {
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
fn no_ldap(octets: &[u8]) -> io::Error {
    io::Error::other(match octets.first() {
        Some(0x15 | 0x16) => {
            "the server speaks TLS on this port; write ldaps:// instead of ldap://"
        }
        _ => "the server does not speak LDAP",
    })
}

fn result<'o, 'm>(op: &'o Op<'m>) -> Option<&'o LdapResult<'m>> {
    Some(match op {
        Op::BindResponse(response) => &response.result,
        Op::ExtendedResponse(response) => &response.result,
        Op::SearchResultDone(result)
        | Op::ModifyResponse(result)
        | Op::AddResponse(result)
        | Op::DeleteResponse(result)
        | Op::ModifyDnResponse(result)
        | Op::CompareResponse(result) => result,
        _ => return None,
    })
}

/// Sends a connection's requests, and tells what comes of each.
pub async fn replay(
    conversation: &Conversation,
    clock: &Clock,
    server: &Server,
    telling: &Telling,
) {
    let exchange = Exchange::new(conversation, telling);
    let said = match timeout(server.timeout, server.open()).await {
        Ok(Ok(stream)) => {
            let (mut input, mut output) = split(stream);
            let reading = async {
                exchange.end(exchange.read(&mut input).await.err());
                std::future::pending::<()>().await;
            };
            tokio::select! {
                written = exchange.write(&mut output, clock, server.timeout) => written,
                () = reading => Ok(()),
            }
        }
        Ok(Err(why)) => Err(why),
        Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "it takes too long to connect")),
    };
    let Progress { now, told, closed, .. } = exchange.progress.into_inner();
    if let Some(why) = said.err().or(closed.flatten()) {
        if why.kind() == ErrorKind::PermissionDenied {
            telling.refused(&format!("{}: {}", server.target, plain(&why)));
        }
        telling.connection(conversation.number, &plain(&why));
    }
    for ((request, now), told) in conversation.requests.iter().zip(now).zip(told) {
        if !told {
            telling.result(conversation.number, request, now);
        }
    }
}

/// What is under way on a connection.
struct Exchange<'c> {
    conversation: &'c Conversation,
    telling: &'c Telling,
    progress: RefCell<Progress>,
    changed: Notify,
}

struct Progress {
    now: Vec<Now>,
    sent: Vec<Option<Instant>>,
    /// Of which it was told what came.
    told: Vec<bool>,
    /// Requests that have been sent and not answered, by their ids.
    open: HashMap<u32, usize>,
    /// Which answers are there, in the order in which they came when captured.
    answered: Vec<bool>,
    /// How many of them without a hole.
    in_order: usize,
    /// Whether nothing more comes, and why.
    closed: Option<Option<io::Error>>,
}

impl<'c> Exchange<'c> {
    fn new(conversation: &'c Conversation, telling: &'c Telling) -> Exchange<'c> {
        let requests = &conversation.requests;
        let count = requests.len();
        let progress = Progress {
            now: vec![Now::default(); count],
            sent: vec![None; count],
            told: vec![false; count],
            open: HashMap::new(),
            answered: vec![false; requests.iter().filter(|one| one.is_answered()).count()],
            in_order: 0,
            closed: None,
        };
        let progress = RefCell::new(progress);
        Exchange { conversation, telling, progress, changed: Notify::new() }
    }

    fn end(&self, why: Option<io::Error>) {
        self.progress.borrow_mut().closed = Some(why);
        self.changed.notify_one();
    }

    /// Sends the requests, and waits for their answers.
    async fn write(
        &self,
        output: &mut (impl AsyncWrite + Unpin),
        clock: &Clock,
        longest: Duration,
    ) -> io::Result<()> {
        for (index, request) in self.conversation.requests.iter().enumerate() {
            clock.wait_until(request.start_ns).await;
            let is_due = |progress: &Progress| {
                progress.in_order >= request.after && !self.is_open(progress, request.id)
            };
            if !self.until(is_due, longest).await? {
                return Ok(());
            }
            if let Speed::Times(_) = clock.speed {
                self.telling.late(clock.due(request.start_ns).elapsed());
            }
            self.note_sent(index, request);
            write(output, &request.octets, longest).await?;
        }
        self.until(|progress| progress.in_order == progress.answered.len(), longest).await?;
        clock.wait_until(self.conversation.end_ns).await;
        output.shutdown().await.or(Ok(()))
    }

    /// Whether a request with this id is under way whose answer will come.
    fn is_open(&self, progress: &Progress, id: u32) -> bool {
        let open = progress.open.get(&id).and_then(|index| self.conversation.requests.get(*index));
        open.is_some_and(Request::is_answered)
    }

    /// Waits until something is so; `false` if the connection ended before.
    async fn until(
        &self,
        is_so: impl Fn(&Progress) -> bool,
        longest: Duration,
    ) -> io::Result<bool> {
        loop {
            {
                let progress = self.progress.borrow();
                if progress.closed.is_some() {
                    return Ok(false);
                }
                if is_so(&progress) {
                    return Ok(true);
                }
            }
            if timeout(longest, self.changed.notified()).await.is_err() {
                let what = format!("no answer within {} s", longest.as_secs_f64());
                return Err(io::Error::new(ErrorKind::TimedOut, what));
            }
        }
    }

    fn note_sent(&self, index: usize, request: &Request) {
        let mut progress = self.progress.borrow_mut();
        if let Some(now) = progress.now.get_mut(index) {
            now.sent = true;
        }
        if let Some(sent) = progress.sent.get_mut(index) {
            *sent = Some(Instant::now());
        }
        if !request.is_silent() {
            progress.open.insert(request.id, index);
        }
    }

    /// Takes answers until there are no more.
    async fn read(&self, input: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut buffer = Vec::new();
        let mut more = vec![0; READ_BYTES];
        loop {
            let count = input.read(&mut more).await?;
            let octets = more.get(..count).unwrap_or_default();
            if octets.is_empty() {
                return Ok(());
            }
            buffer.extend_from_slice(octets);
            let used = self.answers(&buffer)?;
            buffer.drain(..used);
        }
    }

    /// Takes the whole messages that octets begin with: how many octets these are.
    fn answers(&self, octets: &[u8]) -> io::Result<usize> {
        let mut at = 0;
        loop {
            let rest = octets.get(at..).unwrap_or_default();
            let length = ber::frame(rest, REPLAY_ANSWER_BYTES_MAX).map_err(|_| no_ldap(rest))?;
            let Some(whole) = length.and_then(|length| rest.get(..length)) else { return Ok(at) };
            self.answer(whole)?;
            at += whole.len();
        }
    }

    /// Takes a message of an answer.
    fn answer(&self, octets: &[u8]) -> io::Result<()> {
        let wrong = || io::Error::other("the server sent what is no answer");
        let id = Message::peek_id(octets).ok_or_else(wrong)?;
        let mut progress = self.progress.borrow_mut();
        let Some(&index) = progress.open.get(&id) else { return Ok(()) };
        match Message::peek_tag(octets).ok_or_else(wrong)? {
            tag::SEARCH_RESULT_ENTRY => {
                if let Some(now) = progress.now.get_mut(index) {
                    now.entries += 1;
                }
            }
            tag::SEARCH_RESULT_REFERENCE | tag::INTERMEDIATE_RESPONSE => {}
            _ => {
                let message = Message::decode(octets).map_err(io::Error::other)?;
                progress.open.remove(&id);
                self.last_answer(&mut progress, index, &message.op);
            }
        }
        Ok(())
    }

    /// Tells what came of a request, and lets go what waits for it.
    fn last_answer(&self, progress: &mut Progress, index: usize, op: &Op<'_>) {
        let Progress { now, sent, told, answered, in_order, .. } = progress;
        let (Some(now), Some(told)) = (now.get_mut(index), told.get_mut(index)) else { return };
        let Some(request) = self.conversation.requests.get(index) else { return };
        now.code = result(op).map(|result| result.code.code());
        let since = sent.get(index).copied().flatten().map(|sent| sent.elapsed());
        now.latency_ns = since.and_then(|since| u64::try_from(since.as_nanos()).ok());
        *told = true;
        self.telling.result(self.conversation.number, request, *now);
        if let Some(answered) = request.ended.and_then(|ended| answered.get_mut(ended)) {
            *answered = true;
        }
        while answered.get(*in_order).is_some_and(|is_there| *is_there) {
            *in_order += 1;
        }
        self.changed.notify_one();
    }
}

async fn write(
    output: &mut (impl AsyncWrite + Unpin),
    octets: &[u8],
    longest: Duration,
) -> io::Result<()> {
    let written = timeout(longest, async {
        output.write_all(octets).await?;
        output.flush().await
    });
    let too_slow = || io::Error::new(ErrorKind::TimedOut, "the server does not read");
    written.await.map_err(|_| too_slow())?
}
