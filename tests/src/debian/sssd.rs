//! sssd, on a machine of its own: users by the name service, and logins by PAM.

use super::Machine;

/// A service that logs in as Debian's own do.
const SERVICE: &str = "@include common-auth\n@include common-account\n@include common-password\n\
                       @include common-session\n";
/// What PAM says of a user who is in.
pub const IN: &str = "successfully opened a session";

/// Starts it with this configuration, and with a service `keyway` of PAM.
///
/// # Panics
/// If it cannot be started.
pub fn start(machine: &Machine, configuration: &str) {
    machine.write("/etc/sssd/sssd.conf", configuration);
    machine.write("/etc/pam.d/keyway", SERVICE);
    machine.out("chmod 600 /etc/sssd/sssd.conf; pam-auth-update --package --remove ldap");
    machine.daemon("sssd -i -d 3");
}

/// The answer of PAM to a user who logs in.
///
/// # Panics
/// If there is no shell.
#[must_use]
pub fn login(machine: &Machine, user: &str, password: &str) -> String {
    let script = format!("pamtester keyway {user} authenticate acct_mgmt open_session 2>&1");
    machine.sh(&script, &format!("{password}\n")).out
}
