//! Key types: what libcrypto asks about a key, compares and exports. Public parts only.

use crate::abi::*;
use crate::key::{Key, Kind};
use crate::provider::Provider;
use keyway_client::{Curve, MlDsa, PublicKey, without_zeros};
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// A key that libcrypto holds; empty until something is imported.
pub struct KeyData {
    pub kind: Kind,
    pub key: Option<Arc<Key>>,
    /// The curve of a key that is to come: CMS takes it from its own key, and the point from the message.
    curve: Option<Curve>,
}

impl KeyData {
    /// With a key.
    pub fn new(key: Key) -> KeyData {
        KeyData { kind: key.kind(), key: Some(Arc::new(key)), curve: None }
    }

    fn curve(&self) -> Option<Curve> {
        match self.key.as_ref().map(|key| &key.public) {
            Some(PublicKey::Ec { curve, .. }) => Some(*curve),
            Some(_) => None,
            None => self.curve,
        }
    }
}

/// Both halves of a key; without them there are its parameters.
const SELECT_KEY: c_int = SELECT_PRIVATE_KEY | SELECT_PUBLIC_KEY;

/// The name of the signatures and of the decryption: only keys of this provider ask for it.
const OPERATIONS: &std::ffi::CStr = c"KEYWAY";

pub static RSA: [Dispatch; 17] = table(new_rsa as *const c_void, gettable_rsa as _, types_rsa as _);
pub static EC: [Dispatch; 17] = table(new_ec as *const c_void, gettable_ec as _, types_ec as _);
pub static ED25519: [Dispatch; 17] =
    table(new_ed25519 as *const c_void, gettable_bytes as _, types_bytes as _);
pub static X25519: [Dispatch; 17] =
    table(new_x25519 as *const c_void, gettable_bytes as _, types_bytes as _);
pub static ML_DSA_44: [Dispatch; 17] =
    table(new_ml_dsa_44 as *const c_void, gettable_bytes as _, types_bytes as _);
pub static ML_DSA_65: [Dispatch; 17] =
    table(new_ml_dsa_65 as *const c_void, gettable_bytes as _, types_bytes as _);
pub static ML_DSA_87: [Dispatch; 17] =
    table(new_ml_dsa_87 as *const c_void, gettable_bytes as _, types_bytes as _);

const fn table(
    new: *const c_void,
    gettable: *const c_void,
    types: *const c_void,
) -> [Dispatch; 17] {
    [
        Dispatch::new(KEYMGMT_NEW, new),
        Dispatch::new(KEYMGMT_LOAD, load as *const c_void),
        Dispatch::new(KEYMGMT_FREE, free::<KeyData> as *const c_void),
        Dispatch::new(KEYMGMT_GET_PARAMS, get_params as *const c_void),
        Dispatch::new(KEYMGMT_GETTABLE_PARAMS, gettable),
        Dispatch::new(KEYMGMT_QUERY_OPERATION_NAME, operation_name as *const c_void),
        Dispatch::new(KEYMGMT_HAS, has as *const c_void),
        Dispatch::new(KEYMGMT_VALIDATE, validate as *const c_void),
        Dispatch::new(KEYMGMT_MATCH, matches as *const c_void),
        Dispatch::new(KEYMGMT_IMPORT, import as *const c_void),
        Dispatch::new(KEYMGMT_IMPORT_TYPES, types),
        Dispatch::new(KEYMGMT_EXPORT, export as *const c_void),
        Dispatch::new(KEYMGMT_EXPORT_TYPES, types),
        Dispatch::new(KEYMGMT_DUP, dup as *const c_void),
        Dispatch::new(KEYMGMT_SET_PARAMS, set_params as *const c_void),
        Dispatch::new(KEYMGMT_SETTABLE_PARAMS, settable as *const c_void),
        Dispatch::END,
    ]
}

fn empty(kind: Kind) -> Handle<KeyData> {
    guard(Handle::NONE, || Handle::new(KeyData { kind, key: None, curve: None }))
}

extern "C" fn new_rsa(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::Rsa)
}

extern "C" fn new_ec(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::Ec)
}

extern "C" fn new_ed25519(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::Ed25519)
}

extern "C" fn new_x25519(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::X25519)
}

extern "C" fn new_ml_dsa_44(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::MlDsa(MlDsa::MlDsa44))
}

extern "C" fn new_ml_dsa_65(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::MlDsa(MlDsa::MlDsa65))
}

