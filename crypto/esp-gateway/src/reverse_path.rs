//! A look at the system's filter of reverse paths: without it clear text that claims to come out of a tunnel gets in
//! from outside, beside the gateway, which cannot see it.

use crate::config::Configuration;
use std::fs;
use std::path::Path;

/// What the system says of each interface's IPv4.
pub const OF_THE_SYSTEM: &str = "/proc/sys/net/ipv4/conf";

/// Warnings, each with the command that helps. `conf` is [`OF_THE_SYSTEM`], or one like it.
pub fn warnings(conf: &Path, configuration: &Configuration) -> Vec<String> {
    let Configuration { device, outside, tunnels, .. } = configuration;
    let mut remotes = tunnels.iter().flat_map(|it| &it.selectors).map(|it| it.remote);
    let mut said = Vec::new();
    // Whose route leads into the device, while sealed packets of theirs come through another interface.
    let peers = tunnels.iter().map(|it| it.remote.address()).filter(|it| it.is_ipv4());
    let peers = peers.filter(|peer| remotes.clone().any(|it| it.contains(*peer)));
    let peer = peers.filter(|_| device.routes).next();
    let mut open = Vec::new();
    for (interface, filter) in filters(conf, &device.name) {
        let is_outer = outside.interface.as_ref().is_none_or(|it| *it == interface);
        match (filter, peer.filter(|_| is_outer)) {
            (Filter::Strict, Some(peer)) => said.push(format!(
                "warning: sealed packets from {peer} are dropped if they come through {interface}, since its route \
                 leads into {} and the filter of reverse paths is strict; sysctl -w net.ipv4.conf.{interface}.rp_filter=2",
                device.name
            )),
            (Filter::Open, None) => open.push(interface),
            (Filter::Strict, None) | (Filter::Open, Some(_)) => {}
        }
    }
    if !open.is_empty() && remotes.clone().any(|it| it.address().is_ipv4()) {
        said.push(format!(
            "warning: packets that claim to come out of a tunnel are taken from {} in clear text, since the filter of \
             reverse paths is not strict there; sysctl -w net.ipv4.conf.all.rp_filter=1",
            open.join(", ")
        ));
    }
    if remotes.any(|it| it.address().is_ipv6()) {
        // Linux has no such setting for IPv6, and whether a rule of nftables does the work cannot be seen from here.
        said.push(format!(
            "note: Linux filters no reverse paths of IPv6 by itself; that packets out of the tunnels come in through \
             {} only takes a rule: nft add table ip6 keyway; nft add chain ip6 keyway from '{{ type filter hook \
             prerouting priority raw; }}'; nft add rule ip6 keyway from fib saddr . iif oif missing drop",
            device.name
        ));
    }
    said
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    /// Packets are taken only from where an answer would go.
    Strict,
    /// From anywhere.
    Open,
}

/// The interfaces beside the device, and how each filters packets of IPv4.
fn filters(conf: &Path, device: &str) -> Vec<(String, Filter)> {
    let value = |interface: &str| {
        let text = fs::read_to_string(conf.join(interface).join("rp_filter")).ok()?;
        text.trim().parse::<u8>().ok()
    };
    let all = value("all").unwrap_or(0);
    let names = fs::read_dir(conf).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let others = names.filter(|it| !["all", "default", "lo", device].contains(&it.as_str()));
    let mut filters: Vec<_> = others
        .filter_map(|name| {
            // The greater of the two counts; 1 is strict, 2 loose.
            let filter = if value(&name)?.max(all) == 1 { Filter::Strict } else { Filter::Open };
            Some((name, filter))
        })
        .collect();
    filters.sort_by(|one, other| one.0.cmp(&other.0));
    filters
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn configuration(remote: &str, network: &str, interface: &str) -> Configuration {
        let key = |way: &str| way.repeat(36);
        let text = format!(
            "[device]\nname = \"esp0\"\n[outside]\ninterface = \"{interface}\"\n[[tunnel]]\nname = \"t\"\n\
             remote = \"{remote}:4500\"\nalgorithm = \"aes-256-gcm\"\n\
             selector = [{{ local = \"10.1.0.0/24\", remote = \"{network}\" }}]\n\
             out = {{ spi = \"0x1001\", key = \"{}\" }}\nin = {{ spi = \"0x1002\", key = \"{}\" }}\n",
            key("01"),
            key("02")
        );
        parse(&text, &mut |_| Err("none".to_owned())).unwrap()
    }

    #[test]
    fn clear_text_is_kept_out_and_sealed_packets_are_not() {
        let place = tempfile::tempdir().unwrap();
        let set = |name: &str, value: &str| {
            fs::create_dir_all(place.path().join(name)).unwrap();
            fs::write(place.path().join(name).join("rp_filter"), format!("{value}\n")).unwrap();
        };
        for name in ["all", "default", "lo", "esp0"] {
            set(name, "0");
        }
        let beside = configuration("192.0.2.1", "10.2.0.0/24", "eth0");
        let around = configuration("192.0.2.1", "0.0.0.0/0", "eth0");
        let open = |configuration: &Configuration| warnings(place.path(), configuration).join("\n");
        set("eth0", "1");
        assert_eq!(open(&beside), "");
        assert!(open(&around).contains("net.ipv4.conf.eth0.rp_filter=2"));
        set("eth1", "0");
        assert!(open(&beside).contains("taken from eth1 in clear"));
        // The greater of the two values counts.
        set("eth0", "2");
        set("all", "1");
        assert!(open(&beside).contains("taken from eth0 in clear"));
        assert_eq!(open(&around), "");
        set("all", "2");
        assert!(open(&beside).contains("taken from eth0, eth1 in clear"));
        assert!(open(&around).contains("taken from eth1 in clear"));
    }
}
