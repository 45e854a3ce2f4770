//! Signatures with keys of cryptod, and verification with these keys' public halves.
//!
//! Messages are hashed here, so that their length is no matter, and cryptod signs the digest. Only Ed25519 and ML-DSA sign
//! whole messages: a context keeps those until the end.

use crate::abi::*;
use crate::key::{Key, Kind};
use crate::keymgmt::KeyData;
use crate::provider::Provider;
use crate::scheme::{Choices, Padding, Salt, Scheme};
use keyway_client::{Hash, Hasher};
use keyway_engine::Request;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// An operation under way.
#[derive(Clone)]
struct Context {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    choices: Choices,
    /// The message so far, or the hash of it.
    message: Vec<u8>,
    hashed: Option<Hasher>,
}

pub static FUNCTIONS: [Dispatch; 20] = [
    Dispatch::new(SIGNATURE_NEWCTX, new as *const c_void),
    Dispatch::new(SIGNATURE_FREECTX, free::<Context> as *const c_void),
    Dispatch::new(SIGNATURE_DUPCTX, dup::<Context> as *const c_void),
    Dispatch::new(SIGNATURE_SIGN_INIT, sign_init as *const c_void),
    Dispatch::new(SIGNATURE_SIGN, sign as *const c_void),
    Dispatch::new(SIGNATURE_VERIFY_INIT, verify_init as *const c_void),
    Dispatch::new(SIGNATURE_VERIFY, verify as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_SIGN_INIT, digest_sign_init as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_SIGN_UPDATE, update as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_SIGN_FINAL, digest_sign_final as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_SIGN, digest_sign as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_VERIFY_INIT, digest_verify_init as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_VERIFY_UPDATE, update as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_VERIFY_FINAL, digest_verify_final as *const c_void),
    Dispatch::new(SIGNATURE_DIGEST_VERIFY, digest_verify as *const c_void),
    Dispatch::new(SIGNATURE_GET_CTX_PARAMS, get_params as *const c_void),
    Dispatch::new(SIGNATURE_GETTABLE_CTX_PARAMS, gettable as *const c_void),
    Dispatch::new(SIGNATURE_SET_CTX_PARAMS, set_params as *const c_void),
    Dispatch::new(SIGNATURE_SETTABLE_CTX_PARAMS, settable as *const c_void),
    Dispatch::END,
];

impl Context {
    fn begin(&mut self, digest: &Text, key: &Handle<KeyData>, params: &Params) -> Option<()> {
        self.message.clear();
        self.hashed = None;
        if let Some(key) = key.get() {
            self.key.clone_from(&key.key);
            self.choices = Choices::default();
        }
        let kind = self.key.as_ref()?.kind();
        if kind == Kind::X25519 {
            self.provider.raise_unfit("X25519 agrees on secrets, and signs nothing");
            return None;
        }
        match digest.as_str().filter(|name| !name.is_empty()) {
            Some(name) if kind.signs_messages() => {
                let kind = kind.name().to_string_lossy();
                self.provider
                    .raise_unfit(&format!("{kind} signs messages, and no digest by {name}"));
                return None;
            }
            Some(name) => self.choices.hash = Some(self.hash(name)?),
            None => {}
        }
        self.set(params)
    }

    fn hash(&self, name: &str) -> Option<Hash> {
        let hash = Hash::from_name(name);
        if hash.is_none() {
            self.provider.raise_unfit(&format!("keys of cryptod do not sign with {name}"));
        }
        hash
    }

