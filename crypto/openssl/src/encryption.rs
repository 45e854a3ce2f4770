//! Decryption with RSA keys of cryptod, and encryption to their public halves.

use crate::abi::*;
use crate::key::{Key, Kind};
use crate::keymgmt::KeyData;
use crate::provider::Provider;
use aws_lc_rs::rand;
use keyway_client::Hash;
use keyway_engine::{Algorithm, OaepParameters, Request, Zeroizing};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Bytes of a premaster secret (RFC 5246 § 7.4.7.1).
const PREMASTER_BYTES: usize = 48;

/// How a message is padded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    Pkcs1,
    /// PKCS #1 of a premaster secret, whose faults libssl must not see.
    Tls,
    Oaep,
}

/// An operation under way.
#[derive(Clone)]
struct Context {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    padding: Padding,
    hash: Option<Hash>,
    mgf1: Option<Hash>,
    label: Vec<u8>,
    /// The version that the client asked for, and the one that was agreed on.
    client_version: u16,
    negotiated_version: u16,
}

pub static FUNCTIONS: [Dispatch; 12] = [
    Dispatch::new(ASYM_CIPHER_NEWCTX, new as *const c_void),
    Dispatch::new(ASYM_CIPHER_ENCRYPT_INIT, init as *const c_void),
    Dispatch::new(ASYM_CIPHER_ENCRYPT, encrypt as *const c_void),
    Dispatch::new(ASYM_CIPHER_DECRYPT_INIT, init as *const c_void),
    Dispatch::new(ASYM_CIPHER_DECRYPT, decrypt as *const c_void),
    Dispatch::new(ASYM_CIPHER_FREECTX, free::<Context> as *const c_void),
    Dispatch::new(ASYM_CIPHER_DUPCTX, dup::<Context> as *const c_void),
    Dispatch::new(ASYM_CIPHER_GET_CTX_PARAMS, get_params as *const c_void),
    Dispatch::new(ASYM_CIPHER_GETTABLE_CTX_PARAMS, gettable as *const c_void),
    Dispatch::new(ASYM_CIPHER_SET_CTX_PARAMS, set_params as *const c_void),
    Dispatch::new(ASYM_CIPHER_SETTABLE_CTX_PARAMS, settable as *const c_void),
    Dispatch::END,
];

impl Context {
    fn begin(&mut self, key: &Handle<KeyData>, params: &Params) -> Option<()> {
        if let Some(key) = key.get() {
            self.key.clone_from(&key.key);
        }
        if self.key.as_ref()?.kind() != Kind::Rsa {
            self.provider.raise_unfit("only RSA keys of cryptod decrypt");
            return None;
        }
        self.set(params)
    }

    fn set(&mut self, params: &Params) -> Option<()> {
        if let Some(param) = params.get(NAME_PAD_MODE) {
            self.padding = match (param.text(), param.integer()) {
                (Some("pkcs1"), _) => Padding::Pkcs1,
                (Some("oaep"), _) => Padding::Oaep,
                (_, Some(mode)) if mode == i64::from(RSA_PKCS1_PADDING) => Padding::Pkcs1,
                (_, Some(mode)) if mode == i64::from(RSA_PKCS1_OAEP_PADDING) => Padding::Oaep,
                (_, Some(mode)) if mode == i64::from(RSA_PKCS1_WITH_TLS_PADDING) => Padding::Tls,
                _ => {
                    let why = "keys of cryptod decrypt with paddings pkcs1 and oaep";
                    self.provider.raise_unfit(why);
                    return None;
                }
            };
        }
        if let Some(name) = params.get(NAME_DIGEST).and_then(Param::text) {
            self.hash = Some(self.named(name)?);
        }
        if let Some(name) = params.get(NAME_MGF1_DIGEST).and_then(Param::text) {
            self.mgf1 = Some(self.named(name)?);
        }
        if let Some(label) = params.get(NAME_OAEP_LABEL) {
            self.label = label.octets()?.to_vec();
        }
        for (name, version) in [
            (NAME_TLS_CLIENT_VERSION, &mut self.client_version),
            (NAME_TLS_NEGOTIATED_VERSION, &mut self.negotiated_version),
        ] {
            if let Some(param) = params.get(name) {
                *version = param.integer()?.try_into().ok()?;
            }
        }
        Some(())
    }

