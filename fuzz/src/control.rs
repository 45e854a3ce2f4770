//! The messages of the daemon's socket, and those from a daemon that hands over to another.

use crate::client::Client;
use crate::served::{Served, listener, options};
use keyway_daemon::Daemon;
use keyway_ring::control::{Answer, Ask, VERSION, decode_answer, decode_ask, encode};
use keyway_ring::limits::MESSAGE_BYTES_MAX;
use keyway_ring::{Doorbell, SharedMemory, Socket};
use rustix::net::{Shutdown, SocketFlags, accept_with, shutdown};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

/// One daemon for all inputs of a thread, and a client that is served whatever others say.
struct Bench {
    witness: Client,
    served: Served,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new());
}

/// Reads the bytes as what each side says: an accepted one is the same after it was written and
/// read again. Then they are cut into messages with files, and said to a daemon by a client, or, if
/// the first bit is set, by a daemon that hands over to a new one.
pub fn control(data: &[u8]) {
    let message = &data[..data.len().min(MESSAGE_BYTES_MAX)];
    if let Ok(ask) = decode_ask(message) {
        assert_eq!(decode_ask(&encoded(&ask)), Ok(ask));
    }
    if let Ok(answer) = decode_answer(message) {
        assert_eq!(decode_answer(&encoded(&answer)), Ok(answer));
    }
    let Some((&first, rest)) = data.split_first() else { return };
    match first & 0x80 {
        0 => to_a_daemon(first & 1 == 0, rest),
        _ => to_a_successor(rest),
    }
}

fn encoded(message: &impl serde::Serialize) -> Vec<u8> {
    encode(message).unwrap_or_else(|why| panic!("{why}")).to_vec()
}

/// The client says all of it and nothing more, and waits until the daemon has heard it.
fn to_a_daemon(says_hello: bool, data: &[u8]) {
    BENCH.with_borrow_mut(|bench| {
        let path = bench.served.socket();
        let socket = match says_hello {
            true => Client::new(&path).socket,
            false => Client::stranger(&path).socket,
        };
        say_all(&socket, data);
        // It may have been sent away by now.
        let _ = shutdown(&socket, Shutdown::Write);
        while let Ok(Some(_)) = socket.receive() {}
        if bench.served.is_handed_over() {
            // It said, as its successor would, that it has it all.
            *bench = Bench::new();
        }
        let asked = bench.witness.ask(&Ask::Status);
        assert!(matches!(asked, Answer::Status(_)), "{asked:?}");
    });
}

/// A daemon that hands over says all of it. The new one takes over or refuses.
fn to_a_successor(data: &[u8]) {
    let folder = tempfile::tempdir().unwrap_or_else(|why| panic!("{why}"));
    let path = folder.path().join("socket");
    let listening = listener(&path);
    thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let engine = keyway_drivers::engine();
            Daemon::take_over(&engine, &path, || Ok(options()), Box::new(|_| {}))
        });
        let socket = accept(&listening);
        let hello =
            Answer::Hello { version: VERSION, algorithms: Vec::new(), process: std::process::id() };
        let _ = socket.receive();
        let _ = socket.send(&encoded(&hello), &[]);
        let _ = socket.receive();
        say_all(&socket, data);
        let _ = shutdown(&socket, Shutdown::Write);
        let taken = taking.join();
        assert!(taken.is_ok(), "it panicked");
    });
}

fn accept(listening: &OwnedFd) -> Socket {
    loop {
        // The listener does not wait.
        if let Ok(socket) = accept_with(listening, SocketFlags::CLOEXEC) {
            return Socket::from_fd(socket);
        }
        thread::yield_now();
    }
}

/// Each message is a byte for its files, two for its length, and its bytes.
fn say_all(socket: &Socket, mut data: &[u8]) {
    let memory = SharedMemory::create(4096).unwrap_or_else(|why| panic!("{why}"));
    let bell = Doorbell::new().unwrap_or_else(|why| panic!("{why}"));
    let (end, _other) = Socket::pair().unwrap_or_else(|why| panic!("{why}"));
    while let [files, low, high, rest @ ..] = data {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (message, others) = rest.split_at(length);
        data = others;
        let fds: &[BorrowedFd<'_>] = match files % 5 {
            0 => &[],
            1 => &[memory.file().unwrap()],
            2 => &[memory.file().unwrap(), bell.as_fd()],
            3 => &[end.as_fd()],
            _ => &[bell.as_fd()],
        };
        if message.is_empty() || socket.send(message, fds).is_err() {
            return;
        }
    }
}

impl Bench {
    fn new() -> Self {
        let served = Served::start();
        Bench { witness: Client::new(&served.socket()), served }
    }
}
