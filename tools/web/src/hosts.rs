//! The names that browsers call the page by.

use keyway_host::listeners;
use std::net::{IpAddr, SocketAddr};

/// The hosts, with ports, that the page at an address may be called by; the one that is printed comes first.
#[must_use]
pub fn hosts(address: SocketAddr, mut names: Vec<String>) -> Vec<String> {
    let home = listeners::at_home(address).ip();
    let shown = |ip: IpAddr| if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
    let is_local = home.is_loopback();
    if !address.ip().is_unspecified() {
        names.insert(0, shown(home));
    }
    if is_local {
        names.extend([shown(home), "localhost".to_owned()]);
    }
    let port = address.port();
    let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
    // The port that a browser does not say.
    if port == 443 {
        hosts.extend(names);
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_what_browsers_say() {
        let of = |address: &str, names: &[&str]| {
            hosts(address.parse().unwrap(), names.iter().map(|name| (*name).to_owned()).collect())
        };
        assert_eq!(of("127.0.0.1:8389", &[])[..2], ["127.0.0.1:8389", "127.0.0.1:8389"]);
        assert!(of("127.0.0.1:8389", &[]).contains(&"localhost:8389".to_owned()));
        assert_eq!(of("[::1]:1", &[])[0], "[::1]:1");
        assert_eq!(of("10.0.0.5:1", &["a.example"]), ["10.0.0.5:1", "a.example:1"]);
        assert_eq!(of("0.0.0.0:443", &["a.example"])[0], "a.example:443");
        assert!(of("0.0.0.0:443", &["a.example"]).contains(&"a.example".to_owned()));
    }
}
