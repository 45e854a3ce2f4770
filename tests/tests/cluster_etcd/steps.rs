//! The cluster's own logic, of leases and appends, on a real etcd.

use crate::rows::Feed;
use crate::{A, B, CLUSTER, options, runtime};
use keyway_cluster::append::{self, Appended, Appender, Outcome, Tail as _};
use keyway_cluster::lease::{Ask, Lease, Own, Step, Told};
use keyway_cluster::message::{Digest, History, MemberId, Place};
use keyway_cluster_etcd::{Error, Etcd, Point, Row, Tail};
use keyway_tests::etcd;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// Does what a lease asks for until it waits or holds; what it was told last.
fn go(lease: &mut Lease, tail: &mut Tail, now: Duration) -> Option<Told> {
    let place = Place {
        history: History([1; 16]),
        epoch: 1,
        writer: None,
        position: 0,
        digest: Digest([0; 32]),
    };
    let mut last = None;
    for _ in 0..5 {
        let Step::Ask(ask) = lease.step(now) else { break };
        let told = tail.lease(&ask);
        lease.told(&told, Own { place: &place, row: None }, |_| None, (now, now));
        last = Some(told);
    }
    last
}

/// A row of the feed as the logic has it.
fn row_of(row: Row) -> append::Row {
    let Point { position, digest } = row.point();
    append::Row { position, before: row.before().digest, digest, stored: row.into_bytes() }
}

#[test]
fn a_lease_is_taken_renewed_and_fences_the_appends_of_the_logic() {
    if !etcd::available() {
        return;
    }
    let (server, runtime) = (etcd::Etcd::start(1), runtime());
    let etcd = Etcd::new(options(&server), runtime.handle().clone()).unwrap();
    let (mut ours, mut theirs) = (Tail::new(etcd.clone()), Tail::new(etcd.clone()));
    let lease_of = |id: MemberId| Lease::new(id, TTL, Duration::ZERO);
    let (mut lease, mut other) = (lease_of(A), lease_of(B));
    assert!(matches!(go(&mut lease, &mut ours, DAY), Some(Told::Taken(_))));
    let fence = lease.fence().unwrap();
    assert_eq!(etcd.begin(&fence, Point::START).unwrap(), Point::START);
    let told = go(&mut other, &mut theirs, DAY);
    assert!(matches!(told, Some(Told::State { holder: Some(A), .. })), "{told:?}");
    assert_eq!(other.fence(), None);
    let told = go(&mut lease, &mut ours, DAY + TTL / 2);
    assert!(matches!(told, Some(Told::Renewed { .. })), "{told:?}");

    let (mut appender, mut feed) = (Appender::new(fence), Feed::NEW);
    let row = |feed: &mut Feed| row_of(feed.grow(3000));
    let all: Vec<_> = (0..20).map(|_| row(&mut feed)).collect();
    for row in &all {
        assert!(appender.push(row.clone()));
        let (fence, row) = appender.sent().unwrap();
        let appended = ours.append(fence, row);
        assert_eq!(appender.told(appended, DAY), Outcome::Done);
    }
    // A fence of the same revision in another life of an etcd that was restored.
    let nonce = fence.nonce ^ 1;
    let next = feed;
    assert_eq!(ours.append(&append::Fence { nonce, ..fence }, &row(&mut feed)), Appended::Fenced);
    feed = next;
    // One that is no row, and one that is in no order.
    let wrong = append::Row { digest: Digest([1; 32]), ..all[3].clone() };
    assert_eq!(ours.append(&fence, &wrong), Appended::Unavailable);
    assert!(matches!(ours.failure(), Some(Error::Config(_))) && ours.failure().is_none());

    assert_eq!(ours.lease(&Ask::Release(fence)), Told::Refused);
    assert_eq!(ours.lease(&Ask::Renew(fence)), Told::Refused);
    let Told::Taken(next) = theirs.lease(&Ask::Take { member: B, ttl: TTL }) else { panic!() };
    assert_eq!(ours.lease(&Ask::Take { member: A, ttl: TTL }), Told::Refused);
    let late = row(&mut feed);
    assert_eq!(ours.append(&fence, &late), Appended::Fenced);
    assert_eq!(theirs.append(&next, &late), Appended::Done);
}

#[test]
fn an_etcd_that_is_away_is_unavailable_to_the_logic() {
    let runtime = runtime();
    let url = format!("http://{}", keyway_tests::port()).parse().unwrap();
    let call_limit = Duration::from_millis(200);
    let options = keyway_cluster_etcd::Options {
        call_limit,
        ..keyway_cluster_etcd::Options::new(vec![url], CLUSTER)
    };
    let mut tail = Tail::new(Etcd::new(options, runtime.handle().clone()).unwrap());
    assert_eq!(tail.lease(&Ask::Look), Told::Unavailable);
    assert!(matches!(tail.failure(), Some(Error::Unavailable(_))));
    let mut lease = Lease::new(A, TTL, Duration::ZERO);
    assert_eq!(go(&mut lease, &mut tail, DAY), Some(Told::Unavailable));
    assert!(matches!(lease.step(DAY), Step::Wait(_)));
}