    fn get(&self, params: &mut Params) -> Option<()> {
        let hash = self.hash.unwrap_or(Hash::Sha1);
        if let Some(param) = params.get_mut(NAME_PAD_MODE) {
            let (text, number) = match self.padding {
                Padding::Pkcs1 => ("pkcs1", RSA_PKCS1_PADDING),
                Padding::Tls => ("", RSA_PKCS1_WITH_TLS_PADDING),
                Padding::Oaep => ("oaep", RSA_PKCS1_OAEP_PADDING),
            };
            (param.put_text(text) || param.put_integer(number.into())).then_some(())?;
        }
        if let Some(param) = params.get_mut(NAME_DIGEST) {
            param.put_text(hash.name()).then_some(())?;
        }
        if let Some(param) = params.get_mut(NAME_MGF1_DIGEST) {
            param.put_text(self.mgf1.unwrap_or(hash).name()).then_some(())?;
        }
        if let Some(param) = params.get_mut(NAME_OAEP_LABEL) {
            param.put_octet_pointer(&self.label).then_some(())?;
        }
        Some(())
    }

    fn named(&self, name: &str) -> Option<Hash> {
        let hash = Hash::from_name(name);
        if hash.is_none() {
            self.provider.raise_unfit(&format!("keys of cryptod do not decrypt with {name}"));
        }
        hash
    }

    /// The algorithm and what to tell it. OpenSSL's OAEP has SHA-1 unless another hash is named.
    fn request(&self) -> (Algorithm, OaepParameters) {
        let hash = self.hash.unwrap_or(Hash::Sha1);
        match self.padding {
            Padding::Pkcs1 | Padding::Tls => (Algorithm::RsaesPkcs1, OaepParameters::default()),
            Padding::Oaep => {
                let mgf1_hash = self.mgf1.map(Hash::algorithm);
                let hash = Some(hash.algorithm());
                (Algorithm::RsaOaep, OaepParameters { hash, mgf1_hash })
            }
        }
    }

    fn label(&self) -> &[u8] {
        if self.padding == Padding::Oaep { &self.label } else { &[] }
    }

    fn decrypt(&self, ciphertext: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let key = self.key.as_ref()?;
        let Some(name) = &key.name else {
            self.provider.raise_unfit("it is a public key, and decrypts nothing");
            return None;
        };
        let (algorithm, parameters) = self.request();
        let mut out = Zeroizing::new(vec![0; key.signature_bytes_max()]);
        let label = self.label();
        let mut request = Request::PrivateDecrypt { ciphertext, parameters, label, out: &mut out };
        match self.provider.client.run(name, &key.info, algorithm, &mut request) {
            Ok(used) if self.padding == Padding::Tls => self.premaster(out.get(..used)?),
            Ok(used) => {
                out.truncate(used);
                Some(out)
            }
            Err(why) => {
                self.provider.raise(&why);
                None
            }
        }
    }

    /// The premaster secret, or a random one in its place if that is none of this version (RFC 5246 § 7.4.7.1): a
    /// handshake then fails at its end, as it does with any other wrong secret. No branch depends on which it is.
    fn premaster(&self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut secret = Zeroizing::new(vec![0; PREMASTER_BYTES]);
        rand::fill(&mut secret).ok()?;
        let mut whole = Zeroizing::new([0; PREMASTER_BYTES]);
        let bytes = message.len().min(PREMASTER_BYTES);
        whole[..bytes].copy_from_slice(&message[..bytes]);
        let difference = |version: u16| {
            let [high, low] = version.to_be_bytes();
            usize::from((whole[0] ^ high) | (whole[1] ^ low))
        };
        let is_negotiated = self.negotiated_version != 0;
        let wrong_version = match is_negotiated {
            true => difference(self.client_version) * difference(self.negotiated_version),
            false => difference(self.client_version),
        };
        let wrong = (message.len() ^ PREMASTER_BYTES) | wrong_version;
        // All ones where it is right.
        let mask = (((wrong | wrong.wrapping_neg()) >> (usize::BITS - 1)) as u8).wrapping_sub(1);
        for (random, right) in secret.iter_mut().zip(whole.iter()) {
            *random = (*right & mask) | (*random & !mask);
        }
        Some(secret)
    }

