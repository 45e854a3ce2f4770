//! The agent's connections.

use keyway_ring::Peer;
use keyway_ssh_agent::limits::{ACCEPT_PAUSE, CONNECTIONS_MAX, MESSAGE_TIME};
use keyway_ssh_agent::{Keys, answer, message_bytes};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// Accepts connections for ever, each with a thread of its own.
pub fn accept<K: Keys + Send + Sync + 'static>(listener: &UnixListener, keys: &Arc<K>) {
    // Each thread has a clone.
    let open = Arc::new(());
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(ACCEPT_PAUSE);
            continue;
        };
        // One past the last place is closed at once, and so is another user's.
        if Arc::strong_count(&open) > CONNECTIONS_MAX || !is_allowed(&stream) {
            continue;
        }
        let (keys, place) = (keys.clone(), open.clone());
        let converse = move || {
            let _place = place;
            // A connection that has ended is the client's affair.
            let _ = converse(stream, &*keys);
        };
        // Without a thread the connection is closed.
        let _ = thread::Builder::new().name("connection".into()).spawn(converse);
    }
}

/// Whether it is of this process' own user, or of root.
fn is_allowed(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    Peer::of(stream).is_ok_and(|peer| peer.uid == own || peer.uid == 0)
}

/// Answers one request after the other, until the client leaves or says what is no request.
fn converse(mut stream: UnixStream, keys: &impl Keys) -> io::Result<()> {
    stream.set_write_timeout(Some(MESSAGE_TIME))?;
    loop {
        let mut header = [0; 4];
        stream.set_read_timeout(None)?;
        if stream.read(&mut header[..1])? == 0 {
            return Ok(());
        }
        let begun = Instant::now();
        read(&mut stream, &mut header[1..], begun)?;
        let length = message_bytes(header).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        let mut message = vec![0; length];
        read(&mut stream, &mut message, begun)?;
        let answer = answer(&message, keys).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        stream.write_all(&answer)?;
    }
}

/// Fills the bytes, if they come in time.
fn read(stream: &mut UnixStream, mut bytes: &mut [u8], begun: Instant) -> io::Result<()> {
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
