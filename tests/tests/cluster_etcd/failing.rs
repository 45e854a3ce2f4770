//! Members of etcd that are killed and paused.

use crate::rows::{Feed, next_row};
use crate::{A, CLUSTER, LEASE, PATIENCE, options, runtime, won};
use keyway_cluster_etcd::{Appended, Error, Etcd, Fence, Followed, Options, Point, Row};
use keyway_tests::cryptod::eventually;
use keyway_tests::etcd;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A client that gives up sooner than etcd can have a new leader.
fn hasty(server: &etcd::Etcd, runtime: &tokio::runtime::Runtime) -> Etcd {
    let (try_limit, call_limit) = (Duration::from_millis(100), Duration::from_millis(300));
    let options = Options { try_limit, call_limit, ..options(server) };
    Etcd::new(options, runtime.handle().clone()).unwrap()
}

/// Appends a row until it is known to be there; how often that was not known, or etcd was away.
#[track_caller]
fn insist(etcd: &Etcd, fence: &Fence, row: &Row) -> (usize, usize) {
    let (mut unknown, mut away) = (0, 0);
    eventually("it is appended", || {
        match etcd.append(fence, row) {
            Ok(Appended::Done) => return true,
            Ok(Appended::Unknown(_)) => unknown += 1,
            Err(Error::Unavailable(_)) => away += 1,
            other => panic!("{other:?}"),
        }
        false
    });
    (unknown, away)
}

#[test]
fn a_leader_that_is_killed_loses_no_row_and_doubles_none() {
    if !etcd::available() {
        return;
    }
    const ROWS: u64 = 300;
    let (mut server, runtime) = (etcd::Etcd::start(3), runtime());
    let patient = crate::client(&server, &runtime);
    let lease = won(&patient, A);
    patient.begin(&lease, Point::START).unwrap();
    let etcd = hasty(&server, &runtime);
    let ((at, there), follower) = (channel(), patient.follow(Point::START));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut feed, mut unknown) = (Feed::NEW, 0);
            while feed.last.position < ROWS {
                unknown += insist(&etcd, &lease, &feed.grow(20_000)).0;
                at.send(feed.last.position).unwrap();
            }
            (feed.last, unknown)
        });
        let followed = scope.spawn(move || {
            let (mut follower, mut last) = (follower, Point::START);
            while last.position < ROWS {
                match follower.next(PATIENCE) {
                    Ok(Followed::Row(row)) => {
                        assert_eq!(row.before(), last);
                        last = row.point();
                    }
                    Ok(Followed::Idle) | Err(Error::Unavailable(_)) => {}
                    other => panic!("{other:?}"),
                }
            }
            last
        });
        while there.recv().unwrap() < 100 {}
        let leader = server.leader();
        server.kill(leader);
        while there.recv().unwrap() < 200 {}
        server.begin(leader);
        server.wait(leader);
        let (last, unknown) = writer.join().unwrap();
        assert!(unknown > 0, "calls are shorter than an election");
        assert_eq!(followed.join().unwrap(), last);
        assert_eq!(patient.head().unwrap(), Some(last));
    });
}

#[test]
fn paused_members_answer_nothing_and_all_goes_on_behind_it() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(3), runtime());
    let patient = crate::client(&server, &runtime);
    let lease = won(&patient, A);
    let mut feed = Feed::NEW;
    patient.begin(&lease, feed.last).unwrap();
    feed.append(&patient, &lease, 3);
    let etcd = hasty(&server, &runtime);
    let mut follower = etcd.follow(Point::START);
    (0..3).for_each(|_| drop(next_row(&mut follower)));
    (0..3).for_each(|member| server.pause(member, true));
    let row = feed.grow(100);
    for _ in 0..5 {
        let appended = etcd.append(&lease, &row);
        let is_away = matches!(appended, Ok(Appended::Unknown(_)) | Err(Error::Unavailable(_)));
        assert!(is_away, "{appended:?}");
        assert!(matches!(etcd.head(), Err(Error::Unavailable(_))));
    }
    let silent = follower.next(Duration::from_secs(2));
    assert!(matches!(silent, Err(Error::Unavailable(_))), "{silent:?}");
    (0..3).for_each(|member| server.pause(member, false));
    insist(&etcd, &lease, &row);
    feed.append(&patient, &lease, 2);
    eventually("the follower goes on", || matches!(follower.next(PATIENCE), Ok(Followed::Row(_))));
    (0..2).for_each(|_| drop(next_row(&mut follower)));
    assert_eq!(patient.head().unwrap(), Some(feed.last));
}

