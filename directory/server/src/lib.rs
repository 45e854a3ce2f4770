//! ldapd: connections, operations, access control, schema, planning.
#![forbid(unsafe_code)]

pub mod controls;
pub mod password;