    fn set(&mut self, params: &Params) -> Option<()> {
        if let Some(name) = params.get(NAME_DIGEST).and_then(Param::text) {
            self.choices.hash = Some(self.hash(name)?);
        }
        if let Some(name) = params.get(NAME_MGF1_DIGEST).and_then(Param::text) {
            self.choices.mgf1 = Some(self.hash(name)?);
        }
        if let Some(param) = params.get(NAME_PAD_MODE) {
            self.choices.padding = match (param.text(), param.integer()) {
                (Some("pkcs1"), _) => Padding::Pkcs1,
                (Some("pss"), _) => Padding::Pss,
                (_, Some(mode)) if mode == i64::from(RSA_PKCS1_PADDING) => Padding::Pkcs1,
                (_, Some(mode)) if mode == i64::from(RSA_PKCS1_PSS_PADDING) => Padding::Pss,
                _ => {
                    let why = "keys of cryptod sign with paddings pkcs1 and pss";
                    self.provider.raise_unfit(why);
                    return None;
                }
            };
        }
        if let Some(param) = params.get(NAME_SALT_LENGTH) {
            let number = param.integer().or_else(|| param.text()?.parse().ok());
            self.choices.salt = match (param.text(), number) {
                (Some("max"), _) => Salt::Max,
                (Some("digest"), _) => Salt::Digest,
                (Some("auto" | "auto-digestmax"), _) => Salt::Auto,
                (_, Some(number)) if number == i64::from(RSA_PSS_SALTLEN_MAX) => Salt::Max,
                (_, Some(number)) if number == i64::from(RSA_PSS_SALTLEN_DIGEST) => Salt::Digest,
                (_, Some(number)) if number < 0 => Salt::Auto,
                (_, Some(number)) => Salt::Bytes(usize::try_from(number).ok()?),
                _ => return None,
            };
        }
        Some(())
    }

    /// How messages are signed, or what the program has hashed.
    fn scheme(&self, is_hashed: bool) -> Option<Scheme> {
        let key = self.key.as_ref()?;
        let scheme = match is_hashed {
            true => self.choices.of_digest(key),
            false => self.choices.of_message(key),
        };
        if scheme.is_none() {
            self.provider
                .raise_unfit("the key is too short for that digest and salt, or PSS has no digest");
        }
        scheme
    }

    /// Takes the next part of a message.
    fn update(&mut self, data: &[u8]) -> Option<()> {
        if self.key.as_ref()?.kind().signs_messages() {
            self.message.extend_from_slice(data);
            return Some(());
        }
        let hash = self.choices.hash.unwrap_or(Hash::Sha256);
        self.hashed.get_or_insert_with(|| Hasher::new(hash)).update(data);
        Some(())
    }

    /// The bytes that are signed for the message so far: its digest, or the message itself.
    fn finish(&self) -> Option<Vec<u8>> {
        if self.key.as_ref()?.kind().signs_messages() {
            return Some(self.message.clone());
        }
        let hash = self.choices.hash.unwrap_or(Hash::Sha256);
        Some(self.hashed.clone().unwrap_or_else(|| Hasher::new(hash)).finish())
    }

    /// The bytes that are signed for a whole message.
    fn finish_whole(&self, message: &[u8]) -> Option<Vec<u8>> {
        if self.key.as_ref()?.kind().signs_messages() {
            return Some(message.to_vec());
        }
        let hash = self.choices.hash.unwrap_or(Hash::Sha256);
        Some(hash.digest(message))
    }

