//! AES-GCM in the program, for libcrypto that has no wide registers (3.0 has none): messages in parts of any size, and
//! whole records of TLS 1.2.
//!
//! It takes whatever libcrypto's own takes, in the same order, and fails where that fails.

use crate::abi::*;
use crate::library::{AesGcm, TAG_BYTES};
use crate::provider::Provider;
use aws_lc_rs::rand;
use keyway_engine::Zeroizing;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Most bytes of an initialization vector, and those of a usual one.
const IV_BYTES_MAX: usize = 128;
const IV_BYTES: usize = 12;
/// A record's own part of the initialization vector, in front of its text (RFC 5288 § 3).
const EXPLICIT: usize = RECORD_IV_BYTES as usize;

/// How far an initialization vector has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Iv {
    Missing,
    /// It is there, and begins the next message.
    Fresh,
    /// A message is under way with it.
    Used,
    /// Its message has ended. It begins no other.
    Spent,
}

/// A record of TLS 1.2 that comes next: what is authenticated with it.
type RecordHeader = [u8; RECORD_HEADER_BYTES as usize];

/// An operation under way.
struct Context {
    provider: Arc<Provider>,
    gcm: AesGcm,
    key_bytes: usize,
    has_key: bool,
    encrypts: bool,
    iv: Zeroizing<[u8; IV_BYTES_MAX]>,
    iv_bytes: usize,
    iv_state: Iv,
    /// Whether records count their initialization vectors up.
    counts: bool,
    /// The last message's tag, or the one that the next has to have.
    tag: [u8; TAG_BYTES],
    tag_bytes: Option<usize>,
    record: Option<RecordHeader>,
    /// Bytes that a record is longer for its tag.
    record_tag_bytes: usize,
    /// Records that were encrypted under the key.
    records: u64,
}

impl Context {
    fn new(provider: Arc<Provider>, key_bytes: usize) -> Option<Context> {
        Some(Context {
            provider,
            gcm: AesGcm::new(key_bytes)?,
            key_bytes,
            has_key: false,
            encrypts: false,
            iv: Zeroizing::new([0; IV_BYTES_MAX]),
            iv_bytes: IV_BYTES,
            iv_state: Iv::Missing,
            counts: false,
            tag: [0; TAG_BYTES],
            tag_bytes: None,
            record: None,
            record_tag_bytes: 0,
            records: 0,
        })
    }

    fn copy(&self) -> Option<Context> {
        let gcm = self.gcm.copy()?;
        Some(Context { provider: self.provider.clone(), gcm, iv: self.iv.clone(), ..*self })
    }

    fn begin(
        &mut self,
        encrypts: bool,
        (key, key_bytes): (Input, usize),
        (iv, iv_bytes): (Input, usize),
        params: &Params,
    ) -> Option<()> {
        self.encrypts = encrypts;
        if !iv.is_none() {
            if !(1..=IV_BYTES_MAX).contains(&iv_bytes) {
                self.provider.raise_unfit("AES-GCM takes an IV of 1 to 128 bytes");
                return None;
            }
            self.iv[..iv_bytes].copy_from_slice(iv.bytes(iv_bytes)?);
            self.iv_bytes = iv_bytes;
            self.iv_state = Iv::Fresh;
        }
        if !key.is_none() {
            if key_bytes != self.key_bytes {
                let why = format!("this cipher has keys of {} bytes", self.key_bytes);
                self.provider.raise_unfit(&why);
                return None;
            }
            self.gcm.set_key(key.bytes(key_bytes)?).then_some(())?;
            self.has_key = true;
            self.records = 0;
            if self.iv_state == Iv::Used {
                // It began a message under another key, which is left there.
                self.iv_state = Iv::Fresh;
            }
        }
        self.set(params)
    }

