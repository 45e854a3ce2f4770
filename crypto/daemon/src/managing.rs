//! Requests about keys of administrators, and of clients in their name spaces, done by the key store.

use crate::keys::{
    Caller, Error, Grant, KeyStore, Material, Purpose, Purposes, Spec, Usable, Who, is_vm_name,
};
use crate::limits::{
    EXPORTED_BYTES_MAX, GRANTED_KEYS_MAX, NAME_SPACE_KEYS_MAX, RSA_BITS, RSA_SIZES,
};
use crate::name_spaces::NameSpace;
use crate::refusal::Refusal;
use crate::witness::Sight;
use keyway_engine::{Algorithm, Kind};
use keyway_ring::control::{Answer, GrantedKey, KeyAsk, KeyInfo, KeyPolicy, TokenObject};
use keyway_ring::descriptor::Status;
use keyway_token::Wanted;
use std::time::SystemTime;

/// Keys that one message tells of: as many as surely go into it.
const LISTED_MAX: usize = 16;

/// Does it, for an administrator or for a client in its name space, of a daemon that sees so many clients' programs.
pub fn answer(
    keys: &KeyStore,
    sight: Sight,
    space: Option<&NameSpace>,
    by: &Caller,
    ask: KeyAsk,
    now: SystemTime,
) -> Answer {
    done(keys, sight, space, by, ask, now).unwrap_or_else(Answer::from)
}

fn done(
    keys: &KeyStore,
    sight: Sight,
    space: Option<&NameSpace>,
    by: &Caller,
    ask: KeyAsk,
    now: SystemTime,
) -> Result<Answer, Refusal> {
    match ask {
        KeyAsk::Generate { name, policy } => {
            let policy = Policy::read(&policy)?.in_space(space, keys)?;
            can_be_for(sight, &policy.grantees)?;
            let made =
                policy.rsa_bits.map_or(Material::NEW, |rsa_bits| Material::Generate { rsa_bits });
            keys.add_for(&name, policy.spec(), made, &policy.grantees, by, now)?;
        }
        KeyAsk::Import { name, policy, material } => {
            let policy = Policy::read(&policy)?.in_space(space, keys)?;
            can_be_for(sight, &policy.grantees)?;
            if let Some(bits) = policy.rsa_bits {
                let why =
                    format!("a key that is imported has the size that it has: rsa, not rsa-{bits}");
                return Err(wrong(why));
            }
            is_private_key(&policy.algorithms, &material.0)?;
            let forms = forms(&policy.algorithms, &material.0);
            let add = |form: &Material<'_>| {
                keys.add_for(&name, policy.spec(), *form, &policy.grantees, by, now)
            };
            // The last of them says what is wrong with all.
            let mut added = Err(Error::Material("it is empty"));
            for form in &forms {
                added = add(form);
                if !matches!(added, Err(Error::Material(_) | Error::Engine(_))) {
                    break;
                }
            }
            added?;
        }
        KeyAsk::GenerateIn { name, policy, token } => {
            let policy = Policy::read(&policy)?;
            can_be_for(sight, &policy.grantees)?;
            let material =
                Material::InToken { label: &token, rsa_bits: policy.rsa_bits.unwrap_or(RSA_BITS) };
            keys.add_for(&name, policy.spec(), material, &policy.grantees, by, now)?;
        }
        KeyAsk::Adopt { name, policy, tokens, object } => {
            let policy = Policy::read(&policy)?;
            can_be_for(sight, &policy.grantees)?;
            let wanted = match object {
                TokenObject::Id(id) => Wanted::Id(id),
                TokenObject::Label(label) => Wanted::Label(label),
            };
            let material = Material::OfTokens { labels: &tokens, wanted: &wanted };
            keys.add_for(&name, policy.spec(), material, &policy.grantees, by, now)?;
        }
        KeyAsk::List { after } => {
            return Ok(listed(keys.list(), &after));
        }
        KeyAsk::Public { name } => return public(&keys.show(&name)?),
        KeyAsk::Certify { name, certificates } => keys.certify(&name, &certificates, by, now)?,
        KeyAsk::Rotate { name } => drop(keys.rotate(&name, alike(keys, &name), by, now)?),
        KeyAsk::Revoke { name } => keys.revoke(&name, by, now)?,
        KeyAsk::Delete { name } => keys.delete(&name, by, now)?,
        KeyAsk::Accept { name } => keys.accept(&name, by, now)?,
        KeyAsk::Export { name, under } => {
            let sealed = keys.export(&name, &under, by, now)?;
            if sealed.len() > EXPORTED_BYTES_MAX {
                let why = format!(
                    "{name} has too many versions to be exported: with them it has {} bytes, and {EXPORTED_BYTES_MAX} are \
                     the most",
                    sealed.len()
                );
                return Err(Refusal { status: Status::InvalidRequest, why });
            }
            return Ok(Answer::Exported { sealed });
        }
        KeyAsk::ImportWrapped { name, callers, under, wrapped } => {
            let grantees = grantees(&callers)?;
            can_be_for(sight, &grantees)?;
            keys.import_wrapped(&name, &under, &wrapped, &grantees, by, now)?;
        }
        KeyAsk::Allow { name, callers } => {
            let purposes = keys.show(&name)?.purposes;
            let grantees = grantees(&callers)?;
            can_be_for(sight, &grantees)?;
            for who in grantees {
                keys.allow(&name, &who, purposes, by, now)?;
            }
        }
        KeyAsk::Forbid { name, callers } => {
            let purposes = keys.show(&name)?.purposes;
            for who in grantees(&callers)? {
                if !keys.forbid(&name, &who, purposes, by, now)? {
                    let why = format!("{name} was not for {who}");
                    return Err(Refusal { status: Status::InvalidRequest, why });
                }
            }
        }
    }
    Ok(Answer::Done)
}

