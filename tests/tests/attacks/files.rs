//! Files that a client sends along with its messages, or before it is let in. To close one can take as long
//! as the client likes: a TCP socket that lingers, or a file of a file system that it serves itself.

use keyway_ring::Socket;
use keyway_ring::control::{self, Ask, VERSION};
use keyway_tests::cryptod::{Cryptod, as_user, beside_neighbours};
use rustix::net::sockopt::{set_socket_linger, set_socket_send_buffer_size};
use rustix::process::Signal;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// The user who attacks; the neighbours are root's.
const USER: u32 = 4_242;

/// TCP connections to peers that never read. To close one waits for up to ten minutes.
struct Clinging {
    listener: TcpListener,
    peers: Vec<TcpStream>,
    sockets: Vec<Socket>,
}

impl Clinging {
    fn new() -> Clinging {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Clinging { listener, peers: Vec::new(), sockets: Vec::new() }
    }

    fn file(&mut self) -> OwnedFd {
        let stream = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
        self.peers.push(self.listener.accept().unwrap().0);
        set_socket_linger(&stream, Some(Duration::from_secs(600))).unwrap();
        set_socket_send_buffer_size(&stream, 1 << 16).unwrap();
        stream.set_nonblocking(true).unwrap();
        while (&stream).write(&[0; 4096]).is_ok() {}
        stream.into()
    }
}

fn message(ask: &Ask) -> Vec<u8> {
    control::encode(ask).unwrap().to_vec()
}

fn hello() -> Vec<u8> {
    message(&Ask::Hello { version: VERSION, name: "clings".to_owned() })
}

/// Connections whose last message brings files that cling, after others that do not. The system may keep
/// the files off: then there is no attack.
fn attack(
    cryptod: &Cryptod,
    clinging: &mut Clinging,
    (before, last, files): (&[Vec<u8>], &[u8], usize),
    times: u32,
) {
    // It is stopped until it alone has the files: the process that closes one last is the one that
    // waits.
    cryptod.signal(Signal::STOP);
    for _ in 0..times {
        let socket = as_user(USER, || Socket::connect(cryptod.socket()).unwrap());
        for message in before {
            socket.send(message, &[]).unwrap();
        }
        let files: Vec<_> = (0..files).map(|_| clinging.file()).collect();
        let borrowed: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        if socket.send(last, &borrowed).is_err() {
            files.iter().for_each(|file| set_socket_linger(file, None).unwrap());
        }
        clinging.sockets.push(socket);
    }
    cryptod.signal(Signal::CONT);
}

#[test]
fn files_that_cling_hold_up_no_client() {
    beside_neighbours(Cryptod::for_every_user(&[]), |cryptod| {
        let mut clinging = Clinging::new();
        let region = message(&Ask::Region { bytes: 4096 });
        attack(cryptod, &mut clinging, (&[], &hello(), 1), 5);
        attack(cryptod, &mut clinging, (&[hello()], &region, 1), 5);
        attack(cryptod, &mut clinging, (&[hello()], &message(&Ask::Ping), 1), 5);
        attack(cryptod, &mut clinging, (&[hello(), Vec::new()], b"", 1), 5);
        attack(cryptod, &mut clinging, (&vec![Vec::new(); 5], b"nonsense", 1), 5);
        clinging
    });
}

/// As above, by clients that are not let in.
#[test]
fn files_of_strangers_hold_up_no_client() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket").display().to_string();
    std::os::unix::fs::chown(folder.path(), Some(0), Some(0)).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    // Another user is let in, so every user reaches the socket.
    let cryptod = Cryptod::start(&["--socket", &socket, "--allow-user", "4243"]);
    beside_neighbours(cryptod, |cryptod| {
        let mut clinging = Clinging::new();
        attack(cryptod, &mut clinging, (&[], &hello(), 1), 20);
        attack(cryptod, &mut clinging, (&[], b"", 1), 20);
        clinging
    });
}

/// More files than a message of Keyway's brings, of which the system would have to close some.
#[test]
fn messages_full_of_files_hold_up_no_client() {
    beside_neighbours(Cryptod::for_every_user(&[]), |cryptod| {
        let before = cryptod.open_files();
        let mut clinging = Clinging::new();
        attack(cryptod, &mut clinging, (&[], &hello(), 8), 10);
        attack(cryptod, &mut clinging, (&[hello()], b"", 8), 10);
        keyway_tests::cryptod::eventually("it takes none of them", || {
            cryptod.open_files() < before + 60
        });
        clinging
    });
}