    fn encrypt(&self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let key = self.key.as_ref()?;
        let (algorithm, parameters) = self.request();
        let mut out = Zeroizing::new(vec![0; key.signature_bytes_max()]);
        let (public_key, label) = (key.public_bits(), self.label());
        let mut request =
            Request::PublicEncrypt { public_key, message, parameters, label, out: &mut out };
        match self.provider.client.run_without_key(algorithm, &mut request) {
            Ok(used) => {
                out.truncate(used);
                Some(out)
            }
            Err(why) => {
                self.provider.raise(&why);
                None
            }
        }
    }

    /// Writes a result, if there is room, else says how much is needed.
    fn put(
        &self,
        made: impl FnOnce() -> Option<Zeroizing<Vec<u8>>>,
        (mut out, mut length, room): (Output, Length, usize),
    ) -> Option<()> {
        if out.is_none() {
            length.put(self.key.as_ref()?.signature_bytes_max());
            return Some(());
        }
        let made = made()?;
        length.put(made.len());
        out.put(room, &made).then_some(())
    }
}

extern "C" fn new(provider: Handle<Arc<Provider>>) -> Handle<Context> {
    guard(Handle::NONE, || {
        let Some(provider) = provider.get().cloned() else { return Handle::NONE };
        Handle::new(Context {
            provider,
            key: None,
            padding: Padding::Pkcs1,
            hash: None,
            mgf1: None,
            label: Vec::new(),
            client_version: 0,
            negotiated_version: 0,
        })
    })
}

extern "C" fn init(mut context: Handle<Context>, key: Handle<KeyData>, params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.begin(&key, &params)).is_some().into())
}

extern "C" fn decrypt(
    context: Handle<Context>,
    out: Output,
    length: Length,
    room: usize,
    ciphertext: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let decrypted = |it: &Context| it.decrypt(ciphertext.bytes(bytes)?);
        let done = context.get().and_then(|it| it.put(|| decrypted(it), (out, length, room)));
        done.is_some().into()
    })
}

extern "C" fn encrypt(
    context: Handle<Context>,
    out: Output,
    length: Length,
    room: usize,
    message: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let encrypted = |it: &Context| it.encrypt(message.bytes(bytes)?);
        let done = context.get().and_then(|it| it.put(|| encrypted(it), (out, length, room)));
        done.is_some().into()
    })
}

extern "C" fn set_params(mut context: Handle<Context>, params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.set(&params)).is_some().into())
}

extern "C" fn get_params(context: Handle<Context>, mut params: Params) -> c_int {
    guard(0, || context.get().and_then(|it| it.get(&mut params)).is_some().into())
}

static GETTABLE: [Settable; 5] = [
    Settable::new(NAME_PAD_MODE, PARAM_UTF8_STRING),
    Settable::new(NAME_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_MGF1_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_OAEP_LABEL, PARAM_OCTET_PTR),
    Settable::END,
];

extern "C" fn gettable(_: Handle<Context>, _: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}

static SETTABLE: [Settable; 9] = [
    Settable::new(NAME_PAD_MODE, PARAM_UTF8_STRING),
    Settable::new(NAME_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_DIGEST_PROPERTIES, PARAM_UTF8_STRING),
    Settable::new(NAME_MGF1_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_MGF1_PROPERTIES, PARAM_UTF8_STRING),
    Settable::new(NAME_OAEP_LABEL, PARAM_OCTET_STRING),
    Settable::new(NAME_TLS_CLIENT_VERSION, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_TLS_NEGOTIATED_VERSION, PARAM_UNSIGNED_INTEGER),
    Settable::END,
];

extern "C" fn settable(_: Handle<Context>, _: Handle<Arc<Provider>>) -> *const Settable {
    SETTABLE.as_ptr()
}
