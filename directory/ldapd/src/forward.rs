//! The way to the server that writes: requests of this server's clients on one connection, with who asks for each, and
//! their answers. It is LDAP; the other end is a connection of [`crate::LdapServer::serve_member`].

use crate::carried::{Carried, OWN_WRITES};
use crate::limits::{FORWARDED_ANSWER_BYTES_MAX, FORWARDED_MAX};
use crate::on_behalf::{ON_BEHALF, OnBehalf};
use keyway_codec::ber::announced;
use keyway_codec::message::{Control, ExtendedRequest, Message, Op, ResultCode, tag};
use keyway_lock::Unpoisoned;
use keyway_server::Failure;
use keyway_server::controls::{POSITION, Written};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// The extended operation by which another member of the cluster says how binds have ended there.
pub(crate) const NOTE_BINDS: &str = "2.25.15936739705580567830054646219924409936.1.14";

/// The longest answer of the other server that is taken, in bytes.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// How long a client waits for the server that writes.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Answers to one request, as they were encoded, and the place by which they hold.
pub(crate) struct Answered {
    pub messages: Vec<Vec<u8>>,
    pub written: Option<Written>,
}

type Reply = oneshot::Sender<Answered>;

/// Takes requests to the server that writes. Clones are one; requests that come while it is not connected are refused.
#[derive(Clone, Default)]
pub struct Forwarder {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    connected: Mutex<Option<Connected>>,
}

struct Connected {
    out: mpsc::Sender<Zeroizing<Vec<u8>>>,
    state: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    last: u32,
    replies: HashMap<u32, Waiter>,
    is_closed: bool,
}

/// A request on its way.
struct Waiter {
    by: By,
    reply: Reply,
    answered: Answered,
    /// Bytes of the answers by now.
    held: usize,
}

/// The one that a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// This server itself.
    Server,
    /// A user by the number of its entry; all without a name are one.
    User(Option<u64>),
}

impl Waiting {
    /// Whether one more has no place. No user has more than half of them, whatever its connections.
    fn is_full_for(&self, by: By) -> bool {
        let user_max = FORWARDED_MAX / 2;
        let all = self.replies.len();
        let own = || self.replies.values().filter(|waiter| waiter.by == by).count();
        all >= FORWARDED_MAX || (all >= user_max && by != By::Server && own() >= user_max)
    }

    /// A message id that no request on its way has.
    fn take_id(&mut self) -> u32 {
        loop {
            self.last = self.last % (i32::MAX as u32) + 1;
            if !self.replies.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}

/// A request's place among those that wait. It is given back if the request is given up before it is on its way; after that
/// its answer gives it back.
struct WaitingPlace {
    state: Arc<Mutex<Waiting>>,
    id: u32,
    is_sent: bool,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        if !self.is_sent {
            self.state.lock().unpoisoned().replies.remove(&self.id);
        }
    }
}

/// A request that is ready to go.
struct Begun {
    out: mpsc::Sender<Zeroizing<Vec<u8>>>,
    request: Zeroizing<Vec<u8>>,
    reply: oneshot::Receiver<Answered>,
    place: WaitingPlace,
}

/// The end of a connection, whatever has ended it: requests on their way are refused.
struct Over<'f> {
    shared: &'f Shared,
    out: mpsc::Sender<Zeroizing<Vec<u8>>>,
    state: Arc<Mutex<Waiting>>,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let mut connected = self.shared.connected.lock().unpoisoned();
        if connected.as_ref().is_some_and(|it| it.out.same_channel(&self.out)) {
            *connected = None;
        }
        let mut state = self.state.lock().unpoisoned();
        state.is_closed = true;
        state.replies.clear();
    }
}

impl Forwarder {
    /// Whether it is connected.
    pub fn is_connected(&self) -> bool {
        self.shared.connected.lock().unpoisoned().is_some()
    }