extern "C" fn new_ml_dsa_87(_: Handle<Arc<Provider>>) -> Handle<KeyData> {
    empty(Kind::MlDsa(MlDsa::MlDsa87))
}

/// Takes a key that [`store`](crate::store) or [`decoder`](crate::decoder) has found. Its place is emptied: its
/// finder then knows that it is taken.
extern "C" fn load(mut reference: Output, bytes: usize) -> Handle<KeyData> {
    guard(Handle::NONE, || match reference.replace_with_zeros(bytes) {
        Some(reference) => Handle::from_reference(&reference),
        None => Handle::NONE,
    })
}

extern "C" fn dup(data: Handle<KeyData>, selection: c_int) -> Handle<KeyData> {
    guard(Handle::NONE, || match data.get() {
        Some(data) => {
            let key = data.key.clone().filter(|_| selection & SELECT_KEY != 0);
            Handle::new(KeyData { kind: data.kind, key, curve: data.curve() })
        }
        None => Handle::NONE,
    })
}

/// Gives a key of a curve its point, and a key that is bytes these.
extern "C" fn set_params(mut data: Handle<KeyData>, params: Params) -> c_int {
    guard(0, || {
        let Some(data) = data.get_mut() else { return 0 };
        let Some(encoded) = params.get(NAME_ENCODED_PUBLIC_KEY) else { return 1 };
        let public = encoded.octets().and_then(|bytes| match data.kind {
            Kind::Ec => Some(PublicKey::Ec { curve: data.curve()?, point: bytes.to_vec() }),
            kind => of_bytes(kind, bytes),
        });
        let key = public.and_then(|public| Key::from_public(&public));
        let is_right = key.is_some();
        if is_right {
            data.key = key.map(Arc::new);
        }
        is_right.into()
    })
}

static SETTABLE: [Settable; 2] =
    [Settable::new(NAME_ENCODED_PUBLIC_KEY, PARAM_OCTET_STRING), Settable::END];

extern "C" fn settable(_: Handle<Arc<Provider>>) -> *const Settable {
    SETTABLE.as_ptr()
}

extern "C" fn operation_name(_operation: c_int) -> *const c_char {
    OPERATIONS.as_ptr()
}

extern "C" fn has(data: Handle<KeyData>, selection: c_int) -> c_int {
    guard(0, || {
        let Some(data) = data.get() else { return 0 };
        match &data.key {
            Some(key) => (selection & SELECT_PRIVATE_KEY == 0 || key.name.is_some()).into(),
            None => (selection & SELECT_KEY == 0 && data.curve.is_some()).into(),
        }
    })
}

extern "C" fn validate(data: Handle<KeyData>, selection: c_int, _kind: c_int) -> c_int {
    // Key and parameters were looked at when they were read.
    has(data, selection)
}

extern "C" fn matches(one: Handle<KeyData>, other: Handle<KeyData>, selection: c_int) -> c_int {
    guard(0, || {
        if selection & SELECT_KEY == 0 {
            let parameters = |data: &Handle<KeyData>| {
                data.get().map(|data| (data.kind == Kind::Ec, data.curve()))
            };
            return (parameters(&one) == parameters(&other)).into();
        }
        let key = |data: &Handle<KeyData>| data.get().and_then(|data| data.key.clone());
        let (Some(one), Some(other)) = (key(&one), key(&other)) else { return 0 };
        (one.info == other.info).into()
    })
}

extern "C" fn import(mut data: Handle<KeyData>, selection: c_int, params: Params) -> c_int {
    guard(0, || {
        let Some(data) = data.get_mut() else { return 0 };
        let has_private =
            params.get(NAME_PRIVATE_KEY).is_some() || params.get(NAME_RSA_D).is_some();
        // A private key that is given away as bytes is no key of cryptod.
        if has_private {
            return 0;
        }
        if selection & SELECT_PUBLIC_KEY == 0 {
            let group = params.get(NAME_GROUP).and_then(Param::text);
            data.curve = group.and_then(Curve::from_name).filter(|_| data.kind == Kind::Ec);
            return data.curve.is_some().into();
        }
        let public = read_public(data.kind, &params);
        data.key = public.and_then(|public| Key::from_public(&public)).map(Arc::new);
        data.key.is_some().into()
    })
}

