//! Floods of binds, in which a right password still gets in, and of requests that never end.

use keyway_lock::Unpoisoned;
use keyway_tests::client::Client;
use keyway_tests::{Server, sample};
use rustix::net::sockopt;
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, mpsc};
use std::thread;

/// Connections that bind again as soon as they are answered.
const FLOODING: usize = 200;
/// Good binds that are made meanwhile.
const GOOD: usize = 20;

/// One flood at a time: two take the machine from each other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unpoisoned()
}

fn address(server: &Server) -> SocketAddr {
    server.address().parse().unwrap()
}

fn uid(number: usize) -> String {
    format!("uid=absent{number},ou=people,dc=example,dc=com")
}

/// Floods with wrong passwords for the names that `name` gives to connection and round, and
/// asserts that good binds succeed.
fn flood(mut server: Server, name: &(dyn Fn(usize, usize) -> String + Sync)) {
    let (address, password) = (address(&server), server.password());
    let over = AtomicBool::new(false);
    let (answered, answers) = mpsc::channel();
    thread::scope(|scope| {
        for connection in 0..FLOODING {
            let (over, answered) = (&over, answered.clone());
            scope.spawn(move || {
                let Ok(mut client) = Client::connect(address) else {
                    // It came so late that all was over.
                    return assert!(over.load(Ordering::Relaxed));
                };
                for round in 0.. {
                    client.bind(&name(connection, round), "wrong").unwrap_err();
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                    let _ = answered.send(());
                }
            });
        }
        // The good ones begin when the flood is there.
        assert_eq!(answers.iter().take(20).count(), 20);
        let good = (0..GOOD).filter(|_| {
            let mut client = Client::connect(address).unwrap();
            client.bind(server.administrator(), &password).is_ok()
        });
        let good = good.count();
        over.store(true, Ordering::Relaxed);
        let up = server.is_up();
        // Those who still wait for an answer need not.
        server.kill();
        assert!(good >= GOOD * 9 / 10, "{good} of {GOOD}");
        assert!(up);
    });
}

#[test]
fn anonymous_clients_shut_no_user_out() {
    let _turn = turn();
    let (_folder, server) = sample(1);
    flood(server, &|_, _| uid(1));
}

#[test]
fn neither_do_many_names_that_do_not_exist() {
    let _turn = turn();
    let (_folder, server) = sample(1);
    flood(server, &|connection, round| uid(connection * 1_000_000 + round));
}

/// The victim binds from the same address.
#[test]
fn a_victim_gets_in_beside_those_who_guess() {
    let _turn = turn();
    let (_folder, server) = sample(1);
    let victim = server.administrator().to_owned();
    flood(server, &|connection, round| match connection % 3 {
        0 => uid(connection * 1_000_000 + round),
        _ => victim.clone(),
    });
}

/// Places for connections, and connections that say nothing.
const PLACES: usize = 40;
const SILENT: usize = 300;

/// Connections from an address of this machine that no other client has.
fn silent_crowd(server: &Server) -> Vec<TcpStream> {
    let (plain, tls) = (address(server), server.tls_address().parse().unwrap());
    (0..SILENT)
        .map(|number| {
            // Some are in the middle of a handshake, some in the middle of a request.
            let mut silent = from_elsewhere(if number % 3 == 0 { tls } else { plain });
            if number % 3 == 1 {
                let _ = silent.write_all(&[0x30, 0x20, 0x02, 0x01]);
            }
            silent
        })
        .collect()
}

fn from_elsewhere(server: SocketAddr) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&stream, true).unwrap();
    bind(&stream, &SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
    connect(&stream, &server).unwrap();
    stream.into()
}

#[test]
fn a_silent_crowd_shuts_no_client_out() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let limits = format!("[limits]\nconnections_max = {PLACES}\n");
    let text = format!("listen_unix = \"ldapi\"\n[unix]\nadministrators = [\"self\"]\n{limits}");
    fs::write(data.join("keyway.toml"), text).unwrap();
    let mut server = Server::start(&data, &["--sample", "1"]);
    let (address, password) = (address(&server), server.password());
    let mut early = Client::connect(address).unwrap();
    early.bind(server.administrator(), &password).unwrap();
    let crowd = silent_crowd(&server);
    let mut late = Client::connect(address).unwrap();
    late.bind(server.administrator(), &password).unwrap();
    let mut at_home = Client::over(UnixStream::connect(data.join("ldapi")).unwrap());
    for client in [&mut early, &mut late] {
        assert_eq!(client.search("dc=example,dc=com", "objectClass", "domain"), Ok(1));
    }
    at_home.bind(server.administrator(), &password).unwrap();
    let log = fs::read_to_string(data.join("log/error.log")).unwrap();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" warning crowd ")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("most_from=127.0.0.2"), "{log}");
    assert!(server.is_up());
    drop(crowd);
}

