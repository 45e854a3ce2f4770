//! Sessions of a program, by their handles. A child that is forked has them too, with what was under way in them
//! unless a thread was changing it.

use crate::abi::{self, Rv, Ulong};
use crate::decrypt::Crypting;
use crate::limits::{SEGMENT, SEGMENTS};
use crate::signing::Signing;
use keyway_client::{Hasher, PerProcess};
use once_cell::race::OnceBox;
use std::sync::atomic::{AtomicU64, Ordering};

/// A session: the operations that are under way in it.
#[derive(Clone, Default)]
pub struct Session {
    /// Whether it was opened to write too.
    pub is_writable: bool,
    /// Objects that were found, the last first.
    pub found: Option<Vec<Ulong>>,
    pub signing: Option<Box<Signing>>,
    pub verifying: Option<Box<Signing>>,
    pub decrypting: Option<Box<Crypting>>,
    pub encrypting: Option<Box<Crypting>>,
    pub digesting: Option<Box<Hasher>>,
}

struct Slot {
    /// The upper part of the handle of its session. 0 for none.
    serial: AtomicU64,
    session: PerProcess<Session>,
}

type Segment = [Slot; SEGMENT];

static SLOTS: [OnceBox<Segment>; SEGMENTS] = [const { OnceBox::new() }; SEGMENTS];
static LAST: AtomicU64 = AtomicU64::new(0);
/// The lower part of a handle says where.
const PLACE_BITS: u32 = (SEGMENT * SEGMENTS).ilog2();

fn new_segment() -> Box<Segment> {
    Box::new(std::array::from_fn(|_| Slot {
        serial: AtomicU64::new(0),
        session: PerProcess::new(Session::default()),
    }))
}

/// Opens a session.
pub fn open(is_writable: bool) -> Result<Ulong, Rv> {
    let serial = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    let slots = SLOTS.iter().flat_map(|segment| segment.get_or_init(new_segment));
    for (at, slot) in slots.enumerate() {
        let free = slot.serial.load(Ordering::Relaxed) == 0;
        if free
            && slot.serial.compare_exchange(0, serial, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            *slot.session.lock() = Session { is_writable, ..Session::default() };
            return Ok((serial << PLACE_BITS) as Ulong | at as Ulong);
        }
    }
    Err(abi::SESSION_COUNT)
}

fn find(handle: Ulong) -> Result<(&'static Slot, u64), Rv> {
    let (at, serial) = (handle as usize % (1 << PLACE_BITS), handle >> PLACE_BITS);
    let slot = SLOTS[at / SEGMENT].get().map(|segment| &segment[at % SEGMENT]);
    slot.filter(|_| serial != 0).map(|slot| (slot, serial)).ok_or(abi::SESSION_HANDLE_INVALID)
}

/// Does something with a session, which no other thread has meanwhile.
pub fn with<R>(handle: Ulong, action: impl FnOnce(&mut Session) -> Result<R, Rv>) -> Result<R, Rv> {
    let (slot, serial) = find(handle)?;
    let mut session = slot.session.lock();
    if slot.serial.load(Ordering::Acquire) != serial {
        return Err(abi::SESSION_HANDLE_INVALID);
    }
    action(&mut session)
}

/// Closes a session.
pub fn close(handle: Ulong) -> Result<(), Rv> {
    let (slot, serial) = find(handle)?;
    let mut session = slot.session.lock();
    let closed = slot.serial.compare_exchange(serial, 0, Ordering::AcqRel, Ordering::Acquire);
    closed.map_err(|_| abi::SESSION_HANDLE_INVALID)?;
    *session = Session::default();
    Ok(())
}

/// Closes all sessions.
pub fn close_all() {
    for slot in SLOTS.iter().filter_map(OnceBox::get).flatten() {
        if slot.serial.load(Ordering::Acquire) != 0 {
            let mut session = slot.session.lock();
            *session = Session::default();
            slot.serial.store(0, Ordering::Release);
        }
    }
}

/// How many are open.
pub fn count() -> usize {
    let slots = SLOTS.iter().filter_map(OnceBox::get).flatten();
    slots.filter(|slot| slot.serial.load(Ordering::Relaxed) != 0).count()
}
