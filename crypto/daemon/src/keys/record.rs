//! A key, as it lives and as it is saved.
//!
//! Saved it is [`Saved`], and a [`Chain`] behind it if it has certificates, in postcard's form, sealed by [`super::sealed`]. Its name is not among
//! what is saved: it is that of the file, and the seal is bound to it.

use super::access::{Grant, Purpose, Purposes, Who, is_vm_name};
use super::error::Error;
use super::reference::TokenReference;
use crate::limits;
use keyway_engine::{Algorithm, Key, Kind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// A key with all its versions, checked: no key has a use that the rules below forbid.
#[derive(Clone)]
pub struct Record {
    pub(crate) name: String,
    pub(crate) algorithms: Vec<Algorithm>,
    pub(crate) purposes: Purposes,
    pub(crate) grants: Vec<Grant>,
    /// Seconds since 1970.
    pub(crate) created_s: u64,
    /// When it was revoked, if it is; seconds since 1970.
    pub(crate) revoked_s: Option<u64>,
    /// One at least, the newest last.
    pub(crate) versions: Vec<Arc<Version>>,
    /// The certificates of one of its versions.
    pub(crate) chain: Option<Chain>,
}

/// Certificates that belong to a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Chain {
    /// The version whose public half the first certificate names.
    pub version: u32,
    /// Each in DER; each one certifies the one before it.
    pub certificates: Vec<Vec<u8>>,
}

/// One version of a key.
pub(crate) struct Version {
    /// From 1 on, higher for newer ones.
    pub number: u32,
    /// Seconds since 1970.
    pub created_s: u64,
    pub encoding: Encoding,
    pub material: Zeroizing<Vec<u8>>,
    /// Where it lives, if that is in tokens; then the material says so, and nothing else.
    pub token: Option<TokenReference>,
    /// As [`Session::public_key`](keyway_engine::Session::public_key) gives it; empty if there is
    /// none.
    pub public: Vec<u8>,
    /// Requests that were done under it.
    pub uses: Arc<AtomicU64>,
    /// `uses` as it was when the key was saved last; anything else where that failed.
    pub saved_uses: AtomicU64,
}

/// The form of a key's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// The key itself.
    Secret,
    /// A private key as PKCS#8, DER.
    Pkcs8,
    /// An RSA private key as PKCS#1, DER.
    Pkcs1,
    /// A private key of an elliptic curve as SEC 1, DER.
    Sec1,
    /// No key, but the tokens that it lives in, and its `CKA_ID` there.
    Token,
}

impl Encoding {
    const ALL: [Encoding; 5] =
        [Encoding::Secret, Encoding::Pkcs8, Encoding::Pkcs1, Encoding::Sec1, Encoding::Token];

    /// The engine's key of these bytes, or of this name if it lives in a token.
    pub(crate) fn key<'a>(self, material: &'a [u8], name: &'a str) -> Key<'a> {
        match self {
            Encoding::Token => Key::Named(name),
            Encoding::Secret => Key::Secret(material),
            Encoding::Pkcs8 => Key::Pkcs8(material),
            Encoding::Pkcs1 => Key::Pkcs1(material),
            Encoding::Sec1 => Key::Sec1(material),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Saved<'a> {
    #[serde(borrow)]
    algorithms: Vec<&'a str>,
    purposes: u8,
    #[serde(borrow)]
    grants: Vec<SavedGrant<'a>>,
    created_s: u64,
    revoked_s: Option<u64>,
    #[serde(borrow)]
    versions: Vec<SavedVersion<'a>>,
}

#[derive(Serialize, Deserialize)]
struct SavedGrant<'a> {
    uid: Option<u32>,
    gid: Option<u32>,
    /// Or [`VM`] and a name: no path begins so, and a daemon that knows of no virtual machines disables the key.
    executable: Option<Cow<'a, [u8]>>,
    purposes: u8,
}

#[derive(Serialize, Deserialize)]
struct SavedVersion<'a> {
    number: u32,
    created_s: u64,
    encoding: u8,
    material: &'a [u8],
    public: &'a [u8],
    uses: u64,
}

/// What stands before the name of a virtual machine in the place of a program's path.
const VM: &[u8] = b"vm:";

