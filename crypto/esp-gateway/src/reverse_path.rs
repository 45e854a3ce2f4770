//! A look at the system's filter of reverse paths: without it clear text that claims to come out of a tunnel gets in
//! from outside, beside the gateway, which cannot see it.

use crate::config::Tunnel;
use std::fs;
use std::path::Path;

/// What the system says of each interface's IPv4.
pub const OF_THE_SYSTEM: &str = "/proc/sys/net/ipv4/conf";

/// Warnings, each with the command that helps. `conf` is [`OF_THE_SYSTEM`], or one like it.
pub fn warnings(conf: &Path, device: &str, tunnels: &[Tunnel]) -> Vec<String> {
    let mut remotes = tunnels.iter().flat_map(|it| &it.selectors).map(|it| it.remote.address());
    let (has_v4, has_v6) = (remotes.clone().any(|it| it.is_ipv4()), remotes.any(|it| it.is_ipv6()));
    let mut said = Vec::new();
    let open = if has_v4 { open_interfaces(conf, device) } else { Vec::new() };
    if !open.is_empty() {
        said.push(format!(
            "warning: packets that claim to come out of a tunnel are taken from {} in clear text, \
             since the filter of \
             reverse paths is not strict there; sysctl -w net.ipv4.conf.all.rp_filter=1",
            open.join(", ")
        ));
    }
    if has_v6 {
        // Linux has no such setting for IPv6, and whether a rule of nftables does the work cannot be seen from here.
        said.push(format!(
            "note: Linux filters no reverse paths of IPv6 by itself; that packets out of the \
             tunnels come in through \
             {device} only takes a rule: nft add table ip6 keyway; nft add chain ip6 keyway from '{{ type filter hook \
             prerouting priority raw; }}'; nft add rule ip6 keyway from fib saddr . iif oif \
             missing drop"
        ));
    }
    said
}

/// The interfaces that take IPv4 whose answer would leave by another one.
fn open_interfaces(conf: &Path, device: &str) -> Vec<String> {
    let value = |interface: &str| {
        let text = fs::read_to_string(conf.join(interface).join("rp_filter")).ok()?;
        text.trim().parse::<u8>().ok()
    };
    let all = value("all").unwrap_or(0);
    let names = fs::read_dir(conf).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let others = names.filter(|it| !["all", "default", "lo", device].contains(&it.as_str()));
    // The greater of the two counts; 1 is strict, 2 loose.
    let is_open = |name: &String| value(name).is_some_and(|own| own.max(all) != 1);
    let mut open: Vec<_> = others.filter(is_open).collect();
    open.sort();
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_of_the_two_values_counts() {
        let place = tempfile::tempdir().unwrap();
        let set = |name: &str, value: &str| {
            fs::create_dir_all(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("rp_filter"), format!("{value}\n")).unwrap();
        };
        for (name, value) in [("all", "0"), ("default", "0"), ("lo", "0"), ("esp0", "0")] {
            set(name, value);
        }
        set("eth0", "1");
        assert!(open_interfaces(place.path(), "esp0").is_empty());
        set("eth1", "0");
        set("eth2", "2");
        assert_eq!(open_interfaces(place.path(), "esp0"), ["eth1", "eth2"]);
        set("all", "1");
        assert_eq!(open_interfaces(place.path(), "esp0"), ["eth2"]);
        set("all", "2");
        assert_eq!(open_interfaces(place.path(), "esp0"), ["eth0", "eth1", "eth2"]);
    }
}
