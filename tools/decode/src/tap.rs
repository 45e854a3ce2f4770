//! Copies of the octets of connections, handed to another thread without ever waiting for it.
//!
//! If the queue is full, octets are left out, counted, and reported as a gap in their place: the thread
//! that forwards the octets is neither delayed nor changed.

use crate::direction::Side;
use crate::error::Error;
use crate::limits::{QUEUE_BYTES_MAX, QUEUE_PIECES_MAX};
use crate::operation::{Event, Note, Sink};
use crate::pairing::Options;
use crate::session::Session;
use keyway_lock::Unpoisoned;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// How long messages are gathered before they are decoded.
const NAP: Duration = Duration::from_millis(5);

/// One thing that happened on a connection.
#[derive(Debug)]
struct Piece {
    connection: u64,
    time_ns: u64,
    what: What,
}

#[derive(Debug)]
enum What {
    Opened {
        client: SocketAddr,
        server: SocketAddr,
    },
    /// So many of the batch's octets.
    Octets {
        side: Side,
        count: usize,
    },
    Gap {
        side: Side,
        count: u64,
    },
    /// All later octets are those within TLS.
    Protected,
    Note(Cow<'static, str>),
    Closed,
}

/// The octets that are taken at a time.
#[derive(Debug, Default)]
struct Batch {
    pieces: Vec<Piece>,
    octets: Vec<u8>,
    unseen: u64,
    is_last: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    /// Octets that were left out, by connection and side, and not reported yet.
    left_out: HashMap<(u64, bool), u64>,
    /// How much was left out in all.
    left_out_bytes: u64,
    /// Connections that the decoding thread knows.
    open: HashSet<u64>,
    /// How many others began since that was told.
    unseen: u64,
    /// The decoding thread waits to be woken; else it looks again by itself.
    asleep: bool,
}

impl Waiting {
    /// Whether the decoding thread has to be woken for new octets.
    fn wakes(&mut self) -> bool {
        let is_half_full = self.batch.octets.len() > QUEUE_BYTES_MAX / 2
            || self.batch.pieces.len() > QUEUE_PIECES_MAX / 2;
        std::mem::take(&mut self.asleep) || is_half_full
    }
}

/// The queue between the forwarder and the decoder.
#[derive(Debug, Default)]
pub struct Tap {
    waiting: Mutex<Waiting>,
    filled: Condvar,
}

impl Tap {
    /// A connection begins.
    pub fn opened(&self, connection: u64, time_ns: u64, client: SocketAddr, server: SocketAddr) {
        let mut waiting = self.lock();
        if waiting.batch.pieces.len() >= QUEUE_PIECES_MAX {
            waiting.unseen += 1;
            return;
        }
        waiting.open.insert(connection);
        drop(waiting);
        self.push(connection, time_ns, What::Opened { client, server });
    }

    /// Octets of one side, in the order they are sent on in. Returns at once.
    pub fn octets(&self, connection: u64, time_ns: u64, side: Side, octets: &[u8]) {
        let mut waiting = self.lock();
        let key = (connection, side == Side::First);
        if !waiting.open.contains(&connection) {
            waiting.left_out_bytes += octets.len() as u64;
            return;
        }
        let full = waiting.batch.octets.len() + octets.len() > QUEUE_BYTES_MAX
            || waiting.batch.pieces.len() >= QUEUE_PIECES_MAX;
        if full {
            *waiting.left_out.entry(key).or_default() += octets.len() as u64;
            waiting.left_out_bytes += octets.len() as u64;
            return;
        }
        if let Some(count) = waiting.left_out.remove(&key) {
            let what = What::Gap { side, count };
            waiting.batch.pieces.push(Piece { connection, time_ns, what });
        }
        let what = What::Octets { side, count: octets.len() };
        waiting.batch.pieces.push(Piece { connection, time_ns, what });
        waiting.batch.octets.extend_from_slice(octets);
        self.wake(waiting);
    }

