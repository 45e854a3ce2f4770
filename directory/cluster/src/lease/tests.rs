//! A lease that is free, held, lost, and one in an etcd that went back.

use super::*;
use crate::message::{ClusterId, History, Member};

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);
const C: MemberId = MemberId(3);
const TTL: Duration = Duration::from_secs(6);

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn digest(position: u64) -> Digest {
    Digest([position as u8; 32])
}

fn state(revision: u64, holder: Option<MemberId>, last: u64) -> Told {
    Told::State { store: StoreId(1), revision, holder, last: Some((last, digest(last))) }
}

fn status(member: MemberId, position: u64) -> Status {
    Status::follower(member, position)
}

fn told(lease: &mut Lease, told: &Told, position: u64, now: u64) {
    told_of(&[A, B], lease, told, position, now);
}

fn place(position: u64) -> Place {
    let digest = digest(position);
    Place { history: History([1; 16]), epoch: 1, writer: None, position, digest }
}

/// In a cluster of these members.
fn told_of(members: &[MemberId], lease: &mut Lease, told: &Told, position: u64, now: u64) {
    let place = place(position);
    let row = row(members);
    let own = Own { place: &place, row: Some(&row) };
    lease.told(told, own, |position| Some(digest(position)), (at(now), at(now)));
}

fn row(members: &[MemberId]) -> ClusterRow {
    let member = |id| Member { id, name: id.to_string(), url: "ldaps://a".into(), since: 0 };
    ClusterRow {
        cluster: ClusterId([1; 16]),
        epoch: 1,
        writer: B,
        members: members.iter().copied().map(member).collect(),
        began: Vec::new(),
        etcd: Some(1),
    }
}

/// A member that has started before.
fn lease() -> Lease {
    Lease { starts_until: at(0), ..Lease::new(A, TTL, at(0)) }
}

fn fence() -> Fence {
    Fence { revision: 5, member: A, nonce: 7 }
}

#[test]
fn the_member_that_has_the_whole_tail_takes_a_free_lease() {
    let mut lease = lease();
    assert_eq!(lease.step(at(0)), Step::Ask(Ask::Look));
    told(&mut lease, &state(1, Some(B), 10), 10, 0);
    assert_eq!(lease.step(at(0)), Step::Wait(at(200)));
    told(&mut lease, &state(1, None, 11), 10, 600);
    assert_eq!(lease.doubt_found(), Some(Doubt::Behind));
    told(&mut lease, &state(1, None, 11), 11, 1200);
    assert_eq!(lease.step(at(1200)), Step::Ask(Ask::Take { member: A, ttl: TTL }));
    told(&mut lease, &Told::Taken(fence()), 11, 1200);
    assert_eq!(lease.fence(), Some(fence()));
    assert!(lease.believes(at(6000), at(500)));
    assert!(!lease.believes(at(6700), at(500)));
}

#[test]
fn a_lease_is_renewed_before_a_third_has_passed() {
    let mut lease = lease();
    told(&mut lease, &state(1, None, 11), 11, 0);
    told(&mut lease, &Told::Taken(fence()), 11, 0);
    let Step::Wait(next) = lease.step(at(0)) else { panic!("it has just been taken") };
    assert!(next <= TTL / 3);
    assert_eq!(lease.step(next), Step::Ask(Ask::Renew(fence())));
    told(&mut lease, &Told::Unavailable, 11, 1500);
    assert_eq!(lease.step(at(1500)), Step::Wait(at(1800)));
    told(&mut lease, &Told::Renewed { store: StoreId(1), revision: 60 }, 11, 1800);
    assert!(lease.believes(at(7000), at(500)));
    told(&mut lease, &Told::Refused, 11, 1900);
    assert_eq!(lease.fence(), None);
}

#[test]
fn an_etcd_that_went_back_is_filled_by_the_member_that_is_furthest() {
    for last in [8, 10] {
        let mut lease = lease();
        told(&mut lease, &state(50, Some(B), 10), 10, 0);
        told(&mut lease, &state(40, None, last), 10, 0);
        assert_eq!(lease.doubt_found(), Some(Doubt::Restored { store: StoreId(1) }));
        lease.stands(&status(B, 11), at(500));
        told(&mut lease, &state(40, None, last), 10, 600);
        assert_eq!(lease.doubt_found(), Some(Doubt::Restored { store: StoreId(1) }));
        lease.stands(&status(B, 10), at(500));
        told(&mut lease, &state(40, None, last), 10, 1200);
        assert_eq!(lease.step(at(1200)), Step::Ask(Ask::Take { member: A, ttl: TTL }));
    }
    let mut lease = lease();
    let (store, other) = (StoreId(1), Some((10, digest(99))));
    told(&mut lease, &Told::State { store, revision: 1, holder: None, last: other }, 10, 0);
    assert_eq!(lease.doubt_found(), Some(Doubt::Diverged));
}

