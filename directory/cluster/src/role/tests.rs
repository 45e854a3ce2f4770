//! A writer that is replaced, one that starts, one that was restored or copied.

use super::*;
use crate::message::{ClusterId, Digest, History};

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
    Place { history: History([1; 16]), epoch: 1, position, digest: Digest([position as u8; 32]) }
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
    a.answered(&status(B, 5, false), &place(5), at(2));
    assert_eq!(a.may_write(at(2)), Err(Refusal::Busy));
    a.answered(&status(C, 4, false), &place(5), at(3));
    assert_eq!(a.may_write(at(3)), Ok(()));
    assert_eq!(a.to_ask(|id| id == B).count(), 1);

    let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
    assert_eq!(a.may_write(START_WAIT), Ok(()), "none is there");
}

#[test]
fn a_writer_that_was_restored_or_copied_does_not_write() {
    let stopped = |statuses: &[Status]| {
        let mut a = Standing::new(A, Some(row(1, A)), None, at(0));
        statuses.iter().for_each(|status| a.answered(status, &place(5), at(2)));
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