/// Tells a client that is no administrator of the keys that it may use; of others it hears nothing, not
/// even whether they are there.
pub fn look(keys: &KeyStore, by: &Caller, ask: KeyAsk) -> Answer {
    let its = keys.list_for(by);
    match ask {
        KeyAsk::List { after } => listed(its, &after),
        KeyAsk::Public { name } => match its.iter().find(|key| key.name == name) {
            Some(key) => public(key).unwrap_or_else(Answer::from),
            None => Answer::refused(Status::Unsupported, "there is no such key for this client"),
        },
        _ => Answer::refused(Status::Unsupported, "only administrators change keys"),
    }
}

/// Tells a client which keys it may use, an administrator no more than another.
pub fn granted(keys: &KeyStore, by: &Caller, after: &str) -> Answer {
    let (usable, more) = keys.all_usable_by(by, after, GRANTED_KEYS_MAX);
    let shown = |key: Usable| GrantedKey {
        public_key: public_key_info(&key).unwrap_or_default(),
        algorithms: key.algorithms.iter().map(|it| it.name().to_owned()).collect(),
        purposes: names(key.purposes),
        has_certificates: key.has_certificates,
        name: key.name,
        version: key.version,
    };
    Answer::Granted { keys: usable.into_iter().map(shown).collect(), more }
}

fn public_key_info(key: &Usable) -> Option<Vec<u8>> {
    let bits = Some(&key.public_key).filter(|bits| !bits.is_empty())?;
    keyway_wire::subject_public_key_info(*key.algorithms.first()?, bits)
}

fn names(purposes: Purposes) -> Vec<String> {
    purposes.iter().map(|purpose| purpose.name().to_owned()).collect()
}

fn listed(mut keys: Vec<crate::keys::KeyInfo>, after: &str) -> Answer {
    keys.retain(|key| *key.name > *after);
    keys.sort_by(|one, other| one.name.cmp(&other.name));
    let more = keys.len() > LISTED_MAX;
    keys.truncate(LISTED_MAX);
    Answer::Keys { keys: keys.iter().map(shown).collect(), more }
}

fn public(key: &crate::keys::KeyInfo) -> Result<Answer, Refusal> {
    let newest = key.versions.last().filter(|version| !version.public_key.is_empty());
    let (Some(version), Some(algorithm)) = (newest, key.algorithms.first()) else {
        let why = format!("{} is a secret and has no public half", key.name);
        return Err(Refusal { status: Status::InvalidRequest, why });
    };
    let (algorithm, key) = (algorithm.name().to_owned(), version.public_key.clone());
    Ok(Answer::Public { algorithm, key })
}

/// The algorithms of a kind of key, by its name: a server cannot know which of them its next client asks for.
fn kind(name: &str) -> Option<&'static [Algorithm]> {
    use Algorithm::*;
    Some(match name {
        // RSAES-PKCS1-v1_5 is only for keys whose policy names it.
        _ if name == "rsa" || rsa_bits(name).is_some() => &[RsaPkcs1, RsaPss, RsaOaep],
        "ec-p256" => &[EcdsaP256, EcdhP256],
        "ec-p384" => &[EcdsaP384, EcdhP384],
        "ec-p521" => &[EcdsaP521, EcdhP521],
        _ => return None,
    })
}