/// More than a saved form has beside its strings, in bytes: for each grant and version, and for the
/// rest.
const OVERHEAD_BYTES: usize = 64;

impl Record {
    /// Reads what was saved.
    ///
    /// # Errors
    /// The fault of these bytes.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, &'static str> {
        let (saved, rest) = postcard::take_from_bytes::<Saved<'_>>(bytes).map_err(|_| SPOILT)?;
        // A key without certificates is saved without a word of them.
        let chain = match rest {
            [] => None,
            rest => match postcard::take_from_bytes::<Chain>(rest) {
                Ok((chain, [])) => Some(chain),
                _ => return Err(SPOILT),
            },
        };
        let unknown = "it is for an algorithm that this version of the program does not know";
        let algorithms = saved.algorithms.iter().map(|name| name.parse().map_err(|_| unknown));
        let record = Record {
            name: name.to_owned(),
            algorithms: algorithms.collect::<Result<_, _>>()?,
            purposes: Purposes::from_bits(saved.purposes).ok_or(SPOILT)?,
            grants: saved
                .grants
                .iter()
                .map(SavedGrant::check)
                .collect::<Option<_>>()
                .ok_or(SPOILT)?,
            created_s: saved.created_s,
            revoked_s: saved.revoked_s,
            versions: saved
                .versions
                .iter()
                .map(|version| version.check().map(Arc::new))
                .collect::<Option<_>>()
                .ok_or(SPOILT)?,
            chain,
        };
        check_use(&record.algorithms, record.purposes)?;
        let ascending = record.versions.is_sorted_by(|one, next| one.number < next.number);
        let versions = 1..=limits::VERSIONS_MAX;
        if !ascending
            || !versions.contains(&record.versions.len())
            || record.grants.len() > limits::GRANTS_MAX
            || !record.grants.iter().all(|grant| record.purposes.covers(grant.purposes))
        {
            return Err(SPOILT);
        }
        Ok(record)
    }

    /// The saved form, with the usage counts as they were noted last.
    ///
    /// # Errors
    /// [`Error::Unwritten`], which does not happen.
    pub fn encode(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let algorithms = self.algorithms.iter().map(|algorithm| algorithm.name()).collect();
        let saved = Saved {
            algorithms,
            purposes: self.purposes.bits(),
            grants: self.grants.iter().map(SavedGrant::new).collect(),
            created_s: self.created_s,
            revoked_s: self.revoked_s,
            versions: self.versions.iter().map(|version| SavedVersion::new(version)).collect(),
        };
        let grants = saved.grants.iter().map(|it| it.executable.as_deref().map_or(0, <[u8]>::len));
        let versions = saved.versions.iter().map(|it| it.material.len() + it.public.len());
        let strings = saved.algorithms.iter().map(|name| name.len() + OVERHEAD_BYTES);
        let room = grants.chain(versions).map(|bytes| bytes + OVERHEAD_BYTES).chain(strings);
        // With room for all of it no copy is left behind where it outgrew its place.
        let bytes = Vec::with_capacity(room.sum::<usize>() + OVERHEAD_BYTES);
        let bytes =
            Zeroizing::new(postcard::to_extend(&saved, bytes).map_err(|_| Error::Unwritten)?);
        let Some(chain) = &self.chain else { return Ok(bytes) };
        let chain = postcard::to_allocvec(chain).map_err(|_| Error::Unwritten)?;
        Ok(Zeroizing::new([&bytes[..], &chain].concat()))
    }

    /// Whether it is for an algorithm, or for the one that leaves open what that names.
    pub(crate) fn is_for(&self, algorithm: Algorithm) -> bool {
        let general = algorithm.general();
        self.algorithms.iter().any(|it| *it == algorithm || Some(*it) == general)
    }

    /// The certificates of its newest version; none if it has none.
    pub(crate) fn certificates(&self) -> &[Vec<u8>] {
        let newest = self.newest().map(|version| version.number);
        let chain = self.chain.as_ref().filter(|chain| Some(chain.version) == newest);
        chain.map_or(&[], |chain| &chain.certificates)
    }

    /// The version that makes what is new.
    pub(crate) fn newest(&self) -> Option<&Arc<Version>> {
        self.versions.last()
    }

    /// The purposes that a caller may use it for.
    pub(crate) fn granted(&self, caller: &super::Caller) -> Purposes {
        let granted = self.grants.iter().filter(|grant| grant.who.is(caller));
        granted.fold(Purposes::NONE, |all, grant| all.and(grant.purposes))
    }

    /// The purposes that a caller may use it for now: one at least.
    ///
    /// # Errors
    /// [`Error::NotAllowed`]; to a caller that has a grant, [`Error::Revoked`].
    pub(crate) fn usable_by(&self, caller: &super::Caller) -> Result<Purposes, Error> {
        let granted = self.granted(caller);
        match (granted.is_empty(), self.revoked_s) {
            (true, _) => Err(Error::NotAllowed(self.name.clone())),
            (false, Some(_)) => Err(Error::Revoked(self.name.clone())),
            (false, None) => Ok(granted),
        }
    }

    /// Whether a version has been used since it was saved.
    pub(crate) fn has_unsaved_uses(&self) -> bool {
        self.versions.iter().any(|version| {
            version.uses.load(Ordering::Relaxed) != version.saved_uses.load(Ordering::Relaxed)
        })
    }
}

