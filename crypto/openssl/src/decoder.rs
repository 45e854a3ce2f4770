//! PEM files that name a key of cryptod, for programs that load files and no URIs.
//!
//! libcrypto tries each decoder on each file. So a decoder says of what is not its own that others may go on, and
//! reads no more of a PEM file than the block that libcrypto's own decoder reads.

use crate::abi::*;
use crate::key::{Key, Kind};
use crate::provider::Provider;
use crate::store::hand_over;
use keyway_client::limits::REFERENCE_BYTES_MAX;
use keyway_client::{KeyReference, MlDsa, PEM_LABEL};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

pub static PEM: [Dispatch; 4] = table(decode_pem as *const c_void);

/// A decoder for each kind of keys.
macro_rules! decoders {
    ($($functions:ident $kind:expr;)*) => {
        $(pub static $functions: [Dispatch; 4] = {
            extern "C" fn decode_kind(
                provider: Handle<Arc<Provider>>,
                bio: CoreBio,
                _selection: c_int,
                callback: Callback,
                argument: Opaque,
            ) -> c_int {
                decode($kind, &provider, bio, callback, argument)
            }
            table(decode_kind as *const c_void)
        };)*
    };
}

decoders! {
    RSA Kind::Rsa;
    EC Kind::Ec;
    ED25519 Kind::Ed25519;
    X25519 Kind::X25519;
    ML_DSA_44 Kind::MlDsa(MlDsa::MlDsa44);
    ML_DSA_65 Kind::MlDsa(MlDsa::MlDsa65);
    ML_DSA_87 Kind::MlDsa(MlDsa::MlDsa87);
}

/// Others may try.
const NOT_OURS: c_int = 1;
/// libcrypto's own limit is 254.
const LINE_BYTES_MAX: usize = 1024;

const fn table(decode: *const c_void) -> [Dispatch; 4] {
    [
        Dispatch::new(DECODER_NEWCTX, new as *const c_void),
        Dispatch::new(DECODER_FREECTX, free::<Arc<Provider>> as *const c_void),
        Dispatch::new(DECODER_DECODE, decode),
        Dispatch::END,
    ]
}

extern "C" fn new(provider: Handle<Arc<Provider>>) -> Handle<Arc<Provider>> {
    guard(Handle::NONE, || match provider.get() {
        Some(provider) => Handle::new(provider.clone()),
        None => Handle::NONE,
    })
}

extern "C" fn decode_pem(
    provider: Handle<Arc<Provider>>,
    bio: CoreBio,
    _selection: c_int,
    callback: Callback,
    argument: Opaque,
) -> c_int {
    guard(0, || {
        let Some(provider) = provider.get() else { return 0 };
        let Some(body) = first_block(provider, bio) else { return NOT_OURS };
        let Some(reference) = KeyReference::from_pem_body(&body) else {
            let why = "the PEM file that names a key of cryptod is damaged";
            provider.raise_unfit(why);
            return 0;
        };
        // With its public half, so that the decoders of all key types need not ask for it.
        let Some(key) = Key::load(provider, reference) else { return 0 };
        let public_key = Some(key.info);
        let reference = KeyReference { name: key.name.unwrap_or_default(), public_key };
        let mut list = ParamList::default();
        list.octets(NAME_OBJECT_DATA, &reference.to_der());
        list.text(NAME_OBJECT_STRUCTURE, "keyway");
        list.call(callback, argument, c"").0
    })
}

/// Reads as far as the end of the first PEM block, and gives its body if it names a key.
fn first_block(provider: &Provider, bio: CoreBio) -> Option<String> {
    let mut buffer = [0; LINE_BYTES_MAX];
    let label = loop {
        let line = provider.core().line(bio, &mut buffer);
        if line.is_empty() {
            return None;
        }
        if let Some(label) = label(line, b"-----BEGIN ") {
            break label.to_owned();
        }
    };
    let mut body = String::new();
    loop {
        let line = provider.core().line(bio, &mut buffer);
        if label_of_end(line, &label) {
            return (label == PEM_LABEL).then_some(body);
        }
        if line.is_empty() || body.len() > 2 * REFERENCE_BYTES_MAX {
            return None;
        }
        if label == PEM_LABEL {
            body.push_str(std::str::from_utf8(line).ok()?);
        }
    }
}

fn label<'l>(line: &'l [u8], start: &[u8]) -> Option<&'l str> {
    let rest = line.trim_ascii_end().strip_prefix(start)?.strip_suffix(b"-----")?;
    std::str::from_utf8(rest).ok()
}

fn label_of_end(line: &[u8], begun: &str) -> bool {
    label(line, b"-----END ") == Some(begun)
}

fn decode(
    kind: Kind,
    provider: &Handle<Arc<Provider>>,
    bio: CoreBio,
    callback: Callback,
    argument: Opaque,
) -> c_int {
    guard(0, || {
        let Some(provider) = provider.get() else { return 0 };
        let der = provider.core().bytes(bio, REFERENCE_BYTES_MAX + 1);
        let Some(reference) = KeyReference::from_der(&der) else { return NOT_OURS };
        match Key::load(provider, reference) {
            Some(key) if key.kind() == kind => hand_over(key, callback, argument),
            Some(_) => NOT_OURS,
            None => 0,
        }
    })
}
