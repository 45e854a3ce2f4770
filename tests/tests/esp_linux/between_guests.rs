//! Two guests, before Keyway has anything to do with it: what is wrong here is no fault of the gateway's.

use crate::cases::{self, Side};
use crate::frames::{Frame, Kind};
use crate::machine;
use keyway_tests::link::{End, Link};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

#[test]
fn two_guests_understand_each_other_in_every_way() {
    let cases = cases::all();
    let Some(image) = machine::image(&cases) else { return };
    let (left, right) = std::thread::scope(|scope| {
        let left = scope.spawn(|| machine::boot(&image, Side::Gateway));
        let right = machine::boot(&image, Side::Guest);
        (left.join().unwrap(), right)
    });
    let ((gateway, left), (guest, right)) = (left, right);
    let link = Link::new(left, right);
    let seen: Arc<Mutex<BTreeSet<u32>>> = Arc::default();
    let clear: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    for end in [End::Left, End::Right] {
        let (seen, clear) = (seen.clone(), clear.clone());
        link.rule(end, move |bytes| {
            let frame = Frame::of(&bytes);
            match (&frame.kind, frame.spi_and_number()) {
                (_, Some((spi, _))) => drop(seen.lock().unwrap().insert(spi)),
                (Kind::Link, _) => {}
                _ => clear.lock().unwrap().push(bytes.clone()),
            }
            vec![bytes]
        });
    }
    let mut lines = String::new();
    for case in &cases {
        for bytes in [8, 1400] {
            let (from, to) = (case.inside(Side::Gateway), case.inside(Side::Guest));
            lines += &format!("{from} {to} {bytes}\n");
        }
    }
    let done = gateway.run(&format!("/root/peer ask <<'E'\n{lines}E\n"));
    assert_eq!(done.code, 0, "{}{}\n{}", done.out, done.err, machine::drops(&guest));
    assert!(clear.lock().unwrap().is_empty(), "{:02x?}", clear.lock().unwrap());
    let wanted = cases.iter().flat_map(|case| [case.spi(Side::Gateway), case.spi(Side::Guest)]);
    assert_eq!(*seen.lock().unwrap(), wanted.collect());
}
