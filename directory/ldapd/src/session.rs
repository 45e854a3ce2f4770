//! One peer's LDAP session: requests in, answers out, nothing about sockets or clocks.
//!
//! Reads, compares and fast binds are answered on the spot. A search is a cursor that is stepped
//! while there is room for its answers, in turn with the connection's other searches. A request that waits
//! for something else (slow password checks, writes) is a future whose answer goes out when it is
//! ready. A request that cannot be taken yet stays unread, and with it all that follow.

use crate::answer::Outbox;
use crate::budget::Share;
use crate::channel::{Channel, Ending, Stop};
use crate::limits::{
    FORWARDED_ANSWER_BYTES_MAX, FORWARDED_MAX, MEMBER_IDLE_MAX, QUEUED_COUNTED_MAX,
    REQUEST_BESIDE_OTHERS_BYTES_MAX, SEARCH_STEP_BYTES, SEARCH_STEP_WORK, TURN_WORK_MAX,
    UNFINISHED_FREE_BYTES, WORK_BYTES,
};
use crate::must_change;
use crate::outcome::Answer;
use crate::request_log::{Origin, RequestLog};
use crate::requested_controls::RequestedControls;
use crate::seen::Seen;
use crate::settings::ConnectionSettings;
use crate::state::ServerState;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use keyway_cluster::own_writes::OwnWrites;
use keyway_codec::DecodeError;
use keyway_codec::ber::announced;
use keyway_codec::message::{Control, ExtendedResponse, LdapResult, Message, Op, ResultCode, tag};
use keyway_meter::Gauge;
use keyway_password::{Attempt, BindHistory};
use keyway_schema::base;
use keyway_server::access::{Over, Strength};
use keyway_server::controls::{RequestControls, ResponseControl, Written};
use keyway_server::log::AuditedChange;
use keyway_server::log::stages::Stage;
use keyway_server::{Announced, Failure, RequestOrigin, Search, Step, Subject, USER_PASSWORD};
use std::collections::VecDeque;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::task::block_in_place;
use zeroize::Zeroizing;

/// The text of a refusal where [`Limits::unfinished_bytes_max`](crate::Limits) is reached.
const UNFINISHED_FULL: &str =
    "the server holds as many unfinished requests as it may; try again later";

pub(crate) struct Session {
    pub(crate) shared: Arc<ServerState>,
    /// As they were when the connection was opened.
    pub(crate) settings: Arc<ConnectionSettings>,
    /// Where the peer is.
    pub(crate) from: IpAddr,
    pub(crate) channel: Channel,
    pub(crate) subject: Subject,
    /// The password policy lets it do nothing before it has changed its password.
    pub(crate) must_change: bool,
    /// What it has written elsewhere and this server may lack.
    pub(crate) wrote: OwnWrites,
    /// The request of another server's client that is being taken.
    pub(crate) asker: Option<RequestOrigin>,
    /// The subject has shown by a certificate who he is.
    pub(crate) by_certificate: bool,
    pub(crate) outbox: Outbox,
    pub(crate) request_log: RequestLog,
    pub(crate) ending: Option<Ending>,
    searches: VecDeque<(u32, Search)>,
    waiting: FuturesUnordered<Pin<Box<dyn Future<Output = Finished> + Send>>>,
    /// Those in `waiting` whose answer is still wanted.
    wanted: Vec<Ticket>,
    /// How many were ever put into `waiting`.
    tickets: u64,
    /// A bind is among `waiting`: nothing else is taken meanwhile (RFC 4511 § 4.2.1).
    binding: bool,
    /// How it has fared with passwords, and the one that is being tried.
    pub(crate) history: BindHistory,
    pub(crate) trying: Option<Attempt>,
    /// Length of the requests in `waiting`, and of the one being taken, in bytes.
    waiting_bytes: usize,
    request_bytes: usize,
    /// Length of what was read and not taken, or of the request that it begins, in bytes.
    unread_bytes: usize,
    /// How much is still to come of a request that was too long, in bytes.
    left_bytes: usize,
    /// How many requests were taken.
    taken: u64,
    /// The memory that it holds for unfinished requests.
    share: Share,
    /// Requests that were read and not taken.
    queued: Queued,
    /// Work left to do in this turn.
    work_left: usize,
}