    fn set(&mut self, params: &Params) -> Option<()> {
        if let Some(param) = params.get(NAME_TAG) {
            let tag = param.octets().filter(|tag| (1..=TAG_BYTES).contains(&tag.len()));
            let Some(tag) = tag.filter(|_| !self.encrypts) else {
                self.provider.raise_unfit("a tag of 1 to 16 bytes is set to decrypt");
                return None;
            };
            self.tag[..tag.len()].copy_from_slice(tag);
            self.tag_bytes = Some(tag.len());
        }
        if let Some(param) = params.get(NAME_IV_LENGTH) {
            let bytes = param.integer().and_then(|bytes| usize::try_from(bytes).ok());
            let Some(bytes) = bytes.filter(|bytes| (1..=IV_BYTES_MAX).contains(bytes)) else {
                self.provider.raise_unfit("AES-GCM takes an IV of 1 to 128 bytes");
                return None;
            };
            if bytes != self.iv_bytes {
                if self.iv_state != Iv::Missing {
                    self.iv_state = Iv::Spent;
                }
                self.iv_bytes = bytes;
            }
        }
        if let Some(param) = params.get(NAME_TLS_AAD) {
            self.expect_record(param.octets()?)?;
        }
        if let Some(param) = params.get(NAME_TLS_IV_FIXED) {
            self.set_fixed(param)?;
        }
        if let Some(param) = params.get(NAME_TLS_IV_INVOCATION) {
            self.set_invocation(param.octets()?)?;
        }
        Some(())
    }

    /// A record's header has the length of all that follows; what is authenticated has that of the text.
    fn expect_record(&mut self, header: &[u8]) -> Option<()> {
        let mut header: RecordHeader = header.try_into().ok()?;
        let [.., high, low] = &mut header;
        let overhead = if self.encrypts { EXPLICIT } else { EXPLICIT + TAG_BYTES };
        let length = usize::from(u16::from_be_bytes([*high, *low])).checked_sub(overhead)?;
        [*high, *low] = u16::try_from(length).ok()?.to_be_bytes();
        self.record = Some(header);
        self.record_tag_bytes = TAG_BYTES;
        Some(())
    }

    /// Takes the part of the initialization vectors that all records have; the rest begins at random, and is counted up.
    fn set_fixed(&mut self, param: &Param) -> Option<()> {
        if let Some(whole) = param.octets_of(self.iv_bytes) {
            self.iv[..self.iv_bytes].copy_from_slice(whole);
        } else {
            let fixed = param.octets()?;
            let rest = self.iv_bytes.checked_sub(fixed.len())?;
            if fixed.len() < RECORD_FIXED_IV_BYTES as usize || rest < EXPLICIT {
                return None;
            }
            self.iv[..fixed.len()].copy_from_slice(fixed);
            if self.encrypts {
                rand::fill(&mut self.iv[fixed.len()..self.iv_bytes]).ok()?;
            }
        }
        self.counts = true;
        self.iv_state = Iv::Fresh;
        Some(())
    }

    /// Takes the rest of an initialization vector, as a record has it that is to be decrypted.
    fn set_invocation(&mut self, invocation: &[u8]) -> Option<()> {
        if !self.counts || !self.has_key || self.encrypts {
            return None;
        }
        let from = self.iv_bytes.checked_sub(invocation.len())?;
        self.iv[from..self.iv_bytes].copy_from_slice(invocation);
        self.start()
    }

    /// Begins a message with the next initialization vector, and gives the end of that, at most so many bytes.
    fn count(&mut self, bytes: usize) -> Option<Vec<u8>> {
        if !self.counts || !self.has_key {
            return None;
        }
        self.start()?;
        let bytes = if bytes == 0 { self.iv_bytes } else { bytes.min(self.iv_bytes) };
        let end = self.iv[self.iv_bytes - bytes..self.iv_bytes].to_vec();
        let counter = &mut self.iv[..self.iv_bytes].last_chunk_mut::<8>()?;
        **counter = u64::from_be_bytes(**counter).wrapping_add(1).to_be_bytes();
        Some(end)
    }

    fn start(&mut self) -> Option<()> {
        self.gcm.set_iv(&self.iv[..self.iv_bytes], self.encrypts).then_some(())?;
        self.iv_state = Iv::Used;
        Some(())
    }

