//! The provider itself: how libcrypto takes it in, asks what it has, and ends it.

use crate::abi::*;
use crate::{aes_gcm, decoder, digest, encryption, exchange, keymgmt, random, signature, store};
use keyway_client::{ClientError, Fault, KeyClient, socket_path};
use std::ffi::{CStr, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

/// The entry of the provider's section in `openssl.cnf` that names the daemon's socket.
const SOCKET: &CStr = c"socket";
/// Those that offer ciphers and digests, which are done in the program.
const WITH_CIPHERS: &CStr = c"ciphers";
const WITH_DIGESTS: &CStr = c"digests";
const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The provider in one library context of OpenSSL. Its keys and contexts have it too, and may outlive the provider.
pub struct Provider {
    core: Core,
    pub client: KeyClient,
    has_ciphers: bool,
    has_digests: bool,
}

impl Provider {
    /// `None`, with an error in OpenSSL's queue, if its section makes no sense.
    fn new(core: Core) -> Option<Provider> {
        let configured = core.configured(SOCKET);
        let socket = socket_path(configured.as_deref().map(Path::new));
        // For those who watch the daemon.
        let program = std::env::args_os().next().unwrap_or_default();
        let program = Path::new(&program).file_name().unwrap_or_default().to_string_lossy();
        let client = KeyClient::new(socket, format!("openssl: {program}"));
        let is_on = |entry: &CStr| {
            let Some(value) = core.configured(entry) else { return Some(false) };
            let is_on = yes_or_no(&value);
            if is_on.is_none() {
                let entry = entry.to_string_lossy();
                core.raise(NOT_SUPPORTED, &format!("{entry} is yes or no, and not {value}"));
            }
            is_on
        };
        let (has_ciphers, has_digests) = (is_on(WITH_CIPHERS)?, is_on(WITH_DIGESTS)?);
        Some(Provider { core, client, has_ciphers, has_digests })
    }

    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Puts an error of the client's into OpenSSL's queue.
    pub fn raise(&self, why: &ClientError) {
        let reason = match why.fault {
            Fault::Unreachable | Fault::Silent | Fault::Refused | Fault::Daemon | Fault::Busy => {
                OPERATION_FAIL
            }
            Fault::Key => INVALID_KEY,
            Fault::Caller => NOT_SUPPORTED,
        };
        self.core.raise(reason, &why.to_string());
    }

    /// Puts the error into OpenSSL's queue that something is not done here.
    pub fn raise_unfit(&self, why: &str) {
        self.core.raise(NOT_SUPPORTED, why);
    }
}

/// In the words that OpenSSL's configuration takes for `activate`.
fn yes_or_no(value: &str) -> Option<bool> {
    let is_one_of = |words: [&str; 4]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match (is_one_of(["1", "yes", "true", "on"]), is_one_of(["0", "no", "false", "off"])) {
        (false, false) => None,
        (is_yes, _) => Some(is_yes),
    }
}

const PROPERTIES: &CStr = c"provider=keyway";

/// Those of key types, whose names others have too. A program that prefers this provider (`?provider=keyway`) still
/// gets keys that it makes or reads by itself from others; a key of cryptod brings its type along.
const KEY_PROPERTIES: &CStr = c"keyway.key=yes";

static KEY_TYPES: [Algorithm; 8] = [
    Algorithm::new(
        c"RSA:rsaEncryption:1.2.840.113549.1.1.1",
        KEY_PROPERTIES,
        &keymgmt::RSA,
        c"RSA keys of cryptod",
    ),
    Algorithm::new(
        c"EC:id-ecPublicKey:1.2.840.10045.2.1",
        KEY_PROPERTIES,
        &keymgmt::EC,
        c"ECDSA keys of cryptod",
    ),
    Algorithm::new(
        c"ED25519:1.3.101.112",
        KEY_PROPERTIES,
        &keymgmt::ED25519,
        c"Ed25519 keys of cryptod",
    ),
    Algorithm::new(
        c"X25519:1.3.101.110",
        KEY_PROPERTIES,
        &keymgmt::X25519,
        c"X25519 keys of cryptod",
    ),
    // OpenSSL knows these from 3.5 on; before, a program signs with them and has no certificates of them.
    Algorithm::new(
        c"ML-DSA-44:MLDSA44:2.16.840.1.101.3.4.3.17",
        KEY_PROPERTIES,
        &keymgmt::ML_DSA_44,
        c"ML-DSA-44 keys of cryptod",
    ),
    Algorithm::new(
        c"ML-DSA-65:MLDSA65:2.16.840.1.101.3.4.3.18",
        KEY_PROPERTIES,
        &keymgmt::ML_DSA_65,
        c"ML-DSA-65 keys of cryptod",
    ),
    Algorithm::new(
        c"ML-DSA-87:MLDSA87:2.16.840.1.101.3.4.3.19",
        KEY_PROPERTIES,
        &keymgmt::ML_DSA_87,
        c"ML-DSA-87 keys of cryptod",
    ),
    Algorithm::END,
];

static SIGNATURES: [Algorithm; 2] = [
    Algorithm::new(c"KEYWAY", PROPERTIES, &signature::FUNCTIONS, c"signatures by cryptod"),
    Algorithm::END,
];

static ENCRYPTIONS: [Algorithm; 2] = [
    Algorithm::new(c"KEYWAY", PROPERTIES, &encryption::FUNCTIONS, c"decryption by cryptod"),
    Algorithm::END,
];

static EXCHANGES: [Algorithm; 2] = [
    Algorithm::new(c"KEYWAY", PROPERTIES, &exchange::FUNCTIONS, c"secrets that cryptod agrees on"),
    Algorithm::END,
];

static STORES: [Algorithm; 2] = [
    Algorithm::new(c"keyway", PROPERTIES, &store::FUNCTIONS, c"keys of cryptod, by name"),
    Algorithm::END,
];

static DECODERS: [Algorithm; 9] = [
    Algorithm::new(
        c"DER",
        c"provider=keyway,input=pem",
        &decoder::PEM,
        c"PEM files that name a key of cryptod",
    ),
    decoder_of(c"RSA", &decoder::RSA),
    decoder_of(c"EC", &decoder::EC),
    decoder_of(c"ED25519", &decoder::ED25519),
    decoder_of(c"X25519", &decoder::X25519),
    decoder_of(c"ML-DSA-44", &decoder::ML_DSA_44),
    decoder_of(c"ML-DSA-65", &decoder::ML_DSA_65),
    decoder_of(c"ML-DSA-87", &decoder::ML_DSA_87),
    Algorithm::END,
];

const fn decoder_of(kind: &'static CStr, functions: &'static [Dispatch]) -> Algorithm {
    let properties = c"provider=keyway,input=der,structure=keyway";
    Algorithm::new(kind, properties, functions, c"keys of cryptod")
}

static CIPHERS: [Algorithm; 4] = [
    Algorithm::new(
        c"AES-128-GCM:id-aes128-GCM:2.16.840.1.101.3.4.1.6",
        PROPERTIES,
        &aes_gcm::AES_128,
        c"AES-128-GCM of AWS-LC",
    ),
    Algorithm::new(
        c"AES-192-GCM:id-aes192-GCM:2.16.840.1.101.3.4.1.26",
        PROPERTIES,
        &aes_gcm::AES_192,
        c"AES-192-GCM of AWS-LC",
    ),
    Algorithm::new(
        c"AES-256-GCM:id-aes256-GCM:2.16.840.1.101.3.4.1.46",
        PROPERTIES,
        &aes_gcm::AES_256,
        c"AES-256-GCM of AWS-LC",
    ),
    Algorithm::END,
];

static DIGESTS: [Algorithm; 9] = [
    digest_of_library(c"SHA2-224:SHA-224:SHA224:2.16.840.1.101.3.4.2.4", &digest::SHA224),
    digest_of_library(c"SHA2-256:SHA-256:SHA256:2.16.840.1.101.3.4.2.1", &digest::SHA256),
    digest_of_library(c"SHA2-384:SHA-384:SHA384:2.16.840.1.101.3.4.2.2", &digest::SHA384),
    digest_of_library(c"SHA2-512:SHA-512:SHA512:2.16.840.1.101.3.4.2.3", &digest::SHA512),
    digest_of_library(
        c"SHA2-512/256:SHA-512/256:SHA512-256:2.16.840.1.101.3.4.2.6",
        &digest::SHA512_256,
    ),
    digest_of_library(c"SHA3-256:2.16.840.1.101.3.4.2.8", &digest::SHA3_256),
    digest_of_library(c"SHA3-384:2.16.840.1.101.3.4.2.9", &digest::SHA3_384),
    digest_of_library(c"SHA3-512:2.16.840.1.101.3.4.2.10", &digest::SHA3_512),
    Algorithm::END,
];

const fn digest_of_library(names: &'static CStr, functions: &'static [Dispatch]) -> Algorithm {
    Algorithm::new(names, PROPERTIES, functions, c"a digest of AWS-LC")
}

static RANDOM: [Algorithm; 2] = [
    Algorithm::new(c"KEYWAY", PROPERTIES, &random::FUNCTIONS, c"random bytes of AWS-LC"),
    Algorithm::END,
];

static FUNCTIONS: [Dispatch; 5] = [
    Dispatch::new(PROVIDER_TEARDOWN, teardown as *const c_void),
    Dispatch::new(PROVIDER_GETTABLE_PARAMS, gettable_params as *const c_void),
    Dispatch::new(PROVIDER_GET_PARAMS, get_params as *const c_void),
    Dispatch::new(PROVIDER_QUERY_OPERATION, query_operation as *const c_void),
    Dispatch::END,
];

/// Begins the provider, for [`OSSL_provider_init`](crate::abi). `None` if it is configured wrongly.
pub fn begin(core: Core) -> Option<(&'static [Dispatch], Handle<Arc<Provider>>)> {
    Some((&FUNCTIONS, Handle::new(Arc::new(Provider::new(core)?))))
}

extern "C" fn teardown(provider: Handle<Arc<Provider>>) {
    guard((), || {
        if let Some(provider) = provider.take() {
            provider.core.end();
        }
    });
}

static GETTABLE: [Settable; 5] = [
    Settable::new(NAME_PROVIDER_NAME, PARAM_UTF8_PTR),
    Settable::new(NAME_PROVIDER_VERSION, PARAM_UTF8_PTR),
    Settable::new(NAME_PROVIDER_BUILD, PARAM_UTF8_PTR),
    Settable::new(NAME_PROVIDER_STATUS, PARAM_INTEGER),
    Settable::END,
];

extern "C" fn gettable_params(_: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}

extern "C" fn get_params(_: Handle<Arc<Provider>>, mut params: Params) -> c_int {
    guard(0, || {
        let texts = [
            (NAME_PROVIDER_NAME, c"Keyway"),
            (NAME_PROVIDER_VERSION, VERSION),
            (NAME_PROVIDER_BUILD, VERSION),
        ];
        for (name, text) in texts {
            if params.get_mut(name).is_some_and(|param| !param.put_pointer(text)) {
                return 0;
            }
        }
        params.get_mut(NAME_PROVIDER_STATUS).is_none_or(|param| param.put_integer(1)).into()
    })
}

extern "C" fn query_operation(
    provider: Handle<Arc<Provider>>,
    operation: c_int,
    mut no_cache: Flag,
) -> *const Algorithm {
    no_cache.clear();
    let Some(provider) = provider.get() else { return ptr::null() };
    match operation {
        OP_DIGEST if provider.has_digests => DIGESTS.as_ptr(),
        OP_CIPHER if provider.has_ciphers => CIPHERS.as_ptr(),
        OP_RAND => RANDOM.as_ptr(),
        OP_KEYMGMT => KEY_TYPES.as_ptr(),
        OP_SIGNATURE => SIGNATURES.as_ptr(),
        OP_ASYM_CIPHER => ENCRYPTIONS.as_ptr(),
        OP_KEYEXCH => EXCHANGES.as_ptr(),
        OP_STORE => STORES.as_ptr(),
        OP_DECODER => DECODERS.as_ptr(),
        _ => ptr::null(),
    }
}