/// The follower's watch is at a member that is paused, or cut off: it hears of rows all the same.
#[test]
fn a_follower_leaves_a_member_that_is_silent() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(3), runtime());
    let patient = crate::client(&server, &runtime);
    let lease = won(&patient, A);
    let mut feed = Feed::NEW;
    patient.begin(&lease, feed.last).unwrap();
    feed.append(&patient, &lease, 1);
    // A client that begins with a member that does not lead.
    let silent = (server.leader() + 1) % 3;
    let mut options = options(&server);
    options.endpoints.rotate_left(silent);
    options.try_limit = Duration::from_millis(300);
    let mut follower = Etcd::new(options, runtime.handle().clone()).unwrap().follow(Point::START);
    next_row(&mut follower);
    assert_eq!(follower.next(Duration::ZERO).unwrap(), Followed::Idle);
    server.pause(silent, true);
    feed.append(&patient, &lease, 1);
    assert_eq!(next_row(&mut follower).point(), feed.last);
    server.pause(silent, false);
}

#[test]
fn members_that_are_all_killed_at_once_keep_rows_and_fence() {
    if !etcd::available() {
        return;
    }
    let (mut server, runtime) = (etcd::Etcd::start(3), runtime());
    let etcd = crate::client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    feed.append(&etcd, &lease, 20);
    let mut follower = etcd.follow(Point::START);
    (0..10).for_each(|_| drop(next_row(&mut follower)));
    (0..3).for_each(|member| server.kill(member));
    (0..3).for_each(|member| server.begin(member));
    (0..3).for_each(|member| server.wait(member));
    assert_eq!(etcd.head().unwrap(), Some(feed.last));
    feed.append(&etcd, &lease, 1);
    while next_row(&mut follower).point() != feed.last {}
}

#[test]
fn an_etcd_that_is_full_says_so_and_goes_on_when_it_was_trimmed() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::with(1, &["--quota-backend-bytes=3000000"]), runtime());
    let etcd = crate::client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    // The transaction that first exceeds the quota is refused before or after it is done, by chance.
    for _ in 0..5 {
        let mut rows = 0;
        let (row, before) = loop {
            let (before, row) = (feed.last, feed.grow(60_000));
            rows += 1;
            assert!(rows < 100, "it is never full");
            match etcd.append(&lease, &row) {
                Ok(done) => assert_eq!(done, Appended::Done),
                Err(full) => {
                    assert!(matches!(full, Error::Full(_)), "{full}");
                    break (row, before);
                }
            }
        };
        assert_eq!(etcd.head().unwrap(), Some(before));
        assert!(etcd.trim(&lease, before.position).unwrap() > 0);
        // etcd may find once more that it was full, by what was still under way.
        let mut tries = 0;
        loop {
            etcd.reclaim().unwrap();
            match etcd.append(&lease, &row) {
                Ok(done) => break assert_eq!(done, Appended::Done),
                Err(full) => assert!(matches!(full, Error::Full(_)), "{full}"),
            }
            tries += 1;
            assert!(tries < 20, "it stays full");
        }
    }
}

#[test]
fn nothing_that_listens_is_unavailable() {
    let runtime = runtime();
    let url = format!("http://{}", keyway_tests::port()).parse().unwrap();
    let options =
        Options { call_limit: Duration::from_millis(300), ..Options::new(vec![url], CLUSTER) };
    let etcd = Etcd::new(options, runtime.handle().clone()).unwrap();
    assert!(matches!(etcd.head(), Err(Error::Unavailable(_))));
    assert!(matches!(etcd.take(A, LEASE), Err(Error::Unavailable(_))));
}