    /// Signs a digest, or a whole message, with an error in OpenSSL's queue if that does not work.
    fn sign(&self, message: &[u8], scheme: Scheme) -> Option<Vec<u8>> {
        let key = self.key.as_ref()?;
        let Some(name) = &key.name else {
            self.provider.raise_unfit("it is a public key, and signs nothing");
            return None;
        };
        let (algorithm, parameters) = scheme.request();
        let mut out = vec![0; key.signature_bytes_max()];
        let mut request = Request::Sign { message, parameters, out: &mut out };
        match self.provider.client.run(name, &key.info, algorithm, &mut request) {
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

    fn verify(&self, message: &[u8], signature: &[u8], scheme: Scheme) -> Option<()> {
        let public_key = self.key.as_ref()?.public_bits();
        let is_any_salt = self.choices.salt == Salt::Auto;
        let scheme = if is_any_salt { scheme.with_any_salt() } else { scheme };
        let (algorithm, parameters) = scheme.request();
        let mut request = Request::Verify { public_key, message, parameters, signature };
        match self.provider.client.run_without_key(algorithm, &mut request) {
            Ok(_) => Some(()),
            Err(why) => {
                self.provider.raise(&why);
                None
            }
        }
    }

    /// Begins to sign, or to verify, what the program has hashed.
    fn begin_hashed(&mut self, key: &Handle<KeyData>, params: &Params) -> Option<()> {
        self.begin(&Text::NONE, key, params)?;
        let kind = self.key.as_ref()?.kind();
        if kind.signs_messages() {
            let kind = kind.name().to_string_lossy();
            self.provider.raise_unfit(&format!("{kind} signs messages, and no digests"));
            return None;
        }
        Some(())
    }

    /// Signs, if there is room, else says how much is needed.
    fn put(
        &self,
        message: impl FnOnce() -> Option<Vec<u8>>,
        is_hashed: bool,
        (mut out, mut length, room): (Output, Length, usize),
    ) -> Option<()> {
        if out.is_none() {
            length.put(self.key.as_ref()?.signature_bytes_max());
            return Some(());
        }
        let signature = self.sign(&message()?, self.scheme(is_hashed)?)?;
        length.put(signature.len());
        out.put(room, &signature).then_some(())
    }
}

extern "C" fn new(provider: Handle<Arc<Provider>>, _properties: Text) -> Handle<Context> {
    guard(Handle::NONE, || {
        let Some(provider) = provider.get().cloned() else { return Handle::NONE };
        let choices = Choices::default();
        Handle::new(Context { provider, key: None, choices, message: Vec::new(), hashed: None })
    })
}

extern "C" fn digest_sign_init(
    mut context: Handle<Context>,
    digest: Text,
    key: Handle<KeyData>,
    params: Params,
) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.begin(&digest, &key, &params)).is_some().into())
}

extern "C" fn digest_verify_init(
    context: Handle<Context>,
    digest: Text,
    key: Handle<KeyData>,
    params: Params,
) -> c_int {
    digest_sign_init(context, digest, key, params)
}

extern "C" fn sign_init(
    mut context: Handle<Context>,
    key: Handle<KeyData>,
    params: Params,
) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.begin_hashed(&key, &params)).is_some().into())
}

extern "C" fn verify_init(context: Handle<Context>, key: Handle<KeyData>, params: Params) -> c_int {
    sign_init(context, key, params)
}

extern "C" fn sign(
    context: Handle<Context>,
    out: Output,
    length: Length,
    room: usize,
    digest: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let given = || digest.bytes(bytes).map(<[u8]>::to_vec);
        let done = context.get().and_then(|it| it.put(given, true, (out, length, room)));
        done.is_some().into()
    })
}

extern "C" fn verify(
    context: Handle<Context>,
    signature: Input,
    signature_bytes: usize,
    digest: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let verify = |it: &Context| {
            it.verify(digest.bytes(bytes)?, signature.bytes(signature_bytes)?, it.scheme(true)?)
        };
        context.get().and_then(verify).is_some().into()
    })
}

extern "C" fn update(mut context: Handle<Context>, data: Input, bytes: usize) -> c_int {
    guard(0, || {
        let (Some(context), Some(data)) = (context.get_mut(), data.bytes(bytes)) else { return 0 };
        context.update(data).is_some().into()
    })
}

extern "C" fn digest_sign_final(
    context: Handle<Context>,
    out: Output,
    length: Length,
    room: usize,
) -> c_int {
    guard(0, || {
        let done = context.get().and_then(|it| it.put(|| it.finish(), false, (out, length, room)));
        done.is_some().into()
    })
}

extern "C" fn digest_sign(
    context: Handle<Context>,
    out: Output,
    length: Length,
    room: usize,
    message: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let whole = |it: &Context| it.finish_whole(message.bytes(bytes)?);
        let done = context.get().and_then(|it| it.put(|| whole(it), false, (out, length, room)));
        done.is_some().into()
    })
}

