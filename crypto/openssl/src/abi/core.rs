//! Functions of libcrypto's that a provider may call: its errors, its configuration, its files.

use super::Dispatch;
use super::numbers::*;
use super::params::Param;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// libcrypto's name for the provider, to be handed back.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct CoreHandle(*const c_void);

/// A file of libcrypto's.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct CoreBio(*mut c_void);

/// Stands for a `va_list` that no conversion reads. On x86-64 and 64-bit ARM a `va_list` is passed by its address.
#[repr(C, align(16))]
struct NoArguments([u64; 4]);

type NewError = unsafe extern "C" fn(CoreHandle);
type SetErrorDebug = unsafe extern "C" fn(CoreHandle, *const c_char, c_int, *const c_char);
type VsetError = unsafe extern "C" fn(CoreHandle, u32, *const c_char, *const NoArguments);
type GetParams = unsafe extern "C" fn(CoreHandle, *mut Param) -> c_int;
type BioReadEx = unsafe extern "C" fn(CoreBio, *mut c_void, usize, *mut usize) -> c_int;
type BioGets = unsafe extern "C" fn(CoreBio, *mut c_char, c_int) -> c_int;

/// These functions.
pub struct Core {
    handle: CoreHandle,
    new_error: NewError,
    set_error_debug: SetErrorDebug,
    vset_error: VsetError,
    get_params: GetParams,
    bio_read_ex: BioReadEx,
    bio_gets: BioGets,
    /// Whether libcrypto has ended the provider: its handle means nothing any more.
    ended: AtomicBool,
}

// SAFETY: the handle is only handed back, and libcrypto's functions may be called by every thread.
unsafe impl Send for Core {}
// SAFETY: as above.
unsafe impl Sync for Core {}

macro_rules! function {
    ($table:expr, $number:expr, $type:ty) => {{
        let function: *const c_void = find($table, $number)?;
        // SAFETY: libcrypto's function of that number has this type.
        unsafe { transmute::<*const c_void, $type>(function) }
    }};
}

/// The function of a number in libcrypto's table.
fn find(mut table: *const Dispatch, number: c_int) -> Option<*const c_void> {
    loop {
        // SAFETY: the table is none, or has an end, which is not gone beyond.
        let entry = unsafe { table.as_ref() }?;
        match entry.function_id {
            0 => return None,
            id if id == number => return Some(entry.function).filter(|it| !it.is_null()),
            _ => table = table.wrapping_add(1),
        }
    }
}

impl Core {
    /// `None` if libcrypto lacks one.
    pub fn new(handle: CoreHandle, table: *const Dispatch) -> Option<Core> {
        Some(Core {
            handle,
            new_error: function!(table, CORE_NEW_ERROR, NewError),
            set_error_debug: function!(table, CORE_SET_ERROR_DEBUG, SetErrorDebug),
            vset_error: function!(table, CORE_VSET_ERROR, VsetError),
            get_params: function!(table, CORE_GET_PARAMS, GetParams),
            bio_read_ex: function!(table, BIO_READ_EX, BioReadEx),
            bio_gets: function!(table, BIO_GETS, BioGets),
            ended: AtomicBool::new(false),
        })
    }

    /// libcrypto ends the provider.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Puts an error into the calling thread's queue: one of libcrypto's own for providers. A provider that brought
    /// strings for reasons of its own would crash where its last key is freed after libcrypto's end
    /// (`OPENSSL_cleanup`), in whose course libcrypto forgets them.
    pub fn raise(&self, reason: c_int, text: &str) {
        if self.ended.load(Ordering::Acquire) {
            return;
        }
        let reason = (LIBRARY << LIBRARY_SHIFT | reason).cast_unsigned();
        // It is a format: no conversion may be in it.
        let format = CString::new(text.replace('%', "%%").replace('\0', " ")).unwrap_or_default();
        let none = NoArguments([0; 4]);
        // SAFETY: the handle is this provider's, which has not ended.
        unsafe { (self.new_error)(self.handle) };
        // SAFETY: as above; the strings are constants.
        unsafe { (self.set_error_debug)(self.handle, FILE.as_ptr(), 0, FILE.as_ptr()) };
        // SAFETY: as above; the format has no conversion, so no argument is read.
        unsafe { (self.vset_error)(self.handle, reason, format.as_ptr(), &none) };
    }

    /// A string that the provider's section in `openssl.cnf` has under this name.
    pub fn configured(&self, name: &CStr) -> Option<String> {
        let mut found: *const c_char = ptr::null();
        let entry = |key, data_type, data, data_size| Param {
            key,
            data_type,
            data,
            data_size,
            return_size: PARAM_UNMODIFIED,
        };
        let place: *mut *const c_char = &mut found;
        let mut params = [
            entry(name.as_ptr(), PARAM_UTF8_PTR, place.cast(), 0),
            entry(ptr::null(), 0, ptr::null_mut(), 0),
        ];
        // SAFETY: the handle is this provider's; the list has an end, and room for a pointer.
        let done = unsafe { (self.get_params)(self.handle, params.as_mut_ptr()) };
        if done == 0 || found.is_null() {
            return None;
        }
        // SAFETY: libcrypto has put a string there that ends with a zero, and lasts as long as the provider.
        unsafe { CStr::from_ptr(found) }.to_str().ok().map(str::to_owned)
    }

    /// The next line of a file with its end, or so much of it as goes into the buffer; empty at the file's end.
    pub fn line<'b>(&self, bio: CoreBio, buffer: &'b mut [u8]) -> &'b [u8] {
        let room = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
        // SAFETY: libcrypto has passed the file for this call; the buffer has so much room.
        let read = unsafe { (self.bio_gets)(bio, buffer.as_mut_ptr().cast(), room) };
        buffer.get(..usize::try_from(read).unwrap_or(0)).unwrap_or_default()
    }

    /// All bytes of a file, or as many as may be.
    pub fn bytes(&self, bio: CoreBio, most: usize) -> Vec<u8> {
        let (mut all, mut used) = (vec![0; most], 0);
        while used < most {
            let (room, mut read) = (&mut all[used..], 0);
            // SAFETY: as above, and there is room for a length.
            let done =
                unsafe { (self.bio_read_ex)(bio, room.as_mut_ptr().cast(), room.len(), &mut read) };
            if done == 0 || read == 0 {
                break;
            }
            used += read.min(room.len());
        }
        all.truncate(used);
        all
    }
}

const FILE: &CStr = c"keyway";