/// The size that the name of a kind of RSA keys has.
fn rsa_bits(kind: &str) -> Option<u32> {
    let bits = kind.strip_prefix("rsa-")?.parse().ok()?;
    RSA_SIZES.contains(&bits).then_some(bits)
}

/// A [`KeyPolicy`], read.
struct Policy {
    /// Of a key that is to be made, if that was said.
    rsa_bits: Option<u32>,
    algorithms: Vec<Algorithm>,
    purposes: Purposes,
    grantees: Vec<Who>,
}

impl Policy {
    fn read(policy: &KeyPolicy) -> Result<Self, Refusal> {
        let KeyPolicy { algorithms, purposes, callers } = policy;
        let purposes = match purposes.is_empty() {
            true => None,
            false => Some(purposes.join(",").parse().map_err(|why| wrong(format!("{why}")))?),
        };
        let (mut known, mut bits) = (Vec::new(), None);
        for name in algorithms {
            bits = bits.or(rsa_bits(name));
            match kind(name) {
                // A kind of key stands for those of its algorithms that serve a purpose: to sign, if none is named.
                Some(all) => {
                    let wanted = purposes.unwrap_or(Purpose::Sign.into());
                    let serves = |it: &&Algorithm| !Purposes::of(**it).among(wanted).is_empty();
                    let before = known.len();
                    known.extend(all.iter().filter(serves));
                    if known.len() == before {
                        let why = format!("a key of the kind {name} does not serve to {wanted}");
                        return Err(wrong(why));
                    }
                }
                None => known.push(name.parse::<Algorithm>().map_err(|_| {
                    wrong(format!(
                        "no algorithm is called {name:?}; keyway crypto list names them, and rsa, rsa-2048, rsa-3072, \
                         rsa-4096, rsa-8192, ec-p256, ec-p384 and ec-p521 are kinds of keys"
                    ))
                })?),
            }
        }
        let algorithms = known;
        let purposes = purposes.unwrap_or_else(|| {
            // To wrap is apart, and so is ESP: a policy that wants one of them says so.
            let all =
                algorithms.iter().map(|it| Purposes::of(*it)).fold(Purposes::NONE, Purposes::and);
            all.without(Purpose::Wrap.into()).without(Purpose::Esp.into())
        });
        Ok(Policy { rsa_bits: bits, algorithms, purposes, grantees: grantees(callers)? })
    }

    /// For the clients of a name space, if it is a key in one.
    fn in_space(mut self, space: Option<&NameSpace>, keys: &KeyStore) -> Result<Self, Refusal> {
        let Some(NameSpace { prefix, clients }) = space else { return Ok(self) };
        if !self.grantees.is_empty() {
            let why = format!(
                "keys whose names begin with {prefix} are for the clients that make them, and no others"
            );
            return Err(wrong(why));
        }
        let most = NAME_SPACE_KEYS_MAX;
        if keys.count(prefix) >= most {
            let why = format!(
                "there are {most} keys whose names begin with {prefix}, and no more than that may be"
            );
            return Err(Refusal { status: Status::Busy, why });
        }
        self.grantees = vec![clients.clone()];
        Ok(self)
    }

    fn spec(&self) -> Spec<'_> {
        Spec { algorithms: &self.algorithms, purposes: self.purposes }
    }
}

/// A new key of the size that a key has.
fn alike(keys: &KeyStore, name: &str) -> Material<'static> {
    let bits = keys.show(name).ok().and_then(|key| {
        let is_rsa = key.algorithms.first()?.is_rsa();
        // An RSAPublicKey: little more than the modulus.
        let bytes = key.versions.last().filter(|_| is_rsa)?.public_key.len();
        RSA_SIZES.into_iter().rev().find(|bits| *bits as usize / 8 < bytes)
    });
    bits.map_or(Material::NEW, |rsa_bits| Material::Generate { rsa_bits })
}

/// Refuses a grant that could be for no client, since the daemon does not see their programs.
fn can_be_for(sight: Sight, grantees: &[Who]) -> Result<(), Refusal> {
    let mut programs = grantees.iter().filter(|who| who.executable.is_some());
    programs.try_for_each(|who| sight.reaches(who.uid)).map_err(wrong)
}

fn wrong(why: String) -> Refusal {
    Refusal { status: Status::InvalidRequest, why }
}

