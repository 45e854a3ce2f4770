//! Connections that have not said who they are, by where they come from, and which of them is
//! the first to make room when all places are taken: of the source that has the most, the one that
//! has asked for nothing for longest.
//!
//! A connection that has asked for something since it was last looked at goes to the end of its
//! source's line instead ("second chance"), and one whose user is known by now is forgotten. So a
//! request costs nothing here, and looking for the first costs little however many there are.

use crate::limits::SECOND_CHANCES_MAX;
use crate::peer::Peer;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A source counts as one client: an address, for IPv6 its /64, or a user of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    V4(u32),
    V6(u64),
    User(u32),
}

impl Source {
    pub fn of(peer: &Peer) -> Source {
        match peer {
            Peer::Unix(credentials) => Source::User(credentials.uid),
            Peer::Tcp(_) | Peer::Proxied { .. } => match peer.ip().to_canonical() {
                IpAddr::V4(address) => Source::V4(address.to_bits()),
                IpAddr::V6(address) => {
                    Source::V6(u64::try_from(address.to_bits() >> 64).unwrap_or_default())
                }
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::V4(bits) => Ipv4Addr::from_bits(*bits).fmt(f),
            Source::V6(bits) => write!(f, "{}/64", Ipv6Addr::from_bits(u128::from(*bits) << 64)),
            Source::User(uid) => write!(f, "the user of this machine with the number {uid}"),
        }
    }
}

/// Where a connection stands in line: its source, and its place, which grows with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub source: Source,
    place: u64,
}

/// The change to a connection since it was put in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// It is known who it is.
    Known,
    /// It has asked for something.
    Active,
    Silent,
}

/// The lines of all sources.
#[derive(Default)]
pub(crate) struct Strangers {
    /// Connections of each source, the one that was put there first in front.
    lines: HashMap<Source, BTreeSet<(u64, u64)>>,
    /// Sources: the last has the most connections; of those that have as many, the oldest.
    ranks: BTreeSet<(usize, Reverse<u64>, Source)>,
    last: u64,
}

impl Strangers {
    /// Puts a connection at the end of its source's line.
    pub fn enter(&mut self, source: Source, id: u64) -> Listed {
        self.last += 1;
        let place = self.last;
        self.change(source, |line| line.insert((place, id)));
        Listed { source, place }
    }

    /// Takes a connection out.
    pub fn leave(&mut self, listed: Listed, id: u64) {
        self.change(listed.source, |line| line.remove(&(listed.place, id)));
    }

    /// Takes out the connection that is to make room; `since` says what has become of one, and hears
    /// where it is listed now, if it is.
    pub fn first(&mut self, mut since: impl FnMut(u64, Option<Listed>) -> Since) -> Option<u64> {
        let mut chances = SECOND_CHANCES_MAX;
        loop {
            let (_, _, source) = *self.ranks.last()?;
            let (place, id) = *self.lines.get(&source)?.first()?;
            self.leave(Listed { source, place }, id);
            match since(id, None) {
                Since::Known => {}
                Since::Active if chances > 0 => {
                    chances -= 1;
                    let listed = self.enter(source, id);
                    since(id, Some(listed));
                }
                Since::Active | Since::Silent => return Some(id),
            }
        }
    }

    /// How many there are of a source.
    pub fn count(&self, source: Source) -> usize {
        self.lines.get(&source).map_or(0, BTreeSet::len)
    }

    fn change(&mut self, source: Source, change: impl FnOnce(&mut BTreeSet<(u64, u64)>) -> bool) {
        let line = self.lines.entry(source).or_default();
        if let Some((place, _)) = line.first() {
            self.ranks.remove(&(line.len(), Reverse(*place), source));
        }
        change(line);
        match line.first() {
            Some((place, _)) => {
                self.ranks.insert((line.len(), Reverse(*place), source));
            }
            None => {
                self.lines.remove(&source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> Source {
        Source::V4(number)
    }

    #[test]
    fn an_ipv6_network_is_one_source_and_a_mapped_address_is_ipv4() {
        let of = |text: &str| Source::of(&Peer::Tcp(text.parse().unwrap()));
        assert_eq!(of("[2001:db8:1:2::1]:1"), of("[2001:db8:1:2:ffff::9]:2"));
        assert_ne!(of("[2001:db8:1:2::1]:1"), of("[2001:db8:1:3::1]:1"));
        assert_eq!(of("[::ffff:10.0.0.1]:1"), of("10.0.0.1:2"));
    }

    #[test]
    fn the_oldest_of_the_source_with_the_most_is_first() {
        let mut strangers = Strangers::default();
        strangers.enter(v4(1), 1);
        let left = strangers.enter(v4(2), 2);
        for id in 3..6 {
            strangers.enter(v4(2), id);
        }
        strangers.leave(left, 2);
        let mut firsts = Vec::new();
        while let Some(id) = strangers.first(|_, _| Since::Silent) {
            firsts.push(id);
        }
        // When both have one, the older one goes.
        assert_eq!(firsts, [3, 4, 1, 5]);
        assert!(strangers.lines.is_empty() && strangers.ranks.is_empty());
    }

    #[test]
    fn known_ones_are_passed_over_and_active_ones_wait_behind_the_silent() {
        let mut strangers = Strangers::default();
        for id in 1..=4 {
            strangers.enter(v4(1), id);
        }
        strangers.enter(v4(2), 5);
        let mut listed = Vec::new();
        let since = |id, again: Option<Listed>| {
            listed.extend(again.map(|_| id));
            match id {
                1 => Since::Known,
                2 | 3 if again.is_none() => Since::Active,
                _ => Since::Silent,
            }
        };
        assert_eq!(strangers.first(since), Some(4));
        assert_eq!(listed, [2, 3]);
        assert_eq!((strangers.count(v4(1)), strangers.count(v4(2))), (2, 1));
    }

    #[test]
    fn who_is_always_active_has_no_endless_chances() {
        let mut strangers = Strangers::default();
        for id in 0..3 {
            strangers.enter(v4(1), id);
        }
        assert!(strangers.first(|_, _| Since::Active).is_some());
    }
}
