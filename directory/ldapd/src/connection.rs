//! One connection's task: it moves bytes between the stream and the session.
//!
//! A turn reads what is there, takes every whole request in it, and sends all the answers with one
//! write; then the other connections have theirs, unless the next request is there already. Nothing
//! here waits for one request alone: a peer that does not read fills its own buffer, and its requests
//! stay where they are.

use crate::administrator::FINGERPRINT_BYTES;
use crate::channel::{Channel, Ending, Stop};
use crate::handshake::{handshaken, note_handshake, until_asked};
use crate::limits::{
    CLOSE_MAX, ENTRY_STALL_MAX, GRACE_MAX, KEPT_BUFFER_BYTES_MAX, LEFT_MAX, LINGER_MAX,
    LOGIN_AGE_MAX, QUIET, READ_BYTES, UNFINISHED_MAX,
};
use crate::listen::Mode;
use crate::peer::Peer;
use crate::proxied::NOT_ASKED;
use crate::registry::{Leave, asked_to_go};
use crate::request_log::Origin;
use crate::second_read::SecondRead;
use crate::secured;
use crate::session::Session;
use crate::state::ServerState;
use crate::stream::{Stream, drain};
use keyway_codec::certificate::subject_dn;
use keyway_codec::message::ResultCode;
use keyway_codec::proxy::looks_like;
use keyway_engine::Algorithm;
use keyway_server::log::{Access, Value};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use zeroize::{Zeroize, Zeroizing};

