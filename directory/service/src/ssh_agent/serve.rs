//! The agent's connections.

use keyway_lock::Unpoisoned;
use keyway_ring::Peer;
use keyway_ssh_agent::limits::{ACCEPT_PAUSE, CONNECTIONS_MAX, MESSAGE_TIME, STACK_BYTES};
use keyway_ssh_agent::{Keys, answer, message_bytes};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// The connections that there are. Where there is no room for another, the one that has been idle for the longest time
/// ends: sshd keeps one for each session, and asks again hours later or never.
#[derive(Default)]
struct Connections(Mutex<Vec<Arc<Connection>>>);

struct Connection {
    stream: UnixStream,
    /// Since when it waits for the client's next message; `None` while it has one.
    idle_since: Mutex<Option<Instant>>,
}

impl Connections {
    /// Takes one in; `None` if there is no room, and none of the others is idle.
    fn add(&self, stream: UnixStream) -> Option<Arc<Connection>> {
        let mut all = self.0.lock().unpoisoned();
        if all.len() >= CONNECTIONS_MAX {
            let idle = |it: &Arc<Connection>| *it.idle_since.lock().unpoisoned();
            let idle = all.iter().enumerate().filter_map(|(at, it)| Some((idle(it)?, at)));
            let (_, at) = idle.min()?;
            // Its thread sees the end, and leaves.
            let _ = all.swap_remove(at).stream.shutdown(Shutdown::Both);
        }
        let connection = Arc::new(Connection { stream, idle_since: Mutex::new(None) });
        all.push(connection.clone());
        Some(connection)
    }

    fn remove(&self, connection: &Arc<Connection>) {
        self.0.lock().unpoisoned().retain(|it| !Arc::ptr_eq(it, connection));
    }
}

/// Accepts connections for ever, each with a thread of its own.
pub fn accept<K: Keys + Send + Sync + 'static>(listener: &UnixListener, keys: &Arc<K>) {
    let connections = Arc::new(Connections::default());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        // Another user's is closed at once.
        if !is_allowed(&stream) {
            continue;
        }
        let Some(connection) = connections.add(stream) else { continue };
        let (keys, all, own) = (keys.clone(), connections.clone(), connection.clone());
        let converse = move || {
            // A connection that has ended is the client's affair.
            let _ = converse(&own, &*keys);
            all.remove(&own);
        };
        let thread = thread::Builder::new().name("connection".into()).stack_size(STACK_BYTES);
        if thread.spawn(converse).is_err() {
            connections.remove(&connection);
        }
    }
}

/// Whether it is of this process' own user, or of root.
fn is_allowed(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    Peer::of(stream).is_ok_and(|peer| peer.uid == own || peer.uid == 0)
}

/// Answers one request after the other, until the client leaves or says what is no request.
fn converse(connection: &Connection, keys: &impl Keys) -> io::Result<()> {
    let mut stream = &connection.stream;
    stream.set_write_timeout(Some(MESSAGE_TIME))?;
    loop {
        let mut header = [0; 4];
        stream.set_read_timeout(None)?;
        *connection.idle_since.lock().unpoisoned() = Some(Instant::now());
        if stream.read(&mut header[..1])? == 0 {
            return Ok(());
        }
        *connection.idle_since.lock().unpoisoned() = None;
        let begun = Instant::now();
        read(stream, &mut header[1..], begun)?;
        let length = message_bytes(header).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        let mut message = vec![0; length];
        read(stream, &mut message, begun)?;
        let answer = answer(&message, keys).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        stream.write_all(&answer)?;
    }
}

/// Fills the bytes, if they come in time.
fn read(mut stream: &UnixStream, mut bytes: &mut [u8], begun: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = MESSAGE_TIME.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => bytes = &mut bytes[count..],
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}
