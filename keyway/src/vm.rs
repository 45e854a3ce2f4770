//! `keyway vm`.

use clap::Subcommand;
use keyway_host::failure::Failure;
use keyway_service::{finding, vm_check};

/// Look whether this host, or this guest, has what virtual machines need to use the host's keys
///
/// keyway cryptod --vm NAME=SOCKET serves a virtual machine; docs/guide/vm.md says how QEMU and libvirt connect.
#[derive(Debug, Subcommand)]
pub enum Vm {
    /// Say what this host, or this guest, lacks, and the change that helps
    #[command(after_help = "\
Examples:
  keyway vm check
      on the host or in the guest; the exit status is 1 if nothing can work as it is
  keyway vm check --json
      a line of JSON for each finding (good, unknown, warning, fault), and one with their numbers")]
    Check {
        /// A line of JSON for each finding
        #[arg(long)]
        json: bool,
    },
}

/// Returns whether there is no fault.
pub fn run(Vm::Check { json }: &Vm) -> Result<bool, Failure> {
    finding::say(&vm_check::examine(), *json)
}
