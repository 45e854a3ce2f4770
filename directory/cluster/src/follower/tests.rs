//! Rows that continue, rows that do not, and members that send on.

use super::*;
use crate::message::{ClusterId, History, Member};

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);
const C: MemberId = MemberId(3);

fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn place(position: u64) -> Place {
    Place { history: History([1; 16]), epoch: 2, writer: None, position, digest: digest(position) }
}

fn digest(position: u64) -> Digest {
    Digest([position as u8; 32])
}

fn header(position: u64) -> RowHeader {
    RowHeader { position, before: digest(position - 1), digest: digest(position), reign: None }
}

fn row() -> ClusterRow {
    let member = |(id, name): (MemberId, &str)| Member {
        id,
        name: name.into(),
        url: format!("ldaps://{name}"),
        since: 0,
    };
    let members = [(A, "a"), (B, "b"), (C, "c")].map(member).into();
    ClusterRow {
        cluster: ClusterId([1; 16]),
        epoch: 2,
        writer: C,
        members,
        began: Vec::new(),
        etcd: None,
    }
}

fn new() -> Follower {
    Follower::new(A, place(10), Some(&row()), vec!["ldaps://first".into()], at(0))
}

fn following() -> Follower {
    let mut follower = new();
    assert_eq!(follower.step(at(0)), Step::Connect("ldaps://c".into()));
    let heard = Some(Reign { epoch: 2, writer: C });
    assert_eq!(follower.connected(at(0)), Request::Follow { member: A, place: place(10), heard });
    follower.answered(&Answer::Following { epoch: 2, head: 12 }, at(0)).unwrap();
    follower
}

fn refuse(
    follower: &mut Follower,
    reason: Refusal,
    heard: Option<Reign>,
    now: u64,
) -> Result<(), Stop> {
    let Step::Connect(_) = follower.step(at(now)) else { panic!("{follower:?}") };
    follower.connected(at(now));
    follower.answered(&Answer::refused(reason, heard), at(now))
}

#[test]
fn rows_that_continue_are_taken_and_the_lag_goes() {
    let mut follower = following();
    assert_eq!(follower.lag(at(500)), Lag { changes: 2, time: Some(at(500)) });
    follower.row(&header(11), at(500)).unwrap();
    follower.row(&header(12), at(500)).unwrap();
    follower.applied(place(11));
    assert_eq!(follower.lag(at(600)), Lag { changes: 1, time: Some(at(600)) });
    follower.applied(place(12));
    assert_eq!(follower.lag(at(700)), Lag { changes: 0, time: Some(at(0)) });
    let heartbeat = Heartbeat { head: 13, epoch: 2, unix_us: 0, contents: None };
    follower.heartbeat(&heartbeat, at(800)).unwrap();
    assert_eq!(follower.lag(at(900)), Lag { changes: 1, time: Some(at(100)) });
    follower.lost("gone".into(), at(1000));
    assert_eq!(follower.lag(at(5000)).time, Some(at(4200)));
}

#[test]
fn a_row_that_does_not_continue_stops_the_follower() {
    let wrong = [
        header(12),
        header(10),
        RowHeader { before: digest(9), ..header(11) },
        RowHeader { reign: Some(Reign { epoch: 1, writer: B }), ..header(11) },
    ];
    for wrong in wrong {
        let mut follower = following();
        let why = follower.row(&wrong, at(1)).unwrap_err();
        assert!(why.to_string().contains("`keyway cluster rejoin`"), "{why}");
        assert_eq!((follower.step(at(99_999)), follower.stopped()), (Step::Stopped, Some(&why)));
        assert!(follower.row(&header(11), at(2)).is_err(), "it stays so");
    }
    let mut follower = following();
    let older = Heartbeat { head: 12, epoch: 1, unix_us: 0, contents: None };
    assert!(follower.heartbeat(&older, at(1)).is_err());
}

#[test]
fn contents_are_compared_at_the_same_position() {
    let theirs = |position, octet| Contents { position, digest: Digest([octet; 32]) };
    let beat = |contents| Heartbeat { head: 12, epoch: 2, unix_us: 0, contents: Some(contents) };
    let mut follower = following();
    follower.heartbeat(&beat(theirs(1000, 1)), at(1)).unwrap();
    follower.heartbeat(&beat(theirs(2000, 2)), at(1)).unwrap();
    follower.contents(theirs(1000, 1)).unwrap();
    follower.contents(theirs(3000, 9)).unwrap();
    let why = follower.contents(theirs(2000, 1)).unwrap_err();
    assert_eq!(why, Stop::Refused(Refusal::OtherContents { position: 2000 }));
}

#[test]
fn a_silent_connection_is_given_up_and_rows_come_again() {
    let mut follower = following();
    follower.row(&header(11), at(100)).unwrap();
    assert_eq!(follower.step(at(200)), Step::Wait(SILENCE + at(100)));
    assert_eq!(follower.step(SILENCE + at(100)), Step::Close);
    follower.lost("silent".into(), SILENCE + at(100));
    let Step::Wait(until) = follower.step(SILENCE + at(100)) else { panic!() };
    assert!(matches!(follower.step(until), Step::Connect(_)));
    follower.connected(until);
    follower.answered(&Answer::Following { epoch: 2, head: 12 }, until).unwrap();
    follower.row(&header(11), until).unwrap();
}

#[test]
fn a_member_that_does_not_write_sends_on_but_not_forever() {
    let mut follower = new();
    let elsewhere = || Refusal::NotWriter { writer_url: Some("ldaps://d".into()) };
    refuse(&mut follower, elsewhere(), None, 0).unwrap();
    for _ in 0..2 {
        assert_eq!(follower.step(at(0)), Step::Connect("ldaps://d".into()));
        follower.connected(at(0));
        follower.answered(&Answer::refused(elsewhere(), None), at(0)).unwrap();
    }
    refuse(&mut follower, elsewhere(), None, 0).unwrap();
    let Step::Wait(until) = follower.step(at(0)) else { panic!("{follower:?}") };
    assert_eq!(follower.step(until), Step::Connect("ldaps://b".into()), "the next of the row");
}

#[test]
fn all_urls_are_tried_in_turn_with_pauses() {
    let (mut follower, mut now, mut urls) = (new(), at(0), Vec::new());
    while urls.len() < 6 {
        match follower.step(now) {
            Step::Connect(url) => {
                urls.push(url);
                follower.lost("no".into(), now);
            }
            Step::Wait(until) => now = until,
            other => panic!("{other:?}"),
        }
    }
    let turn = ["ldaps://c", "ldaps://b", "ldaps://first"];
    assert_eq!(urls, [turn, turn].concat());
}

#[test]
fn only_a_member_of_this_reign_or_a_later_one_can_stop_it() {
    let reign = |epoch, writer| Some(Reign { epoch, writer });
    let diverged = || Refusal::Diverged { position: 5 };
    let mut follower = new();
    refuse(&mut follower, diverged(), reign(2, B), 0).unwrap();
    refuse(&mut follower, Refusal::Forked { position: 5 }, reign(2, C), 60_000).unwrap();
    assert!(follower.stopped().is_none());
    let why = refuse(&mut follower, diverged(), reign(3, B), 120_000).unwrap_err();
    assert_eq!(why, Stop::Refused(diverged()));
    assert_eq!(follower.highest(), reign(3, B));
}
