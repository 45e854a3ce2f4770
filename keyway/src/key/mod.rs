//! `keyway key`: what an administrator asks of a running cryptod.

mod arguments;

use crate::control::{Control, nonsense};
use crate::cryptod::{socket_at, who};
use crate::failure::Failure;
use crate::output;
pub use arguments::Key;
use arguments::{At, Callers, Named, Policy};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_ring::control::{Answer, Ask, KeyAsk, KeyInfo, KeyPolicy, Secret};
use keyway_ring::limits::KEY_BYTES_MAX;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use zeroize::Zeroizing;

/// Does what the arguments ask for.
///
/// # Errors
/// What the daemon refuses, or that there is none.
pub fn run(command: &Key) -> Result<(), Failure> {
    match command {
        Key::Generate(it) => {
            let ask = KeyAsk::Generate { name: it.name.clone(), policy: policy(&it.policy)? };
            done(&it.at, ask, &it.name, "made")
        }
        Key::Import(it) => {
            let policy = policy(&it.policy)?;
            let material = read(&it.file)?;
            let ask = KeyAsk::Import { name: it.name.clone(), policy, material };
            done(&it.at, ask, &it.name, "imported")
        }
        Key::List(it) => list(&it.at),
        Key::Public(it) => {
            let answer = at(&it.at)?.ask(&Ask::Keys(KeyAsk::Public { name: it.name.clone() }))?;
            let Answer::Public { algorithm, key } = answer else { return Err(nonsense()) };
            let key = BASE64_STANDARD.encode(key);
            match it.at.json {
                true => output::json(&json!({ "key": it.name, "algorithm": algorithm,
                    "public_key": key })),
                false => output::text(key),
            }
        }
        Key::Rotate(it) => change(it, "rotated", |name| KeyAsk::Rotate { name }),
        Key::Revoke(it) => change(it, "revoked", |name| KeyAsk::Revoke { name }),
        Key::Delete(it) => change(it, "deleted", |name| KeyAsk::Delete { name }),
        Key::Allow(Callers { key, callers }) => {
            let callers = numbered(callers)?;
            change(key, "allowed", |name| KeyAsk::Allow { name, callers })
        }
        Key::Forbid(Callers { key, callers }) => {
            let callers = numbered(callers)?;
            change(key, "forbidden", |name| KeyAsk::Forbid { name, callers })
        }
    }
}

/// Has the daemon change a key.
fn change(key: &Named, event: &str, ask: impl FnOnce(String) -> KeyAsk) -> Result<(), Failure> {
    done(&key.at, ask(key.name.clone()), &key.name, event)
}

fn done(at: &At, ask: KeyAsk, name: &str, event: &str) -> Result<(), Failure> {
    match self::at(at)?.ask(&Ask::Keys(ask))? {
        Answer::Done if at.json => output::json(&json!({ "event": event, "key": name })),
        Answer::Done => output::text(format_args!("{name}: {event}")),
        _ => Err(nonsense()),
    }
}

fn list(at: &At) -> Result<(), Failure> {
    let all = self::at(at)?.keys()?;
    if at.json {
        return output::json(&json!({ "keys": all.iter().map(shown).collect::<Vec<_>>() }));
    }
    if all.is_empty() {
        return output::text("there are no keys; keyway key generate --help says how to make one");
    }
    let width = all.iter().map(|key| key.name.len()).max().unwrap_or(0).max(4);
    output::text(format_args!("{:<width$}  VERSION  STATE    {:>10}  FOR", "NAME", "USES"))?;
    for KeyInfo { name, policy, version, state, uses, .. } in &all {
        let KeyPolicy { algorithms, purposes, callers } = policy;
        let (algorithms, purposes) = (algorithms.join(", "), purposes.join(", "));
        output::text(format_args!(
            "{name:<width$}  {version:>7}  {state:<7}  {uses:>10}  {algorithms}: {purposes}"
        ))?;
        for caller in callers {
            output::text(format_args!("{:width$}  {:>31}{caller}", "", "by "))?;
        }
    }
    Ok(())
}

fn shown(key: &KeyInfo) -> Value {
    let KeyInfo { name, policy, version, state, created, uses } = key;
    let KeyPolicy { algorithms, purposes, callers } = policy;
    json!({ "name": name, "algorithms": algorithms, "purposes": purposes, "callers": callers,
        "version": version, "state": state, "created_s": created, "uses": uses })
}

/// A connection to the daemon.
fn at(at: &At) -> Result<Control, Failure> {
    Control::connect(&at.socket.clone().unwrap_or_else(|| socket_at(&at.folder)), "keyway key")
}

fn policy(policy: &Policy) -> Result<KeyPolicy, Failure> {
    Ok(KeyPolicy {
        algorithms: policy.algorithms.clone(),
        purposes: policy.purposes.clone(),
        callers: numbered(&policy.callers)?,
    })
}

/// Names become numbers here, since the daemon may read no files.
fn numbered(callers: &[String]) -> Result<Vec<String>, Failure> {
    let condition = |condition: &str| match condition.split_once(':') {
        Some(("user", name)) => Ok(format!("user:{}", who::user(name)?)),
        Some(("group", name)) => Ok(format!("group:{}", who::group(name)?)),
        _ => Ok(condition.to_owned()),
    };
    let caller = |caller: &String| {
        let conditions = caller.split('+').map(condition);
        Ok(conditions.collect::<Result<Vec<_>, Failure>>()?.join("+"))
    };
    callers.iter().map(caller).collect()
}

fn read(path: &Path) -> Result<Secret, Failure> {
    // Room for one byte too many, so that no copy is left behind by a buffer that grew.
    let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_BYTES_MAX + 2));
    let most = KEY_BYTES_MAX as u64 + 1;
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().lock().take(most).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.map_err(|why| Failure::system("read", path, &why))?;
    if bytes.is_empty() || bytes.len() > KEY_BYTES_MAX {
        return Err(Failure::new(format!(
            "{} is no key: it is empty, or longer than {KEY_BYTES_MAX} bytes",
            path.display()
        )));
    }
    Ok(Secret::from(&bytes[..]))
}
