//! Limits of the values of a configuration.

/// Files that the schema's folder may have.
pub const SCHEMA_FILES_MAX: usize = 1_000;
/// Warnings about definitions that are said one by one.
pub const SCHEMA_WARNINGS_SAID_MAX: usize = 20;
/// How many certificates a server has for hosts that clients ask for.
pub const CERTIFICATES_MAX: usize = 1_000;
/// Changes of settings over LDAP that wait for their turn.
pub const CONFIG_CHANGES_WAITING_MAX: usize = 16;
