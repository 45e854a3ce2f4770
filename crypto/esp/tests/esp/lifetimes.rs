//! Limits of use.

use crate::support::{Kind, NOW, Pair, outer, udp4};
use keyway_esp::{Cause, Dispatch, Life, Lifetime, Limit, Mode, Selectors, Suite, Time, Use};

const KIND: Kind = Kind { suite: Suite::Aes128Gcm, mode: Mode::Tunnel, esn: true };

fn pair(lifetime: Lifetime) -> Pair {
    Pair::with(KIND, 1..1_000, 64, Selectors::any(), lifetime, Dispatch::Queued)
}

/// Seals and opens so many packets of 128 bytes, and says what became of each and of the associations.
fn send(pair: &mut Pair, count: usize) -> (Vec<Option<Cause>>, Vec<Option<Cause>>, [Life; 2]) {
    let packets = vec![udp4(&[0; 100]); count];
    assert_eq!(packets[0].len(), 128);
    let sealed = pair.seal(&packets);
    let causes = sealed.iter().map(|it| it.as_ref().err().copied()).collect();
    let sealed: Vec<_> = sealed.into_iter().flatten().collect();
    let opened = pair.open(&sealed, outer(&packets[0]));
    let opened = opened.into_iter().map(|it| it.err()).collect();
    (causes, opened, [pair.out.state(NOW), pair.inside.state(NOW)])
}

#[test]
fn packets_are_counted_exactly() {
    let soft = Limit { packets: Some(3), ..Limit::default() };
    let hard = Limit { packets: Some(5), ..Limit::default() };
    let mut pair = pair(Lifetime { soft, hard });
    assert_eq!(send(&mut pair, 2), (vec![None; 2], vec![None; 2], [Life::Fresh; 2]));
    assert_eq!(send(&mut pair, 2), (vec![None; 2], vec![None; 2], [Life::Soft; 2]));
    let over = Some(Cause::Lifetime);
    assert_eq!(send(&mut pair, 3), (vec![None, over, over], vec![None], [Life::Ended; 2]));
    assert_eq!(send(&mut pair, 2).0, [over, over]);
    let used = Use { packets: 5, bytes: 5 * 128 };
    assert_eq!((pair.out.use_(), pair.inside.use_()), (used, used));
    assert_eq!(pair.out.next_number(), 6);
}

#[test]
fn bytes_are_counted_on_both_sides_alike() {
    let soft = Limit { bytes: Some(200), ..Limit::default() };
    let hard = Limit { bytes: Some(300), ..Limit::default() };
    let mut pair = pair(Lifetime { soft, hard });
    assert_eq!(send(&mut pair, 1).2, [Life::Fresh; 2]);
    assert_eq!(send(&mut pair, 1).2, [Life::Soft; 2]);
    let over = Some(Cause::Lifetime);
    // The third begins below the limit.
    assert_eq!(send(&mut pair, 3), (vec![None, over, over], vec![None], [Life::Ended; 2]));
    assert_eq!((pair.out.use_().bytes, pair.inside.use_().bytes), (384, 384));
    assert_eq!(pair.out.next_number(), 4);
}

/// The receiver holds to its limits whatever the sender does.
#[test]
fn a_receiver_ends_by_itself() {
    let hard = Limit { packets: Some(2), ..Limit::default() };
    let limited = Lifetime { hard, ..Lifetime::default() };
    let (mut sender, mut receiver) = (pair(Lifetime::default()), pair(limited));
    let packets = vec![udp4(&[0; 100]); 4];
    let sealed: Vec<_> = sender.seal(&packets).into_iter().map(Result::unwrap).collect();
    let around = outer(&packets[0]);
    let opened: Vec<_> =
        receiver.open(&sealed[..3], around).into_iter().map(|it| it.map(drop)).collect();
    assert_eq!(opened, [Ok(()), Ok(()), Err(Cause::Lifetime)]);
    assert_eq!(receiver.open(&sealed[3..], around), [Err(Cause::Lifetime)]);
}

#[test]
fn seconds_pass_from_the_beginning() {
    let soft = Limit { seconds: Some(10), ..Limit::default() };
    let hard = Limit { seconds: Some(20), ..Limit::default() };
    let pair = pair(Lifetime { soft, hard });
    let after = |seconds: u64| Time(NOW.0 + seconds * 1_000_000_000);
    for (seconds, life) in
        [(0, Life::Fresh), (9, Life::Fresh), (10, Life::Soft), (19, Life::Soft), (20, Life::Ended)]
    {
        assert_eq!(pair.out.state(after(seconds)), life);
        assert_eq!(pair.inside.state(after(seconds)), life);
    }
    // A clock of before the beginning is none that has passed.
    assert_eq!(pair.out.state(Time(0)), Life::Fresh);
    let (mut sealer, out) = (pair.sealer, pair.out);
    let packet = udp4(&[]);
    let packet = keyway_esp::InnerPacket::parse(&packet).unwrap();
    sealer.push(&out, &packet, 0).unwrap();
    let mut causes = Vec::new();
    sealer.seal(after(20), |_, result| causes.push(result.map(drop)));
    assert_eq!(causes, [Err(Cause::Lifetime)]);
    assert_eq!(out.next_number(), 1);
}

/// A batch that gets too few numbers counts those that got one.
#[test]
fn what_has_no_number_is_not_counted() {
    let hard = Limit { packets: Some(100), bytes: Some(1 << 20), ..Limit::default() };
    let lifetime = Lifetime { hard, ..Lifetime::default() };
    let mut pair = Pair::with(KIND, 1..4, 64, Selectors::any(), lifetime, Dispatch::Direct);
    let none = Some(Cause::NumbersUsedUp);
    assert_eq!(send(&mut pair, 5).0, [None, None, None, none, none]);
    assert_eq!(pair.out.use_(), Use { packets: 3, bytes: 3 * 128 });
}