impl SavedGrant<'_> {
    fn new(grant: &Grant) -> SavedGrant<'_> {
        let Grant { who: Who { uid, gid, executable, vm }, purposes } = grant;
        let executable = executable.as_ref().map(|path| path.as_os_str().as_bytes());
        let vm = vm.as_deref().map(|name| Cow::Owned([VM, name.as_bytes()].concat()));
        let executable = vm.or(executable.map(Cow::Borrowed));
        SavedGrant { uid: *uid, gid: *gid, executable, purposes: purposes.bits() }
    }

    fn check(&self) -> Option<Grant> {
        let executable = self.executable.as_deref();
        let vm = executable.and_then(|path| path.strip_prefix(VM));
        let vm = vm.map(|name| str::from_utf8(name).map(str::to_owned)).transpose().ok()?;
        let executable = executable.filter(|_| vm.is_none());
        let executable = executable.map(|path| PathBuf::from(OsStr::from_bytes(path)));
        let grant = Grant {
            who: Who { uid: self.uid, gid: self.gid, executable, vm },
            purposes: Purposes::from_bits(self.purposes)?,
        };
        check_who(&grant.who).is_ok().then_some(grant).filter(|grant| !grant.purposes.is_empty())
    }
}

impl SavedVersion<'_> {
    fn new(version: &Version) -> SavedVersion<'_> {
        SavedVersion {
            number: version.number,
            created_s: version.created_s,
            encoding: version.encoding as u8,
            material: &version.material,
            public: &version.public,
            uses: version.saved_uses.load(Ordering::Relaxed),
        }
    }

    fn check(&self) -> Option<Version> {
        let fits = (1..=limits::MATERIAL_BYTES_MAX).contains(&self.material.len())
            && self.public.len() <= keyway_engine::limits::PUBLIC_KEY_BYTES_MAX
            && self.number > 0;
        fits.then_some(())?;
        let encoding = *Encoding::ALL.get(usize::from(self.encoding))?;
        let token = match encoding {
            Encoding::Token => Some(TokenReference::decode(self.material)?),
            _ => None,
        };
        Some(Version {
            number: self.number,
            created_s: self.created_s,
            encoding,
            token,
            material: Zeroizing::new(self.material.to_vec()),
            public: self.public.to_vec(),
            uses: Arc::new(AtomicU64::new(self.uses)),
            saved_uses: AtomicU64::new(self.uses),
        })
    }
}