    /// Uses a connection until it ends, in the place of an earlier one. The other end has agreed to take requests on it.
    ///
    /// # Errors
    /// Why it has ended. Requests that were on their way are refused: it is not known what has become of them.
    pub async fn run(&self, stream: impl AsyncRead + AsyncWrite + Send) -> io::Result<()> {
        let (out, mut requests) = mpsc::channel::<Zeroizing<Vec<u8>>>(FORWARDED_MAX);
        let state = Arc::new(Mutex::new(Waiting::default()));
        let connected = Connected { out: out.clone(), state: state.clone() };
        *self.shared.connected.lock().unpoisoned() = Some(connected);
        // Also where this is given up for the way to another writer.
        let _over = Over { shared: &self.shared, out, state: state.clone() };
        let (mut reading, mut writing) = tokio::io::split(stream);
        let write = async {
            while let Some(request) = requests.recv().await {
                writing.write_all(&request).await?;
                writing.flush().await?;
            }
            Ok(())
        };
        tokio::select! {
            ended = write => ended,
            ended = read_answers(&mut reading, &state) => ended,
        }
    }

    /// Sends a request on behalf of a client, and waits for its answers.
    ///
    /// # Errors
    /// `unavailable` if there is no connection, or it ends before the answer.
    pub(crate) fn forward(
        &self,
        op: &Op<'_>,
        controls: &[Control<'_>],
        asker: &OnBehalf,
        carried: &Carried,
    ) -> impl Future<Output = Result<Answered, Failure>> + Send + 'static + use<> {
        let value = asker.encode();
        let on_behalf =
            Control { oid: ON_BEHALF, critical: true, value: Some(value.as_slice().into()) };
        // The answer has the position in any case, and no client says on whose behalf it asks.
        let own = [POSITION, ON_BEHALF, OWN_WRITES];
        let others = controls.iter().filter(|control| !own.contains(&control.oid)).cloned();
        let carried = carried.encode().map(|value| Control {
            oid: OWN_WRITES,
            critical: true,
            value: Some(value.into()),
        });
        let controls = others.chain([on_behalf]).chain(carried).collect();
        let by = By::User(asker.who.as_ref().map(|(_, id)| *id));
        self.send(Message { id: 0, op: op.clone(), controls }, by)
    }

    /// Sends the ends of binds; the position by which they are noted, or `None` if that is not known.
    pub fn note_binds(
        &self,
        binds: &[u8],
    ) -> impl Future<Output = Option<u64>> + Send + 'static + use<> {
        let request = ExtendedRequest { oid: NOTE_BINDS, value: Some(binds) };
        let answered = self.send(Message::new(0, Op::ExtendedRequest(request)), By::Server);
        async move {
            let answered = answered.await.ok()?;
            let message = Message::decode(answered.messages.last()?).ok()?;
            let is_noted = message.op.result()?.code == ResultCode::Success;
            answered.written.filter(|_| is_noted).map(|written| written.position)
        }
    }

    /// Sends a message whose id is still to be given, if not too many wait.
    fn send(
        &self,
        mut message: Message<'_>,
        by: By,
    ) -> impl Future<Output = Result<Answered, Failure>> + Send + 'static + use<> {
        let begun = self.begin(&mut message, by);
        async move {
            let Begun { out, request, reply, mut place } = begun?;
            if out.send(request).await.is_err() {
                return Err(lost());
            }
            place.is_sent = true;
            match timeout(ANSWER_MAX, reply).await {
                Ok(answered) => answered.map_err(|_| lost()),
                Err(_) => Err(lost()),
            }
        }
    }

    fn begin(&self, message: &mut Message<'_>, by: By) -> Result<Begun, Failure> {
        let connected = self.shared.connected.lock().unpoisoned();
        let connected = connected.as_ref().ok_or_else(unreached)?;
        let (sender, receiver) = oneshot::channel();
        let mut state = connected.state.lock().unpoisoned();
        if state.is_closed {
            return Err(unreached());
        }
        if state.is_full_for(by) {
            let text = "too many requests wait for the server that writes; try again";
            return Err(Failure::new(ResultCode::Busy, text));
        }
        message.id = state.take_id();
        let answered = Answered { messages: Vec::new(), written: None };
        state.replies.insert(message.id, Waiter { by, reply: sender, answered, held: 0 });
        let mut bytes = Zeroizing::new(Vec::new());
        message.encode(&mut bytes);
        let place = WaitingPlace { state: connected.state.clone(), id: message.id, is_sent: false };
        Ok(Begun { out: connected.out.clone(), request: bytes, reply: receiver, place })
    }
}

