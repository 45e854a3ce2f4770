//! Networks that clients come from.

use std::fmt;
use std::net::IpAddr;

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// `192.0.2.0/24`, `2001:db8::/32`, or a single address.
    ///
    /// # Errors
    /// A sentence that says what it should look like.
    pub fn parse(text: &str) -> Result<Network, String> {
        let wrong = || {
            format!(
                "\"{text}\" is no address or network, such as 192.0.2.7, 192.0.2.0/24 or \
                 2001:db8::/32"
            )
        };
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
            None => most,
        };
        let network = Network { address, bits };
        if number(address) & !network.mask() != 0 {
            return Err(format!("\"{text}\" has bits set behind the first {bits}"));
        }
        Ok(network)
    }

    /// Whether an address is in it. One of IPv4 that came through IPv6 is what it is.
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4()
            && number(address) & self.mask() == number(self.address)
    }

    /// Whether all of another network is in it.
    pub fn covers(&self, other: &Network) -> bool {
        self.bits <= other.bits && self.holds(other.address)
    }

    fn mask(&self) -> u128 {
        let width: u8 = if self.address.is_ipv4() { 32 } else { 128 };
        let all = u128::MAX >> (128 - width);
        let host = width.saturating_sub(self.bits);
        if host == 128 { 0 } else { all >> host << host }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.address.is_ipv4() { 32 } else { 128 };
        match self.bits == whole {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_what_begins_alike() {
        let holds = |network: &str, address: &str| {
            Network::parse(network).unwrap().holds(address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.255.0.1") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("10.1.2.3", "10.1.2.3") && !holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3") && !holds("0.0.0.0/0", "::1"));
        assert!(holds("::/0", "2001:db8::1") && holds("2001:db8::/32", "2001:db8:ff::"));
        assert!(!holds("::/0", "10.1.2.3"));
        for bad in ["", "10", "10.0.0.0/33", "10.0.0.1/8", "::/129", "a/8", "10.0.0.0/"] {
            assert!(Network::parse(bad).is_err(), "{bad}");
        }
        let covers =
            |a: &str, b: &str| Network::parse(a).unwrap().covers(&Network::parse(b).unwrap());
        assert!(covers("10.0.0.0/8", "10.1.0.0/16") && !covers("10.1.0.0/16", "10.0.0.0/8"));
        assert_eq!(Network::parse("10.0.0.0/8").unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(Network::parse("::1").unwrap().to_string(), "::1");
    }
}
