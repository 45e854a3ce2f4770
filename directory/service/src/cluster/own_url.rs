//! Where others reach a server.

use keyway_config::{Configuration, MemberUrl, Running};
use keyway_folder::host_names::host_names;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the configuration says, or else this host's name, or its address where it listens on one alone.
pub fn own_url(configured: Option<&MemberUrl>, ldaps: Option<SocketAddr>) -> MemberUrl {
    if let Some(url) = configured {
        return url.clone();
    }
    match ldaps {
        Some(address) if !address.ip().is_unspecified() => MemberUrl::of(address),
        address => {
            let host = host_names().into_iter().next().unwrap_or_else(|| "localhost".to_owned());
            MemberUrl::at(&host, address.map(|address| address.port()))
        }
    }
}

/// Of a server that runs.
pub fn of_running(configuration: &Configuration, running: Option<&Running>) -> MemberUrl {
    own_url(configuration.cluster.url.as_ref(), running.and_then(|running| running.ldaps))
}

/// Where a server is reached from its own host.
pub fn from_here(ldaps: SocketAddr) -> MemberUrl {
    let here = match ldaps.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        other => other,
    };
    MemberUrl::of(SocketAddr::new(here, ldaps.port()))
}
