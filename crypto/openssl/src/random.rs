//! Random bytes of AWS-LC, which the kernel seeds by itself, and anew after a fork. libcrypto asks for them where its
//! configuration names them (`random = KEYWAY`).

use crate::abi::*;
use crate::provider::Provider;
use aws_lc_rs::rand;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// Bits of strength (SP 800-90A, CTR_DRBG with AES-256).
const STRENGTH: c_uint = 256;
/// Most bytes that libcrypto asks for at once.
const REQUEST_BYTES_MAX: i64 = 1 << 16;

/// All of them give bytes of one generator, that of the thread.
struct Generator {
    is_ready: bool,
}

pub static FUNCTIONS: [Dispatch; 12] = [
    Dispatch::new(RAND_NEWCTX, new as *const c_void),
    Dispatch::new(RAND_FREECTX, free::<Generator> as *const c_void),
    Dispatch::new(RAND_INSTANTIATE, instantiate as *const c_void),
    Dispatch::new(RAND_UNINSTANTIATE, uninstantiate as *const c_void),
    Dispatch::new(RAND_GENERATE, generate as *const c_void),
    Dispatch::new(RAND_RESEED, reseed as *const c_void),
    Dispatch::new(RAND_ENABLE_LOCKING, lock as *const c_void),
    Dispatch::new(RAND_LOCK, lock as *const c_void),
    Dispatch::new(RAND_UNLOCK, unlock as *const c_void),
    Dispatch::new(RAND_GET_CTX_PARAMS, get_params as *const c_void),
    Dispatch::new(RAND_GETTABLE_CTX_PARAMS, gettable as *const c_void),
    Dispatch::END,
];

extern "C" fn new(
    _: Handle<Arc<Provider>>,
    _parent: Opaque,
    _parent_functions: Opaque,
) -> Handle<Generator> {
    guard(Handle::NONE, || Handle::new(Generator { is_ready: false }))
}

extern "C" fn instantiate(
    mut generator: Handle<Generator>,
    strength: c_uint,
    _prediction_resistance: c_int,
    _personalization: Input,
    _bytes: usize,
    _: Params,
) -> c_int {
    guard(0, || {
        let Some(it) = generator.get_mut() else { return 0 };
        it.is_ready = strength <= STRENGTH;
        it.is_ready.into()
    })
}

extern "C" fn uninstantiate(mut generator: Handle<Generator>) -> c_int {
    guard(0, || generator.get_mut().map(|it| it.is_ready = false).is_some().into())
}

extern "C" fn generate(
    generator: Handle<Generator>,
    mut out: Output,
    bytes: usize,
    strength: c_uint,
    _prediction_resistance: c_int,
    _additional: Input,
    _additional_bytes: usize,
) -> c_int {
    guard(0, || {
        let is_ready = generator.get().is_some_and(|it| it.is_ready) && strength <= STRENGTH;
        (is_ready && out.fill(bytes, |room| rand::fill(room).is_ok())).into()
    })
}

/// The generator seeds itself: what a program adds is not needed.
extern "C" fn reseed(
    generator: Handle<Generator>,
    _prediction_resistance: c_int,
    _entropy: Input,
    _entropy_bytes: usize,
    _additional: Input,
    _additional_bytes: usize,
) -> c_int {
    guard(0, || generator.get().is_some_and(|it| it.is_ready).into())
}

/// All threads use it at once.
extern "C" fn lock(_: Handle<Generator>) -> c_int {
    1
}

extern "C" fn unlock(_: Handle<Generator>) {}

extern "C" fn get_params(generator: Handle<Generator>, mut params: Params) -> c_int {
    guard(0, || {
        let Some(it) = generator.get() else { return 0 };
        let state = if it.is_ready { RAND_READY } else { RAND_UNINITIALISED };
        let values = [
            (NAME_STATE, state.into()),
            (NAME_STRENGTH, STRENGTH.into()),
            (NAME_MAX_REQUEST, REQUEST_BYTES_MAX),
        ];
        params.put_integers(&values).into()
    })
}

static GETTABLE: [Settable; 4] = [
    Settable::new(NAME_STATE, PARAM_INTEGER),
    Settable::new(NAME_STRENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_MAX_REQUEST, PARAM_UNSIGNED_INTEGER),
    Settable::END,
];

extern "C" fn gettable(_: Handle<Generator>, _: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}
