//! The writer's side of following: whether a member may follow from where it stands, how far the members are, and which
//! rows they need no more.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::follower::SILENCE;
use crate::message::{Digest, MemberId, Place, Refusal};

/// How a member is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Following {
    /// The writer's epoch.
    pub epoch: u64,
    /// The writer's last position.
    pub head: u64,
    /// Rows behind this position are to be sent.
    pub after: u64,
}

/// Whether the member that stands at `asked` may follow `own`.
///
/// `serving` is [`Standing::may_serve`](crate::role::Standing::may_serve). `first_kept` is the position of the first row
/// that is kept; one more than the last position if none is. `digest_at` gives the digest of the row at a position: its
/// own, or what the row behind it names as the one before.
///
/// The caller tells its [`Standing`](crate::role::Standing) of a [`Refusal::Behind`] or [`Refusal::Forked`]
/// ([`Standing::stop`](crate::role::Standing::stop)), and of the reign in the request first.
///
/// # Errors
/// Why it may not.
pub fn answer_follow(
    own: &Place,
    serving: Result<(), Refusal>,
    first_kept: u64,
    digest_at: impl FnOnce(u64) -> Option<Digest>,
    asked: &Place,
) -> Result<Following, Refusal> {
    if asked.history != own.history {
        return Err(Refusal::OtherHistory);
    }
    // Two may have been promoted in one epoch. One that does not say whose it is in means the one that it asks.
    let reign = |place: &Place| (place.epoch, place.writer.or(own.writer));
    if reign(asked) > reign(own) {
        return Err(Refusal::OlderEpoch { epoch: own.epoch });
    }
    serving?;
    // In the writer's own reign a member can only have what the writer has made.
    let is_own = reign(asked) == reign(own);
    if asked.position > own.position {
        let last = own.position;
        return Err(if is_own { Refusal::Behind { last } } else { Refusal::Ahead { last } });
    }
    let digest = match asked.position == own.position {
        true => Some(own.digest),
        false if first_kept > asked.position.saturating_add(1) => None,
        false => digest_at(asked.position),
    };
    match digest {
        None => Err(Refusal::Trimmed { first: first_kept }),
        Some(digest) if digest == asked.digest => {
            Ok(Following { epoch: own.epoch, head: own.position, after: asked.position })
        }
        Some(_) if is_own => Err(Refusal::Forked { position: asked.position }),
        Some(_) => Err(Refusal::Diverged { position: asked.position }),
    }
}

/// How far each member is.
#[derive(Clone, Default, Debug)]
pub struct Progress {
    members: BTreeMap<MemberId, Known>,
}

/// How far a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// What it has acknowledged; `None` before it has said anything to this process.
    pub position: Option<u64>,
    /// When it was heard last, or came into the cluster row.
    pub heard: Duration,
}

impl Progress {
    /// The members of the cluster row without this one: those that are new count as heard now.
    pub fn members(&mut self, members: impl IntoIterator<Item = MemberId>, now: Duration) {
        let before = std::mem::take(&mut self.members);
        let known = |id| before.get(&id).copied().unwrap_or(Known { position: None, heard: now });
        self.members = members.into_iter().map(|id| (id, known(id))).collect();
    }

    /// A member has all rows up to this position on its disk. What is no member is not counted.
    pub fn acknowledged(&mut self, member: MemberId, position: u64, now: Duration) {
        if let Some(known) = self.members.get_mut(&member) {
            *known = Known { position: Some(position), heard: now };
        }
    }

    /// All members, in the order of their identifiers.
    pub fn all(&self) -> impl Iterator<Item = (MemberId, Known)> {
        self.members.iter().map(|(id, known)| (*id, *known))
    }

    /// Whether a member was heard within the time after which silence means that it is gone. A member acknowledges each
    /// group of rows and each heartbeat. The connection of one that is silent is to be closed, and the member asked for its
    /// status: it may have been promoted, and its end may never come.
    pub fn is_near(&self, member: MemberId, now: Duration) -> bool {
        let heard = self.members.get(&member).filter(|known| known.position.is_some());
        heard.is_some_and(|known| now.saturating_sub(known.heard) < SILENCE)
    }

