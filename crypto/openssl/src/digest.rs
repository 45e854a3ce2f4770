//! Digests of AWS-LC in the program: SHA-2 and SHA-3. libcrypto's own HMAC and key derivations take digests by name, and
//! so these.

use crate::abi::*;
use crate::provider::Provider;
use aws_lc_rs::digest::{self, Algorithm, Context};
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// A digest under way.
#[derive(Clone)]
struct Hashing {
    algorithm: &'static Algorithm,
    /// None once it has ended.
    context: Option<Context>,
}

impl Hashing {
    fn begin(&mut self) {
        self.context = Some(Context::new(self.algorithm));
    }
}

macro_rules! digests {
    ($($functions:ident $number:literal $library:ident)*) => {
        const fn algorithm<const NUMBER: u8>() -> &'static Algorithm {
            match NUMBER {
                $($number => &digest::$library,)*
                _ => panic!("there is no digest of this number"),
            }
        }

        $(pub static $functions: [Dispatch; 10] = functions::<$number>();)*
    };
}

digests! {
    SHA224 0 SHA224
    SHA256 1 SHA256
    SHA384 2 SHA384
    SHA512 3 SHA512
    SHA512_256 4 SHA512_256
    SHA3_256 5 SHA3_256
    SHA3_384 6 SHA3_384
    SHA3_512 7 SHA3_512
}

const fn functions<const NUMBER: u8>() -> [Dispatch; 10] {
    [
        Dispatch::new(DIGEST_NEWCTX, new::<NUMBER> as *const c_void),
        Dispatch::new(DIGEST_INIT, init as *const c_void),
        Dispatch::new(DIGEST_UPDATE, update as *const c_void),
        Dispatch::new(DIGEST_FINAL, finish as *const c_void),
        Dispatch::new(DIGEST_DIGEST, whole::<NUMBER> as *const c_void),
        Dispatch::new(DIGEST_FREECTX, free::<Hashing> as *const c_void),
        Dispatch::new(DIGEST_DUPCTX, dup::<Hashing> as *const c_void),
        Dispatch::new(DIGEST_GET_PARAMS, get_params::<NUMBER> as *const c_void),
        Dispatch::new(DIGEST_GETTABLE_PARAMS, gettable_params as *const c_void),
        Dispatch::END,
    ]
}

extern "C" fn new<const NUMBER: u8>(_: Handle<Arc<Provider>>) -> Handle<Hashing> {
    guard(Handle::NONE, || Handle::new(Hashing { algorithm: algorithm::<NUMBER>(), context: None }))
}

extern "C" fn init(mut hashing: Handle<Hashing>, _: Params) -> c_int {
    guard(0, || hashing.get_mut().map(Hashing::begin).is_some().into())
}

extern "C" fn update(mut hashing: Handle<Hashing>, input: Input, bytes: usize) -> c_int {
    guard(0, || {
        let context = hashing.get_mut().and_then(|it| it.context.as_mut());
        let (Some(context), Some(part)) = (context, input.bytes(bytes)) else { return 0 };
        context.update(part);
        1
    })
}

extern "C" fn finish(
    mut hashing: Handle<Hashing>,
    mut out: Output,
    mut length: Length,
    room: usize,
) -> c_int {
    guard(0, || {
        let context = hashing.get_mut().and_then(|it| it.context.take());
        let Some(digest) = context.map(Context::finish) else { return 0 };
        length.put(digest.as_ref().len());
        out.put(room, digest.as_ref()).into()
    })
}

extern "C" fn whole<const NUMBER: u8>(
    _: Handle<Arc<Provider>>,
    input: Input,
    bytes: usize,
    mut out: Output,
    mut length: Length,
    room: usize,
) -> c_int {
    guard(0, || {
        let Some(message) = input.bytes(bytes) else { return 0 };
        let digest = digest::digest(algorithm::<NUMBER>(), message);
        length.put(digest.as_ref().len());
        out.put(room, digest.as_ref()).into()
    })
}

extern "C" fn get_params<const NUMBER: u8>(mut params: Params) -> c_int {
    guard(0, || {
        let algorithm = algorithm::<NUMBER>();
        let values = [
            (NAME_BLOCK_SIZE, algorithm.block_len() as i64),
            (NAME_SIZE, algorithm.output_len() as i64),
            (NAME_XOF, 0),
            (NAME_ALGID_ABSENT, 1),
        ];
        params.put_integers(&values).into()
    })
}

static GETTABLE: [Settable; 5] = [
    Settable::new(NAME_BLOCK_SIZE, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_SIZE, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_XOF, PARAM_INTEGER),
    Settable::new(NAME_ALGID_ABSENT, PARAM_INTEGER),
    Settable::END,
];

extern "C" fn gettable_params(_: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}
