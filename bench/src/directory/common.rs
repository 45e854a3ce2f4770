//! Names and accounts of the servers, and their memory.

use crate::ldap::{Account, PASSWORD, SLAPD_ADMIN, SUFFIX};
use crate::slapd::Slapd;
use keyway_tests::Server;
use std::fs;
use std::net::SocketAddr;

pub(super) fn uid(index: usize) -> String {
    format!("user{index:06}")
}

pub(super) fn keyway_account<'a>(
    server: &'a Server,
    password: &'a str,
) -> Result<Account<'a>, String> {
    Ok(Account { address: address(server.address())?, admin: server.administrator(), password })
}

pub(super) fn slapd_account(server: &Slapd) -> Account<'static> {
    Account { address: server.address, admin: SLAPD_ADMIN, password: PASSWORD }
}

pub(super) fn dn(uid: &str) -> String {
    format!("uid={uid},ou=People,{SUFFIX}")
}

/// Memory of a process that is no file's, in MiB.
pub(super) fn anonymous_mib(process: u32) -> Result<f64, String> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).map_err(|why| format!("{path}: {why}"))?;
    let line = text.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| format!("{path} does not say"))
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("no address: {text}"))
}
