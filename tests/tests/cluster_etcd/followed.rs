//! Followers: all in order, through compaction, and copies of another time.

use crate::rows::{Feed, next_row};
use crate::{A, B, PATIENCE, client, runtime, won};
use keyway_cluster_etcd::{Appended, Followed, Point};
use keyway_tests::etcd;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

const ROWS: u64 = 2_000;

#[test]
fn a_follower_sees_two_thousand_rows_in_order() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    feed.append(&etcd, &lease, 20);
    let mut follower = etcd.follow(Point::START);
    thread::scope(|scope| {
        let followed = scope.spawn(|| {
            let mut last = Point::START;
            while last.position < ROWS {
                let row = next_row(&mut follower);
                assert_eq!(row.before(), last);
                last = row.point();
            }
            last
        });
        for number in feed.last.position..ROWS {
            let bytes = if number % 100 == 0 { 60_000 } else { 600 };
            assert_eq!(etcd.append(&lease, &feed.grow(bytes)).unwrap(), Appended::Done);
        }
        assert_eq!(followed.join().unwrap(), feed.last);
    });
    assert_eq!(follower.next(Duration::ZERO).unwrap(), Followed::Idle);
    // All again, in large pieces.
    let mut again = etcd.follow(Point::START);
    for position in 1..=ROWS {
        assert_eq!(next_row(&mut again).point().position, position);
    }
}

#[test]
fn what_was_trimmed_needs_a_base_and_what_was_compacted_does_not() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    let (mut behind, mut near, mut here) =
        (etcd.follow(feed.last), etcd.follow(feed.last), etcd.follow(feed.last));
    let mut points = vec![feed.last];
    for _ in 0..50 {
        feed.append(&etcd, &lease, 1);
        points.push(feed.last);
        // All watch now; the first two then stay behind.
        let position = feed.last.position;
        let followers = [(&mut behind, 5), (&mut near, 30), (&mut here, 50)];
        for (follower, _) in followers.into_iter().filter(|(_, until)| position <= *until) {
            assert_eq!(next_row(follower).point(), feed.last);
        }
    }
    assert_eq!(etcd.trim(&lease, 20).unwrap(), 20);
    assert_eq!(etcd.trim(&lease, 20).unwrap(), 0);
    // Those that begin now: before, at the edge, and behind it.
    for (after, first) in [(0, Some(21)), (5, Some(21)), (19, Some(21)), (20, None), (21, None)] {
        let found = etcd.follow(points[after]).next(PATIENCE).unwrap();
        match (found, first) {
            (Followed::Row(row), None) => assert_eq!(row.point(), points[after + 1]),
            (found, Some(first)) => assert_eq!(found, Followed::Compacted { first }),
            other => panic!("{after}: {other:?}"),
        }
    }
    // Those that follow: one that has come through, one whose watch was compacted, one that has them still.
    for place in &points[31..] {
        assert_eq!(next_row(&mut near).point(), *place);
    }
    feed.append(&etcd, &lease, 1);
    assert_eq!(next_row(&mut near).point(), feed.last);
    assert_eq!(next_row(&mut here).point(), feed.last);
    let mut last = 5;
    let end = loop {
        match behind.next(PATIENCE).unwrap() {
            Followed::Row(row) => {
                last += 1;
                assert_eq!(row.point(), *points.get(last).unwrap_or(&feed.last));
            }
            end => break end,
        }
        if last == 51 {
            break Followed::Idle;
        }
    };
    assert!(matches!(end, Followed::Idle | Followed::Compacted { first: 21 }), "{end:?}");
    // The last row stays, also where more is asked for.
    assert_eq!(etcd.trim(&lease, 100).unwrap(), 30);
    assert_eq!(etcd.follow(feed.last).next(Duration::ZERO).unwrap(), Followed::Idle);
    assert_eq!(next_row(&mut etcd.follow(points[50])).point(), feed.last);
    let compacted = etcd.follow(points[49]).next(PATIENCE).unwrap();
    assert_eq!(compacted, Followed::Compacted { first: 51 });
    feed.append(&etcd, &lease, 1);
    assert_eq!(next_row(&mut here).point(), feed.last);
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

#[test]
fn an_etcd_that_was_restored_from_an_older_copy_is_noticed() {
    if !etcd::available() {
        return;
    }
    let (mut server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    feed.append(&etcd, &lease, 10);
    let (old, aside) = (feed.last, server.data(0).with_extension("old"));
    server.kill(0);
    copy(&server.data(0), &aside);
    server.begin(0);
    server.wait(0);
    feed.append(&etcd, &lease, 10);
    let mut follower = etcd.follow(old);
    for _ in 0..10 {
        next_row(&mut follower);
    }
    server.kill(0);
    std::fs::remove_dir_all(server.data(0)).unwrap();
    copy(&aside, &server.data(0));
    server.begin(0);
    server.wait(0);
    // The writer's lease and fence are in the copy, but the feed does not end where the writer is.
    let next = feed.clone().grow(100);
    assert_eq!(etcd.append(&lease, &next).unwrap(), Appended::Apart(Some(old)));
    assert_eq!(until_other(&mut follower), Followed::Rewound(Some(old)));
    // Another writer with other rows passes the follower: positions agree, digests do not.
    etcd.release(&lease).unwrap();
    let lease = won(&etcd, B);
    let mut other = Feed { last: old, content: 9 };
    other.append(&etcd, &lease, 10);
    let there = other.last.digest;
    assert_eq!(until_other(&mut follower), Followed::Diverged { here: feed.last, there });
    other.append(&etcd, &lease, 5);
    assert_eq!(until_other(&mut follower), Followed::Diverged { here: feed.last, there });
    // Also where the row at its position is gone, by what the next one follows.
    assert_eq!(etcd.trim(&lease, 20).unwrap(), 20);
    assert_eq!(until_other(&mut follower), Followed::Diverged { here: feed.last, there });
    assert_eq!(
        etcd.append(&lease, &next).unwrap(),
        Appended::Conflict({
            let mut again = Feed { last: old, content: 9 };
            (0..11).map(|_| again.grow(100).point().digest).last().unwrap()
        })
    );
}

/// What a follower learns that was told of no row, once its watch has noticed.
#[track_caller]
fn until_other(follower: &mut keyway_cluster_etcd::Follower) -> Followed {
    for _ in 0..600 {
        match follower.next(Duration::from_millis(100)) {
            Ok(Followed::Idle) | Err(_) => {}
            Ok(other) => return other,
        }
    }
    panic!("nothing");
}
