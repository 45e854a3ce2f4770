//! Password policy (draft-behera-ldap-password-policy-10): who is locked out, whose password has
//! expired or must be changed, and what a new one has to be.
//!
//! A policy is an entry of class `pwdPolicy`; an entry names its own in `pwdPolicySubentry`, and the
//! settings may name one for all others. Notes of an account are ordinary operational
//! attributes of its entry. `docs/design/004-passwords.md` says how lockout goes together with the
//! brake on guessing.
//!
//! - [`rules`]: one policy; [`policies`]: all that are remembered; [`lookup`]: that of an entry
//! - [`attributes`], [`account`]: the state of an account, and its status by a policy
//! - [`pending`], [`note`]: the ends of binds that are not in the entry yet, and how they get there
//! - [`quality`], [`change`], [`history`]: the demands on a new password, and what it changes

pub mod account;
mod attributes;
mod change;
mod history;
pub mod limits;
mod lookup;
mod note;
mod pending;
mod policies;
mod quality;
mod rules;
#[cfg(test)]
mod tests;
mod time;

pub(crate) use quality::NAMES as OWNER_NAMES;

pub(crate) use account::{Account, Age, Events, Lock, Status};
pub use attributes::USER_PASSWORD;
pub(crate) use attributes::{
    CHANGED_TIME, KEPT, LOCKED_TIME, POLICY_SUBENTRY, RESET, is_state, subentry,
};
pub(crate) use change::{PasswordChange, Upkeep, check_new, in_history};
pub(crate) use lookup::as_seen;
pub(crate) use pending::Event;
pub(crate) use policies::Policies;
pub(crate) use rules::Policy;
pub(crate) use time::micros;
