//! Tests of the things that clients share, and of how much of them one user may have.

use crate::Served;
use crate::client::Client;
use crate::served::is_served;
use keyway_daemon::Weights;
use keyway_daemon::limits::{ADMINISTRATORS_CONNECTIONS, ClientLimits, SharedLimits};
use keyway_ring::control::{Answer, Ask, Key, Step};
use keyway_ring::descriptor::Status;

fn refusal(answer: Answer) -> String {
    match answer {
        Answer::Refused { status, why } if status == Status::Busy as u8 => why,
        answer => panic!("{answer:?}"),
    }
}

/// Whether this process's user is one with a share, and not root.
fn has_share() -> bool {
    !rustix::process::getuid().is_root()
}

fn served(shared: SharedLimits) -> Served {
    Served::sharing(ClientLimits::default(), shared, Weights::default())
}

/// Limits that come before the machine's.
fn limits() -> SharedLimits {
    SharedLimits::of_machine(4 << 30, 1 << 16)
}

/// A machine is shared out so that one user has no more than a part, and can have what one client may.
#[test]
fn shares_follow_from_the_machine() {
    let large = SharedLimits::of_machine(64 << 30, 20_000);
    assert_eq!((large.clients, large.clients_of_user), (1_024, 256));
    assert!(large.files < 20_000 && large.files_of_user * 4 <= large.files);
    assert_eq!((large.region_bytes, large.region_bytes_of_user), (32 << 30, 8 << 30));
    let small = SharedLimits::of_machine(1 << 30, 1_024);
    assert!(small.clients * 2 <= 1_024 && small.files_of_user >= 300);
    assert!(small.files_of_user * 2 <= small.files);
    assert_eq!((small.region_bytes, small.region_bytes_of_user), (512 << 20, 256 << 20));
}

/// Those who say nothing give way, the oldest first.
#[test]
fn the_silent_make_room() {
    let shared = SharedLimits { clients: 80, clients_of_user: 80, ..limits() };
    let served = served(shared);
    let silent: Vec<_> = (0..200).map(|_| Client::stranger(&served.socket())).collect();
    is_served(&served.socket());
    assert!(silent[0].is_sent_away());
    let newest = silent.last().unwrap();
    newest.say(&Ask::Hello { version: keyway_ring::control::VERSION, name: "late".into() }, &[]);
    assert!(matches!(newest.hear().0, Answer::Hello { .. }));
}

/// All clients together have no more than a limit, and one user has no more than a part of it.
#[test]
fn sessions_memory_files_and_connections_are_shared() {
    let shared = SharedLimits {
        clients: 4 + ADMINISTRATORS_CONNECTIONS,
        clients_of_user: 4,
        region_bytes: 64 << 10,
        region_bytes_of_user: 32 << 10,
        sessions: 8,
        sessions_of_user: 4,
        ..limits()
    };
    let served = served(shared);
    let clients = [0; 3].map(|_| Client::new(&served.socket()));
    let whose = if has_share() { "your user (uid " } else { "the daemon's clients have " };
    let most = if has_share() { 4 } else { 8 };

    let sha = || Ask::Open { steps: vec![Step { algorithm: "sha-256".into(), key: Key::None }] };
    let opened: Vec<_> = (0..most).map(|at| clients[at % 3].open("sha-256", Key::None)).collect();
    let why = refusal(clients[0].ask(&sha()));
    assert!(why.starts_with(whose) && why.contains("sessions"), "{why}");
    clients[1].say(&Ask::Close { session: opened[1] }, &[]);
    // In order on this connection.
    assert_eq!(clients[1].ask(&Ask::Ping), Answer::Done);
    clients[0].open("sha-256", Key::None);

    let bytes = if has_share() { 16 << 10 } else { 32 << 10 };
    let regions = [clients[0].region(bytes), clients[1].region(bytes)];
    let why = refusal(clients[2].ask(&Ask::Region { bytes: 4096 }));
    assert!(why.starts_with(whose) && why.contains("bytes of shared memory"), "{why}");
    clients[0].say(&Ask::Forget { region: regions[0].handle }, &[]);
    assert_eq!(clients[0].ask(&Ask::Ping), Answer::Done);
    clients[2].region(4096);

    if has_share() {
        let _fourth = Client::new(&served.socket());
        let fifth = Client::stranger(&served.socket());
        let why = refusal(fifth.hear().0);
        assert!(why.starts_with(whose) && why.contains("connections"), "{why}");
    }
}