thread_local! {
    /// The buffer that a turn reads into, so that an idle connection holds none. Wiped after use.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Serves one connection to its end. `stop` asks it to finish what it accepted and go, or to make room
/// at once.
pub(crate) async fn serve(
    shared: Arc<ServerState>,
    stream: Stream,
    origin: Origin,
    mode: Mode,
    mut stop: oneshot::Receiver<Leave>,
) {
    let private = shared.settings().is_private(&origin.peer);
    let handshake_max = shared.settings().limits.handshake_max;
    let (stream, upgrade) = match (mode, stream) {
        (Mode::StartTls(tls), Stream::Plain(tcp)) => (Stream::Plain(tcp), Some(tls)),
        (Mode::Tls(tls), Stream::Plain(tcp)) => {
            let begun = secured::begin(tcp, tls.current(), &shared, &origin, &mut stop);
            let Some(stream) = begun.await else { return };
            (stream, None)
        }
        (_, stream) => (stream, None),
    };
    let channel = match &stream {
        Stream::Plain(_) | Stream::Unix(_) => Channel {
            private,
            can_start_tls: upgrade.is_some(),
            credentials: origin.peer.credentials(),
            ..Channel::default()
        },
        Stream::Tls(_) => tls_channel(&shared, &stream),
    };
    let session = Session::new(shared.clone(), channel, origin.clone());
    let mut connection = Connection::new(stream, session, stop);
    loop {
        match (poll_fn(|context| connection.poll_turn(context)).await, &upgrade) {
            (Next::StartTls, Some(tls)) => {
                let began = Instant::now();
                let upgraded = connection.start_tls(tls.current(), handshake_max);
                let Some(upgraded) = upgraded.await else { return };
                match handshaken(upgraded, &shared, &origin) {
                    Some(upgraded) => {
                        note_handshake(&upgraded.stream, &shared, &origin, began);
                        connection = upgraded;
                    }
                    None => return,
                }
            }
            (Next::Close, _) => {
                let mut stop = connection.stop.take();
                let close = async {
                    // A client that does not take its last answer in time goes without.
                    if let Ok(Ok(())) = timeout(CLOSE_MAX, connection.close()).await {
                        let max = match connection.session.left_bytes() {
                            0 => LINGER_MAX,
                            _ => LEFT_MAX,
                        };
                        let _ = timeout(max, connection.linger()).await;
                    }
                };
                return tokio::select! {
                    () = close => {},
                    () = asked_to_make_room(&mut stop) => {},
                };
            }
            (Next::Drop | Next::StartTls, _) => return,
        }
    }
}

/// Serves the requests that another member of the cluster sends for its clients.
pub(crate) async fn serve_member(
    shared: Arc<ServerState>,
    stream: TlsStream<TcpStream>,
    from: SocketAddr,
) {
    let stream = Stream::Tls(Box::new(stream));
    let channel = Channel { is_member: true, ..tls_channel(&shared, &stream) };
    let origin = shared.origin(0, shared.seen(Peer::Tcp(from)));
    // A shutdown waits until these are dropped.
    let mut end = shared.end_on_behalf.subscribe();
    let session = Session::new(shared, channel, origin);
    // Its connection has a place already, which leaves last.
    let (ask, stop) = oneshot::channel();
    let mut connection = Connection::new(stream, session, stop);
    let asks = async {
        let _ = end.wait_for(|ends| *ends).await;
        let _ = ask.send(Leave::Shutdown);
        std::future::pending::<()>().await;
    };
    let next = tokio::select! {
        next = poll_fn(|context| connection.poll_turn(context)) => next,
        () = asks => return,
    };
    if let Next::Close = next {
        let _ = timeout(CLOSE_MAX, connection.close()).await;
    }
}

/// Waits until a connection is to make room, which it may never be.
async fn asked_to_make_room(stop: &mut Option<oneshot::Receiver<Leave>>) {
    if let Some(stop) = stop
        && let Ok(Leave::MakeRoom) = stop.await
    {
        return;
    }
    std::future::pending().await
}

fn tls_channel(shared: &ServerState, stream: &Stream) -> Channel {
    let certificate = stream.peer_certificate();
    let subject = certificate.and_then(|der| subject_dn(der).ok());
    let fingerprint = certificate.and_then(|der| {
        let mut digest = [0; FINGERPRINT_BYTES];
        let engine = &shared.directory.engine();
        // Without a digest the certificate is no administrator's.
        engine.digest(Algorithm::Sha256, &[der], &mut digest).ok().map(|()| digest)
    });
    Channel {
        tls: true,
        private: true,
        can_start_tls: false,
        certificate_subject: subject.filter(|subject| !subject.is_empty()),
        certificate_fingerprint: fingerprint,
        credentials: None,
        is_member: false,
    }
}

/// The step after the turns.
enum Next {
    /// Send what is left and close.
    Close,
    /// Close at once.
    Drop,
    /// Go on in TLS.
    StartTls,
}

/// The time that a connection has before the goodbye.
struct Grace {
    end: Instant,
    timer: Pin<Box<Sleep>>,
}

struct Connection {
    stream: Stream,
    session: Session,
    /// The bytes that were read and not taken; there may be passwords in them.
    input: Zeroizing<Vec<u8>>,
    /// Why the session took no more of it.
    stopped: Stop,
    /// The peer sends no more.
    end_of_input: bool,
    /// Something was written since the last flush.
    unflushed: bool,
    /// Something was written since the last read.
    answered: bool,
    second_read: SecondRead,
    /// The server goes down.
    winding_up: bool,
    /// Others need its place.
    makes_room: bool,
    /// Until it was asked to go.
    stop: Option<oneshot::Receiver<Leave>>,
    /// After that, for how long it may go on with what it is in the middle of.
    grace: Option<Grace>,
    /// It had come just before that.
    logs_in: bool,
    began: Instant,
    idle: Pin<Box<Sleep>>,
    /// Bytes moved since it last waited.
    active: bool,
    /// When it began to wait after that.
    last_active: Instant,
    /// The request whose end the idle timer waits for.
    unfinished: Option<u64>,
    /// Nothing has come in yet.
    is_silent: bool,
    /// It waits for the peer to read an entry.
    within_entry: bool,
}

impl Connection {
    fn new(stream: Stream, session: Session, stop: oneshot::Receiver<Leave>) -> Self {
        let idle = Box::pin(tokio::time::sleep(idle_max(&session)));
        Connection {
            stream,
            session,
            input: Zeroizing::default(),
            stopped: Stop::Incomplete,
            end_of_input: false,
            unflushed: false,
            answered: false,
            second_read: SecondRead::default(),
            winding_up: false,
            makes_room: false,
            stop: Some(stop),
            grace: None,
            logs_in: false,
            began: Instant::now(),
            idle,
            active: false,
            last_active: Instant::now(),
            unfinished: None,
            is_silent: true,
            within_entry: false,
        }
    }

    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        self.session.begin_turn();
        while self.session.work() {
            self.poll_stop(context);
            if self.makes_room {
                self.session.make_room();
                // A client that has no room for it goes without.
                let _ = self.poll_write(context);
                return Poll::Ready(Next::Drop);
            }
            match self.round(context) {
                Err(_) => return Poll::Ready(Next::Drop),
                Ok(progress) => {
                    if let Some(next) = self.next() {
                        return Poll::Ready(next);
                    }
                    if !progress {
                        if std::mem::take(&mut self.active) {
                            self.last_active = Instant::now();
                        }
                        if !self.ends_grace(context) {
                            return self.poll_idle(context);
                        }
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads, works and writes once; says whether any of it came to anything.
    fn round(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut progress = self.session.poll_waiting(context);
        let answered = std::mem::take(&mut self.answered);
        if self.may_read() {
            progress |= self.poll_read(context)? || answered && self.read_again()?;
        }
        if self.stopped != Stop::Incomplete && !self.winding_up {
            progress |= self.take_input();
        }
        progress |= self.session.step_searches();
        if self.winding_up && self.grace.is_none() {
            self.session.wind_up();
        }
        progress |= self.poll_write(context)?;
        Ok(progress)
    }

    /// The step after a round, if the turns are over.
    fn next(&self) -> Option<Next> {
        let ending = self.session.ending;
        if ending == Some(Ending::Unbound) {
            return Some(Next::Close);
        }
        if self.unflushed || !self.session.outbox.unsent().is_empty() {
            return None;
        }
        match ending {
            Some(Ending::Notice) => Some(Next::Close),
            // Clear text behind the request could be another peer's: it must not be
            // taken for what the peer says in TLS.
            Some(Ending::StartTls) if !self.input.is_empty() => Some(Next::Drop),
            Some(Ending::StartTls) => Some(Next::StartTls),
            _ if self.end_of_input
                && self.stopped == Stop::Incomplete
                && self.session.in_flight() == 0 =>
            {
                Some(Next::Close)
            }
            _ => None,
        }
    }

    fn poll_stop(&mut self, context: &mut Context<'_>) {
        if let Some(stop) = &mut self.stop
            && let Poll::Ready(leave) = Pin::new(stop).poll(context)
        {
            self.stop = None;
            self.makes_room = leave == Ok(Leave::MakeRoom);
            self.winding_up = !self.makes_room;
            let has_grace = self.winding_up && !self.end_of_input;
            self.grace = has_grace.then(|| {
                let end = Instant::now() + GRACE_MAX;
                Grace { end, timer: Box::pin(sleep_until(end)) }
            });
            // A program may not try a login again that was cut off, nor what it logged in for.
            self.logs_in = self.session.is_stranger() && self.began.elapsed() < LOGIN_AGE_MAX;
        }
        if self.grace.as_ref().is_some_and(|grace| grace.end <= Instant::now()) {
            self.grace = None;
        }
    }

    /// Ends the grace of one that makes no progress, if it is in the middle of nothing; says whether it did.
    fn ends_grace(&mut self, context: &mut Context<'_>) -> bool {
        let is_amidst = self.session.in_flight() > 0
            || !self.session.outbox.unsent().is_empty()
            || !self.input.is_empty()
            || self.logs_in;
        let Some(grace) = &mut self.grace else { return false };
        let now = Instant::now();
        let quiet = self.last_active + QUIET;
        let ends = self.end_of_input || grace.end <= now || !is_amidst && quiet <= now;
        let next = if is_amidst { grace.end } else { quiet.min(grace.end) };
        if !ends {
            grace.timer.as_mut().reset(next);
        }
        if ends || grace.timer.as_mut().poll(context).is_ready() {
            self.grace = None;
        }
        self.grace.is_none()
    }

    /// Whether more input could be taken: none of it waits already.
    fn may_read(&self) -> bool {
        self.stopped == Stop::Incomplete
            && !self.end_of_input
            && (!self.winding_up || self.grace.is_some())
            && self.session.ending.is_none()
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
                Poll::Pending => return Ok(false),
                Poll::Ready(result) => result?,
            }
            self.received(buffer.filled_mut());
            Ok(true)
        })
    }

    /// Reads what came while the answers were sent.
    fn read_again(&mut self) -> io::Result<bool> {
        if !self.second_read.is_worth_it() {
            return Ok(false);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            let read = self.stream.read_now(scratch)?;
            self.second_read.note(read.is_some());
            let bytes = read.and_then(|read| scratch.get_mut(..read));
            Ok(bytes.map(|bytes| self.received(bytes)).is_some())
        })
    }

    /// Takes what was read; it is wiped.
    fn received(&mut self, bytes: &mut [u8]) {
        self.end_of_input = bytes.is_empty();
        self.active = true;
        self.session.request_log.received();
        self.session.shared.meters.bytes_in.add(bytes.len() as u64);
        if std::mem::take(&mut self.is_silent) && looks_like(bytes) {
            let why = [("text", Value::Text(NOT_ASKED))];
            self.session.request_log.origin.connection(Access::Refused, "proxy-header", &why);
        }
        self.offer(bytes);
        bytes.zeroize();
    }

    fn offer(&mut self, bytes: &[u8]) {
        if !self.input.is_empty() {
            self.keep(bytes);
            self.take_input();
            return;
        }
        let (taken, stopped) = self.session.receive(bytes);
        self.stopped = stopped;
        self.keep(bytes.get(taken..).unwrap_or_default());
    }

    /// Appends to the input. Bytes that have outgrown their place are wiped there.
    fn keep(&mut self, bytes: &[u8]) {
        let wanted = self.input.len() + bytes.len();
        if wanted > self.input.capacity() {
            // No more than the request needs, if that is known.
            let doubled = (2 * self.input.capacity()).min(self.session.unread_bytes());
            let mut larger = Vec::with_capacity(wanted.max(doubled));
            larger.extend_from_slice(&self.input);
            self.input = Zeroizing::new(larger);
        }
        self.input.extend_from_slice(bytes);
    }

    /// Offers what was read and not taken; says whether any of it was taken now.
    fn take_input(&mut self) -> bool {
        let (taken, stopped) = self.session.receive(&self.input);
        self.stopped = stopped;
        // The bytes that are left move to the front; behind them nothing of what was there may stay.
        let left = self.input.len() - taken;
        self.input.copy_within(taken.., 0);
        if let Some(behind) = self.input.get_mut(left..) {
            behind.zeroize();
        }
        self.input.truncate(left);
        if self.input.is_empty() {
            self.input.shrink_to(KEPT_BUFFER_BYTES_MAX);
        }
        taken > 0
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let mut written = 0;
        let outbox = &mut self.session.outbox;
        while !outbox.unsent().is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, outbox.unsent()) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(result) => {
                    let bytes = result?;
                    outbox.advance(bytes);
                    written += bytes;
                }
            }
        }
        if written > 0 {
            (self.active, self.unflushed, self.answered) = (true, true, true);
            self.session.shared.meters.bytes_out.add(written as u64);
        }
        self.unflushed |= self.stream.has_alert();
        if self.unflushed && self.session.outbox.unsent().is_empty() {
            self.unflushed = match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Pending => true,
                Poll::Ready(result) => {
                    result?;
                    false
                }
            };
        }
        Ok(written > 0)
    }

    /// Waits for what wakes us, and closes what has been idle for too long.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        let unfinished = self.session.unfinished().filter(|_| self.may_read());
        let within_entry = self.session.is_within_entry();
        if unfinished != self.unfinished || within_entry != self.within_entry {
            self.within_entry = within_entry;
            let idle_max = idle_max(&self.session);
            let max = if unfinished.is_some() { UNFINISHED_MAX.min(idle_max) } else { idle_max };
            self.idle.as_mut().reset(Instant::now() + max);
            self.unfinished = unfinished;
        }
        loop {
            ready!(self.idle.as_mut().poll(context));
            if self.unfinished.is_some() {
                let why = "a request takes too long to come in";
                self.session.disconnect(ResultCode::Busy, why);
                return Poll::Ready(Next::Close);
            }
            let unsent = !self.session.outbox.unsent().is_empty();
            let busy = !unsent && self.session.in_flight() > 0;
            let (now, idle_max) = (Instant::now(), idle_max(&self.session));
            if busy {
                self.idle.as_mut().reset(now + idle_max);
                continue;
            }
            let due = self.last_active + idle_max;
            if now < due {
                self.idle.as_mut().reset(due);
                continue;
            }
            if unsent {
                return Poll::Ready(Next::Drop);
            }
            self.session.disconnect(ResultCode::Unavailable, "idle for too long");
            return Poll::Ready(Next::Close);
        }
    }

    /// The outcome of a handshake; `None` if it is asked to go meanwhile and is not through soon.
    async fn start_tls(
        self,
        config: Arc<ServerConfig>,
        handshake_max: Duration,
    ) -> Option<Result<io::Result<Self>, Elapsed>> {
        let Connection { stream: Stream::Plain(tcp), mut session, stop, began, .. } = self else {
            return None;
        };
        // Where it was asked to go already, it has its grace.
        let mut stop = stop.unwrap_or_else(asked_to_go);
        let handshake = timeout(handshake_max, Stream::accept_tls(tcp, config));
        let stream = until_asked(handshake, &mut stop).await?;
        Some(stream.map(|stream| {
            let stream = stream?;
            let channel = tls_channel(&session.shared, &stream);
            session.tls_started(channel);
            Ok(Connection { began, ..Connection::new(stream, session, stop) })
        }))
    }

    /// Sends what is left and says that this was all.
    async fn close(&mut self) -> io::Result<()> {
        if self.session.ending != Some(Ending::Unbound) {
            self.stream.write_all(self.session.outbox.unsent()).await?;
        }
        self.stream.shutdown().await
    }

    /// Lets the peer see a notice.
    async fn linger(&mut self) -> io::Result<()> {
        if self.session.ending != Some(Ending::Notice) || self.end_of_input {
            return Ok(());
        }
        drain(&mut self.stream, self.session.left_bytes()).await
    }
}

fn idle_max(session: &Session) -> Duration {
    let limits = &session.settings.limits;
    let idle_max = match session.subject.is_anonymous() {
        true => limits.idle_before_bind_max,
        false => limits.idle_max,
    };
    match session.is_within_entry() {
        // A state of the store is kept for it.
        true => ENTRY_STALL_MAX.min(idle_max),
        false => idle_max,
    }
}