    /// Sees to it that a message is under way.
    fn ready(&mut self) -> Option<()> {
        if !self.has_key || self.iv_state == Iv::Spent {
            return None;
        }
        if self.iv_state == Iv::Missing {
            // Without one from the program, one is made, of 96 bits at least (SP 800-38D § 8.2.2).
            if !self.encrypts || self.iv_bytes < IV_BYTES {
                return None;
            }
            rand::fill(&mut self.iv[..self.iv_bytes]).ok()?;
            self.iv_state = Iv::Fresh;
        }
        if self.iv_state == Iv::Fresh { self.start() } else { Some(()) }
    }

    /// Takes a part of the additional data, where nothing is to be put out, or of the text; or a whole record. Gives how
    /// many bytes are put out.
    fn update(&mut self, out: &Output, input: &Input, bytes: usize) -> Option<usize> {
        if let Some(header) = self.record.take() {
            let done = self.record(&header, out, input, bytes);
            self.iv_state = Iv::Spent;
            return done;
        }
        self.ready()?;
        let done = match out.is_none() {
            true => self.gcm.authenticate(input.bytes(bytes)?),
            false => self.gcm.update(input, out, bytes),
        };
        done.then_some(bytes)
    }

    fn finish(&mut self) -> Option<()> {
        if self.record.take().is_some() {
            self.iv_state = Iv::Spent;
            return None;
        }
        self.ready()?;
        match (self.encrypts, self.tag_bytes) {
            (true, _) => {
                self.tag = self.gcm.tag()?;
                self.tag_bytes = Some(TAG_BYTES);
            }
            (false, Some(bytes)) => self.gcm.verify(&self.tag[..bytes]).then_some(())?,
            (false, None) => return None,
        }
        self.iv_state = Iv::Spent;
        Some(())
    }

    /// A whole record, in place: its part of the initialization vector, the text, the tag (RFC 5288 § 3).
    fn record(
        &mut self,
        header: &RecordHeader,
        out: &Output,
        input: &Input,
        bytes: usize,
    ) -> Option<usize> {
        let text_bytes = bytes.checked_sub(EXPLICIT + TAG_BYTES)?;
        if !self.has_key || !out.is_place_of(input) {
            return None;
        }
        let (text, place) = (input.at(EXPLICIT), out.at(EXPLICIT));
        if self.encrypts {
            self.records = self.records.checked_add(1)?;
            let explicit = self.count(EXPLICIT)?;
            out.at(0).put(EXPLICIT, &explicit).then_some(())?;
        } else {
            let explicit = input.bytes(EXPLICIT)?.to_vec();
            self.set_invocation(&explicit)?;
        }
        self.gcm.authenticate(header).then_some(())?;
        self.gcm.update(&text, &place, text_bytes).then_some(())?;
        if self.encrypts {
            let tag = self.gcm.tag()?;
            return place.at(text_bytes).put(TAG_BYTES, &tag).then_some(bytes);
        }
        let tag: [u8; TAG_BYTES] = text.at(text_bytes).bytes(TAG_BYTES)?.try_into().ok()?;
        if !self.gcm.verify(&tag) {
            place.at(0).replace_with_zeros(text_bytes);
            return None;
        }
        Some(text_bytes)
    }

