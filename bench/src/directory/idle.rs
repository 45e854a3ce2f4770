//! What a connection costs in memory that nobody uses.

use super::anonymous_mib;
use crate::ldap::{Account, SUFFIX};
use keyway_tests::client::Client;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process and the servers that it starts have as many files as they may.
pub fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is refused, connecting says that there are too few.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// KiB that a server has more for each of so many connections, which have bound, searched once and
/// are idle.
pub fn kib_each(account: &Account<'_>, process: u32, connections: usize) -> Result<f64, String> {
    let before = anonymous_mib(process)?;
    let open = || {
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        client.search(SUFFIX, "uid", "nobody")?;
        Ok::<_, String>(client)
    };
    let clients: Vec<Client> = (0..connections).map(|_| open()).collect::<Result<_, _>>()?;
    let after = anonymous_mib(process)?;
    drop(clients);
    Ok((after - before) * 1024.0 / connections as f64)
}