/// Reads answers and gives each to the request that waits for it.
async fn read_answers(
    stream: &mut (impl AsyncRead + Unpin),
    state: &Mutex<Waiting>,
) -> io::Result<()> {
    let mut input = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let bad = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        while let Some(length) =
            announced(&input, MESSAGE_BYTES_MAX).map_err(|why| bad(why.to_string()))?
            && input.len() >= length
        {
            let rest = input.split_off(length);
            let message = std::mem::replace(&mut input, rest);
            take_answer(message, state).map_err(bad)?;
        }
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => input.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
    }
}

fn take_answer(bytes: Vec<u8>, state: &Mutex<Waiting>) -> Result<(), String> {
    let (id, written, is_last) = {
        let message = Message::decode(&bytes).map_err(|why| why.to_string())?;
        let is_last = !matches!(
            message.op.tag(),
            tag::SEARCH_RESULT_ENTRY | tag::SEARCH_RESULT_REFERENCE | tag::INTERMEDIATE_RESPONSE
        );
        if message.id == 0 {
            return Err("the server that writes ends the connection".into());
        }
        let written = message.controls.iter().find(|control| control.oid == POSITION);
        let written = written.and_then(|control| Written::decode(control.value.as_deref()?));
        (message.id, written, is_last)
    };
    let mut state = state.lock().unpoisoned();
    // The client may have gone meanwhile, and its request with it.
    let Some(waiter) = state.replies.get_mut(&id) else { return Ok(()) };
    waiter.held += bytes.len();
    if waiter.held > FORWARDED_ANSWER_BYTES_MAX && !is_last {
        // It is dropped, and its client is told that the answer is lost.
        state.replies.remove(&id);
        return Ok(());
    }
    waiter.answered.messages.push(bytes);
    waiter.answered.written = written.or(waiter.answered.written);
    if is_last && let Some(Waiter { reply, answered, .. }) = state.replies.remove(&id) {
        // The client may have gone.
        let _ = reply.send(answered);
    }
    Ok(())
}

fn unreached() -> Failure {
    let text = "this server follows another one, which it cannot reach: changes are not taken until it can";
    Failure::new(ResultCode::Unavailable, text)
}

fn lost() -> Failure {
    let text = "the server that writes did not answer: whether the change was made is not known";
    Failure::new(ResultCode::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_user_has_more_than_half_of_the_places() {
        let (out, _requests) = mpsc::channel(1);
        let connected = Connected { out, state: Arc::default() };
        let forwarder = Forwarder::default();
        *forwarder.shared.connected.lock().unpoisoned() = Some(connected);
        let take = |by, times| -> Vec<Begun> {
            let begin = || forwarder.begin(&mut Message::new(0, Op::DeleteRequest("dc=org")), by);
            std::iter::repeat_with(begin).take(times).flatten().collect()
        };
        let (anonymous, one, other) = (By::User(None), By::User(Some(1)), By::User(Some(2)));
        let half = FORWARDED_MAX / 2;
        let all = take(one, FORWARDED_MAX);
        assert_eq!(all.len(), half);
        assert_eq!(take(other, 3).len(), 3);
        let rest = take(anonymous, FORWARDED_MAX);
        assert_eq!(rest.len(), half);
        // None is left for another one, until one is given back.
        assert!(take(other, 1).is_empty() && take(By::Server, 1).is_empty());
        drop(all);
        assert_eq!((take(other, 1).len(), take(By::Server, 1).len()), (1, 1));
        assert!(take(anonymous, 1).is_empty());
    }
}
