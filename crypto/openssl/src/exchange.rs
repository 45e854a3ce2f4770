//! ECDH and X25519 with keys of cryptod, and the key derivation of X9.63 behind it, which CMS has.

use crate::abi::*;
use crate::key::Key;
use crate::keymgmt::KeyData;
use crate::provider::Provider;
use keyway_client::{Hash, Hasher, PublicKey};
use keyway_engine::{Algorithm, Request, Zeroizing};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// OpenSSL's name of the key derivation function.
const X963: &str = "X963KDF";
/// Most bytes that are derived: far more than a cipher's key.
const DERIVED_BYTES_MAX: usize = 1 << 16;

/// An operation under way.
#[derive(Clone)]
struct Context {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    peer: Option<Arc<Key>>,
    /// Whether a key is derived from the secret; else the secret itself is the result.
    derives: bool,
    hash: Option<Hash>,
    derived_bytes: usize,
    /// Shared information, which is derived from too.
    shared: Vec<u8>,
}

pub static FUNCTIONS: [Dispatch; 11] = [
    Dispatch::new(KEYEXCH_NEWCTX, new as *const c_void),
    Dispatch::new(KEYEXCH_INIT, init as *const c_void),
    Dispatch::new(KEYEXCH_DERIVE, derive as *const c_void),
    Dispatch::new(KEYEXCH_SET_PEER, set_peer as *const c_void),
    Dispatch::new(KEYEXCH_FREECTX, free::<Context> as *const c_void),
    Dispatch::new(KEYEXCH_DUPCTX, dup::<Context> as *const c_void),
    Dispatch::new(KEYEXCH_SET_CTX_PARAMS, set_params as *const c_void),
    Dispatch::new(KEYEXCH_SETTABLE_CTX_PARAMS, settable as *const c_void),
    Dispatch::new(KEYEXCH_GET_CTX_PARAMS, get_params as *const c_void),
    Dispatch::new(KEYEXCH_GETTABLE_CTX_PARAMS, gettable as *const c_void),
    Dispatch::END,
];

/// How a key agrees, and its public half as the peer of another needs it.
struct Agreement<'k> {
    algorithm: Algorithm,
    public: &'k [u8],
    secret_bytes: usize,
}

impl Agreement<'_> {
    fn of(key: &Key) -> Option<Agreement<'_>> {
        match &key.public {
            PublicKey::Ec { curve, point } => Some(Agreement {
                algorithm: curve.ecdh(),
                public: point,
                secret_bytes: curve.bytes(),
            }),
            PublicKey::X25519(public) => {
                Some(Agreement { algorithm: Algorithm::X25519, public, secret_bytes: public.len() })
            }
            _ => None,
        }
    }
}

impl Context {
    fn begin(&mut self, key: &Handle<KeyData>, params: &Params) -> Option<()> {
        self.key.clone_from(&key.get()?.key);
        self.agreement()?;
        self.set(params)
    }

    /// How the key agrees.
    fn agreement(&self) -> Option<Agreement<'_>> {
        let agreement = Agreement::of(self.key.as_ref()?);
        if agreement.is_none() {
            self.provider.raise_unfit("only keys of curves agree on secrets");
        }
        agreement
    }

    fn set(&mut self, params: &Params) -> Option<()> {
        // The cofactor of these curves is 1.
        if let Some(name) = params.get(NAME_KDF_TYPE).and_then(Param::text) {
            if !name.is_empty() && name != X963 {
                self.provider.raise_unfit(&format!("no key is derived by {name}"));
                return None;
            }
            self.derives = !name.is_empty();
        }
        if let Some(name) = params.get(NAME_KDF_DIGEST).and_then(Param::text) {
            self.hash = Hash::from_name(name);
            if self.hash.is_none() {
                self.provider.raise_unfit(&format!("no key is derived with {name}"));
                return None;
            }
        }
        if let Some(bytes) = params.get(NAME_KDF_OUTLEN) {
            self.derived_bytes = bytes.integer()?.try_into().ok()?;
        }
        if let Some(shared) = params.get(NAME_KDF_UKM) {
            self.shared = shared.octets()?.to_vec();
        }
        Some(())
    }

    fn get(&self, params: &mut Params) -> Option<()> {
        let mut fits = true;
        if let Some(param) = params.get_mut(NAME_COFACTOR_MODE) {
            fits &= param.put_integer(0);
        }
        if let Some(param) = params.get_mut(NAME_KDF_TYPE) {
            fits &= param.put_text(if self.derives { X963 } else { "" });
        }
        if let Some(param) = params.get_mut(NAME_KDF_DIGEST) {
            fits &= param.put_text(self.hash.map_or("", Hash::name));
        }
        if let Some(param) = params.get_mut(NAME_KDF_OUTLEN) {
            fits &= param.put_integer(self.derived_bytes as i64);
        }
        fits.then_some(())
    }

    /// Bytes of the result.
    fn bytes(&self) -> Option<usize> {
        if !self.derives {
            return Some(self.agreement()?.secret_bytes);
        }
        Some(self.derived_bytes).filter(|bytes| (1..=DERIVED_BYTES_MAX).contains(bytes))
    }

    fn agreed(&self) -> Option<Zeroizing<Vec<u8>>> {
        let (key, agreement) = (self.key.as_ref()?, self.agreement()?);
        let peer = Agreement::of(self.peer.as_ref()?)?.public;
        let Some(name) = &key.name else {
            self.provider.raise_unfit("it is a public key, and agrees on nothing");
            return None;
        };
        let mut out = Zeroizing::new(vec![0; agreement.secret_bytes]);
        let mut request = Request::Agree { peer, out: &mut out };
        match self.provider.client.run(name, &key.info, agreement.algorithm, &mut request) {
            Ok(_) => Some(out),
            Err(why) => {
                self.provider.raise(&why);
                None
            }
        }
    }

    fn derive(&self) -> Option<Zeroizing<Vec<u8>>> {
        let secret = self.agreed()?;
        match self.derives {
            true => Some(x963(self.hash?, &secret, &self.shared, self.bytes()?)),
            false => Some(secret),
        }
    }
}

