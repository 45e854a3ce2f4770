//! Where others reach a server.

use keyway_config::{Configuration, MemberUrl, Running};
use keyway_folder::host_names::{addresses, host_names};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the configuration says, or else the address that the server listens at, or this host's name where it listens at
/// all.
pub fn own_url(configured: Option<&MemberUrl>, ldaps: Option<SocketAddr>) -> MemberUrl {
    if let Some(url) = configured {
        return url.clone();
    }
    if let Some(address) = ldaps.filter(|address| !address.ip().is_unspecified()) {
        return MemberUrl::of(address);
    }
    let name = host_names().into_iter().find(|name| name != "localhost");
    let address = || addresses(ldaps.as_slice()).into_iter().find(|ip| !ip.is_loopback());
    let host = name.or_else(|| address().map(|address| address.to_string()));
    let port = ldaps.map(|address| address.port());
    MemberUrl::at(&host.unwrap_or_else(|| "localhost".to_owned()), port)
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