/// Whether a key may be for these algorithms and purposes.
///
/// # Errors
/// Why not.
pub(crate) fn check_use(algorithms: &[Algorithm], purposes: Purposes) -> Result<(), &'static str> {
    if algorithms.is_empty() || algorithms.len() > limits::ALGORITHMS_MAX {
        return Err("a key is for one algorithm at least, and for 16 at most");
    }
    let possible = algorithms.iter().map(|algorithm| Purposes::of(*algorithm));
    if possible.clone().any(Purposes::is_empty) {
        return Err("it is for an algorithm that has no key to keep");
    }
    // One secret under two algorithms may break both; those of RSA, and of one curve, are meant so.
    let family = algorithms.first().map(|algorithm| Family::of(*algorithm));
    if algorithms.iter().any(|algorithm| Some(Family::of(*algorithm)) != family) {
        return Err(
            "only the algorithms of RSA go together under one key, and ECDSA's and ECDH's of one curve",
        );
    }
    let twice =
        |at: usize| algorithms.get(..at).is_some_and(|other| other.contains(&algorithms[at]));
    if (0..algorithms.len()).any(twice) {
        return Err("an algorithm is named twice");
    }
    if purposes.is_empty() {
        return Err("a key has one purpose at least");
    }
    if !possible.fold(Purposes::NONE, Purposes::and).covers(purposes) {
        return Err("its algorithms do not serve all its purposes");
    }
    let is_mixed = |alone: Purpose| purposes.contains(alone) && purposes != alone.into();
    if is_mixed(Purpose::Wrap) {
        return Err("a key that wraps has no other purpose");
    }
    if is_mixed(Purpose::Esp) {
        return Err("a key of ESP has no other purpose");
    }
    check_grantable(algorithms, purposes)
}

/// Whether one may be allowed these purposes and no others.
///
/// # Errors
/// Why not.
pub(crate) fn check_grantable(
    algorithms: &[Algorithm],
    purposes: Purposes,
) -> Result<(), &'static str> {
    let counter = [Algorithm::Aes128Ctr, Algorithm::Aes256Ctr];
    let both: Purposes = [Purpose::Encrypt, Purpose::Decrypt].into_iter().collect();
    if algorithms.iter().any(|algorithm| counter.contains(algorithm)) && purposes != both {
        return Err("to encrypt and to decrypt in counter mode is the same: allow both");
    }
    Ok(())
}

/// Whether a grant may name callers so.
///
/// # Errors
/// Why not.
pub(crate) fn check_who(who: &Who) -> Result<(), &'static str> {
    if let Some(name) = &who.vm {
        let alone = Who { vm: who.vm.clone(), ..Who::ANY };
        let fits = *who == alone && is_vm_name(name);
        return fits.then_some(()).ok_or("a virtual machine is named by vm:NAME alone");
    }
    let fits = who.executable.as_ref().is_none_or(|path| {
        path.is_absolute() && path.as_os_str().len() <= limits::EXECUTABLE_BYTES_MAX
    });
    fits.then_some(()).ok_or("an executable is named by its whole path, of 4,096 bytes at most")
}

/// Algorithms that may share a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Rsa,
    P256,
    P384,
    P521,
    Alone(Algorithm),
}

impl Family {
    fn of(algorithm: Algorithm) -> Family {
        use Algorithm::*;
        match algorithm {
            EcdsaP256 | EcdsaP256Sha256 | EcdsaP256Sha384 | EcdhP256 => Family::P256,
            EcdsaP384 | EcdsaP384Sha256 | EcdsaP384Sha384 | EcdhP384 => Family::P384,
            EcdsaP521 | EcdhP521 => Family::P521,
            _ if algorithm.is_rsa() => Family::Rsa,
            _ => Family::Alone(algorithm),
        }
    }
}

/// Whether the algorithm's key has a public half.
pub(crate) fn has_public_half(algorithm: Algorithm) -> bool {
    use Kind::{Encryption, Exchange, Kem, Signature};
    matches!(algorithm.kind(), Signature | Encryption | Exchange | Kem)
}

const SPOILT: &str = "what it holds is spoilt";

#[cfg(test)]
mod tests {
    use super::*;

    /// As a store before there were tokens has it.
    #[test]
    fn a_record_keeps_its_form() {
        let version = SavedVersion {
            number: 1,
            created_s: 2,
            encoding: 0,
            material: &[9; 32],
            public: &[],
            uses: 3,
        };
        let saved = Saved {
            algorithms: vec!["aes-256-gcm"],
            purposes: Purposes::from(Purpose::Encrypt).bits(),
            grants: Vec::new(),
            created_s: 2,
            revoked_s: None,
            versions: vec![version],
        };
        let bytes = postcard::to_allocvec(&saved).unwrap();
        let record = Record::decode("name", &bytes).unwrap();
        assert!(record.newest().is_some_and(|version| version.token.is_none()));
        assert_eq!(*record.encode().unwrap(), bytes);
    }
}