/// The forms that the bytes may have, the likeliest first.
fn forms<'a>(algorithms: &[Algorithm], bytes: &'a [u8]) -> Vec<Material<'a>> {
    let is_pair = algorithms.iter().any(|algorithm| {
        matches!(algorithm.kind(), Kind::Signature | Kind::Encryption | Kind::Exchange | Kind::Kem)
    });
    match bytes {
        [] => Vec::new(),
        _ if is_pem(bytes) => vec![Material::Pem(bytes)],
        // A sequence, in DER.
        [0x30, ..] if is_pair => {
            vec![Material::Pkcs1(bytes), Material::Sec1(bytes), Material::Pkcs8(bytes)]
        }
        _ => vec![Material::Secret(bytes)],
    }
}

/// Refuses bytes that can be no private key of these algorithms: for them a file is PEM or DER.
fn is_private_key(algorithms: &[Algorithm], bytes: &[u8]) -> Result<(), Refusal> {
    let needs_form =
        |algorithm: &Algorithm| matches!(algorithm.kind(), Kind::Signature | Kind::Encryption);
    match algorithms.iter().find(|algorithm| needs_form(algorithm)) {
        Some(_) if has_line(bytes, b"-----BEGIN OPENSSH PRIVATE KEY-----") => Err(wrong(
            "that is a key in OpenSSH's own form; ssh-keygen -p -m PKCS8 -f FILE changes the file to PKCS#8"
                .to_owned(),
        )),
        Some(algorithm) if !is_pem(bytes) && bytes.first() != Some(&0x30) => {
            Err(wrong(format!(
                "that is no private key as PEM or DER, which {algorithm} needs; a PEM file has a line \
                 -----BEGIN PRIVATE KEY-----"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether it is a text of PEM, which may have other text before it (RFC 7468 § 2).
fn is_pem(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"-----BEGIN "))
}

fn has_line(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == wanted)
}

/// Callers as they are written: `everybody`, `vm:NAME`, or conditions joined by `+`: `user:NUMBER`,
/// `group:NUMBER`, `program:PATH`.
fn grantees(callers: &[String]) -> Result<Vec<Who>, Refusal> {
    callers.iter().map(|caller| who(caller)).collect()
}

fn who(caller: &str) -> Result<Who, Refusal> {
    let mut who = Who::ANY;
    if caller == "everybody" {
        return Ok(who);
    }
    if let Some(name) = caller.strip_prefix("vm:")
        && is_vm_name(name)
    {
        return Ok(Who { vm: Some(name.to_owned()), ..who });
    }
    for condition in caller.split('+') {
        let understood = match condition.split_once(':') {
            Some(("user", number)) => number.parse().map(|it| who.uid = Some(it)).is_ok(),
            Some(("group", number)) => number.parse().map(|it| who.gid = Some(it)).is_ok(),
            Some(("program", path)) if path.starts_with('/') => {
                who.executable = Some(path.into());
                true
            }
            _ => false,
        };
        if !understood {
            return Err(wrong(format!(
                "{condition:?} is not user:NAME, group:NAME (or their numbers), program:/PATH, vm:NAME (alone) or \
                 everybody"
            )));
        }
    }
    Ok(who)
}

fn shown(key: &crate::keys::KeyInfo) -> KeyInfo {
    let caller = |grant: &Grant| format!("{} to {}", grant.who, grant.purposes);
    KeyInfo {
        name: key.name.clone(),
        policy: KeyPolicy {
            algorithms: key.algorithms.iter().map(|it| it.name().to_owned()).collect(),
            purposes: names(key.purposes),
            callers: key.grants.iter().map(caller).collect(),
        },
        version: key.versions.last().map_or(0, |version| version.number),
        state: match (&key.disabled, key.revoked_s) {
            (Some(why), _) => format!("disabled: {why}"),
            (None, Some(_)) => "revoked".to_owned(),
            (None, None) => "active".to_owned(),
        },
        created: key.created_s,
        uses: key.versions.iter().map(|version| version.uses).sum(),
        tokens: key.versions.last().map_or_else(Vec::new, |version| version.tokens.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_read_as_they_are_written() {
        let read = |text| who(text).map_err(|refusal| refusal.why);
        assert_eq!(read("everybody"), Ok(Who::ANY));
        assert_eq!(read("user:7"), Ok(Who { uid: Some(7), ..Who::ANY }));
        let program = Some("/usr/bin/x".into());
        let both = Who { gid: Some(9), executable: program, ..Who::ANY };
        assert_eq!(read("group:9+program:/usr/bin/x"), Ok(both));
        assert_eq!(read("vm:web-1"), Ok(Who { vm: Some("web-1".into()), ..Who::ANY }));
        for wrong in [
            "",
            "user:",
            "user:root",
            "program:x",
            "all",
            "user:1+",
            "uid:1",
            "vm:",
            "vm:a/b",
            "vm:a+user:1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
