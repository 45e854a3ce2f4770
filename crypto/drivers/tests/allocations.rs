//! The path of a record allocates nothing.

use keyway_engine::{Algorithm, Key, Parameters, Request};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

// SAFETY: everything is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise about `layout` is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from `alloc` above with the same layout, so from the system.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

#[test]
fn records_hashes_and_macs_allocate_nothing() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    let engine = keyway_drivers::engine();
    let open = |algorithm, key| engine.session(Parameters::new(algorithm, key)).unwrap();
    let mut data = vec![0; 16 * 1024 + 16];
    for (algorithm, key) in [
        (Algorithm::Aes128Gcm, &[7; 16][..]),
        (Algorithm::Aes256Gcm, &[7; 32]),
        (Algorithm::ChaCha20Poly1305, &[7; 32]),
    ] {
        let session = open(algorithm, Key::Secret(key));
        let record = |data: &mut [u8], nonce: [u8; 12]| {
            let (text, tag) = data.split_last_chunk_mut().unwrap();
            *tag = session.seal(&nonce, b"header", text).unwrap();
            session.open_in_place(&nonce, b"header", data).unwrap();
        };
        // The first request of a thread may get it its shard of the meter.
        record(&mut data, [0; 12]);
        for length in [64, 1350, 16 * 1024] {
            let made = allocations(|| record(&mut data[..length + 16], [1; 12]));
            assert_eq!(made, 0, "{algorithm} {length}");
        }
    }
    let session = open(Algorithm::HmacSha256, Key::Secret(&[7; 32]));
    let mut out = [0; 32];
    let made = allocations(|| {
        session.run(&mut Request::Mac { data: &[&data], out: &mut out }).unwrap();
        session.run(&mut Request::Mac { data: &[b"two", b"parts"], out: &mut out }).unwrap();
    });
    assert_eq!(made, 0);
    engine.digest(Algorithm::Sha256, &[b"opens its session"], &mut out).unwrap();
    assert_eq!(allocations(|| engine.digest(Algorithm::Sha256, &[&data], &mut out).unwrap()), 0);
    engine.random(&mut out).unwrap();
    assert_eq!(allocations(|| engine.random(&mut out).unwrap()), 0);
}