/// How many requests of a connection were read and not taken, among all of them.
struct Queued {
    requests: u64,
    all: Gauge,
    seen: Arc<Seen>,
}

impl Queued {
    fn are(&mut self, requests: u64) {
        if requests != self.requests {
            self.all.move_by(requests.cast_signed() - self.requests.cast_signed());
            self.requests = requests;
            self.seen.queued(requests);
        }
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.are(0);
    }
}

/// How many whole messages there are at the beginning of what was read, as far as they are counted.
fn messages(mut input: &[u8], bytes_max: usize) -> u64 {
    let mut count = 0;
    while count < QUEUED_COUNTED_MAX
        && let Ok(Some(length)) = announced(input, bytes_max)
        && let Some(rest) = input.get(length..)
    {
        (count, input) = (count + 1, rest);
    }
    count
}

/// Who waits. The number is never given twice: the message id of a request that was abandoned may
/// be used again while its work still goes on (RFC 4511 § 4.1.1.1).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ticket {
    id: u32,
    number: u64,
}

/// A request that had to wait for something is done.
struct Finished {
    ticket: Ticket,
    request_bytes: usize,
    answer: Answer,
}

impl Session {
    pub fn new(shared: Arc<ServerState>, channel: Channel, origin: Origin) -> Self {
        let mut settings = shared.settings();
        if channel.is_member {
            let settings = Arc::make_mut(&mut settings);
            settings.limits.requests_in_flight_max = FORWARDED_MAX;
            settings.limits.unread_answer_bytes_max = FORWARDED_ANSWER_BYTES_MAX;
            settings.limits.message_bytes_before_bind_max = settings.limits.message_bytes_max;
            settings.limits.idle_before_bind_max = MEMBER_IDLE_MAX;
        }
        let share = Share::of(&shared.unfinished);
        let queued = Queued { requests: 0, all: shared.meters.queue, seen: origin.seen.clone() };
        let mut session = Session {
            shared,
            settings,
            from: origin.peer.ip(),
            channel,
            subject: Subject::anonymous(),
            must_change: false,
            wrote: OwnWrites::default(),
            asker: None,
            by_certificate: false,
            outbox: Outbox::default(),
            request_log: RequestLog::new(origin),
            ending: None,
            searches: VecDeque::new(),
            waiting: FuturesUnordered::new(),
            wanted: Vec::new(),
            tickets: 0,
            binding: false,
            history: BindHistory::default(),
            trying: None,
            waiting_bytes: 0,
            request_bytes: 0,
            unread_bytes: 0,
            left_bytes: 0,
            taken: 0,
            share,
            queued,
            work_left: 0,
        };
        session.become_subject(Subject::anonymous());
        session
    }

    /// Begins a turn.
    pub fn begin_turn(&mut self) {
        self.work_left = TURN_WORK_MAX;
    }

    /// Counts a piece of work; false when the turn is over.
    pub fn work(&mut self) -> bool {
        let more = self.work_left > 0;
        self.work_left = self.work_left.saturating_sub(1);
        more
    }

    /// Takes the requests at the start of `input` that can be taken now, and says how many bytes
    /// they were and why it stopped.
    pub fn receive(&mut self, input: &[u8]) -> (usize, Stop) {
        let mut rest = input;
        self.unread_bytes = 0;
        let stop = loop {
            match self.receive_one(rest) {
                Ok(left) => rest = left,
                Err(stop) => break stop,
            }
        };
        self.request_log.waits();
        let taken = input.len() - rest.len();
        let waits = matches!(stop, Stop::Blocked | Stop::Turn);
        self.queued.are(if waits { messages(rest, self.message_bytes_max()) } else { 0 });
        self.unread_bytes = self.unread_bytes.max(rest.len());
        if stop == Stop::Ended || self.hold(self.unread_bytes) {
            return (taken, stop);
        }
        self.disconnect(ResultCode::Busy, UNFINISHED_FULL);
        (taken, Stop::Ended)
    }

