//! Users and groups by name.

use crate::failure::Failure;
use nix::unistd::{Group, User};

/// A user's number.
///
/// # Errors
/// If there is none of that name.
pub fn user(name: &str) -> Result<u32, Failure> {
    let named = || User::from_name(name).ok().flatten().map(|user| user.uid.as_raw());
    name.parse().ok().or_else(named).ok_or_else(|| unknown("user", name))
}

/// A group's number.
///
/// # Errors
/// If there is none of that name.
pub fn group(name: &str) -> Result<u32, Failure> {
    let named = || Group::from_name(name).ok().flatten().map(|group| group.gid.as_raw());
    name.parse().ok().or_else(named).ok_or_else(|| unknown("group", name))
}

fn unknown(what: &str, name: &str) -> Failure {
    Failure::usage(format!("there is no {what} {name:?} on this machine; give a name or a number"))
}