    fn get(&mut self, params: &mut Params) -> Option<()> {
        let tag_bytes = self.tag_bytes.unwrap_or(TAG_BYTES);
        let lengths = [
            (NAME_IV_LENGTH, self.iv_bytes as i64),
            (NAME_KEY_LENGTH, self.key_bytes as i64),
            (NAME_TAG_LENGTH, tag_bytes as i64),
            (NAME_TLS_AAD_PAD, self.record_tag_bytes as i64),
        ];
        params.put_integers(&lengths).then_some(())?;
        for name in [NAME_IV, NAME_UPDATED_IV] {
            let Some(param) = params.get_mut(name) else { continue };
            let iv = &self.iv[..self.iv_bytes];
            let done = self.iv_state != Iv::Missing
                && (param.put_octets(iv) || param.put_octet_pointer(iv));
            done.then_some(())?;
        }
        if let Some(param) = params.get_mut(NAME_TAG) {
            let bytes = param.room();
            let is_there = self.encrypts && self.tag_bytes.is_some();
            if !is_there || !(1..=TAG_BYTES).contains(&bytes) {
                self.provider
                    .raise_unfit("there is a tag of 1 to 16 bytes once a text is encrypted");
                return None;
            }
            param.put_octets(&self.tag[..bytes]).then_some(())?;
        }
        if let Some(param) = params.get_mut(NAME_TLS_IV_GENERATED) {
            let generated = self.count(param.room())?;
            param.put_octets_if_any(&generated).then_some(())?;
        }
        Some(())
    }
}

macro_rules! functions {
    ($($name:ident $key_bytes:literal)*) => {$(
        /// For keys of so many bytes.
        pub static $name: [Dispatch; 15] = [
            Dispatch::new(CIPHER_NEWCTX, new::<$key_bytes> as *const c_void),
            Dispatch::new(CIPHER_FREECTX, free::<Context> as *const c_void),
            Dispatch::new(CIPHER_DUPCTX, dup as *const c_void),
            Dispatch::new(CIPHER_ENCRYPT_INIT, init::<true> as *const c_void),
            Dispatch::new(CIPHER_DECRYPT_INIT, init::<false> as *const c_void),
            Dispatch::new(CIPHER_UPDATE, update as *const c_void),
            Dispatch::new(CIPHER_FINAL, finish as *const c_void),
            Dispatch::new(CIPHER_CIPHER, cipher as *const c_void),
            Dispatch::new(CIPHER_GET_PARAMS, get_params::<$key_bytes> as *const c_void),
            Dispatch::new(CIPHER_GETTABLE_PARAMS, gettable_params as *const c_void),
            Dispatch::new(CIPHER_GET_CTX_PARAMS, get_context_params as *const c_void),
            Dispatch::new(CIPHER_GETTABLE_CTX_PARAMS, gettable_context_params as *const c_void),
            Dispatch::new(CIPHER_SET_CTX_PARAMS, set_context_params as *const c_void),
            Dispatch::new(CIPHER_SETTABLE_CTX_PARAMS, settable_context_params as *const c_void),
            Dispatch::END,
        ];
    )*};
}

functions! { AES_128 16 AES_192 24 AES_256 32 }

extern "C" fn new<const KEY_BYTES: usize>(provider: Handle<Arc<Provider>>) -> Handle<Context> {
    guard(Handle::NONE, || {
        let context = provider.get().and_then(|it| Context::new(it.clone(), KEY_BYTES));
        context.map_or(Handle::NONE, Handle::new)
    })
}

extern "C" fn dup(context: Handle<Context>) -> Handle<Context> {
    guard(Handle::NONE, || context.get().and_then(Context::copy).map_or(Handle::NONE, Handle::new))
}

extern "C" fn init<const ENCRYPTS: bool>(
    mut context: Handle<Context>,
    key: Input,
    key_bytes: usize,
    iv: Input,
    iv_bytes: usize,
    params: Params,
) -> c_int {
    guard(0, || {
        let it = context.get_mut();
        let begun = it.and_then(|it| it.begin(ENCRYPTS, (key, key_bytes), (iv, iv_bytes), &params));
        begun.is_some().into()
    })
}

extern "C" fn update(
    mut context: Handle<Context>,
    out: Output,
    mut length: Length,
    room: usize,
    input: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        if bytes == 0 {
            length.put(0);
            return 1;
        }
        let Some(it) = context.get_mut().filter(|_| bytes <= room) else { return 0 };
        let done = it.update(&out, &input, bytes);
        length.put(done.unwrap_or(0));
        done.is_some().into()
    })
}