/// ANSI X9.63's key derivation (SEC 1 § 3.6.1).
fn x963(hash: Hash, secret: &[u8], shared: &[u8], bytes: usize) -> Zeroizing<Vec<u8>> {
    let mut out = Zeroizing::new(Vec::with_capacity(bytes.next_multiple_of(hash.bytes())));
    for counter in 1_u32.. {
        if out.len() >= bytes {
            break;
        }
        let mut hasher = Hasher::new(hash);
        hasher.update(secret);
        hasher.update(&counter.to_be_bytes());
        hasher.update(shared);
        out.extend_from_slice(&Zeroizing::new(hasher.finish()));
    }
    out.truncate(bytes);
    out
}

extern "C" fn new(provider: Handle<Arc<Provider>>) -> Handle<Context> {
    guard(Handle::NONE, || {
        let Some(provider) = provider.get().cloned() else { return Handle::NONE };
        Handle::new(Context {
            provider,
            key: None,
            peer: None,
            derives: false,
            hash: None,
            derived_bytes: 0,
            shared: Vec::new(),
        })
    })
}

extern "C" fn init(mut context: Handle<Context>, key: Handle<KeyData>, params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.begin(&key, &params)).is_some().into())
}

extern "C" fn set_peer(mut context: Handle<Context>, peer: Handle<KeyData>) -> c_int {
    guard(0, || {
        let (Some(it), Some(peer)) = (context.get_mut(), peer.get().and_then(|it| it.key.clone()))
        else {
            return 0;
        };
        let algorithm = |key: &Key| Agreement::of(key).map(|it| it.algorithm);
        if algorithm(&peer) != it.key.as_ref().and_then(|key| algorithm(key)) {
            it.provider.raise_unfit("the peer's key is on another curve");
            return 0;
        }
        it.peer = Some(peer);
        1
    })
}

extern "C" fn derive(
    context: Handle<Context>,
    mut out: Output,
    mut length: Length,
    room: usize,
) -> c_int {
    guard(0, || {
        let Some(it) = context.get() else { return 0 };
        let Some(bytes) = it.bytes() else { return 0 };
        if out.is_none() {
            length.put(bytes);
            return 1;
        }
        if room < bytes {
            it.provider.raise_unfit("there is too little room for the secret");
            return 0;
        }
        let Some(secret) = it.derive() else { return 0 };
        length.put(secret.len());
        out.put(room, &secret).into()
    })
}

extern "C" fn set_params(mut context: Handle<Context>, params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.set(&params)).is_some().into())
}

extern "C" fn get_params(context: Handle<Context>, mut params: Params) -> c_int {
    guard(0, || context.get().and_then(|it| it.get(&mut params)).is_some().into())
}

static SETTABLE: [Settable; 7] = [
    Settable::new(NAME_COFACTOR_MODE, PARAM_INTEGER),
    Settable::new(NAME_KDF_TYPE, PARAM_UTF8_STRING),
    Settable::new(NAME_KDF_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_KDF_DIGEST_PROPERTIES, PARAM_UTF8_STRING),
    Settable::new(NAME_KDF_OUTLEN, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_KDF_UKM, PARAM_OCTET_STRING),
    Settable::END,
];

extern "C" fn settable(_: Handle<Context>, _: Handle<Arc<Provider>>) -> *const Settable {
    SETTABLE.as_ptr()
}

static GETTABLE: [Settable; 5] = [
    Settable::new(NAME_COFACTOR_MODE, PARAM_INTEGER),
    Settable::new(NAME_KDF_TYPE, PARAM_UTF8_STRING),
    Settable::new(NAME_KDF_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_KDF_OUTLEN, PARAM_UNSIGNED_INTEGER),
    Settable::END,
];

extern "C" fn gettable(_: Handle<Context>, _: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An example of NIST's (CAVS 12.0, "ANSI X9.63-2001", SHA-256, without shared information).
    #[test]
    fn x963_derives_what_the_standard_does() {
        let hex = |text: &str| -> Vec<u8> {
            let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            (0..text.len()).step_by(2).map(byte).collect()
        };
        let secret = hex("96c05619d56c328ab95fe84b18264b08725b85e33fd34f08");
        let derived = x963(Hash::Sha256, &secret, &[], 16);
        assert_eq!(*derived, hex("443024c3dae66b95e6f5670601558f71"));
        assert_eq!(x963(Hash::Sha256, &secret, b"a", 100).len(), 100);
    }
}
