//! Traffic selectors of IKE (RFC 7296 § 3.13.1) have ranges of addresses; those of ESP have prefixes.

use crate::limits::SELECTORS_MAX;
use keyway_esp::{Prefix, Selector};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Packets from any of the sources to any of the destinations. Ranges are as they were written: none is checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The upper protocol; `None` for any.
    pub protocol: Option<u8>,
    /// The first and the last address of the sources, of one family.
    pub sources: (IpAddr, IpAddr),
    /// Those of the destinations, of the same family.
    pub destinations: (IpAddr, IpAddr),
    /// The ports of the sources.
    pub source_ports: RangeInclusive<u16>,
    /// Those of the destinations.
    pub destination_ports: RangeInclusive<u16>,
}

/// Why traffic cannot be put as selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSelectors {
    /// A range ends before it begins. Ranges of ports that do mean "opaque", which no packet shows.
    Backwards,
    /// The ranges of addresses are so many prefixes that it is more than [`SELECTORS_MAX`].
    TooMany,
}

impl Traffic {
    /// The selectors that fit these packets and no others: of packets that go out, if the sources are on this side.
    ///
    /// # Errors
    /// See [`NoSelectors`].
    pub fn selectors(&self, is_inbound: bool) -> Result<Vec<Selector>, NoSelectors> {
        let (local, remote) = match is_inbound {
            true => (self.destinations, self.sources),
            false => (self.sources, self.destinations),
        };
        let (local_ports, remote_ports) = match is_inbound {
            true => (&self.destination_ports, &self.source_ports),
            false => (&self.source_ports, &self.destination_ports),
        };
        if local_ports.is_empty() || remote_ports.is_empty() {
            return Err(NoSelectors::Backwards);
        }
        let (locals, remotes) = (prefixes(local)?, prefixes(remote)?);
        if locals.len() * remotes.len() > SELECTORS_MAX {
            return Err(NoSelectors::TooMany);
        }
        let mut all = Vec::with_capacity(locals.len() * remotes.len());
        for local in &locals {
            all.extend(remotes.iter().map(|remote| Selector {
                local: *local,
                remote: *remote,
                protocol: self.protocol,
                local_ports: local_ports.clone(),
                remote_ports: remote_ports.clone(),
            }));
        }
        Ok(all)
    }
}

/// The fewest prefixes that have these addresses and no others.
fn prefixes((first, last): (IpAddr, IpAddr)) -> Result<Vec<Prefix>, NoSelectors> {
    let width = if first.is_ipv4() { 32 } else { 128 };
    let (mut next, last) = (number(first), number(last));
    if next > last {
        return Err(NoSelectors::Backwards);
    }
    let mut all = Vec::new();
    loop {
        // The largest block that begins here and does not go beyond the last.
        let mut free = next.trailing_zeros().min(width);
        while next | ones(free) > last {
            free -= 1;
        }
        let bits = u8::try_from(width - free).unwrap_or(u8::MAX);
        // No bit behind the prefix is set.
        all.extend(Prefix::new(address(next, width), bits));
        match (next | ones(free)).checked_add(1) {
            Some(behind) if behind <= last => next = behind,
            _ => return Ok(all),
        }
    }
}

/// A number with so many ones at its end.
fn ones(count: u32) -> u128 {
    1_u128.checked_shl(count).map_or(u128::MAX, |it| it - 1)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(it) => u128::from(it.to_bits()),
        IpAddr::V6(it) => it.to_bits(),
    }
}

fn address(number: u128, width: u32) -> IpAddr {
    match width {
        32 => Ipv4Addr::from_bits(number as u32).into(),
        _ => Ipv6Addr::from_bits(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(first: &str, last: &str) -> Vec<String> {
        let of = |text: &str| text.parse().unwrap();
        prefixes((of(first), of(last))).unwrap().iter().map(Prefix::to_string).collect()
    }

    #[test]
    fn a_range_is_prefixes() {
        assert_eq!(shown("10.1.0.0", "10.1.0.255"), ["10.1.0.0/24"]);
        assert_eq!(shown("10.1.0.1", "10.1.0.1"), ["10.1.0.1/32"]);
        assert_eq!(shown("0.0.0.0", "255.255.255.255"), ["0.0.0.0/0"]);
        assert_eq!(shown("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), ["::/0"]);
        assert_eq!(shown("10.0.0.1", "10.0.0.4"), ["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/32"]);
        assert_eq!(shown("255.255.255.254", "255.255.255.255"), ["255.255.255.254/31"]);
        assert_eq!(shown("2001:db8::", "2001:db8::1:ffff"), ["2001:db8::/111"]);
        let backwards = prefixes(("10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap()));
        assert_eq!(backwards, Err(NoSelectors::Backwards));
    }

    proptest! {
        #[test]
        fn the_prefixes_are_the_range(
            base in prop_oneof![any::<u32>(), Just(0), Just(u32::MAX - 4000)],
            more in 0_u32..4000,
        ) {
            let last = base.saturating_add(more);
            let of = |it| IpAddr::V4(Ipv4Addr::from_bits(it));
            let all = prefixes((of(base), of(last))).unwrap();
            for near in base.saturating_sub(70)..=last.saturating_add(70) {
                let within = all.iter().filter(|it| it.contains(of(near))).count();
                prop_assert_eq!(within, usize::from((base..=last).contains(&near)));
            }
        }
    }

    #[test]
    fn local_and_remote_depend_on_the_direction() {
        let of = |text: &str| -> IpAddr { text.parse().unwrap() };
        let traffic = Traffic {
            protocol: Some(17),
            sources: (of("10.1.0.0"), of("10.1.0.255")),
            destinations: (of("10.2.0.0"), of("10.2.1.255")),
            source_ports: 53..=53,
            destination_ports: 0..=u16::MAX,
        };
        let out = traffic.selectors(false).unwrap();
        let inward = traffic.selectors(true).unwrap();
        assert_eq!((out.len(), inward.len()), (1, 1));
        assert_eq!(
            (out[0].local.to_string(), out[0].remote.to_string()),
            ("10.1.0.0/24".into(), "10.2.0.0/23".into())
        );
        assert_eq!((inward[0].local, inward[0].remote), (out[0].remote, out[0].local));
        assert_eq!((&out[0].local_ports, &inward[0].remote_ports), (&(53..=53), &(53..=53)));
        #[expect(clippy::reversed_empty_ranges)]
        let opaque = Traffic { source_ports: u16::MAX..=0, ..traffic.clone() };
        assert_eq!(opaque.selectors(false), Err(NoSelectors::Backwards));
        let ragged = (of("::1"), of("ffff::fffe"));
        let ragged = Traffic { sources: ragged, destinations: ragged, ..traffic };
        assert_eq!(ragged.selectors(false), Err(NoSelectors::TooMany));
    }
}