extern "C" fn finish(
    mut context: Handle<Context>,
    _out: Output,
    mut length: Length,
    _room: usize,
) -> c_int {
    guard(0, || {
        length.put(0);
        context.get_mut().and_then(Context::finish).is_some().into()
    })
}

/// A part, or without one the end: libcrypto's function for both.
extern "C" fn cipher(
    mut context: Handle<Context>,
    out: Output,
    mut length: Length,
    room: usize,
    input: Input,
    bytes: usize,
) -> c_int {
    guard(0, || {
        let Some(it) = context.get_mut().filter(|_| bytes <= room) else { return 0 };
        let done = match input.is_none() {
            true => it.finish(),
            false => it.update(&out, &input, bytes).map(drop),
        };
        if done.is_some() {
            length.put(bytes);
        }
        done.is_some().into()
    })
}

extern "C" fn get_params<const KEY_BYTES: usize>(mut params: Params) -> c_int {
    guard(0, || {
        let values = [
            (NAME_MODE, i64::from(GCM_MODE)),
            (NAME_AEAD, 1),
            (NAME_CUSTOM_IV, 1),
            (NAME_CTS, 0),
            (NAME_TLS_MULTIBLOCK, 0),
            (NAME_HAS_RAND_KEY, 0),
            (NAME_KEY_LENGTH, KEY_BYTES as i64),
            (NAME_BLOCK_SIZE, 1),
            (NAME_IV_LENGTH, IV_BYTES as i64),
        ];
        params.put_integers(&values).into()
    })
}

static GETTABLE: [Settable; 10] = [
    Settable::new(NAME_MODE, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_KEY_LENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_IV_LENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_BLOCK_SIZE, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_AEAD, PARAM_INTEGER),
    Settable::new(NAME_CUSTOM_IV, PARAM_INTEGER),
    Settable::new(NAME_CTS, PARAM_INTEGER),
    Settable::new(NAME_TLS_MULTIBLOCK, PARAM_INTEGER),
    Settable::new(NAME_HAS_RAND_KEY, PARAM_INTEGER),
    Settable::END,
];

extern "C" fn gettable_params(_: Handle<Arc<Provider>>) -> *const Settable {
    GETTABLE.as_ptr()
}

extern "C" fn get_context_params(mut context: Handle<Context>, mut params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.get(&mut params)).is_some().into())
}

extern "C" fn set_context_params(mut context: Handle<Context>, params: Params) -> c_int {
    guard(0, || context.get_mut().and_then(|it| it.set(&params)).is_some().into())
}

static GETTABLE_OF_CONTEXT: [Settable; 9] = [
    Settable::new(NAME_KEY_LENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_IV_LENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_TAG_LENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_IV, PARAM_OCTET_STRING),
    Settable::new(NAME_UPDATED_IV, PARAM_OCTET_STRING),
    Settable::new(NAME_TAG, PARAM_OCTET_STRING),
    Settable::new(NAME_TLS_AAD_PAD, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_TLS_IV_GENERATED, PARAM_OCTET_STRING),
    Settable::END,
];

extern "C" fn gettable_context_params(
    _: Handle<Context>,
    _: Handle<Arc<Provider>>,
) -> *const Settable {
    GETTABLE_OF_CONTEXT.as_ptr()
}

static SETTABLE_OF_CONTEXT: [Settable; 6] = [
    Settable::new(NAME_IV_LENGTH, PARAM_UNSIGNED_INTEGER),
    Settable::new(NAME_TAG, PARAM_OCTET_STRING),
    Settable::new(NAME_TLS_AAD, PARAM_OCTET_STRING),
    Settable::new(NAME_TLS_IV_FIXED, PARAM_OCTET_STRING),
    Settable::new(NAME_TLS_IV_INVOCATION, PARAM_OCTET_STRING),
    Settable::END,
];

extern "C" fn settable_context_params(
    _: Handle<Context>,
    _: Handle<Arc<Provider>>,
) -> *const Settable {
    SETTABLE_OF_CONTEXT.as_ptr()
}
