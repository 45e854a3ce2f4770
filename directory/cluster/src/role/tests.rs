//! A writer that is replaced, one that starts, one that was restored or copied.

use super::*;
use crate::message::{ClusterId, Digest, History};
use crate::promise::PROMISE_MAX;

const A: MemberId = MemberId(1);
const B: MemberId = MemberId(2);
const C: MemberId = MemberId(3);

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn row(epoch: u64, writer: MemberId) -> ClusterRow {
    let member = |(id, name): (MemberId, &str)| Member {
        id,
        name: name.into(),
        url: format!("ldaps://{name}:636"),
        since: 0,
    };
    let members = [(A, "a"), (B, "b"), (C, "c")].map(member).into();
    ClusterRow {
        cluster: ClusterId([1; 16]),
        epoch,
        writer,
        members,
        began: Vec::new(),
        etcd: None,
    }
}

fn place(position: u64) -> Place {
    Place {
        history: History([1; 16]),
        epoch: 1,
        writer: None,
        position,
        digest: Digest([position as u8; 32]),
    }
}

fn status(member: MemberId, position: u64, is_connected: bool) -> Status {
    Status {
        writer: Some(A),
        heard: Some(Reign { epoch: 1, writer: A }),
        is_connected,
        digest: place(position).digest,
        ..Status::follower(member, position)
    }
}

#[test]
fn a_server_without_a_cluster_writes() {
    let mut standing = Standing::new(A, None, None, at(0));
    assert_eq!(standing.may_write(at(0)), Ok(()));
    assert_eq!(standing.promoted(5), Err(NotPromoted::Alone));
}

#[test]
fn a_follower_is_promoted_and_the_old_writer_is_fenced() {
    let mut b = Standing::new(B, Some(row(1, A)), None, at(0));
    let url = Some("ldaps://a:636".to_owned());
    assert_eq!(b.may_write(at(0)), Err(Refusal::NotWriter { writer_url: url }));
    let promoted = b.promoted(5).unwrap();
    assert_eq!((promoted.epoch, promoted.writer), (2, B));
    b.applied(Some(promoted));
    assert_eq!((b.role(), b.may_write(at(0))), (Role::Writer, Ok(())));

    let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
    assert!(a.heard(Reign { epoch: 2, writer: B }));
    assert!(!a.heard(Reign { epoch: 2, writer: B }));
    let url = Some("ldaps://b:636".to_owned());
    assert_eq!(a.may_write(at(100)), Err(Refusal::NotWriter { writer_url: url }));
    let again = Standing::new(A, Some(row(1, A)), a.highest(), at(200));
    assert_eq!(again.role(), Role::Fenced, "it remembers");
    assert_eq!(again.promoted(5).unwrap().epoch, 3);
}

#[test]
fn of_two_that_were_promoted_at_once_all_choose_one() {
    let (b, c) = (Reign { epoch: 2, writer: B }, Reign { epoch: 2, writer: C });
    let mut first = Standing::new(B, Some(row(2, B)), None, at(0));
    let mut second = Standing::new(C, Some(row(2, C)), None, at(0));
    first.heard(c);
    second.heard(b);
    assert_eq!((first.role(), second.role()), (Role::Fenced, Role::Writer));
}

#[test]
fn a_writer_that_starts_asks_the_others_first() {
    let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
    assert_eq!(a.may_write(at(1)), Err(Refusal::Busy));
    assert_eq!(a.to_ask(|_| false).count(), 2);
    a.answered(&status(B, 5, false), &place(5), at(2), at(2));
    assert_eq!(a.may_write(at(2)), Err(Refusal::Busy));
    a.answered(&status(C, 4, false), &place(5), at(3), at(3));
    assert_eq!(a.may_write(at(3)), Ok(()));
    assert_eq!(a.to_ask(|id| id == B).count(), 1);

    let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
    assert_eq!(a.may_write(START_WAIT), Ok(()), "none is there");
}

#[test]
fn a_writer_that_was_restored_or_copied_does_not_write() {
    let stopped = |statuses: &[Status]| {
        let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
        statuses.iter().for_each(|status| a.answered(status, &place(5), at(2), at(2)));
        a.may_write(START_WAIT)
    };
    assert_eq!(stopped(&[status(B, 6, false)]), Err(Refusal::Behind { last: 5 }));
    let other = Status { digest: Digest([99; 32]), ..status(B, 5, false) };
    assert_eq!(stopped(&[other]), Err(Refusal::Forked { position: 5 }));
    assert_eq!(stopped(&[status(B, 5, true)]), Err(Refusal::Twin));
    assert_eq!(
        stopped(&[status(B, 5, true), status(B, 5, false)]),
        Ok(()),
        "it had not noticed yet"
    );
    let newer = Status { heard: Some(Reign { epoch: 2, writer: C }), ..status(B, 5, false) };
    assert!(matches!(stopped(&[newer]), Err(Refusal::NotWriter { .. })));
}

#[test]
fn a_person_can_decide_for_a_writer_that_stopped() {
    let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
    a.stop(Refusal::Forked { position: 5 });
    let row = a.promoted(5).unwrap();
    a.applied(Some(row));
    assert_eq!((a.reign().unwrap().epoch, a.may_write(at(0))), (2, Ok(())));
    assert_eq!(a.promoted(5), Err(NotPromoted::IsWriter));
    a.heard(Reign { epoch: u64::MAX, writer: B });
    assert_eq!(a.promoted(5), Err(NotPromoted::NoEpoch));
}

