//! OSSL_STORE: the key of a URI `keyway:NAME`.

use crate::abi::*;
use crate::key::Key;
use crate::keymgmt::KeyData;
use crate::provider::Provider;
use keyway_client::KeyReference;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A URI that is being loaded.
struct Loader {
    provider: Arc<Provider>,
    /// None once it is loaded.
    reference: Option<KeyReference>,
}

pub static FUNCTIONS: [Dispatch; 7] = [
    Dispatch::new(STORE_OPEN, open as *const c_void),
    Dispatch::new(STORE_SETTABLE_CTX_PARAMS, settable as *const c_void),
    Dispatch::new(STORE_SET_CTX_PARAMS, set_params as *const c_void),
    Dispatch::new(STORE_LOAD, load as *const c_void),
    Dispatch::new(STORE_EOF, eof as *const c_void),
    Dispatch::new(STORE_CLOSE, close as *const c_void),
    Dispatch::END,
];

/// Hands a key to libcrypto; its result.
pub fn hand_over(key: Key, callback: Callback, argument: Opaque) -> c_int {
    let kind = key.kind();
    let mut list = ParamList::default();
    list.integer(NAME_OBJECT_TYPE, OBJECT_PKEY);
    list.text(NAME_OBJECT_DATA_TYPE, kind.name().to_str().unwrap_or_default());
    let data = Handle::new(KeyData::new(key));
    list.octets(NAME_OBJECT_REFERENCE, &data.into_reference());
    let (result, left) = list.call(callback, argument, NAME_OBJECT_REFERENCE);
    // Still there unless the key was loaded.
    drop(Handle::<KeyData>::from_reference(&left).take());
    result
}

extern "C" fn open(provider: Handle<Arc<Provider>>, uri: Text) -> Handle<Loader> {
    guard(Handle::NONE, || {
        let Some(provider) = provider.get().cloned() else { return Handle::NONE };
        let uri = uri.as_str().unwrap_or_default();
        let Some(reference) = KeyReference::from_uri(uri) else {
            // Only the end of a long error would be left out, where it says why.
            let shown: String = uri.chars().take(80).collect();
            provider.raise_unfit(&format!(
                "{shown} is not keyway: and the name of a key, of lower-case letters, digits and -._"
            ));
            return Handle::NONE;
        };
        Handle::new(Loader { provider, reference: Some(reference) })
    })
}

static SETTABLE: [Settable; 2] = [Settable::new(NAME_STORE_EXPECT, PARAM_INTEGER), Settable::END];

extern "C" fn settable(_: Handle<Arc<Provider>>) -> *const Settable {
    SETTABLE.as_ptr()
}

extern "C" fn set_params(mut loader: Handle<Loader>, params: Params) -> c_int {
    guard(0, || {
        let Some(loader) = loader.get_mut() else { return 0 };
        let expected = params.get(NAME_STORE_EXPECT).and_then(Param::integer).unwrap_or(0);
        // There are no certificates here.
        if ![0, STORE_INFO_PKEY.into(), STORE_INFO_PUBKEY.into()].contains(&expected) {
            loader.reference = None;
        }
        1
    })
}

extern "C" fn load(mut loader: Handle<Loader>, callback: Callback, argument: Opaque) -> c_int {
    guard(0, || {
        let Some(loader) = loader.get_mut() else { return 0 };
        let Some(reference) = loader.reference.take() else { return 0 };
        match Key::load(&loader.provider, reference) {
            Some(key) => hand_over(key, callback, argument),
            None => 0,
        }
    })
}

extern "C" fn eof(loader: Handle<Loader>) -> c_int {
    loader.get().is_none_or(|loader| loader.reference.is_none()).into()
}

extern "C" fn close(loader: Handle<Loader>) -> c_int {
    guard(0, || {
        drop(loader.take());
        1
    })
}