/// Clients that each send most of a request and no more.
const UNFINISHED: usize = 60;
/// Length that such a request announces, in bytes: the longest that the server takes by default is
/// a little longer.
const REQUEST_BYTES: u32 = 8_000_000;
/// How many of them the server can hold at the most by default: 128 MiB together.
const HELD_MAX: usize = (128 << 20) / (REQUEST_BYTES as usize - 100_000);

/// Most memory that the process has had in RAM so far, in bytes.
fn peak_memory(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.server_pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

/// Clients that ask for a large group and do not read it, and its members.
const SLOW_READERS: usize = 60;
const MEMBERS: usize = 18_000;

#[test]
fn slow_readers_of_a_large_group_hold_a_part_of_it_at_most() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let (ldif, data) = (folder.path().join("group.ldif"), folder.path().join("data"));
    let member = |number: usize| format!("uid=employee{number:08},ou=people,dc=example,dc=com");
    let mut text = "dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n\n\
                    dn: cn=all,dc=example,dc=com\nobjectClass: groupOfNames\n"
        .to_owned();
    (0..MEMBERS).for_each(|number| text.push_str(&format!("member: {}\n", member(number))));
    fs::write(&ldif, text).unwrap();
    let import = ["--import", ldif.to_str().unwrap()];
    let mut server = Server::start(&data, &import);
    let (address, password) = (address(&server), server.password());
    let reader = || {
        let mut client = Client::connect(address).unwrap();
        client.bind(server.administrator(), &password).unwrap();
        client
    };
    // One client reads before the measurement, which leaves out the memory that any reading takes.
    let (mut late, mut one) = (reader(), reader());
    assert_eq!(one.read("cn=all,dc=example,dc=com"), Ok(1));
    let entry_bytes = one.answer_bytes;
    assert!(entry_bytes > MEMBERS * 49, "{entry_bytes} bytes");
    let before = peak_memory(&server);
    let slow: Vec<Client> = (0..SLOW_READERS)
        .map(|_| {
            let mut client = reader();
            client.send_search("cn=all,dc=example,dc=com", "objectClass", "groupOfNames").unwrap();
            client
        })
        .collect();
    // They have a part of it when others that ask later have all of it.
    late.send_search("cn=all,dc=example,dc=com", "objectClass", "groupOfNames").unwrap();
    one.add_value("cn=all,dc=example,dc=com", "member", &member(MEMBERS)).unwrap();
    assert_eq!(one.read("cn=all,dc=example,dc=com"), Ok(1));
    assert_eq!(one.answer_bytes, entry_bytes + 2 + member(MEMBERS).len());
    assert_eq!(late.entries(), Ok(1));
    let grown = peak_memory(&server) - before;
    println!("{grown} bytes more for {SLOW_READERS} slow readers of {entry_bytes} bytes");
    // All of it for each would be 54 MB at the least.
    assert!(grown < (SLOW_READERS as u64) * (384 << 10) + (16 << 20), "{grown} bytes");
    // A client that goes on reading gets the whole group, from before the change or from after it.
    for mut client in slow.into_iter().step_by(20) {
        assert_eq!(client.entries(), Ok(1));
        assert!([entry_bytes, one.answer_bytes].contains(&client.answer_bytes));
    }
    assert!(server.is_up());
}

#[test]
fn requests_that_never_end_take_a_bounded_part_of_memory() {
    let _turn = turn();
    let (_folder, mut server) = sample(1);
    let (address, password) = (address(&server), server.password());
    let mut request = vec![0x30, 0x84];
    request.extend(REQUEST_BYTES.to_be_bytes());
    request.extend([0x02, 0x01, 0x07, 0x68, 0x84]);
    request.extend((REQUEST_BYTES - 9).to_be_bytes());
    request.resize(REQUEST_BYTES as usize - 50_000, b'x');
    let before = peak_memory(&server);
    let (refused, refusals) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..UNFINISHED {
            let (refused, request, server) = (refused.clone(), &request, &server);
            let mut client = Client::connect(address).unwrap();
            client.bind(server.administrator(), &password).unwrap();
            scope.spawn(move || {
                // It ends when the server closes.
                let _ = client.send_raw(request);
                let _ = client.read_to_end();
                let _ = refused.send(());
            });
        }
        assert_eq!(refusals.iter().take(UNFINISHED - HELD_MAX).count(), UNFINISHED - HELD_MAX);
        let mut client = Client::connect(address).unwrap();
        let good = client.bind(server.administrator(), &password);
        let found = client.search("dc=example,dc=com", "objectClass", "domain");
        let grown = peak_memory(&server) - before;
        let up = server.is_up();
        server.kill();
        assert_eq!((good, found, up), (Ok(()), Ok(1), true));
        // A buffer may be twice as long as what is in it; unbounded it would be 480 MB at the
        // least.
        assert!(grown < 2 * (128 << 20) + (64 << 20), "{grown} bytes");
        println!("{grown} bytes more for {UNFINISHED} unfinished requests");
    });
}
