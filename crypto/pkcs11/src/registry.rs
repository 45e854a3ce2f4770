//! The objects that this process has seen, by their handles, which stay what they are: after the daemon has ended,
//! and in processes that are forked. No lock: a thread that is not there in a child may have held it.

use crate::abi::Ulong;
use crate::limits::{SEGMENT, SEGMENTS};
use crate::object::Object;
use once_cell::race::OnceBox;

type Segment = [OnceBox<Object>; SEGMENT];

static OBJECTS: [OnceBox<Segment>; SEGMENTS] = [const { OnceBox::new() }; SEGMENTS];

fn place(at: usize) -> Option<&'static OnceBox<Object>> {
    let segment = OBJECTS.get(at / SEGMENT)?;
    segment.get_or_init(|| Box::new([const { OnceBox::new() }; SEGMENT])).get(at % SEGMENT)
}

/// The object of a handle.
pub fn get(handle: Ulong) -> Option<&'static Object> {
    let at = usize::try_from(handle).ok()?.checked_sub(1)?;
    OBJECTS.get(at / SEGMENT)?.get()?.get(at % SEGMENT)?.get()
}

/// The handle of an object, which is kept if it is new; `None` if there are too many.
pub fn handle(object: Object) -> Option<Ulong> {
    let mut object = Box::new(object);
    for at in 0.. {
        let place = place(at)?;
        if place.get().is_none() {
            match place.set(object) {
                Ok(()) => return Some(at as Ulong + 1),
                // Another thread was faster, perhaps with that object.
                Err(back) => object = back,
            }
        }
        if place.get() == Some(&object) {
            return Some(at as Ulong + 1);
        }
    }
    None
}