#[test]
fn an_etcd_that_is_not_the_one_of_the_reign_is_doubted() {
    let mut lease = lease();
    let last = Some((10, digest(10)));
    told(&mut lease, &Told::State { store: StoreId(2), revision: 9, holder: None, last }, 10, 0);
    assert_eq!(lease.doubt_found(), Some(Doubt::Restored { store: StoreId(2) }));
}

#[test]
fn a_member_that_starts_asks_the_others_first() {
    let mut lease = Lease::new(A, TTL, at(0));
    told(&mut lease, &state(50, None, 10), 10, 0);
    assert_eq!(lease.doubt_found(), Some(Doubt::Starting));
    lease.stands(&status(B, 11), at(500));
    told(&mut lease, &state(50, None, 10), 10, 20_000);
    assert_eq!(
        lease.doubt_found(),
        Some(Doubt::Starting),
        "it is furthest, and etcd lacks its row"
    );
    let mut lease = Lease::new(A, TTL, at(0));
    for now in 0..=8 {
        told(&mut lease, &state(50, None, 10), 10, now * 2000);
        let doubt = (now < 8).then_some(Doubt::Starting);
        assert_eq!(lease.doubt_found(), doubt, "none has answered in time");
    }
    let mut lease = self::lease();
    told(&mut lease, &state(50, Some(B), 10), 10, 0);
    told(&mut lease, &state(50, None, 10), 10, 20_000);
    assert_eq!(lease.doubt_found(), Some(Doubt::Starting), "etcd may have been restored meanwhile");
}

#[test]
fn a_member_that_has_started_waits_for_no_dead_holder_that_it_has_seen_append() {
    // The holder, B, dies behind this position, and C says that it has that one.
    for (end, c, waits) in
        [(11, Some(11), false), (10, Some(10), true), (11, None, true), (11, Some(12), true)]
    {
        let mut lease = Lease::new(A, TTL, at(0));
        let mut told = |told: &Told, position, now| {
            told_of(&[A, B, C], &mut lease, told, position, now);
            if let Some(c) = c {
                lease.stands(&status(C, c), at(now));
            }
            lease.doubt_found()
        };
        told(&state(50, Some(B), 10), 10, 0);
        told(&state(60, Some(B), end), end, 250);
        assert_eq!(told(&state(60, None, end), end, 500), Some(Doubt::Starting), "C was not asked");
        let found = told(&state(60, None, end), end, 750);
        assert_eq!(found, waits.then_some(Doubt::Starting), "{end} {c:?}");
    }
}

#[test]
fn a_member_that_etcd_contradicts_keeps_none_from_the_lease() {
    for (contradicted_by, obstacle) in
        [(None, Some(Obstacle::Ahead(B))), (Some(2), Some(Obstacle::Ahead(B))), (Some(1), None)]
    {
        let mut lease = Lease::new(A, TTL, at(0));
        let further = Status { diverged_from: contradicted_by, ..status(B, 19) };
        for now in (0..=20_000).step_by(1000) {
            told(&mut lease, &state(50, None, 10), 10, now);
            lease.stands(&further, at(now));
        }
        assert_eq!(lease.doubt_found(), obstacle.map(|_| Doubt::Starting), "{contradicted_by:?}");
        let place = place(10);
        let row = row(&[A, B]);
        let own = Own { place: &place, row: Some(&row) };
        assert_eq!(lease.obstacle(own, at(20_000)), obstacle);
        assert_eq!(lease.obstacle(own, at(10_000)), None, "it may be over soon");
    }
}

#[test]
fn a_member_that_has_to_answer_and_does_not_is_named() {
    let mut lease = Lease::new(A, TTL, at(0));
    let place = place(10);
    let row = row(&[A, B, C]);
    for now in (0..=20_000).step_by(1000) {
        told_of(&[A, B, C], &mut lease, &state(50, None, 0), 10, now);
        lease.stands(&status(B, 9), at(now));
    }
    let own = Own { place: &place, row: Some(&row) };
    assert_eq!(lease.obstacle(own, at(20_000)), Some(Obstacle::Silent(C)));
    lease.stands(&status(C, 12), at(20_000));
    assert_eq!(lease.obstacle(own, at(20_000)), Some(Obstacle::Ahead(C)));
}

#[test]
fn a_holder_notices_that_etcd_went_back() {
    for (store, revision) in [(1, 40), (2, 60)] {
        let mut lease = lease();
        told(&mut lease, &state(50, None, 11), 11, 0);
        told(&mut lease, &Told::Taken(fence()), 11, 0);
        told(&mut lease, &Told::Renewed { store: StoreId(store), revision }, 11, 1500);
        assert_eq!((lease.fence(), lease.step(at(1500))), (None, Step::Ask(Ask::Look)));
    }
}