extern "C" fn digest_verify_final(
    context: Handle<Context>,
    signature: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let verify =
            |it: &Context| it.verify(&it.finish()?, signature.bytes(bytes)?, it.scheme(false)?);
        context.get().and_then(verify).is_some().into()
    })
}

extern "C" fn digest_verify(
    context: Handle<Context>,
    signature: Input,
    signature_bytes: usize,
    message: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let verify = |it: &Context| {
            let message = it.finish_whole(message.bytes(bytes)?)?;
            it.verify(&message, signature.bytes(signature_bytes)?, it.scheme(false)?)
        };
        context.get().and_then(verify).is_some().into()
    })
}

extern "C" fn set_params(mut context: Handle<Context>, params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.set(&params)).is_some().into())
}

extern "C" fn get_params(context: Handle<Context>, mut params: Params) -> c_int {
    guard(0, || {
        let Some(context) = context.get() else { return 0 };
        get(context, &mut params).is_some().into()
    })
}

fn get(context: &Context, params: &mut Params) -> Option<()> {
    let choices = &context.choices;
    let hash = choices.hash.unwrap_or(Hash::Sha256);
    let is_hashed = context.key.as_ref().is_some_and(|key| !key.kind().signs_messages());
    if let Some(param) = params.get_mut(NAME_ALGORITHM_ID) {
        param.put_octets(&context.scheme(false)?.identifier()).then_some(())?;
    }
    if let Some(param) = params.get_mut(NAME_DIGEST) {
        param.put_text(if is_hashed { hash.name() } else { "" }).then_some(())?;
    }
    if let Some(param) = params.get_mut(NAME_MGF1_DIGEST) {
        param.put_text(choices.mgf1.unwrap_or(hash).name()).then_some(())?;
    }
    if let Some(param) = params.get_mut(NAME_PAD_MODE) {
        let (text, number) = match choices.padding {
            Padding::Pkcs1 => ("pkcs1", RSA_PKCS1_PADDING),
            Padding::Pss => ("pss", RSA_PKCS1_PSS_PADDING),
        };
        (param.put_text(text) || param.put_integer(number.into())).then_some(())?;
    }
    if let Some(param) = params.get_mut(NAME_SALT_LENGTH) {
        let (text, number) = match choices.salt {
            Salt::Auto => ("auto".to_owned(), RSA_PSS_SALTLEN_AUTO.into()),
            Salt::Digest => ("digest".to_owned(), RSA_PSS_SALTLEN_DIGEST.into()),
            Salt::Max => ("max".to_owned(), RSA_PSS_SALTLEN_MAX.into()),
            Salt::Bytes(bytes) => (bytes.to_string(), bytes as i64),
        };
        (param.put_text(&text) || param.put_integer(number)).then_some(())?;
    }
    Some(())
}

static GETTABLE: [Settable; 6] = [
    Settable::new(NAME_ALGORITHM_ID, PARAM_OCTET_STRING),
    Settable::new(NAME_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_PAD_MODE, PARAM_UTF8_STRING),
    Settable::new(NAME_SALT_LENGTH, PARAM_UTF8_STRING),
    Settable::new(NAME_MGF1_DIGEST, PARAM_UTF8_STRING),
    Settable::END,
];

static SETTABLE: [Settable; 7] = [
    Settable::new(NAME_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_PROPERTIES, PARAM_UTF8_STRING),
    Settable::new(NAME_PAD_MODE, PARAM_UTF8_STRING),
    Settable::new(NAME_SALT_LENGTH, PARAM_UTF8_STRING),
    Settable::new(NAME_MGF1_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_MGF1_PROPERTIES, PARAM_UTF8_STRING),
    Settable::END,
];

extern "C" fn gettable(_: Handle<Context>, _: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}

extern "C" fn settable(_: Handle<Context>, _: Handle<Arc<Provider>>) -> *const Settable {
    SETTABLE.as_ptr()
}
