//! Structures without pointers that a program is told, and CK_C_INITIALIZE_ARGS.

use super::{ARGUMENTS_BAD, Rv, Ulong};
use std::ffi::c_void;

/// CK_VERSION.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub major: u8,
    pub minor: u8,
}

/// CK_INFO.
#[repr(C)]
pub struct Info {
    pub cryptoki_version: Version,
    pub manufacturer: [u8; 32],
    pub flags: Ulong,
    pub library_description: [u8; 32],
    pub library_version: Version,
}

/// CK_SLOT_INFO.
#[repr(C)]
pub struct SlotInfo {
    pub description: [u8; 64],
    pub manufacturer: [u8; 32],
    pub flags: Ulong,
    pub hardware_version: Version,
    pub firmware_version: Version,
}

/// CK_TOKEN_INFO.
#[repr(C)]
pub struct TokenInfo {
    pub label: [u8; 32],
    pub manufacturer: [u8; 32],
    pub model: [u8; 16],
    pub serial_number: [u8; 16],
    pub flags: Ulong,
    pub max_session_count: Ulong,
    pub session_count: Ulong,
    pub max_rw_session_count: Ulong,
    pub rw_session_count: Ulong,
    pub max_pin_len: Ulong,
    pub min_pin_len: Ulong,
    pub total_public_memory: Ulong,
    pub free_public_memory: Ulong,
    pub total_private_memory: Ulong,
    pub free_private_memory: Ulong,
    pub hardware_version: Version,
    pub firmware_version: Version,
    pub utc_time: [u8; 16],
}

/// CK_SESSION_INFO.
#[repr(C)]
pub struct SessionInfo {
    pub slot: Ulong,
    pub state: Ulong,
    pub flags: Ulong,
    pub device_error: Ulong,
}

/// CK_MECHANISM_INFO.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MechanismInfo {
    pub min_key_size: Ulong,
    pub max_key_size: Ulong,
    pub flags: Ulong,
}

/// A text in a field of fixed length, with blanks behind it.
pub const fn padded<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
    let (mut field, text) = ([b' '; LENGTH], text.as_bytes());
    let mut at = 0;
    while at < text.len() && at < LENGTH {
        field[at] = text[at];
        at += 1;
    }
    field
}

/// CK_C_INITIALIZE_ARGS.
#[repr(C)]
pub(super) struct RawInitialize {
    pub create_mutex: *const c_void,
    pub destroy_mutex: *const c_void,
    pub lock_mutex: *const c_void,
    pub unlock_mutex: *const c_void,
    pub flags: Ulong,
    pub reserved: *const c_void,
}

/// The argument of C_Initialize, or none.
#[repr(transparent)]
pub struct InitializeArgument(*const RawInitialize);

impl InitializeArgument {
    /// Refuses an incomplete set of functions for locks. A complete one is not used: this module's locks are the
    /// system's. The reserved field is the program's way to configure other modules, and not looked at.
    pub fn check(&self) -> Result<(), Rv> {
        // SAFETY: the program passes none, or such a structure.
        let Some(raw) = (unsafe { self.0.as_ref() }) else { return Ok(()) };
        let functions = [raw.create_mutex, raw.destroy_mutex, raw.lock_mutex, raw.unlock_mutex];
        let given = functions.iter().filter(|function| !function.is_null()).count();
        if given == 0 || given == functions.len() { Ok(()) } else { Err(ARGUMENTS_BAD) }
    }
}
