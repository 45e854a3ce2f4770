//! `keyway key`: what an administrator asks of a running cryptod, and what its keys are used for from a shell.

mod arguments;
mod using;

pub use arguments::Key;
use arguments::{
    At, Callers, Certificate, Import, ImportWrapped, Named, Policy, ProgramUse, Public, Wrapped,
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use keyway_client::{KeyReference, Site, instructions};
use keyway_folder::control::{Control, nonsense};
use keyway_folder::data::name;
use keyway_folder::signing;
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_ring::control::{Answer, Ask, GrantedKey, KeyAsk, KeyInfo, KeyPolicy, TokenObject};
use keyway_service::callers::numbered;
use keyway_service::key_files;
use keyway_service::key_list::{say, shown, shown_usable, split};
use keyway_wire::subject_public_key_info;
use serde_json::json;
use std::path::PathBuf;

/// Does what the arguments ask for.
///
/// # Errors
/// The daemon's refusal, or that there is no daemon.
pub fn run(command: &Key) -> Result<bool, Failure> {
    let done = match command {
        Key::Generate(it) => {
            let (name, policy) = (it.name.clone(), policy(&it.policy)?);
            let ask = match it.token.clone() {
                Some(token) => KeyAsk::GenerateIn { name, policy, token },
                None => KeyAsk::Generate { name, policy },
            };
            done(&it.at, ask, &it.name, "made")
        }
        Key::Export(Wrapped { key, file, under }) => {
            let (name, under) = (key.name.clone(), under.clone());
            let answer = at(&key.at)?.ask(&Ask::Keys(KeyAsk::Export { name, under }))?;
            let Answer::Exported { sealed } = answer else { return Err(nonsense()) };
            key_files::write_wrapped(file, &sealed)?;
            say(key.at.json, &key.name, "exported")
        }
        Key::ImportWrapped(ImportWrapped { wrapped: Wrapped { key, file, under }, callers }) => {
            let (name, under, callers) = (key.name.clone(), under.clone(), numbered(callers)?);
            let wrapped = key_files::wrapped(file)?;
            let ask = KeyAsk::ImportWrapped { name, callers, under, wrapped };
            done(&key.at, ask, &key.name, "imported")
        }
        Key::Import(it) => {
            let (name, policy) = (it.name.clone(), policy(&it.policy)?);
            let ask = match (&it.file, token_object(it)) {
                (_, Some(object)) => {
                    KeyAsk::Adopt { name, policy, tokens: it.tokens.clone(), object }
                }
                (Some(file), None) => {
                    KeyAsk::Import { name, policy, material: key_files::secret(file)? }
                }
                (None, None) => {
                    return Err(Failure::usage(
                        "name the file of the key, or with --in, and --id or --label, a key in a token",
                    ));
                }
            };
            done(&it.at, ask, &it.name, "imported")
        }
        Key::List(it) if it.usable => list_usable(&it.at),
        Key::List(it) => list(&it.at),
        Key::Public(it) => public(it),
        Key::Use(it) => use_with(it),
        Key::Sign(it) => using::sign(it),
        Key::Verify(it) => return using::verify(it),
        Key::Encrypt(it) => using::encrypt(it),
        Key::Decrypt(it) => using::decrypt(it),
        Key::Mac(it) => using::mac(it),
        Key::Certificate(it) => certificate(it),
        Key::Rotate(it) => change(it, "rotated", |name| KeyAsk::Rotate { name }),
        Key::Revoke(it) => change(it, "revoked", |name| KeyAsk::Revoke { name }),
        Key::Delete(it) => change(it, "deleted", |name| KeyAsk::Delete { name }),
        Key::Accept(it) => {
            let accept = |name: &String| {
                done(&it.at, KeyAsk::Accept { name: name.clone() }, name, "accepted")
            };
            it.names.iter().try_for_each(accept)
        }
        Key::Allow(Callers { key, callers }) => {
            let callers = numbered(callers)?;
            change(key, "allowed", |name| KeyAsk::Allow { name, callers })
        }
        Key::Forbid(Callers { key, callers }) => {
            let callers = numbered(callers)?;
            change(key, "forbidden", |name| KeyAsk::Forbid { name, callers })
        }
    };
    done.map(|()| true)
}

/// Shows the public half of a key, to a manager or to one who may use it.
fn public(Public { key, pem }: &Public) -> Result<(), Failure> {
    let (Named { name, at }, (algorithm, key)) = (key, public_half(key)?);
    if *pem {
        return match algorithm.parse().ok().and_then(|it| signing::public_pem(it, &key)) {
            Some(pem) => output::text(pem.trim_end()),
            None => Err(Failure::new(format!(
                "there is no PEM of a public half for {algorithm} here; without --pem it is shown in base64"
            ))),
        };
    }
    let key = BASE64_STANDARD.encode(key);
    match at.json {
        true => output::json(&json!({ "key": name, "algorithm": algorithm, "public_key": key })),
        false => output::text(key),
    }
}

/// The public half of a key, and the name of its algorithm.
fn public_half(Named { name, at }: &Named) -> Result<(String, Vec<u8>), Failure> {
    match self::at(at)?.ask(&Ask::Keys(KeyAsk::Public { name: name.clone() })) {
        Ok(Answer::Public { algorithm, key }) => Ok((algorithm, key)),
        Ok(_) => Err(nonsense()),
        Err(refused) => {
            // A user who may use it hears of that, and no other anything more.
            let Ok(key) = using::open(name, at) else { return Err(refused) };
            let (algorithm, public) = key.public()?;
            Ok((algorithm.name().to_owned(), public))
        }
    }
}

/// Says how a program uses a key.
fn use_with(ProgramUse { key, with }: &ProgramUse) -> Result<(), Failure> {
    let (algorithm, public) = public_half(key)?;
    let info = algorithm.parse().ok().and_then(|it| subject_public_key_info(it, &public));
    let reference = KeyReference { name: key.name.clone(), public_key: info };
    let socket = socket(&key.at);
    let socket = std::path::absolute(&socket).unwrap_or(socket);
    let certificates = self::at(&key.at)?.ask(&Ask::Certificates { name: key.name.clone() });
    let has_certificates = matches!(certificates, Ok(Answer::Certificates { certificates }) if !certificates.is_empty());
    let quoted = output::shell(&socket.display().to_string());
    let site = Site { socket: &socket, quoted: &quoted, has_certificates };
    let text = instructions(*with, &reference, site)
        .map_err(|why| Failure::new(format!("{}: {why}", key.name)))?;
    match key.at.json {
        true => output::json(&json!({ "key": key.name, "program": with.name(), "text": text })),
        false => output::text(text.trim_end()),
    }
}

/// Keeps certificates with a key, or shows those that are there.
fn certificate(Certificate { name, file, remove, at }: &Certificate) -> Result<(), Failure> {
    let certify = |certificates, event| {
        done(at, KeyAsk::Certify { name: name.clone(), certificates }, name, event)
    };
    match file {
        _ if *remove => return certify(Vec::new(), "certificates removed"),
        Some(file) => return certify(key_files::certificates(file)?, "certificates kept"),
        None => {}
    }
    let answer = self::at(at)?.ask(&Ask::Certificates { name: name.clone() })?;
    let Answer::Certificates { certificates } = answer else { return Err(nonsense()) };
    if at.json {
        let certificates: Vec<_> =
            certificates.iter().map(|it| BASE64_STANDARD.encode(it)).collect();
        return output::json(&json!({ "key": name, "certificates": certificates }));
    }
    if certificates.is_empty() {
        return Err(Failure::new(format!(
            "the key {name} has no certificates; keyway key certificate {name} FILE gives it some"
        )));
    }
    output::text(key_files::certificates_to_pem(&certificates).trim_end())
}

/// Has the daemon change a key.
fn change(key: &Named, event: &str, ask: impl FnOnce(String) -> KeyAsk) -> Result<(), Failure> {
    done(&key.at, ask(key.name.clone()), &key.name, event)
}

fn done(at: &At, ask: KeyAsk, name: &str, event: &str) -> Result<(), Failure> {
    match self::at(at)?.ask(&Ask::Keys(ask))? {
        Answer::Done => say(at.json, name, event),
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
    for KeyInfo { name, policy, version, state, uses, tokens, .. } in &all {
        let KeyPolicy { algorithms, purposes, callers } = policy;
        let (algorithms, purposes) = (algorithms.join(", "), purposes.join(", "));
        let (state, why) = split(state);
        if let Some(why) = why {
            output::text(format_args!("{name:<width$}  {:>7}  {state}: {why}", "-"))?;
            continue;
        }
        output::text(format_args!(
            "{name:<width$}  {version:>7}  {state:<7}  {uses:>10}  {algorithms}: {purposes}"
        ))?;
        if !tokens.is_empty() {
            output::text(format_args!("{:width$}  {:>31}{}", "", "in ", tokens.join(" and ")))?;
        }
        for caller in callers {
            output::text(format_args!("{:width$}  {:>31}{caller}", "", "by "))?;
        }
    }
    Ok(())
}

fn list_usable(at: &At) -> Result<(), Failure> {
    let all = self::at(at)?.granted()?;
    if at.json {
        return output::json(&json!({ "keys": all.iter().map(shown_usable).collect::<Vec<_>>() }));
    }
    if all.is_empty() {
        return output::text("there is no key that this user and program may use");
    }
    let width = all.iter().map(|key| key.name.len()).max().unwrap_or(0).max(4);
    output::text(format_args!("{:<width$}  VERSION  FOR", "NAME"))?;
    for GrantedKey { name, algorithms, purposes, version, .. } in &all {
        let (algorithms, purposes) = (algorithms.join(", "), purposes.join(", "));
        output::text(format_args!("{name:<width$}  {version:>7}  {algorithms}: {purposes}"))?;
    }
    Ok(())
}

/// A connection to the daemon.
fn at(at: &At) -> Result<Control, Failure> {
    Control::connect_soon(&socket(at), "keyway key")
}

fn socket(at: &At) -> PathBuf {
    at.socket.clone().unwrap_or_else(|| name::socket_at(&at.folder))
}

fn policy(policy: &Policy) -> Result<KeyPolicy, Failure> {
    Ok(KeyPolicy {
        algorithms: policy.algorithms.clone(),
        purposes: policy.purposes.clone(),
        callers: numbered(&policy.callers)?,
    })
}

/// The key in a token that is meant, if one is.
fn token_object(import: &Import) -> Option<TokenObject> {
    let id = import.id.clone().map(TokenObject::Id);
    id.or_else(|| import.label.clone().map(TokenObject::Label))
}