    /// Up to which position rows may be removed of those up to `wanted`, with regard to each member that was heard within
    /// `limit`; `None` for no row. A member that was silent for longer takes a base when it is back.
    pub fn trim_until(&self, now: Duration, limit: Duration, wanted: u64) -> Option<u64> {
        let is_young = |known: &&Known| now.saturating_sub(known.heard) < limit;
        let young = self.members.values().filter(is_young);
        let least = young.map(|known| known.position.unwrap_or(0)).min();
        Some(least.map_or(wanted, |least| least.min(wanted))).filter(|until| *until > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::History;

    fn place(epoch: u64, position: u64, digest: u8) -> Place {
        let writer = Some(MemberId(2));
        Place { history: History([1; 16]), epoch, writer, position, digest: Digest([digest; 32]) }
    }

    /// A writer in epoch 3 with rows 5 to 10; the digest of a row is its number.
    fn ask(asked: Place) -> Result<Following, Refusal> {
        let digest_at =
            |position: u64| (4..=10).contains(&position).then_some(Digest([position as u8; 32]));
        answer_follow(&place(3, 10, 10), Ok(()), 5, digest_at, &asked)
    }

    #[test]
    fn a_member_follows_from_a_place_of_the_writers_own_past() {
        let following = |after| Ok(Following { epoch: 3, head: 10, after });
        assert_eq!(ask(place(3, 10, 10)), following(10));
        assert_eq!(ask(place(1, 7, 7)), following(7));
        assert_eq!(ask(place(1, 4, 4)), following(4), "the row behind it names it");
    }

    #[test]
    fn every_other_place_is_refused_for_its_reason() {
        assert_eq!(ask(place(1, 3, 3)), Err(Refusal::Trimmed { first: 5 }));
        assert_eq!(ask(place(2, 11, 11)), Err(Refusal::Ahead { last: 10 }));
        assert_eq!(ask(place(3, 11, 11)), Err(Refusal::Behind { last: 10 }));
        assert_eq!(ask(place(2, 7, 8)), Err(Refusal::Diverged { position: 7 }));
        assert_eq!(ask(place(3, 10, 8)), Err(Refusal::Forked { position: 10 }));
        assert_eq!(ask(place(4, 7, 7)), Err(Refusal::OlderEpoch { epoch: 3 }));
        let restored = Place { history: History([2; 16]), ..place(3, 7, 7) };
        assert_eq!(ask(restored), Err(Refusal::OtherHistory));
        let busy =
            answer_follow(&place(3, 10, 10), Err(Refusal::Busy), 5, |_| None, &place(3, 7, 7));
        assert_eq!(busy, Err(Refusal::Busy));
        assert_eq!(ask(place(u64::MAX, u64::MAX, 0)), Err(Refusal::OlderEpoch { epoch: 3 }));
        assert_eq!(ask(place(0, u64::MAX, 0)), Err(Refusal::Ahead { last: 10 }));
    }

    #[test]
    fn what_another_writer_of_the_epoch_has_made_is_not_the_writers_own() {
        let of = |writer, position, digest| Place {
            writer: Some(MemberId(writer)),
            ..place(3, position, digest)
        };
        assert_eq!(ask(of(1, 11, 11)), Err(Refusal::Ahead { last: 10 }));
        assert_eq!(ask(of(1, 7, 8)), Err(Refusal::Diverged { position: 7 }));
        assert_eq!(
            ask(of(3, 7, 8)),
            Err(Refusal::OlderEpoch { epoch: 3 }),
            "the greater one counts"
        );
        let older = Place { writer: None, ..place(3, 7, 8) };
        assert_eq!(ask(older), Err(Refusal::Forked { position: 7 }));
    }

    #[test]
    fn rows_stay_until_each_member_younger_than_the_limit_has_them() {
        let at = Duration::from_secs;
        let limit = at(100);
        let mut progress = Progress::default();
        assert_eq!(progress.trim_until(at(0), limit, 50), Some(50), "no other member");
        progress.members([MemberId(1), MemberId(2)], at(0));
        assert_eq!(progress.trim_until(at(99), limit, 50), None, "both may still come");
        progress.acknowledged(MemberId(1), 40, at(99));
        progress.acknowledged(MemberId(9), 1, at(99));
        assert_eq!(progress.trim_until(at(99), limit, 50), None);
        assert_eq!(progress.trim_until(at(100), limit, 50), Some(40), "the second is too old");
        assert_eq!(progress.trim_until(at(100), limit, 30), Some(30));
        assert!(progress.is_near(MemberId(1), at(99) + SILENCE / 2));
        assert!(
            !progress.is_near(MemberId(1), at(99) + SILENCE)
                && !progress.is_near(MemberId(2), at(1))
        );
        progress.members([MemberId(1), MemberId(3)], at(100));
        assert_eq!(progress.trim_until(at(100), limit, 50), None, "the third has just come");
        assert_eq!(progress.trim_until(at(300), limit, 50), Some(50));
    }
}
