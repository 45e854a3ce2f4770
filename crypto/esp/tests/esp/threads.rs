//! Several threads at one association.

use crate::support::{ENGINE, Kind, NOW, Pair, outer, udp4};
use keyway_esp::{Cause, Dispatch, InnerPacket, Mode, Opener, Sealer, Suite};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, Mutex};

const THREADS: usize = 4;
const KIND: Kind = Kind { suite: Suite::Aes128Gcm, mode: Mode::Tunnel, esn: true };

/// All threads receive copies of all packets at once; each packet is accepted once.
#[test]
fn copies_that_several_threads_receive_are_accepted_once() {
    const PACKETS: usize = 6_000;
    // The lower half of the numbers goes round on the way.
    let first = (1 << 32) - PACKETS as u64 / 2;
    let mut pair = Pair::new(KIND, first..u64::MAX, 256);
    let packets: Vec<_> = (0..PACKETS).map(|at| udp4(&(at as u32).to_be_bytes())).collect();
    let mut sealed = Vec::new();
    for batch in packets.chunks(200) {
        sealed.extend(pair.seal(batch).into_iter().map(Result::unwrap));
    }
    let accepted: Vec<_> = (0..PACKETS).map(|_| AtomicU32::new(0)).collect();
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (sealed, accepted, barrier) = (&sealed, &accepted, &barrier);
            let (inbound, around) = (&pair.inbound, outer(&packets[0]));
            scope.spawn(move || {
                let mut opener = Opener::new(&ENGINE, Dispatch::Queued);
                barrier.wait();
                // Each in an order of its own, within less than the window.
                for block in sealed.chunks(100 + thread * 7) {
                    let mut order: Vec<_> = block.iter().collect();
                    order.rotate_left(thread * 11 % block.len());
                    order.reverse();
                    for batch in order.chunks(1 + thread * 13) {
                        for packet in batch {
                            opener.push(inbound, packet, around).unwrap();
                        }
                        opener.open(NOW, |result, _| match result {
                            Ok(packet) => {
                                let at = u32::from_be_bytes(*packet.last_chunk().unwrap());
                                accepted[at as usize].fetch_add(1, Ordering::Relaxed);
                            }
                            // An extended number behind the window is taken for one that is 2^32 higher.
                            Err(cause) => assert!(matches!(cause, Cause::Replay | Cause::Icv)),
                        });
                    }
                }
            });
        }
    });
    let counts: Vec<_> = accepted.iter().map(|it| it.load(Ordering::Relaxed)).collect();
    assert!(counts.iter().all(|count| *count == 1), "{counts:?}");
    assert_eq!(pair.inside.use_().packets, PACKETS as u64);
    assert_eq!(pair.inside.highest(), first + PACKETS as u64 - 1);
}

/// Threads that seal at once use no number twice and leave none out, while the numbers are leased bit by bit.
#[test]
fn threads_that_seal_share_the_numbers() {
    let pair = Pair::new(KIND, 1..100, 64);
    let numbers = Mutex::new(Vec::new());
    let (out, goal) = (&pair.out, 20_000);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let numbers = &numbers;
            scope.spawn(move || {
                let mut sealer = Sealer::new(&ENGINE, Dispatch::Queued);
                let packet = udp4(&[thread as u8]);
                let packet = InnerPacket::parse(&packet).unwrap();
                let mut own = Vec::new();
                while out.next_number() < goal {
                    for user in 0..1 + thread as u64 * 9 {
                        sealer.push(out, &packet, user).unwrap();
                    }
                    let mut last = own.last().copied().unwrap_or(0);
                    sealer.seal(NOW, |_, sealed| match sealed {
                        Ok(sealed) => {
                            let header = sealed.parts[0];
                            let number = u32::from_be_bytes(header[4..8].try_into().unwrap());
                            assert!(number > last);
                            last = number;
                            own.push(number);
                        }
                        Err(cause) => assert_eq!(cause, Cause::NumbersUsedUp),
                    });
                    // A thread that is short of numbers gets some more for all.
                    if out.end() - out.next_number().min(out.end()) < 20 {
                        out.extend((out.end() + 50).min(goal));
                    }
                }
                numbers.lock().unwrap().extend(own);
            });
        }
    });
    let mut numbers = numbers.into_inner().unwrap();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(1..goal as u32));
    assert_eq!(out.use_().packets, goal - 1);
}