    /// TLS begins; octets are those within it from now on.
    pub fn protected(&self, connection: u64, time_ns: u64) {
        self.push(connection, time_ns, What::Protected);
    }

    /// Something to be told of a connection.
    pub fn note(&self, connection: u64, time_ns: u64, note: impl Into<Cow<'static, str>>) {
        let is_open = self.lock().open.contains(&connection);
        if is_open {
            self.push(connection, time_ns, What::Note(note.into()));
        }
    }

    /// A connection is over.
    pub fn closed(&self, connection: u64, time_ns: u64) {
        let mut waiting = self.lock();
        for side in [Side::First, Side::Second] {
            if let Some(count) = waiting.left_out.remove(&(connection, side == Side::First)) {
                let what = What::Gap { side, count };
                waiting.batch.pieces.push(Piece { connection, time_ns, what });
            }
        }
        let is_open = waiting.open.remove(&connection);
        drop(waiting);
        // As many as were opened at most, so that these are bounded too.
        if is_open {
            self.push(connection, time_ns, What::Closed);
        }
    }

    /// Nothing more comes.
    pub fn end(&self) {
        self.lock().batch.is_last = true;
        self.filled.notify_one();
    }

    /// How many octets were left out so far.
    #[must_use]
    pub fn left_out_bytes(&self) -> u64 {
        self.lock().left_out_bytes
    }

    fn push(&self, connection: u64, time_ns: u64, what: What) {
        let mut waiting = self.lock();
        waiting.batch.pieces.push(Piece { connection, time_ns, what });
        self.wake(waiting);
    }

