//! The interface between libcrypto and its providers, by hand: `openssl/core.h` and `openssl/core_dispatch.h` of
//! OpenSSL 3.0. A test compares numbers and layouts with the headers that are installed.
//!
//! All of this crate's unsafe code is here. Types that stand for a pointer argument ([`Handle`], [`Text`], [`Input`],
//! ...) cannot be made of an address by other modules: their values come from libcrypto, as arguments of functions in
//! dispatch tables, and are valid as long as the call lasts.

mod core;
mod numbers;
mod params;
mod pointers;
#[cfg(test)]
mod tests;

pub use self::core::{Core, CoreBio, CoreHandle};
pub use numbers::*;
pub use params::{Param, ParamList, Params, Settable};
pub use pointers::{Callback, Flag, Handle, Input, Length, Opaque, Output, Text, dup, free};

use std::ffi::{CStr, c_char, c_int, c_void};

/// OSSL_DISPATCH: a function's number, and the function.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dispatch {
    pub function_id: c_int,
    pub function: *const c_void,
}

/// OSSL_ALGORITHM: names, properties, and functions.
#[repr(C)]
pub struct Algorithm {
    names: *const c_char,
    properties: *const c_char,
    implementation: *const Dispatch,
    description: *const c_char,
}

// SAFETY: values of these types that are shared are constants of this module; no thread writes to them.
unsafe impl Sync for Dispatch {}
// SAFETY: as above.
unsafe impl Sync for Algorithm {}

impl Dispatch {
    /// The last of a table.
    pub const END: Dispatch = Dispatch { function_id: 0, function: std::ptr::null() };

    pub const fn new(function_id: c_int, function: *const c_void) -> Dispatch {
        Dispatch { function_id, function }
    }
}

impl Algorithm {
    /// The last of a table.
    pub const END: Algorithm = Algorithm {
        names: std::ptr::null(),
        properties: std::ptr::null(),
        implementation: std::ptr::null(),
        description: std::ptr::null(),
    };

    pub const fn new(
        names: &'static CStr,
        properties: &'static CStr,
        implementation: &'static [Dispatch],
        description: &'static CStr,
    ) -> Algorithm {
        Algorithm {
            names: names.as_ptr(),
            properties: properties.as_ptr(),
            implementation: implementation.as_ptr(),
            description: description.as_ptr(),
        }
    }
}

/// Runs the body of a function that libcrypto calls: no panic goes on there.
pub fn guard<R>(failure: R, body: impl FnOnce() -> R) -> R {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(failure)
}

/// Room for a table of functions.
#[repr(transparent)]
pub struct TablePlace(*mut *const Dispatch);

/// Room for the provider's context.
#[repr(transparent)]
pub struct ContextPlace<T>(*mut Handle<T>);

/// libcrypto's table of functions.
#[repr(transparent)]
pub struct CoreTable(*const Dispatch);

/// The one function that the module exports: libcrypto loads the provider.
#[unsafe(no_mangle)]
extern "C" fn OSSL_provider_init(
    handle: CoreHandle,
    table: CoreTable,
    functions: TablePlace,
    context: ContextPlace<std::sync::Arc<crate::provider::Provider>>,
) -> c_int {
    guard(0, || {
        let Some(core) = Core::new(handle, table.0) else { return 0 };
        // SAFETY: libcrypto passes room for a pointer to the table.
        let Some(functions) = (unsafe { functions.0.as_mut() }) else { return 0 };
        // SAFETY: and for the context.
        let Some(context) = (unsafe { context.0.as_mut() }) else { return 0 };
        let Some((own, provider)) = crate::provider::begin(core) else { return 0 };
        *functions = own.as_ptr();
        *context = provider;
        1
    })
}
