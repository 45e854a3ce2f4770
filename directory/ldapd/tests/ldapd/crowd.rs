//! More connections than places.

use crate::client::{Client, bind, who_am_i};
use crate::directory::{FAST, PASSWORD, SLOW};
use crate::support::{Running, start};
use crate::tls;
use keyway_codec::message::ResultCode;
use keyway_ldapd::{ConnectionSettings, Limits, Mode};
use std::net::SocketAddr;
use tokio::net::{TcpSocket, TcpStream};

const PLACES: usize = 8;
const RESERVED: usize = 4;
/// Where the crowd comes from.
const CROWD: [u8; 4] = [127, 0, 0, 2];
/// Others.
const QUIET: [u8; 4] = [127, 0, 0, 3];

fn settings() -> ConnectionSettings {
    let limits =
        Limits { connections_max: PLACES, connections_reserved: RESERVED, ..Limits::default() };
    ConnectionSettings { limits, ..ConnectionSettings::default() }
}

async fn crowded(mode: Mode) -> Running {
    start(mode, settings()).await
}

async fn silent(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((CROWD, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

/// Binds and says what came of it.
async fn login(client: &mut Client, name: &str) -> ResultCode {
    client.ask(bind(name, PASSWORD)).await.code()
}

#[tokio::test]
async fn a_silent_crowd_makes_room_and_others_from_elsewhere_stay() {
    let server = crowded(Mode::Plain).await;
    let mut quiet = Client::connect_from(QUIET, server.address).await;
    assert_eq!(quiet.ask(who_am_i()).await.code(), ResultCode::Success);
    let mut crowd = Vec::new();
    for _ in 1..PLACES {
        let mut client = Client::connect_from(CROWD, server.address).await;
        // Half a message is none.
        client.send(&[0x30, 0x20, 0x02, 0x01]).await;
        crowd.push(client);
    }
    let mut known = Vec::new();
    for _ in 0..PLACES - 1 {
        let mut client = Client::connect(server.address).await;
        assert_eq!(login(&mut client, FAST).await, ResultCode::Success);
        known.push(client);
    }
    for mut client in crowd {
        client.expect_disconnection(ResultCode::Busy).await;
    }
    assert_eq!(quiet.ask(who_am_i()).await.code(), ResultCode::Success);
    // The last stranger goes as well; those who have said who they are stay.
    let mut one_more = Client::connect(server.address).await;
    assert_eq!(login(&mut one_more, FAST).await, ResultCode::Success);
    quiet.expect_disconnection(ResultCode::Busy).await;
    for client in &mut known {
        assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
    }
}

#[tokio::test]
async fn who_asks_for_something_stays_before_who_does_not() {
    let server = crowded(Mode::Plain).await;
    let mut asking = Client::connect(server.address).await;
    let mut silent = Client::connect(server.address).await;
    let mut others = Vec::new();
    for _ in 2..PLACES {
        let mut client = Client::connect(server.address).await;
        assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
        others.push(client);
    }
    assert_eq!(asking.ask(who_am_i()).await.code(), ResultCode::Success);
    let mut newcomer = Client::connect(server.address).await;
    assert_eq!(newcomer.ask(who_am_i()).await.code(), ResultCode::Success);
    silent.expect_disconnection(ResultCode::Busy).await;
    assert_eq!(asking.ask(who_am_i()).await.code(), ResultCode::Success);
}

#[tokio::test(flavor = "multi_thread")]
async fn handshakes_that_never_end_make_room() {
    let (mode, config) = tls::over_tls();
    let server = crowded(mode).await;
    let mut crowd = Vec::new();
    for _ in 0..3 * PLACES {
        crowd.push(silent(server.address).await);
    }
    for _ in 0..PLACES / 2 {
        let mut client = Client::connect_tls(server.address, config.clone()).await;
        assert_eq!(login(&mut client, FAST).await, ResultCode::Success);
    }
}

/// One user has all places: others find one, he finds none more.
#[tokio::test]
async fn the_user_with_the_most_connections_makes_room_for_others() {
    let server = crowded(Mode::Plain).await;
    let mut greedy = Vec::new();
    for _ in 0..PLACES {
        let mut client = Client::connect(server.address).await;
        assert_eq!(login(&mut client, FAST).await, ResultCode::Success);
        greedy.push(client);
    }
    let mut one_more = Client::connect(server.address).await;
    assert_eq!(login(&mut one_more, FAST).await, ResultCode::Busy);
    one_more.expect_disconnection(ResultCode::Busy).await;
    let mut other = Client::connect(server.address).await;
    assert_eq!(login(&mut other, SLOW).await, ResultCode::Success);
    // The one that has been idle for longest.
    greedy.remove(0).expect_disconnection(ResultCode::Busy).await;
    for client in greedy.iter_mut().chain([&mut other]) {
        assert_eq!(client.ask(who_am_i()).await.code(), ResultCode::Success);
    }
}