fn reign(epoch: u64, writer: MemberId) -> Reign {
    Reign { epoch, writer }
}

#[test]
fn a_writer_that_has_promised_takes_no_changes_and_is_followed_still() {
    let mut a = Standing::new(A, Some(row(1, A)), None, START_WAIT);
    for member in [B, C] {
        a.answered(&status(member, 5, false), &place(5), START_WAIT, START_WAIT);
    }
    assert_eq!(a.may_write(START_WAIT), Ok(()));
    let first = a.promise(reign(2, B), START_WAIT).unwrap();
    assert_eq!(a.may_write(START_WAIT), Err(Refusal::Promised { to: B }));
    assert_eq!(a.may_serve(START_WAIT), Ok(()));
    assert_eq!(a.promise(reign(2, C), START_WAIT), Err(Refusal::Promised { to: B }));
    // It asks once more before the end of its first question is known.
    let second = a.promise(reign(2, B), START_WAIT).unwrap();
    a.release(first);
    assert_eq!(a.may_write(START_WAIT), Err(Refusal::Promised { to: B }));
    a.release(second);
    assert_eq!(a.may_write(START_WAIT), Ok(()));
    // One that asks and hangs.
    a.promise(reign(2, B), START_WAIT).unwrap();
    let late = START_WAIT + PROMISE_MAX;
    assert!(a.may_write(late - at(1)).is_err());
    assert_eq!(a.may_write(late), Ok(()));
    a.promise(reign(2, C), late).unwrap();
    a.heard(reign(2, C));
    assert!(matches!(a.may_write(late), Err(Refusal::NotWriter { .. })));
    assert!(matches!(a.promise(reign(2, B), late), Err(Refusal::NotWriter { .. })), "it has begun");
    assert!(a.promise(reign(3, B), late).is_ok());
}

#[test]
fn of_two_that_are_promoted_at_once_one_gives_way() {
    let both = || {
        [B, C].map(|own| {
            let mut standing = Standing::new(own, Some(row(1, A)), None, at(0));
            let id = standing.promise(reign(2, own), at(0)).unwrap();
            (standing, id)
        })
    };
    let [(mut b, of_b), (mut c, of_c)] = both();
    assert_eq!(b.promise(reign(2, C), at(0)), Err(Refusal::Promised { to: B }));
    assert_eq!(b.promise(reign(2, B), at(0)), Err(Refusal::Promised { to: B }), "it asks already");
    assert!(c.promise(reign(2, B), at(0)).is_ok());
    assert!(!c.may_begin(of_c, at(0)));
    assert!(b.may_begin(of_b, at(0)));
    // The other one has begun before it is asked.
    let [(mut b, of_b), (mut c, of_c)] = both();
    assert!(c.may_begin(of_c, at(0)));
    for asked in [B, C] {
        assert_eq!(c.promise(reign(2, asked), at(99)), Err(Refusal::Promised { to: C }));
    }
    b.heard(reign(2, C));
    assert!(!b.may_begin(of_b, at(0)));
    // Too late.
    let [(mut b, of_b), _] = both();
    assert!(!b.may_begin(of_b, PROMISE_MAX));
}

#[test]
fn a_writer_that_stood_still_asks_before_it_acknowledges() {
    let begun = || {
        let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
        for member in [B, C] {
            a.answered(&status(member, 5, false), &place(5), at(0), at(0));
        }
        assert_eq!(a.may_acknowledge(at(1)), Some(Ok(())));
        a
    };
    let mut a = begun();
    a.tick(at(2));
    assert_eq!(a.may_acknowledge(at(3)), Some(Ok(())), "it has run");
    assert_eq!(a.may_acknowledge(at(10)), None);
    assert_eq!(a.may_write(at(10)), Ok(()), "changes wait");
    a.answered(&status(B, 5, true), &place(5), at(3), at(10));
    a.answered(&status(C, 5, true), &place(5), at(10), at(10));
    assert_eq!(a.may_acknowledge(at(10)), None, "one was asked before");
    let promised = Status { promised: Some(reign(2, C)), ..status(B, 5, true) };
    a.answered(&promised, &place(5), at(10), at(10));
    assert_eq!(a.may_acknowledge(at(10)), None, "another one is about to write");
    a.answered(&status(B, 5, true), &place(5), at(10), at(10));
    assert_eq!(a.may_acknowledge(at(10)), Some(Ok(())));
    assert_eq!(a.stills(at(10)), 1);

    let mut a = begun();
    assert_eq!(a.may_acknowledge(at(10)), None);
    let newer = Status { heard: Some(reign(2, C)), ..status(B, 5, false) };
    a.answered(&newer, &place(5), at(10), at(10));
    assert!(matches!(a.may_acknowledge(at(10)), Some(Err(Refusal::NotWriter { .. }))));

    let mut a = begun();
    assert_eq!(a.may_acknowledge(at(10)), None);
    assert_eq!(a.deadline(), Some(at(10) + STILL_WAIT));
    a.tick(at(11));
    a.tick(at(12));
    a.tick(at(13));
    assert_eq!(a.may_acknowledge(at(14)), Some(Ok(())), "none is there");

    let mut b = Standing::new(B, Some(row(1, A)), None, at(0));
    let own = b.promise(reign(2, B), at(0)).unwrap();
    assert!(b.may_acknowledge(at(0)).unwrap().is_err());
    assert!(b.may_begin(own, at(0)));
    assert_eq!(b.may_acknowledge(at(0)), Some(Ok(())), "the first change of its reign");
}
