//! Closing what clients have a hand in, on threads that may wait.
//!
//! To close a connection closes the files that its client has sent along and the daemon has not
//! taken. The client decides how long that takes: a TCP socket can be made to linger. So the last
//! hold on a connection hands it to a thread here. A thread that waits is left alone with its
//! connection: other threads go on, and a user with [`CLOSERS_USER_MAX`] of them gets no more. A
//! connection that waits for a thread keeps its files open meanwhile; if too many wait
//! ([`CLOSING_MAX`]), no client is let in until there are fewer.
//!
//! Files are never taken out of the messages they come with: a file that was taken has to be closed by
//! `close`, which asks the file system's server, where that is the client's own, and waits for its
//! answer.

use crate::limits::{CLOSER_IDLE, CLOSERS_MAX, CLOSERS_USER_MAX, CLOSING_MAX};
use keyway_lock::Unpoisoned;
use keyway_ring::Socket;
use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use zeroize::Zeroizing;

/// A socket that a client has a hand in. When it is dropped, it is closed elsewhere.
pub struct Line {
    /// `None` only when it is dropped.
    socket: Option<Socket>,
    user: u32,
    closer: Closer,
}

/// Has sockets closed. Cheap to clone.
#[derive(Clone, Default)]
pub struct Closer(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Something is to be closed, or a thread has closed something.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Closing>,
    /// Threads that are closing something, by the user who is to blame if that takes long.
    busy: HashMap<u32, usize>,
    threads: usize,
    idle: usize,
}

struct Closing {
    socket: Socket,
    user: u32,
    /// Said before.
    last_words: Option<Zeroizing<Vec<u8>>>,
}

impl Line {
    /// A connection of a client that runs as this user.
    pub fn new(socket: Socket, user: u32, closer: &Closer) -> Line {
        Line { socket: Some(socket), user, closer: closer.clone() }
    }
}

impl Deref for Line {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        // It is there until it is dropped.
        self.socket.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        (**self).as_fd()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.closer.put(Closing { socket, user: self.user, last_words: None });
        }
    }
}

impl Closer {
    /// Says something to a client that is not let in, and closes its connection. The messages that
    /// it has sent are read before: if a socket is closed with something unread, the system tells
    /// the other side of that instead.
    pub fn turn_away(&self, socket: Socket, user: u32, last_words: Option<Zeroizing<Vec<u8>>>) {
        let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Read);
        self.put(Closing { socket, user, last_words });
    }

    /// Whether so much waits to be closed that no other client can be let in.
    pub fn is_full(&self) -> bool {
        self.0.lock().waiting.len() >= CLOSING_MAX
    }

    fn put(&self, closing: Closing) {
        let mut state = self.0.lock();
        state.waiting.push_back(closing);
        if state.idle < state.waiting.len() && state.threads < CLOSERS_MAX {
            let shared = self.0.clone();
            let thread = thread::Builder::new().name("closer".to_owned());
            // Where none can be started, it waits for one that is there.
            if thread.spawn(move || shared.work()).is_ok() {
                state.threads += 1;
            }
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }

    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some(closing) = state.next() {
                let user = closing.user;
                drop(state);
                closing.close();
                state = self.lock();
                state.is_done(user);
                // A connection that waited for this user's turn may be closed now.
                self.changed.notify_one();
                continue;
            }
            state.idle += 1;
            let waited = self.changed.wait_timeout(state, CLOSER_IDLE);
            let (woken, timeout) = waited.unpoisoned();
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

impl State {
    /// The first of those whose users may have another thread.
    fn next(&mut self) -> Option<Closing> {
        let busy = &self.busy;
        let may = |closing: &Closing| {
            busy.get(&closing.user).is_none_or(|threads| *threads < CLOSERS_USER_MAX)
        };
        let index = self.waiting.iter().position(may)?;
        let closing = self.waiting.remove(index)?;
        *self.busy.entry(closing.user).or_default() += 1;
        Some(closing)
    }

    fn is_done(&mut self, user: u32) {
        if let Some(threads) = self.busy.get_mut(&user) {
            *threads -= 1;
            if *threads == 0 {
                self.busy.remove(&user);
            }
        }
    }
}

impl Closing {
    fn close(self) {
        if let Some(words) = self.last_words {
            self.socket.discard_all();
            let _ = self.socket.try_send(&words, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::{set_socket_linger, set_socket_send_buffer_size};
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// A connection with a file that waits when it is closed, and what to drop so that it waits no more.
    fn clings() -> (Socket, (TcpStream, TcpListener)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        set_socket_linger(&stream, Some(Duration::from_secs(600))).unwrap();
        set_socket_send_buffer_size(&stream, 1 << 16).unwrap();
        stream.set_nonblocking(true).unwrap();
        // The peer reads nothing: to close the stream waits until the peer does.
        while std::io::Write::write(&mut &stream, &[0; 4096]).is_ok() {}
        let (one, other) = Socket::pair().unwrap();
        one.send(b"", &[stream.as_fd()]).unwrap();
        (other, (peer, listener))
    }

    #[test]
    fn a_file_that_clings_holds_up_no_other() {
        let closer = Closer::default();
        let mut all = Vec::new();
        for _ in 0..2 * CLOSERS_USER_MAX {
            let (socket, peer) = clings();
            drop(Line::new(socket, 7, &closer));
            all.push(peer);
        }
        // Another user's are closed meanwhile.
        for _ in 0..100 {
            let (one, other) = Socket::pair().unwrap();
            drop(Line::new(one, 8, &closer));
            assert!(other.receive().unwrap().is_none());
        }
        assert_eq!(closer.0.lock().busy.get(&7), Some(&CLOSERS_USER_MAX));
        drop(all);
        let begun = Instant::now();
        while !closer.0.lock().busy.is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
        assert!(closer.0.lock().waiting.is_empty());
    }
}
