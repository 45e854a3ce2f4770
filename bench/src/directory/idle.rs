//! The memory of a connection that is not used.

use super::{anonymous_mib, dn, uid};
use crate::ldap::{PASSWORD, SUFFIX};
use keyway_tests::client::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::SocketAddr;

/// Lets this process and the servers that it starts have as many files as they may.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, connecting says that there are too few.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// KiB that a server has more for each of so many connections, which have bound, searched once and
/// are idle.
pub fn kib_each(address: SocketAddr, process: u32, connections: usize) -> Result<f64, String> {
    let before = anonymous_mib(process)?;
    let open = || {
        let mut client = Client::connect(address)?;
        // Its hash is quick to check; the administrator's is not.
        client.bind(&dn(&uid(0)), PASSWORD)?;
        client.search(SUFFIX, "uid", "absent")?;
        Ok::<_, String>(client)
    };
    let clients: Vec<Client> = (0..connections).map(|_| open()).collect::<Result<_, _>>()?;
    let after = anonymous_mib(process)?;
    drop(clients);
    Ok((after - before) * 1024.0 / connections as f64)
}
