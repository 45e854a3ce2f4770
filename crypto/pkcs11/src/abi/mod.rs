//! The interface between a program and its PKCS#11 modules, by hand: PKCS #11 3.0, with the list of 2.40. A test
//! compares numbers and layouts with the headers that are installed.
//!
//! All of this crate's unsafe code is here, but for the names that `exports` gives functions. Types that stand for a
//! pointer argument ([`Input`], [`Place`], [`Template`], ...) cannot be made of an address by other modules: their
//! values are arguments of functions that a program calls, and are valid as long as the call lasts.

mod lists;
mod mechanism;
mod numbers;
mod pointers;
mod structures;
mod template;
#[cfg(test)]
mod tests;

pub use lists::{Function, FunctionList, Interface, InterfaceName, unsupported};
pub use mechanism::{MechanismArgument, Parameters};
pub use numbers::*;
pub use pointers::{Array, Input, Opaque, Output, Place};
pub use structures::{
    Info, InitializeArgument, MechanismInfo, SessionInfo, SlotInfo, TokenInfo, Version, padded,
};
pub use template::Template;

use std::ffi::c_ulong;

/// CK_ULONG: a number, a handle, a set of flags.
pub type Ulong = c_ulong;

/// CK_RV: whether a function did it, and why not.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rv(pub Ulong);

/// Runs the body of a function that a program calls: no panic goes on there.
pub fn guard(body: impl FnOnce() -> Result<(), Rv>) -> Rv {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    match done {
        Ok(Ok(())) => OK,
        Ok(Err(why)) => why,
        Err(_) => GENERAL_ERROR,
    }
}
