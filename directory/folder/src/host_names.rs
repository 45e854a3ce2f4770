//! The names and addresses of this host, which a server's certificate has to contain.

use crate::limits::CERTIFICATE_NAMES_MAX;
use keyway_codec::certificate::Name;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The names a server's certificate is made for.
pub struct Names {
    /// Those that were configured: without them there is no server.
    pub asked: Vec<Name>,
    /// Those that it has besides, where it can.
    pub usual: Vec<Name>,
}

impl Names {
    /// The names that were asked for, and the others that a server which listens there may be
    /// called by: this machine's names and its addresses.
    pub fn new(asked: &[Name], listen: &[SocketAddr]) -> Names {
        let mut usual = vec![
            Name::Dns("localhost".to_owned()),
            Name::Ip(Ipv4Addr::LOCALHOST.into()),
            Name::Ip(Ipv6Addr::LOCALHOST.into()),
        ];
        let more = host_names().into_iter().map(Name::Dns);
        for name in more.chain(addresses(listen).into_iter().map(Name::Ip)) {
            if !usual.contains(&name) {
                usual.push(name);
            }
        }
        usual.retain(|name| !asked.contains(name));
        usual.truncate(CERTIFICATE_NAMES_MAX.saturating_sub(asked.len()));
        Names { asked: asked.to_vec(), usual }
    }

    /// All of them; those that were asked for first.
    pub fn all(&self) -> impl Iterator<Item = &Name> {
        self.asked.iter().chain(&self.usual)
    }
}

/// The names of this host, the longest first.
pub fn host_names() -> Vec<String> {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy().to_ascii_lowercase();
    if !is_host_name(&host) {
        return Vec::new();
    }
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let full = full_name(&hosts, &host).filter(|full| is_host_name(full));
    full.into_iter().chain([host]).collect()
}

/// The full name of a host by the text of `/etc/hosts`, as `hostname --fqdn` finds it. A name
/// server is not asked: its answer is not authenticated.
fn full_name(hosts: &str, host: &str) -> Option<String> {
    hosts.lines().find_map(|line| {
        let line = line.split('#').next().unwrap_or_default().to_ascii_lowercase();
        let mut words = line.split_whitespace().skip(1);
        let canonical = words.next()?.to_owned();
        let is_host = canonical == host || words.any(|word| word == host);
        (is_host && canonical != host && canonical.contains('.')).then_some(canonical)
    })
}

/// The addresses where others reach who listens there: all of this machine's, if that is
/// everywhere. Loopback and link-local ones are left out.
pub fn addresses(listen: &[SocketAddr]) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for ip in listen.iter().map(SocketAddr::ip) {
        match ip {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => {
                found.extend(interfaces().into_iter().filter(IpAddr::is_ipv4));
            }
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => found.extend(interfaces()),
            ip if ip.is_loopback() => {}
            ip => found.push(ip.to_canonical()),
        }
    }
    let mut once = Vec::new();
    for ip in found {
        if !once.contains(&ip) {
            once.push(ip);
        }
    }
    once
}

/// The addresses of this machine's interfaces that are up; none, if the system does not say.
fn interfaces() -> Vec<IpAddr> {
    let Ok(all) = getifaddrs() else { return Vec::new() };
    all.filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = || address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let v6 = || address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip()));
            v4().or_else(v6)
        })
        .filter(|ip| !ip.is_loopback() && !is_link_local(ip))
        .collect()
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// A host's name or address, as a flag or the configuration gives it.
///
/// # Errors
/// A sentence that says what it should look like.
pub fn name(text: &str) -> Result<Name, String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(Name::Ip(address));
    }
    let host = text.to_ascii_lowercase();
    if is_host_name(&host) {
        return Ok(Name::Dns(host));
    }
    Err(format!("\"{text}\" is neither a host's name, like ldap.example.com, nor an address"))
}

/// RFC 1123 § 2.1, with the underscore that some systems use.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        (1..=63).contains(&label.len()) && label.chars().all(inner) && !label.starts_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses() {
        for good in ["a", "host-1.example.com", "my_box"] {
            assert_eq!(name(good), Ok(Name::Dns(good.to_owned())));
        }
        assert_eq!(name("LDAP.Example.com"), Ok(Name::Dns("ldap.example.com".to_owned())));
        assert_eq!(name("2001:db8::1"), Ok(Name::Ip("2001:db8::1".parse().unwrap())));
        for bad in ["", "a b", "-a", "a..b", "ä", "(none)", "*.example.com"] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_full_name_is_the_first_of_its_line() {
        let hosts = "127.0.0.1 localhost\n# 1.2.3.4 no.example.org box\n\
            127.0.1.1\tBox.Example.com box # here\n192.0.2.1 other.example.com\n";
        assert_eq!(full_name(hosts, "box"), Some("box.example.com".to_owned()));
        assert_eq!(full_name(hosts, "localhost"), None);
        assert_eq!(full_name(hosts, "absent"), None);
    }

    #[test]
    fn who_listens_everywhere_has_the_addresses_of_the_interfaces() {
        let named = addresses(&["192.0.2.7:389".parse().unwrap(), "127.0.0.1:1".parse().unwrap()]);
        assert_eq!(named, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        let (v4, all) = (addresses(&["0.0.0.0:1".parse().unwrap()]), interfaces());
        assert!(v4.iter().all(IpAddr::is_ipv4));
        assert_eq!(addresses(&["[::]:1".parse().unwrap(), "0.0.0.0:1".parse().unwrap()]), all);
    }

    #[test]
    fn what_is_asked_for_comes_first_and_once() {
        let asked = [Name::Dns("ldap.example.com".to_owned()), Name::Dns("localhost".to_owned())];
        let names = Names::new(&asked, &["192.0.2.7:389".parse().unwrap()]);
        let all: Vec<_> = names.all().cloned().collect();
        assert_eq!(all[..2], asked);
        assert_eq!(all.iter().filter(|name| **name == asked[1]).count(), 1);
        assert!(all.contains(&Name::Ip("192.0.2.7".parse().unwrap())));
    }
}
