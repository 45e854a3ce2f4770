//! One writer at a time, and each row once.

use crate::rows::Feed;
use crate::{A, B, CLUSTER, LEASE, client, options, runtime, won};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keyway_cluster_etcd::{Appended, Digest, Error, Etcd, Member, Point, Row, limits};
use keyway_tests::cryptod::eventually;
use keyway_tests::etcd;
use serde_json::json;
use std::time::Duration;

#[test]
fn rows_are_appended_in_order_and_once() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = client(&server, &runtime);
    assert_eq!(etcd.head().unwrap(), None);
    let lease = won(&etcd, A);
    let mut feed = Feed { last: Point { position: 40, digest: Digest([4; 32]) }, content: 1 };
    assert_eq!(etcd.append(&lease, &feed.clone().grow(100)).unwrap(), Appended::Apart(None));
    assert_eq!(etcd.begin(&lease, feed.last).unwrap(), feed.last);
    let (start, first) = (feed.last, feed.grow(100));
    assert_eq!(etcd.append(&lease, &first).unwrap(), Appended::Done);
    assert_eq!(etcd.append(&lease, &first).unwrap(), Appended::Done, "it is there");
    assert_eq!(etcd.begin(&lease, start).unwrap(), feed.last, "there is a feed");
    feed.append(&etcd, &lease, 3);
    // Another row at the same position, one that leaves a position out, and one that follows another one.
    let other = Feed { last: start, content: 2 }.grow(100);
    let there = first.point().digest;
    assert_eq!(etcd.append(&lease, &other).unwrap(), Appended::Conflict(there));
    let mut ahead = feed;
    ahead.grow(100);
    assert_eq!(etcd.append(&lease, &ahead.grow(100)).unwrap(), Appended::Apart(Some(feed.last)));
    let mut apart = feed;
    apart.last.digest = Digest([9; 32]);
    assert_eq!(etcd.append(&lease, &apart.grow(100)).unwrap(), Appended::Apart(Some(feed.last)));
    assert_eq!(etcd.head().unwrap(), Some(feed.last));
}

#[test]
fn an_end_of_the_feed_that_is_lost_or_set_back_is_put_again() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    feed.append(&etcd, &lease, 5);
    let key = STANDARD.encode(format!("/keyway/{CLUSTER}/head"));
    let senseless = STANDARD.encode("senseless");
    for value in [None, Some(&senseless)] {
        match value {
            None => server.call("/v3/kv/deleterange", &json!({ "key": key })),
            Some(value) => server.call("/v3/kv/put", &json!({ "key": key, "value": value })),
        };
        assert_eq!(etcd.head().unwrap(), None);
        let mut ahead = feed;
        assert_eq!(etcd.append(&lease, &ahead.grow(100)).unwrap(), Appended::Apart(None));
        // Its rows were in the way of those that begin earlier.
        let mut again = Feed::NEW;
        assert_eq!(etcd.begin(&lease, again.last).unwrap(), again.last);
        again.append(&etcd, &lease, 5);
        assert_eq!(etcd.head().unwrap(), Some(feed.last));
    }
    let mut earlier = Feed::NEW;
    let earlier = earlier.grow(100).point();
    let value = STANDARD.encode([&1u64.to_be_bytes()[..], &earlier.digest.0].concat());
    server.call("/v3/kv/put", &json!({ "key": key, "value": value }));
    assert!(matches!(etcd.cut(&lease, feed.last), Err(Error::Fenced)), "another end");
    etcd.cut(&lease, earlier).unwrap();
    Feed { last: earlier, content: 8 }.append(&etcd, &lease, 6);
    etcd.release(&lease).unwrap();
    let head = etcd.head().unwrap().unwrap();
    assert!(matches!(etcd.cut(&lease, head), Err(Error::Fenced)), "the lease is over");
}

#[test]
fn the_largest_row_fits_and_a_larger_one_is_told() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = client(&server, &runtime);
    let lease = won(&etcd, A);
    let mut feed = Feed::NEW;
    etcd.begin(&lease, feed.last).unwrap();
    for bytes in [limits::GROUP_BYTES_MAX, limits::ROW_BYTES_MAX] {
        assert_eq!(etcd.append(&lease, &feed.grow(bytes)).unwrap(), Appended::Done);
    }
    let mut follower = etcd.follow(Point::START);
    assert_eq!(crate::rows::next_row(&mut follower).bytes().len(), limits::GROUP_BYTES_MAX);
    assert_eq!(crate::rows::next_row(&mut follower).bytes().len(), limits::ROW_BYTES_MAX);
    let refused = Row::new(3, vec![0; limits::ROW_BYTES_MAX + 1]).unwrap_err();
    assert!(matches!(refused, Error::TooLarge(_)), "{refused}");
}

#[test]
fn a_writer_that_was_paused_is_fenced() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let [first, second] = [(); 2].map(|()| client(&server, &runtime));
    // It renews its lease no more.
    let lease = first.take(A, Duration::from_secs(2)).unwrap().unwrap();
    let mut feed = Feed::NEW;
    first.begin(&lease, feed.last).unwrap();
    feed.append(&first, &lease, 3);
    assert_eq!(second.take(B, LEASE).unwrap(), None);
    assert_eq!(second.look().unwrap().holder, Some(lease));
    eventually("the lease is over", || second.look().unwrap().holder.is_none());
    let next = won(&second, B);
    assert!(next.revision > lease.revision);
    let late = feed.clone().grow(200);
    assert_eq!(first.append(&lease, &late).unwrap(), Appended::Fenced);
    assert!(matches!(first.begin(&lease, feed.last), Err(Error::Fenced)));
    assert!(matches!(first.trim(&lease, 2), Err(Error::Fenced)));
    feed.append(&second, &next, 2);
    assert_eq!(first.append(&lease, &late).unwrap(), Appended::Fenced, "also at a taken position");
    assert!(!first.renew(&lease).unwrap());
    // One that is given back is free at once.
    second.release(&next).unwrap();
    won(&first, A);
}

#[test]
fn members_are_there_until_they_leave_or_are_gone() {
    if !etcd::available() {
        return;
    }
    let server = etcd::Etcd::start(1);
    let (runtime, other_runtime) = (runtime(), runtime());
    let options = || keyway_cluster_etcd::Options { lease_s: 2, ..options(&server) };
    let etcd = Etcd::new(options(), runtime.handle().clone()).unwrap();
    let member = |id, position| Member {
        id,
        name: "a".into(),
        url: "ldaps://a.example.com:636".into(),
        applied: Point { position, digest: Digest([3; 32]) },
    };
    let other = Etcd::new(options(), other_runtime.handle().clone()).unwrap();
    let gone = other.join(&member(B, 1)).unwrap().unwrap();
    let presence = etcd.join(&member(A, 5)).unwrap().unwrap();
    assert!(other.join(&member(A, 7)).unwrap().is_none(), "it is there already");
    presence.update(&etcd, &member(A, 6)).unwrap();
    assert_eq!(etcd.members().unwrap(), [member(A, 6), member(B, 1)]);
    drop(gone);
    eventually("the other one is gone", || etcd.members().unwrap() == [member(A, 6)]);
    let again = other.join(&member(B, 2)).unwrap().unwrap();
    again.leave(&other).unwrap();
    presence.leave(&etcd).unwrap();
    assert_eq!(etcd.members().unwrap(), []);
    assert_eq!(etcd.look().unwrap().holder, None);
}
