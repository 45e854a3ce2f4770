//! Times that `cn=monitor` shows: while the wall clock steps, and of requests under way.

use crate::client::{Client, bind, search, who_am_i};
use crate::directory::{BASE, FAST, PASSWORD, administrator, wait};
use crate::support::{Running, plain, start};
use keyway_codec::ber::frame;
use keyway_codec::message::{Message, Op, ResultCode, Scope};
use keyway_ldapd::{ConnectionSettings, Limits, Mode};
use keyway_server::controls::RequestControls;
use keyway_server::{Announced, Step};
use std::time::Duration;

/// The `monitoredInfo` of all entries of `cn=monitor` below this one, as the administrator sees them.
fn monitored(server: &Running, below: &str) -> Vec<String> {
    let base = format!("{below},cn=monitor");
    let Op::SearchRequest(mut request) = search(&base, Scope::Subtree) else { unreachable!() };
    request.attributes = vec!["monitoredInfo"];
    let (subject, controls) = (administrator(), RequestControls::default());
    let mut search =
        server.directory.search(&subject, &request, &controls, Announced::default()).unwrap();
    let mut out = Vec::new();
    while let Step::More = search.step(&server.directory, 1, &mut out, 1 << 20) {}
    let mut found = Vec::new();
    let mut rest = &out[..];
    while let Some(length) = frame(rest, usize::MAX).unwrap() {
        let message;
        (message, rest) = rest.split_at(length);
        let Op::SearchResultEntry(entry) = Message::decode(message).unwrap().op else { continue };
        let values = entry.attributes.iter().flat_map(|attribute| &attribute.values);
        found.extend(values.map(|value| String::from_utf8(value.to_vec()).unwrap()));
    }
    found
}

/// A search between two steps waits for its client, not for the store.
#[tokio::test]
async fn a_search_that_its_client_does_not_read_waits_for_the_client() {
    let server = plain().await;
    let mut client = Client::connect_with_small_buffer(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    let searches = (0..100).map(|_| search(BASE, Scope::Subtree)).collect();
    client.request_all(searches).await;
    let stage = |all: &[String], name: &str| -> u64 {
        let found = all.iter().find_map(|info| info.strip_prefix(name)?.parse().ok());
        found.unwrap_or_default()
    };
    let shown = async {
        loop {
            let running = monitored(&server, "cn=Running");
            if running.iter().any(|info| info == "operation=search") {
                return running;
            }
            tokio::task::yield_now().await;
        }
    };
    let running = tokio::time::timeout(Duration::from_secs(60), shown).await.expect("it is shown");
    assert!(stage(&running, "write_us=") > stage(&running, "store_us="), "{running:?}");
}

/// Uptime, idle times and the time that an operation took go by a clock that never steps.
#[tokio::test]
async fn a_step_of_the_wall_clock_changes_no_duration() {
    const DAY_S: u64 = 86_400;
    let server = plain().await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    wait(30 * DAY_S);
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    wait(30 * DAY_S);
    let uptime = monitored(&server, "cn=Uptime,cn=Time");
    assert!(uptime.iter().any(|s| s.parse::<u64>().unwrap() < DAY_S), "{uptime:?}");
    let below = |all: &[String], name: &str, most: u64| {
        let values = all.iter().filter_map(|info| info.strip_prefix(name)?.parse().ok());
        let values: Vec<u64> = values.collect();
        assert!(!values.is_empty() && values.iter().all(|it| *it < most), "{name}{values:?}");
    };
    below(&monitored(&server, "cn=Connections"), "idle_ms=", DAY_S * 1_000);
    below(&monitored(&server, "cn=Slow"), "time_us=", DAY_S * 1_000_000);
}

/// A connection that was used ends so long after its last request, and not at the second look at it: before one that
/// was never used and may live for half as long again.
#[tokio::test]
async fn idle_time_counts_from_the_last_request() {
    let idle_for_at_most = |limit: Duration| {
        let limits = Limits { idle_before_bind_max: limit, ..Limits::default() };
        start(Mode::Plain, ConnectionSettings { limits, ..ConnectionSettings::default() })
    };
    let longer = idle_for_at_most(Duration::from_millis(4500)).await;
    let shorter = idle_for_at_most(Duration::from_secs(3)).await;
    let mut unused = Client::connect(longer.address).await;
    let mut used = Client::connect(shorter.address).await;
    assert_eq!(used.ask(who_am_i()).await.code(), ResultCode::Success);
    tokio::select! {
        () = used.expect_disconnection(ResultCode::Unavailable) => {}
        () = unused.expect_disconnection(ResultCode::Unavailable) => panic!("it was used last"),
    }
}
