//! A connection of the capture, opened again: requests out when they are due, answers in.

use super::destination::{Destination, no_ldap};
use super::telling::Telling;
use super::timetable::Timetable;
use crate::limits::REPLAY_ANSWER_BYTES_MAX;
use crate::replay::{Conversation, Now, Request, Speed};
use keyway_codec::message::tag;
use keyway_codec::{Message, Op, ber};
use keyway_host::failure::plain;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::sync::Notify;
use tokio::time::timeout;

const READ_BYTES: usize = 1 << 16;

/// Sends a connection's requests, and tells what comes of each.
pub(super) async fn replay(
    conversation: &Conversation,
    timetable: &Timetable,
    server: &Destination,
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
                written = exchange.write(&mut output, timetable, server.timeout) => written,
                () = reading => Ok(()),
            }
        }
        Ok(Err(why)) => Err(why),
        Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "it takes too long to connect")),
    };
    let Progress { now, told, closed, .. } = exchange.progress.into_inner();
    if let Some(why) = said.err().or(closed.flatten()) {
        if why.kind() == ErrorKind::PermissionDenied {
            telling.refused(&format!("{}: {}", server.to, plain(&why)));
        }
        telling.connection(conversation.number, &plain(&why));
    }
    for ((request, now), told) in conversation.requests.iter().zip(now).zip(told) {
        if !told {
            telling.result(conversation.number, request, now);
        }
    }
}

/// The requests under way on a connection.
struct Exchange<'c> {
    conversation: &'c Conversation,
    telling: &'c Telling,
    progress: RefCell<Progress>,
    changed: Notify,
}

struct Progress {
    now: Vec<Now>,
    sent: Vec<Option<Instant>>,
    /// The requests whose results were told.
    told: Vec<bool>,
    /// Requests that have been sent and not answered, by their ids.
    open: HashMap<u32, usize>,
    /// The answers that are there, in the order in which they came when captured.
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
        timetable: &Timetable,
        longest: Duration,
    ) -> io::Result<()> {
        for (index, request) in self.conversation.requests.iter().enumerate() {
            timetable.wait_until(request.start_ns).await;
            let is_due = |progress: &Progress| {
                progress.in_order >= request.after && !self.is_open(progress, request.id)
            };
            if !self.until(is_due, longest).await? {
                return Ok(());
            }
            if let Speed::Times(_) = timetable.speed {
                self.telling.late(timetable.due(request.start_ns).elapsed());
            }
            self.note_sent(index, request);
            write(output, &request.octets, longest).await?;
        }
        self.until(|progress| progress.in_order == progress.answered.len(), longest).await?;
        timetable.wait_until(self.conversation.end_ns).await;
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
        now.code = op.result().map(|result| result.code.code());
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