fn read_public(kind: Kind, params: &Params) -> Option<PublicKey> {
    let number = |name| Some(without_zeros(&params.get(name)?.big_integer()?).to_vec());
    match kind {
        Kind::Rsa => Some(PublicKey::Rsa { n: number(NAME_RSA_N)?, e: number(NAME_RSA_E)? }),
        Kind::Ec => {
            let curve = Curve::from_name(params.get(NAME_GROUP)?.text()?)?;
            Some(PublicKey::Ec { curve, point: params.get(NAME_PUBLIC_KEY)?.octets()?.to_vec() })
        }
        kind => of_bytes(kind, params.get(NAME_PUBLIC_KEY)?.octets()?),
    }
}

/// A public key that is bytes, without parts.
fn of_bytes(kind: Kind, bytes: &[u8]) -> Option<PublicKey> {
    let key = bytes.to_vec();
    match kind {
        Kind::Ed25519 => Some(PublicKey::Ed25519(key)),
        Kind::X25519 => Some(PublicKey::X25519(key)),
        Kind::MlDsa(set) => Some(PublicKey::MlDsa { set, key }),
        Kind::Rsa | Kind::Ec => None,
    }
}

extern "C" fn export(
    data: Handle<KeyData>,
    selection: c_int,
    callback: Callback,
    argument: Opaque,
) -> c_int {
    guard(0, || {
        let Some(data) = data.get() else { return 0 };
        let mut list = ParamList::default();
        let Some(key) = data.key.as_ref() else {
            let Some(curve) = data.curve.filter(|_| selection & SELECT_KEY == 0) else { return 0 };
            list.text(NAME_GROUP, curve.name());
            return list.call(callback, argument, c"").0;
        };
        if selection & SELECT_PRIVATE_KEY != 0 && key.name.is_some() {
            return 0;
        }
        let with_key = selection & SELECT_PUBLIC_KEY != 0;
        // libcrypto's text encoder crashes on an RSA key without a modulus.
        if key.kind() == Kind::Rsa && !with_key {
            return 0;
        }
        let mut list = ParamList::default();
        match &key.public {
            PublicKey::Rsa { n, e } if with_key => {
                list.big_integer(NAME_RSA_N, n).big_integer(NAME_RSA_E, e);
            }
            PublicKey::Ec { curve, point } => {
                list.text(NAME_GROUP, curve.name());
                if with_key {
                    list.octets(NAME_PUBLIC_KEY, point);
                }
            }
            PublicKey::Ed25519(bytes)
            | PublicKey::X25519(bytes)
            | PublicKey::MlDsa { key: bytes, .. }
                if with_key =>
            {
                list.octets(NAME_PUBLIC_KEY, bytes);
            }
            _ => {}
        }
        list.call(callback, argument, c"").0
    })
}

extern "C" fn get_params(data: Handle<KeyData>, mut params: Params) -> c_int {
    guard(0, || {
        let Some(data) = data.get() else { return 0 };
        let Some(key) = data.key.as_ref() else {
            let Some(curve) = data.curve else { return 0 };
            return fill(&mut params, NAME_GROUP, |it| it.put_text(curve.name())).is_some().into();
        };
        common(key, &mut params).and_then(|()| own(key, &mut params)).is_some().into()
    })
}

/// Fills an entry, if it is asked for.
fn fill(
    params: &mut Params,
    name: &std::ffi::CStr,
    put: impl FnOnce(&mut Param) -> bool,
) -> Option<()> {
    match params.get_mut(name) {
        Some(param) => put(param).then_some(()),
        None => Some(()),
    }
}

fn common(key: &Key, params: &mut Params) -> Option<()> {
    fill(params, NAME_BITS, |it| it.put_integer(key.public.bits() as i64))?;
    fill(params, NAME_SECURITY_BITS, |it| it.put_integer(key.security_bits() as i64))?;
    fill(params, NAME_MAX_SIZE, |it| it.put_integer(key.signature_bytes_max() as i64))
}

