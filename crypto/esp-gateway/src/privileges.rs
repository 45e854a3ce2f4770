//! The rights that a gateway keeps once its device and its sockets are there.

use crate::config::Configuration;
use crate::options::UpOptions;
use keyway_host::failure::{Failure, plain, say_confined};
use keyway_host::sandbox::{self, Places};
use rustix::process::{Resource, getrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};
use std::path::{Path, PathBuf};

/// Gives up all capabilities but that to change routes and the device and to mark packets, and that one too where none of
/// this is ever done. To be called before any thread is started: each has its own.
///
/// # Errors
/// If the system refuses.
pub fn keep_what_is_needed(configuration: &Configuration) -> Result<(), Failure> {
    let refused = |why: rustix::io::Errno| {
        Failure::new(format!("cannot give up rights: {}", plain(&why.into())))
    };
    let device = &configuration.device;
    let is_needed = device.routes || device.mtu.is_none() || configuration.outside.mark.is_some();
    let mut wanted = CapabilitySet::empty();
    wanted.set(CapabilitySet::NET_ADMIN, is_needed);
    // Where the limit on locked memory could not be lifted, this takes its place.
    wanted.set(CapabilitySet::IPC_LOCK, getrlimit(Resource::Memlock).current.is_some());
    let had = capabilities(None).map_err(refused)?;
    let kept = had.permitted & wanted;
    if had.effective.contains(CapabilitySet::SETPCAP) {
        for one in CapabilitySet::all().difference(wanted).iter() {
            // One that this system does not know cannot be had either.
            let _ = remove_capability_from_bounding_set(one);
        }
    }
    let sets =
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).map_err(refused)
}

/// Gives up files outside of the state folder, the folders of the configuration and of its keys, and the control socket's,
/// and system calls that a gateway never makes. To be called before any thread is started.
///
/// # Errors
/// If the system refuses.
pub fn enter_sandbox(options: &UpOptions, configuration: &Configuration) -> Result<(), Failure> {
    let folder = |path: &Path| path.parent().map_or_else(|| ".".into(), Path::to_owned);
    let mut read: Vec<PathBuf> = Vec::new();
    for path in [&options.configuration].into_iter().chain(&configuration.files) {
        // Where it lies, and where it is found, if it is a link.
        read.extend(path.canonicalize().ok().map(|path| folder(&path)));
        read.extend(std::path::absolute(path).ok().map(|path| folder(&path)));
    }
    read.sort();
    read.dedup();
    let sockets = std::path::absolute(&options.control).ok().map(|path| folder(&path));
    let places =
        Places { write: vec![options.state.clone()], read, sockets: sockets.into_iter().collect() };
    sandbox::of_esp(places).enter()?;
    say_confined(
        "the gateway has given up files outside of the folders that it was started with; keep them there, or start it \
         again (--no-sandbox leaves that out)"
            .to_owned(),
    );
    Ok(())
}
