//! `[connections]`, and what a job changes of it for itself.

use super::account::Account;
use super::context::Context;
use super::section::{Section, Value, whole};
use super::{Group, Lifetime};
use crate::error::Error;
use crate::limits::{CONNECTIONS_MAX, IN_FLIGHT_MAX};
use crate::request::Request;
use crate::text::Names;

/// Reads a table; what it does not say is as in `usual`.
pub(crate) fn read(
    section: Option<Section<'_>>,
    usual: Option<&Group>,
    context: &Context<'_>,
) -> Result<Group, Error> {
    let mut group = usual.cloned().unwrap_or(Group {
        connections: 8,
        in_flight: 1,
        lifetime: Lifetime::Kept,
        bind: None,
    });
    let Some(mut section) = section else { return Ok(group) };
    if let Some(count) = section.whole("count", 1..CONNECTIONS_MAX as u64 + 1)? {
        group.connections = count as usize;
    }
    if let Some(in_flight) = section.whole("in_flight", 1..IN_FLIGHT_MAX as u64 + 1)? {
        group.in_flight = in_flight as usize;
    }
    if let Some(lifetime) = lifetime(&mut section)? {
        group.lifetime = lifetime;
    }
    if let Some(value) = section.get("bind") {
        let account = account(&section, value, context)?;
        let bind = account.map(|account| bind(&account, context)).transpose();
        group.bind = bind.map_err(|why| section.error_at(value, why))?;
    }
    if group.lifetime != Lifetime::Kept && group.in_flight > 1 {
        return Err(section.error("connections that are not kept have in_flight = 1"));
    }
    section.finish()?;
    Ok(group)
}

/// `"none"`, `"admin"`, or an account.
pub(super) fn account(
    section: &Section<'_>,
    value: &Value<'_>,
    context: &Context<'_>,
) -> Result<Option<Account>, Error> {
    match value.get_ref().as_str() {
        Some("none") => Ok(None),
        Some("admin") => {
            let missing = "bind = \"admin\" needs target.admin = { dn = ..., password_file = ... }";
            let admin = context.target.admin.clone();
            Ok(Some(admin.ok_or_else(|| section.error_at(value, missing))?))
        }
        Some(_) => {
            let why = "bind should be \"none\", \"admin\", { dn = ..., password = ... } or \
                       { sasl = ... }";
            Err(section.error_at(value, why))
        }
        None => {
            let account = Section::of(section.document(), value, "bind")?;
            super::target::account(account, context.folder).map(Some)
        }
    }
}

/// `"kept"`, `"per-operation"`, `{ reconnect_after = 1000 }`
fn lifetime(section: &mut Section<'_>) -> Result<Option<Lifetime>, Error> {
    let Some(value) = section.get("kind") else { return Ok(None) };
    match value.get_ref().as_str() {
        Some("kept") => return Ok(Some(Lifetime::Kept)),
        Some("per-operation") => return Ok(Some(Lifetime::Sequences(1))),
        _ => {}
    }
    let after = value.get_ref().as_table().filter(|table| table.len() == 1);
    let after = after.and_then(|table| whole(table.get("reconnect_after")?.get_ref()));
    match after {
        Some(after) if after > 0 => Ok(Some(Lifetime::Sequences(after))),
        _ => {
            let why = "kind should be \"kept\", \"per-operation\" or { reconnect_after = N }";
            Err(section.error_at(value, why))
        }
    }
}

/// The request that a connection begins with.
fn bind(account: &Account, context: &Context<'_>) -> Result<(Request, Vec<usize>), String> {
    let mut names = Names::new(context.sources);
    let request = account.request(Vec::new(), &mut names)?;
    Ok((request, names.sources_named()))
}
