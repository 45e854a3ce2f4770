//! The rights that a gateway keeps once its device and its sockets are there.

use crate::config::Configuration;
use keyway_host::failure::{Failure, plain};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities,
};

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
    let is_needed =
        device.routes || device.mtu.is_none() || configuration.outside.mark.is_some();
    let wanted = if is_needed { CapabilitySet::NET_ADMIN } else { CapabilitySet::empty() };
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
