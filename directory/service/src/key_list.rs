//! Keys of a cryptod, as `keyway key` says them to programs.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_ring::control::{GrantedKey, KeyInfo, KeyPolicy};
use serde_json::{Value, json};

/// A key, for those who look after it.
pub fn shown(key: &KeyInfo) -> Value {
    let KeyInfo { name, policy, version, state, created, uses, tokens } = key;
    let KeyPolicy { algorithms, purposes, callers } = policy;
    let (state, why) = split(state);
    json!({ "name": name, "algorithms": algorithms, "purposes": purposes, "callers": callers,
        "version": version, "state": state, "why": why, "created_s": created, "uses": uses,
        "tokens": tokens })
}

/// A key, for those who may use it.
pub fn shown_usable(key: &GrantedKey) -> Value {
    let public = match key.public_key.is_empty() {
        true => Value::Null,
        false => Value::from(BASE64_STANDARD.encode(&key.public_key)),
    };
    json!({ "name": key.name, "algorithms": key.algorithms, "purposes": key.purposes,
        "version": key.version, "public_key": public, "has_certificates": key.has_certificates })
}

/// A key's state, and why it has that.
pub fn split(state: &str) -> (&str, Option<&str>) {
    match state.split_once(": ") {
        Some((state, why)) => (state, Some(why)),
        None => (state, None),
    }
}

/// Says what was done with a key.
///
/// # Errors
/// If the output cannot be written.
pub fn say(as_json: bool, name: &str, event: &str) -> Result<(), Failure> {
    match as_json {
        true => output::json(&json!({ "event": event, "key": name })),
        false => output::text(format_args!("{name}: {event}")),
    }
}