    /// Holds memory for so many bytes beside the requests that wait; false if there is none.
    fn hold(&mut self, bytes: usize) -> bool {
        let limits = &self.settings.limits;
        let max = match self.subject.is_anonymous() {
            true => limits.unfinished_bytes_max / 4,
            false => limits.unfinished_bytes_max,
        };
        self.share.hold(self.waiting_bytes + bytes, max)
    }

    /// How many bytes are still to come of the request with which the session has ended.
    pub fn left_bytes(&self) -> usize {
        self.left_bytes
    }

    /// Length of the request that is coming in, as far as it is known, in bytes.
    pub fn unread_bytes(&self) -> usize {
        self.unread_bytes
    }

    /// The number of the request that is coming in, if others have less room because of it.
    pub fn unfinished(&self) -> Option<u64> {
        (self.unread_bytes > UNFINISHED_FREE_BYTES).then_some(self.taken)
    }

    /// Takes one request and returns what follows it.
    fn receive_one<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], Stop> {
        if self.ending.is_some() {
            return Err(Stop::Ended);
        }
        let length = match announced(input, self.message_bytes_max()) {
            Ok(Some(length)) => length,
            Ok(None) => return Err(Stop::Incomplete),
            Err(error) => {
                if let DecodeError::TooLong { bytes, .. } = error {
                    self.left_bytes = bytes.saturating_sub(input.len());
                    self.answer_too_long(input, &error);
                }
                self.disconnect(ResultCode::ProtocolError, &error.to_string());
                return Err(Stop::Ended);
            }
        };
        let Some((bytes, rest)) = input.split_at_checked(length) else {
            self.unread_bytes = length;
            return Err(Stop::Incomplete);
        };
        if self.must_wait(bytes) {
            return Err(Stop::Blocked);
        }
        if !self.work() {
            return Err(Stop::Turn);
        }
        self.work_left = self.work_left.saturating_sub(length / WORK_BYTES);
        self.request_bytes = length;
        self.taken += 1;
        if !self.hold(length) {
            self.refuse(bytes);
            return Ok(rest);
        }
        match Message::decode(bytes) {
            Ok(message) if length > REQUEST_BESIDE_OTHERS_BYTES_MAX => {
                // The thread's other connections are taken over by another thread meanwhile.
                block_in_place(|| self.take(&message));
            }
            Ok(message) => self.take(&message),
            Err(error) => self.undecodable(bytes, &error),
        }
        Ok(rest)
    }

    fn message_bytes_max(&self) -> usize {
        let limits = &self.settings.limits;
        match self.subject.is_anonymous() {
            true => limits.message_bytes_before_bind_max,
            false => limits.message_bytes_max,
        }
    }

    /// Whether a request cannot be taken before others are done or their answers read.
    fn must_wait(&self, bytes: &[u8]) -> bool {
        let (in_flight, limits) = (self.in_flight(), &self.settings.limits);
        match Message::peek_tag(bytes) {
            Some(tag::UNBIND_REQUEST) => false,
            _ if self.is_within_entry() => true,
            None | Some(tag::ABANDON_REQUEST) => false,
            _ if self.binding => true,
            _ if in_flight >= limits.requests_in_flight_max => true,
            _ if in_flight > 0 && self.waiting_bytes + bytes.len() > limits.message_bytes_max => {
                true
            }
            // A search needs no room before it is stepped, so that an abandon behind it is reached. One that is
            // refused is answered at once, and those together have as much room again.
            Some(tag::SEARCH_REQUEST) => {
                self.outbox.unsent().len() >= 2 * limits.unread_answer_bytes_max
            }
            Some(tag::BIND_REQUEST) => in_flight > 0 || self.capacity() == 0,
            _ => self.capacity() == 0,
        }
    }

    /// Whether a part of an entry was sent: nothing else may be sent before the rest.
    pub fn is_within_entry(&self) -> bool {
        self.searches.front().is_some_and(|(_, search)| search.is_within_entry())
    }

    /// Whether a client has not logged in, and may.
    pub fn is_stranger(&self) -> bool {
        self.subject.is_anonymous() && !self.channel.is_member
    }

    /// Requests that are being worked on.
    pub fn in_flight(&self) -> usize {
        self.searches.len() + self.waiting.len()
    }

    /// How many more bytes of answers may be held.
    fn capacity(&self) -> usize {
        let max = self.settings.limits.unread_answer_bytes_max;
        max.saturating_sub(self.outbox.unsent().len())
    }

    /// Answers a request for which there is no memory.
    fn refuse(&mut self, bytes: &[u8]) {
        let result = LdapResult::new(ResultCode::Busy, UNFINISHED_FULL);
        let answer = Message::peek_tag(bytes).and_then(|tag| Op::answer(tag, result));
        match (Message::peek_id(bytes).filter(|id| *id != 0), answer) {
            (Some(id), Some(answer)) => self.put(id, answer, &[]),
            _ => self.disconnect(ResultCode::Busy, UNFINISHED_FULL),
        }
    }

    /// Answers a request that is longer than one may be, before the session ends: most clients show what an
    /// answer says, and not what a notice does.
    fn answer_too_long(&mut self, begin: &[u8], error: &DecodeError) {
        let Some((id, request)) = Message::peek_begin(begin).filter(|(id, _)| *id != 0) else {
            return;
        };
        let why = format!(
            "{error} (limits.message_bytes_max, before a bind \
                           message_bytes_before_bind_max)"
        );
        if let Some(answer) =
            Op::answer(request, LdapResult::new(ResultCode::AdminLimitExceeded, why))
        {
            self.put(id, answer, &[]);
        }
    }

    /// RFC 4511 § 4.1.1: what is not built as a request ends the session; what is, and has a value
    /// that is none or goes beyond what we take, is answered.
    fn undecodable(&mut self, bytes: &[u8], error: &DecodeError) {
        let id = Message::peek_id(bytes).filter(|id| *id != 0 && error.is_answerable());
        let (Some(id), Some(request)) = (id, Message::peek_tag(bytes)) else {
            return self.disconnect(ResultCode::ProtocolError, &error.to_string());
        };
        let code = match error {
            DecodeError::Invalid { .. } => ResultCode::ProtocolError,
            _ => ResultCode::AdminLimitExceeded,
        };
        match Op::answer(request, LdapResult::new(code, error.to_string())) {
            Some(answer) => {
                self.forget_subject_before(request);
                self.put(id, answer, &[]);
            }
            // It has no answer, and of what cannot be there nothing is under way.
            None if request == tag::ABANDON_REQUEST => self.shared.meters.abandon.increment(),
            None => self.disconnect(ResultCode::ProtocolError, &error.to_string()),
        }
    }

    /// RFC 4513 § 4: from a bind on the session is anonymous, whatever comes of it.
    fn forget_subject_before(&mut self, request: u8) {
        if request == tag::BIND_REQUEST {
            self.must_change = false;
            self.by_certificate = false;
            self.become_subject(Subject::anonymous());
        }
    }

    /// The session speaks for him from here on, over what it is now.
    pub(crate) fn become_subject(&mut self, subject: Subject) {
        let strength = match &self.channel {
            channel if channel.tls && self.by_certificate => Strength::Certificate,
            channel if channel.tls => Strength::Tls,
            channel if channel.private => Strength::Private,
            _ => Strength::Any,
        };
        let seen = &self.request_log.origin.seen;
        seen.speaks_for(subject.dn(), strength);
        if seen.is_to_be_listed() {
            self.shared.registry.forgets(self.request_log.origin.connection);
        }
        self.subject = subject.over(Over { address: Some(self.from), strength });
    }

    fn take(&mut self, message: &Message<'_>) {
        match self.channel.is_member {
            true => self.dispatch_for_another(message),
            false => self.dispatch(message),
        }
    }

    pub(crate) fn dispatch(&mut self, message: &Message<'_>) {
        let request = message.op.tag();
        self.request_log.origin.seen.request();
        self.request_log.asked(message.id, &message.op);
        if message.id == 0 {
            return self
                .disconnect(ResultCode::ProtocolError, "a request cannot have message id 0");
        }
        if let Op::UnbindRequest = message.op {
            self.shared.meters.unbind.increment();
            self.abandon_all();
            self.ending = Some(Ending::Unbound);
            return;
        }
        self.forget_subject_before(request);
        let controls = match RequestControls::parse(request, &message.controls) {
            Ok(controls) => controls,
            Err(failure) => return self.answer(message.id, request, failure.into(), &[]),
        };
        if self.is_in_flight(message.id) {
            let result = LdapResult::new(
                ResultCode::ProtocolError,
                "a request with this message id is still being worked on",
            );
            return self.answer(message.id, request, result, &[]);
        }
        if self.wait_for_own_writes(message, &controls) {
            return;
        }
        let requested = match self.requested_controls(&controls) {
            Ok(requested) => requested,
            Err(failure) => return self.answer(message.id, request, failure.into(), &[]),
        };
        if self.must_change && self.is_withheld(&message.op) {
            return self.fail(message.id, request, must_change::refusal(), &requested);
        }
        if !self.send_elsewhere(message, &requested) {
            self.perform(message.id, &message.op, &controls, requested);
        }
    }

    /// The response controls that a request asks for.
    ///
    /// # Errors
    /// `insufficientAccessRights` if it must be told about rules that it may not read.
    pub(crate) fn requested_controls(
        &self,
        controls: &RequestControls<'_>,
    ) -> Result<RequestedControls, Failure> {
        let policy = controls.password_policy;
        let position = controls.position.is_some() || self.channel.is_member;
        let Some(critical) = controls.deciding_rules else {
            return Ok(RequestedControls { policy, position, trace: None });
        };
        match (self.shared.directory.may_read_rules(&self.subject)?, critical) {
            (true, _) => Ok(RequestedControls { policy, position, trace: Some(Arc::default()) }),
            (false, true) => Err(Failure::denied("ask which rules decide")),
            // It is as if it was not known.
            (false, false) => Ok(RequestedControls { policy, position, trace: None }),
        }
    }

    /// Whether an operation has to wait until the password is changed.
    fn is_withheld(&mut self, op: &Op<'_>) -> bool {
        let needed = match op {
            Op::BindRequest(_) | Op::AbandonRequest(_) => true,
            Op::ModifyRequest(modify) => {
                let mut changes = modify.changes.iter();
                changes.all(|change| base(&change.attribute.description) == USER_PASSWORD)
                    && self.shared.directory.is_entry_of(&self.subject, modify.dn)
            }
            Op::ExtendedRequest(request) => must_change::is_allowed(request),
            _ => false,
        };
        if !needed {
            // It may have been changed meanwhile.
            self.must_change = self.shared.directory.must_change(&self.subject);
        }
        !needed && self.must_change
    }

    fn perform(
        &mut self,
        id: u32,
        op: &Op<'_>,
        controls: &RequestControls<'_>,
        requested: RequestedControls,
    ) {
        let directory = self.shared.directory.clone();
        // Logs name the subject as it is called now. Where that cannot be looked up, the operation says why. A bind
        // replaces the subject.
        if !matches!(op, Op::BindRequest(_) | Op::AbandonRequest(_)) {
            let _ = directory.refresh(&self.subject);
        }
        let subject = self.subject.clone().traced(requested.trace.clone());
        let (request, announced) = (op.tag(), self.announced());
        match op {
            Op::BindRequest(bind) => self.bind(id, bind, requested),
            Op::ExtendedRequest(extended) => self.extended(id, extended, requested),
            Op::AbandonRequest(target) => self.abandon(*target),
            Op::SearchRequest(search) => {
                let search = directory.search(&subject, search, controls, announced);
                self.request_log.lap(id, Stage::Plan);
                match search {
                    Ok(search) => self.start_search(id, search),
                    Err(failure) => self.fail(id, request, failure, &requested.of_search()),
                }
            }
            Op::CompareRequest(compare) => {
                let code = match directory.compare(&subject, compare, controls, announced) {
                    Ok(true) => ResultCode::CompareTrue,
                    Ok(false) => ResultCode::CompareFalse,
                    Err(failure) => return self.fail(id, request, failure, &requested),
                };
                self.answer(id, request, LdapResult::new(code, ""), &requested.controls(None));
            }
            _ => match directory.prepare(&subject, op, controls) {
                Some(operation) => {
                    self.request_log.lap(id, Stage::Plan);
                    let audit = self.request_log.change(id, &subject, || AuditedChange::of(op));
                    let origin = self.origin_of(id);
                    let carry_out = || directory.carry_out(operation, origin, audit);
                    let write = match self.request_log.shared_timer(id) {
                        Some(shared_timer) => shared_timer.within(carry_out),
                        None => carry_out(),
                    };
                    self.wait_for(id, async move {
                        Answer::Write { request, result: write.await, requested }
                    });
                }
                None => {
                    let why = "a response cannot be sent to a server";
                    self.disconnect(ResultCode::ProtocolError, why);
                }
            },
        }
    }

    /// The request of this message id, for what it changes.
    pub(crate) fn origin_of(&self, operation: u32) -> RequestOrigin {
        let connection = self.request_log.origin.connection;
        self.asker.unwrap_or(RequestOrigin { from: self.from, connection, operation })
    }

    /// The part of the root DSE that is about this connection.
    fn announced(&self) -> Announced {
        Announced { extensions: self.supported(), sasl_mechanisms: self.mechanisms() }
    }

    fn start_search(&mut self, id: u32, search: Search) {
        if self.capacity() == 0 {
            self.request_log.wait(id);
            self.searches.push_back((id, search));
        } else {
            self.step(id, search);
        }
    }

    /// Steps one search; it goes to the end of the line if there is more to it.
    fn step(&mut self, id: u32, mut search: Search) {
        let budget = self.capacity().min(SEARCH_STEP_BYTES);
        let shared = &self.shared;
        let sent = search.sent();
        let out = &mut self.outbox.bytes;
        // The thread's other connections are taken over by another thread meanwhile.
        let step = match search.is_long() {
            true => block_in_place(|| search.step(&shared.directory, id, out, budget)),
            false => search.step(&shared.directory, id, out, budget),
        };
        shared.meters.entries_sent.add(u64::from(search.sent().wrapping_sub(sent)));
        match step {
            Step::More => {
                self.request_log.origin.seen.step();
                self.request_log.wait_at(id, search.progress());
                self.work_left = self.work_left.saturating_sub(SEARCH_STEP_WORK);
                match search.is_within_entry() {
                    true => self.searches.push_front((id, search)),
                    false => self.searches.push_back((id, search)),
                }
            }
            Step::Broken(result) => {
                self.request_log.disconnected(result.code, &result.diagnostic);
                self.break_off();
            }
            Step::Done(result, mut controls) => {
                controls.extend(search.deciding_rules());
                self.request_log.progress = Some(search.progress());
                self.request_log.unindexed = search.lacking().map(str::to_owned);
                self.answer(id, tag::SEARCH_REQUEST, result, &controls);
            }
        }
    }

    /// Steps each running search once while there is room; says whether there was anything to do.
    pub fn step_searches(&mut self) -> bool {
        let mut stepped = false;
        for _ in 0..self.searches.len() {
            if self.capacity() == 0 || self.work_left == 0 {
                break;
            }
            let Some((id, search)) = self.searches.pop_front() else { break };
            self.request_log.lap(id, Stage::Write);
            self.step(id, search);
            stepped = true;
        }
        stepped
    }

    /// Answers when `work` is done.
    pub(crate) fn wait_for(
        &mut self,
        id: u32,
        work: impl Future<Output = Answer> + Send + 'static,
    ) {
        let shared_timer = self.request_log.shared_timer(id);
        self.request_log.wait(id);
        let ticket = Ticket { id, number: self.tickets };
        self.tickets += 1;
        self.wanted.push(ticket);
        let request_bytes = self.request_bytes;
        self.waiting_bytes += request_bytes;
        let finished = async move { Finished { ticket, request_bytes, answer: work.await } };
        self.waiting.push(match shared_timer {
            Some(shared_timer) => Box::pin(shared_timer.around(finished)),
            None => Box::pin(finished),
        });
    }

    /// As [`Session::wait_for`], for a bind, which keeps all else waiting.
    pub(crate) fn wait_for_bind(
        &mut self,
        id: u32,
        work: impl Future<Output = Answer> + Send + 'static,
    ) {
        self.binding = true;
        self.wait_for(id, work);
    }

    /// Answers what has become ready; says whether anything has.
    pub fn poll_waiting(&mut self, context: &mut Context<'_>) -> bool {
        let mut any = false;
        while !self.waiting.is_empty() && self.capacity() > 0 && !self.is_within_entry() {
            let Poll::Ready(Some(finished)) = self.waiting.poll_next_unpin(context) else { break };
            any = true;
            self.finish(finished);
        }
        any
    }

    fn finish(&mut self, finished: Finished) {
        let Finished { ticket, request_bytes, answer } = finished;
        self.waiting_bytes -= request_bytes;
        // It becomes less.
        self.hold(self.unread_bytes);
        if let Answer::Bind(..) | Answer::Again { .. } = &answer {
            // While a bind waits nothing else does.
            self.binding = false;
        }
        let position = self.wanted.iter().position(|wanted| *wanted == ticket);
        let Some(position) = position else { return };
        let Ticket { id, .. } = self.wanted.swap_remove(position);
        match answer {
            Answer::Write { request, result: Ok(mut done), requested } => {
                done.response_controls.extend(requested.controls(None));
                done.response_controls.extend(self.position_control(&requested));
                self.answer(id, request, LdapResult::success(), &done.response_controls);
            }
            Answer::Write { request, result: Err(failure), requested } => {
                self.fail(id, request, failure, &requested);
            }
            Answer::Bind(bound, requested) => self.bound(id, *bound, &requested),
            Answer::Forwarded { request, result, requested } => {
                self.answer_forwarded(id, request, result, &requested);
            }
            Answer::Again { message, reached } => self.take_again(&message, reached),
            Answer::Extended { result, requested } => self.answer_extended(id, result, &requested),
        }
    }

    /// Answers an extended operation.
    pub(crate) fn answer_extended(
        &mut self,
        id: u32,
        result: Result<Option<Zeroizing<Vec<u8>>>, Failure>,
        requested: &RequestedControls,
    ) {
        let value = match result {
            Ok(value) => value,
            Err(failure) => return self.fail(id, tag::EXTENDED_REQUEST, failure, requested),
        };
        let value = value.as_ref().map(|value| value.as_slice().into());
        let response = ExtendedResponse { result: LdapResult::success(), oid: None, value };
        let mut controls = requested.controls(None);
        controls.extend(self.position_control(requested));
        self.put(id, Op::ExtendedResponse(response), &controls);
    }

    /// Answers a request with a failure.
    pub(crate) fn fail(
        &mut self,
        id: u32,
        request: u8,
        failure: Failure,
        requested: &RequestedControls,
    ) {
        let controls = requested.controls(failure.password);
        self.answer(id, request, failure.into(), &controls);
    }

    /// Answers a request by its identifier octet, if it is one that has an answer.
    pub(crate) fn answer(
        &mut self,
        id: u32,
        request: u8,
        result: LdapResult<'_>,
        controls: &[ResponseControl],
    ) {
        if let Some(op) = Op::answer(request, result) {
            self.put(id, op, controls);
        }
    }

    /// The position by which a change that is answered now is there, if that is asked for: a later one may be said.
    fn position_control(&self, requested: &RequestedControls) -> Option<ResponseControl> {
        let (position, row) = requested.position.then(|| self.shared.here().ok()).flatten()?;
        let reign = row.map_or((0, 0), |row| (row.epoch, row.writer.0));
        Some(ResponseControl::position(Written { position, reign }))
    }

    pub(crate) fn put(&mut self, id: u32, op: Op<'_>, controls: &[ResponseControl]) {
        self.put_with(id, op, controls.iter().map(ResponseControl::as_control).collect());
    }

    pub(crate) fn put_with(&mut self, id: u32, op: Op<'_>, controls: Vec<Control<'_>>) {
        let time_ns = self.request_log.answered(id, &op, &self.subject);
        self.shared.meters.answer(&op, time_ns);
        self.outbox.answer(id, op, controls);
    }

    fn is_in_flight(&self, id: u32) -> bool {
        self.is_waiting(id) || self.searches.iter().any(|(other, _)| *other == id)
    }

    /// RFC 4511 § 4.11. A bind cannot be abandoned; a write that is on its way is done unanswered.
    fn abandon(&mut self, id: u32) {
        self.shared.meters.abandon.increment();
        self.take_search(id);
        if !self.binding {
            self.request_log.forget(id);
            self.wanted.retain(|wanted| wanted.id != id);
        }
    }

    /// Stops a running search; says whether there was one of this id.
    pub(crate) fn take_search(&mut self, id: u32) -> bool {
        let before = self.searches.len();
        self.searches.retain(|(other, _)| *other != id);
        self.searches.len() < before
    }

    /// Whether something else than a search is under way by this id.
    pub(crate) fn is_waiting(&self, id: u32) -> bool {
        self.wanted.iter().any(|wanted| wanted.id == id)
    }

    fn abandon_all(&mut self) {
        self.searches.clear();
        self.wanted.clear();
    }

    /// Ends the session with a notice; running searches end without a result.
    pub fn disconnect(&mut self, code: ResultCode, why: &str) {
        self.shared.meters.refuse(code);
        self.request_log.disconnected(code, why);
        if self.is_within_entry() {
            return self.break_off();
        }
        self.abandon_all();
        self.outbox.notice(code, why);
        self.ending = Some(Ending::Notice);
    }

    /// Ends the session within an entry: there is no way to say anything.
    fn break_off(&mut self) {
        self.abandon_all();
        self.ending = Some(Ending::Unbound);
    }

    /// Ends the session with a notice because others need its place.
    pub fn make_room(&mut self) {
        if self.is_within_entry() {
            return self.break_off();
        }
        self.abandon_all();
        let why = "all connections are taken, and others need this one; try again";
        self.outbox.notice(ResultCode::Busy, why);
        self.ending = Some(Ending::Notice);
    }

    /// Whether there is a place for the user that the session speaks for now.
    pub(crate) fn may_stay(&self) -> bool {
        let origin = &self.request_log.origin;
        let connections_max = self.settings.limits.connections_max;
        self.shared.registry.may_stay(
            connections_max,
            origin.connection,
            (origin.clock.monotonic)(),
        )
    }

    /// For a shutdown: gives up searches, and when writes that were accepted are answered, ends
    /// the session with a notice.
    pub fn wind_up(&mut self) {
        if self.is_within_entry() {
            return self.break_off();
        }
        self.searches.clear();
        if self.waiting.is_empty() && self.ending.is_none() {
            self.disconnect(ResultCode::Unavailable, "the server is shutting down");
        }
    }

    /// Goes on in TLS, as the same subject.
    pub fn tls_started(&mut self, channel: Channel) {
        self.channel = channel;
        self.become_subject(self.subject.clone());
        self.ending = None;
    }
}