    /// A wake-up costs more than to pass a message on: while messages come, they are looked for.
    fn wake(&self, mut waiting: MutexGuard<'_, Waiting>) {
        if waiting.wakes() {
            drop(waiting);
            self.filled.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unpoisoned()
    }

    /// Waits until there is something, and takes all of it. `batch` is emptied, and what it had room
    /// for is used again.
    fn take(&self, batch: &mut Batch) {
        batch.pieces.clear();
        batch.octets.clear();
        let mut waiting = self.lock();
        if !waiting.batch.is_last {
            let nap = self.filled.wait_timeout(waiting, NAP);
            waiting = nap.unpoisoned().0;
        }
        while waiting.batch.pieces.is_empty() && !waiting.batch.is_last {
            waiting.asleep = true;
            waiting = self.filled.wait(waiting).unpoisoned();
        }
        waiting.asleep = false;
        batch.is_last = waiting.batch.is_last;
        batch.unseen = 0;
        waiting.batch.unseen = std::mem::take(&mut waiting.unseen);
        std::mem::swap(&mut waiting.batch, batch);
        waiting.batch.is_last = batch.is_last;
    }

    /// Decodes what comes until [`Tap::end`].
    ///
    /// # Errors
    /// As `sink`.
    pub fn decode(&self, options: Options, sink: &mut impl Sink) -> Result<(), Error> {
        let mut sessions = HashMap::new();
        let mut batch = Batch::default();
        loop {
            self.take(&mut batch);
            if batch.unseen > 0 {
                let what = format!("{} connections are passed on and not told of", batch.unseen);
                let time_ns = batch.pieces.first().map_or(0, |piece| piece.time_ns);
                let what = Event::Unreadable(Cow::Owned(what));
                sink.note(&Note { time_ns, connection: None, what })?;
            }
            let mut octets = batch.octets.as_slice();
            for piece in &batch.pieces {
                decode(piece, &mut octets, &mut sessions, options, sink)?;
            }
            sink.flush()?;
            if batch.is_last {
                break;
            }
        }
        let mut left: Vec<_> = sessions.into_iter().collect();
        left.sort_unstable_by_key(|(number, _)| *number);
        for (_, (mut session, time_ns)) in left {
            session.finish(time_ns, false, sink)?;
        }
        sink.flush()
    }
}

type Sessions = HashMap<u64, (Session, u64)>;

fn decode(
    piece: &Piece,
    octets: &mut &[u8],
    sessions: &mut Sessions,
    options: Options,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    let (number, time_ns) = (piece.connection, piece.time_ns);
    if let What::Opened { client, server } = piece.what {
        let session = Session::new(number, (client, server), false, true, options);
        sessions.insert(number, (session, time_ns));
        return Ok(());
    }
    let own = if let What::Octets { count, .. } = piece.what {
        let (own, rest) = octets.split_at_checked(count).unwrap_or_default();
        *octets = rest;
        own
    } else {
        &[]
    };
    let Some((session, last_ns)) = sessions.get_mut(&number) else { return Ok(()) };
    *last_ns = time_ns;
    match &piece.what {
        What::Opened { .. } => Ok(()),
        What::Octets { side, .. } => session.octets(*side, time_ns, own, sink),
        What::Gap { side, count } => session.gap(*side, time_ns, *count, sink),
        What::Protected => {
            session.is_opened();
            Ok(())
        }
        What::Note(note) => session.remark(time_ns, note.as_ref().into(), sink),
        What::Closed => {
            let Some((mut session, _)) = sessions.remove(&number) else { return Ok(()) };
            session.finish(time_ns, true, sink)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Line, Printer};
    use keyway_codec::{Message, Op};

    fn unbind(id: u32) -> Vec<u8> {
        let mut out = Vec::new();
        Message::new(id, Op::UnbindRequest).encode(&mut out);
        out
    }

    fn told(tap: &Tap) -> String {
        tap.end();
        let mut printer = Printer::new(Line, None, Vec::new());
        tap.decode(Options::default(), &mut printer).unwrap();
        String::from_utf8(printer.into_output()).unwrap()
    }

    fn opened() -> Tap {
        let tap = Tap::default();
        let end = |port| SocketAddr::from(([127, 0, 0, 1], port));
        tap.opened(1, 0, end(4000), end(389));
        tap
    }

    #[test]
    fn what_is_put_in_is_told() {
        let tap = opened();
        tap.octets(1, 1000, Side::First, &unbind(7));
        tap.closed(1, 2000);
        let told = told(&tap);
        assert!(told.contains("c1.7") && told.contains("-- closed ("), "{told}");
    }

    #[test]
    fn what_does_not_fit_is_a_gap() {
        let tap = opened();
        let message = unbind(1);
        for _ in 0..QUEUE_PIECES_MAX + 10 {
            tap.octets(1, 0, Side::First, &message);
        }
        assert_eq!(tap.left_out_bytes(), 11 * message.len() as u64);
        // Once there is room, what was left out comes first.
        let mut printer = Printer::new(Line, None, Vec::new());
        std::thread::scope(|scope| {
            let decoding = scope.spawn(|| tap.decode(Options::default(), &mut printer));
            while !tap.lock().batch.pieces.is_empty() {
                std::thread::yield_now();
            }
            tap.octets(1, 1, Side::First, &unbind(9));
            tap.end();
            decoding.join().unwrap().unwrap();
        });
        let told = String::from_utf8(printer.into_output()).unwrap();
        let gap = format!("gap of {} bytes from the client", 11 * message.len());
        assert!(told.contains(&gap), "{}", &told[told.len() - 500..]);
        assert!(told.contains("c1.9"), "{}", &told[told.len() - 500..]);
    }

    #[test]
    fn what_was_left_out_before_the_end_is_told_too() {
        let tap = opened();
        let many = vec![0; QUEUE_BYTES_MAX + 1];
        tap.octets(1, 0, Side::Second, &many);
        tap.closed(1, 1);
        let told = told(&tap);
        assert!(told.contains(&format!("gap of {} bytes from the server", many.len())), "{told}");
    }
}