fn own(key: &Key, params: &mut Params) -> Option<()> {
    match &key.public {
        PublicKey::Rsa { n, e } => {
            fill(params, NAME_DEFAULT_DIGEST, |it| it.put_text("SHA256"))?;
            fill(params, NAME_RSA_N, |it| it.put_big_integer(n))?;
            fill(params, NAME_RSA_E, |it| it.put_big_integer(e))
        }
        PublicKey::Ec { curve, point } => {
            let (x, y) = point.get(1..)?.split_at_checked(curve.bytes())?;
            fill(params, NAME_DEFAULT_DIGEST, |it| it.put_text("SHA256"))?;
            fill(params, NAME_GROUP, |it| it.put_text(curve.name()))?;
            fill(params, NAME_EC_FIELD_TYPE, |it| it.put_text("prime-field"))?;
            fill(params, NAME_EC_POINT_FORMAT, |it| it.put_text("uncompressed"))?;
            fill(params, NAME_PUBLIC_KEY, |it| it.put_octets(point))?;
            fill(params, NAME_ENCODED_PUBLIC_KEY, |it| it.put_octets(point))?;
            fill(params, NAME_EC_X, |it| it.put_big_integer(x))?;
            fill(params, NAME_EC_Y, |it| it.put_big_integer(y))
        }
        PublicKey::Ed25519(bytes)
        | PublicKey::X25519(bytes)
        | PublicKey::MlDsa { key: bytes, .. } => {
            // Messages are signed, and no digests of them.
            fill(params, NAME_MANDATORY_DIGEST, |it| it.put_text(""))?;
            fill(params, NAME_PUBLIC_KEY, |it| it.put_octets(bytes))?;
            fill(params, NAME_ENCODED_PUBLIC_KEY, |it| it.put_octets(bytes))
        }
    }
}

static GETTABLE_RSA: [Settable; 7] = [
    Settable::new(NAME_BITS, PARAM_INTEGER),
    Settable::new(NAME_SECURITY_BITS, PARAM_INTEGER),
    Settable::new(NAME_MAX_SIZE, PARAM_INTEGER),
    Settable::new(NAME_DEFAULT_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_RSA_N, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_RSA_E, PARAM_UNSIGNED_INTEGER),
    Settable::END,
];

static GETTABLE_EC: [Settable; 12] = [
    Settable::new(NAME_BITS, PARAM_INTEGER),
    Settable::new(NAME_SECURITY_BITS, PARAM_INTEGER),
    Settable::new(NAME_MAX_SIZE, PARAM_INTEGER),
    Settable::new(NAME_DEFAULT_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_GROUP, PARAM_UTF8_STRING),
    Settable::new(NAME_EC_FIELD_TYPE, PARAM_UTF8_STRING),
    Settable::new(NAME_EC_POINT_FORMAT, PARAM_UTF8_STRING),
    Settable::new(NAME_PUBLIC_KEY, PARAM_OCTET_STRING),
    Settable::new(NAME_ENCODED_PUBLIC_KEY, PARAM_OCTET_STRING),
    Settable::new(NAME_EC_X, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_EC_Y, PARAM_UNSIGNED_INTEGER),
    Settable::END,
];

static GETTABLE_BYTES: [Settable; 7] = [
    Settable::new(NAME_BITS, PARAM_INTEGER),
    Settable::new(NAME_SECURITY_BITS, PARAM_INTEGER),
    Settable::new(NAME_MAX_SIZE, PARAM_INTEGER),
    Settable::new(NAME_MANDATORY_DIGEST, PARAM_UTF8_STRING),
    Settable::new(NAME_PUBLIC_KEY, PARAM_OCTET_STRING),
    Settable::new(NAME_ENCODED_PUBLIC_KEY, PARAM_OCTET_STRING),
    Settable::END,
];

static TYPES_RSA: [Settable; 3] = [
    Settable::new(NAME_RSA_N, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_RSA_E, PARAM_UNSIGNED_INTEGER),
    Settable::END,
];

static TYPES_EC: [Settable; 3] = [
    Settable::new(NAME_GROUP, PARAM_UTF8_STRING),
    Settable::new(NAME_PUBLIC_KEY, PARAM_OCTET_STRING),
    Settable::END,
];

static TYPES_BYTES: [Settable; 2] =
    [Settable::new(NAME_PUBLIC_KEY, PARAM_OCTET_STRING), Settable::END];

extern "C" fn gettable_rsa(_: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE_RSA.as_ptr()
}

extern "C" fn gettable_ec(_: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE_EC.as_ptr()
}

extern "C" fn gettable_bytes(_: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE_BYTES.as_ptr()
}

extern "C" fn types_rsa(_selection: c_int) -> *const Settable {
    TYPES_RSA.as_ptr()
}

extern "C" fn types_ec(_selection: c_int) -> *const Settable {
    TYPES_EC.as_ptr()
}

extern "C" fn types_bytes(_selection: c_int) -> *const Settable {
    TYPES_BYTES.as_ptr()
}
