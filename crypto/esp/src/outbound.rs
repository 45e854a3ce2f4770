//! Policies for packets that go out: which security association a packet is for.

use crate::inner_packet::InnerPacket;
use crate::selector::{Selector, first_bits};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::net::IpAddr;

/// The policies for packets that go out, at one moment. A packet is for the first policy that it fits, those with the
/// longest prefixes first (by the remote one, then by the local one), and among those of equal prefixes by the order in
/// which they were given.
///
/// It takes one look-up for each pair of lengths that prefixes have, not one for each policy.
#[derive(Debug)]
pub struct Outbound<T> {
    policies: Vec<(Selector, T)>,
    /// By the lengths of both prefixes, the longest first.
    lengths: Vec<Lengths>,
}

/// The policies whose prefixes have these lengths.
#[derive(Debug)]
struct Lengths {
    remote: u8,
    local: u8,
    /// Policies by their remote and local prefix, as indexes.
    by_prefixes: FxHashMap<(IpAddr, IpAddr), Vec<u32>>,
}

impl<T> Default for Outbound<T> {
    /// No policies.
    fn default() -> Self {
        Outbound { policies: Vec::new(), lengths: Vec::new() }
    }
}

impl<T> Outbound<T> {
    /// These policies, each with its target.
    pub fn new(policies: impl IntoIterator<Item = (Selector, T)>) -> Self {
        let mut all = Outbound::default();
        for (selector, target) in policies {
            let (remote, local) = (selector.remote, selector.local);
            let known = |it: &Lengths| it.remote == remote.bits() && it.local == local.bits();
            let at = all.lengths.iter().position(known).unwrap_or_else(|| {
                let by_prefixes = FxHashMap::default();
                all.lengths.push(Lengths {
                    remote: remote.bits(),
                    local: local.bits(),
                    by_prefixes,
                });
                all.lengths.len() - 1
            });
            let prefixes = (remote.address(), local.address());
            let number = all.policies.len() as u32;
            all.lengths[at].by_prefixes.entry(prefixes).or_default().push(number);
            all.policies.push((selector, target));
        }
        all.lengths.sort_by_key(|lengths| Reverse((lengths.remote, lengths.local)));
        all
    }

    /// The target of the policy for this packet.
    pub fn find(&self, packet: &InnerPacket<'_>) -> Option<&T> {
        for lengths in &self.lengths {
            let remote = first_bits(packet.destination(), lengths.remote);
            let local = first_bits(packet.source(), lengths.local);
            for number in lengths.by_prefixes.get(&(remote, local)).into_iter().flatten() {
                let (selector, target) = self.policies.get(*number as usize)?;
                if selector.fits_outbound_upper(packet) {
                    return Some(target);
                }
            }
        }
        None
    }

    /// All policies, in the order in which they were given.
    pub fn policies(&self) -> &[(Selector, T)] {
        &self.policies
    }
}
