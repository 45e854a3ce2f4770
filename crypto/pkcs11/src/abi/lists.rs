//! CK_FUNCTION_LIST and CK_INTERFACE: the functions of a module, in the order of the headers.

use super::structures::Version;
use super::{Rv, Ulong};
use std::ffi::{CStr, c_char, c_void};

/// A function by its name in the headers.
pub struct Function {
    /// For the test that compares the order with the headers.
    #[cfg_attr(not(test), allow(dead_code, reason = "only a test reads it"))]
    pub name: &'static str,
    pub function: *const c_void,
}

// SAFETY: it is the address of a function.
unsafe impl Sync for Function {}

/// CK_FUNCTION_LIST, or CK_FUNCTION_LIST_3_0: so many functions behind the version.
#[repr(C)]
pub struct FunctionList<const LENGTH: usize> {
    version: Version,
    functions: [*const c_void; LENGTH],
}

// SAFETY: values are constants; no thread writes to them.
unsafe impl<const LENGTH: usize> Sync for FunctionList<LENGTH> {}

impl<const LENGTH: usize> FunctionList<LENGTH> {
    /// The first so many of these.
    pub const fn new(version: Version, functions: &[Function]) -> FunctionList<LENGTH> {
        let mut list = [std::ptr::null(); LENGTH];
        let mut at = 0;
        while at < LENGTH {
            list[at] = functions[at].function;
            at += 1;
        }
        FunctionList { version, functions: list }
    }

    /// The version of the interface that it is.
    pub const fn version(&self) -> Version {
        self.version
    }
}

/// CK_INTERFACE.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Interface {
    name: *const c_char,
    functions: *const c_void,
    flags: Ulong,
}

// SAFETY: values are constants; no thread writes to them.
unsafe impl Sync for Interface {}

impl Interface {
    /// An interface of that name.
    pub const fn new<const LENGTH: usize>(
        name: &'static CStr,
        functions: &'static FunctionList<LENGTH>,
        flags: Ulong,
    ) -> Interface {
        let functions: *const FunctionList<LENGTH> = functions;
        Interface { name: name.as_ptr(), functions: functions.cast(), flags }
    }
}

/// The name of an interface that a program asks for, or none.
#[repr(transparent)]
pub struct InterfaceName(*const c_char);

impl InterfaceName {
    /// Whether it is that one, or any.
    pub fn accepts(&self, name: &CStr) -> bool {
        // SAFETY: the program passes none, or a string that ends with a zero.
        self.0.is_null() || unsafe { CStr::from_ptr(self.0) } == name
    }
}

/// Only for [`Function`]: what a list has for functions that are not offered.
pub extern "C" fn unsupported() -> Rv {
    super::FUNCTION_NOT_SUPPORTED
}
