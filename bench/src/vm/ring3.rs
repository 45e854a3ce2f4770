//! Claim 1: what the ring costs a guest, beside what it costs a process of the host.
//!
//! The guest is this process's own code and memory once more, in ring 3 of a virtual machine (see [`kvm`](super::kvm)),
//! as a program in a guest that has mapped the daemon's memory. Both sides are the same function with the same queue
//! pair, by turns, and `cryptod` at the other end is the same process.

use super::kvm::{Exits, Guest, ring_from_guest};
use crate::report::{Claim, Findings, Table};
use crate::ring::client::{Client, Region, Ring};
use crate::ring::common::{best, column, text};
use crate::ring::daemon::Daemon;
use crate::ring::null_operation::turn;
use keyway_engine::Algorithm;
use keyway_ring::ClientEnd;
use keyway_ring::control::{Key, Secret};
use keyway_ring::descriptor::{Opcode, Segment, SessionHandle, Status};
use rustix::fs::Access;
use std::cell::RefCell;
use std::hint::spin_loop;
use std::time::Instant;

const DEPTHS: [usize; 2] = [1, 32];
/// Runs of each side in a round, and operations of a run.
const RUNS: usize = 40;
const OPERATIONS: usize = 2_000;
/// Operations before each run, so that the daemon is awake.
const WAKING: usize = 100;
/// Operations during which exits are counted, for each depth.
const COUNTED: usize = 1_000_000;

/// The most that the guest may take of what the host's process does.
const MOST: f64 = 1.3;
/// Those with which a run ends, and a few of the host's memory management. A daemon that sleeps is rung: it polls not.
const EXITS_MAX: f64 = 1e-5;

/// Bytes of a text that is sealed.
const TEXT_BYTES: u32 = 64;

/// Why it cannot be measured here.
pub fn lacks() -> Option<String> {
    let device = "/dev/kvm";
    let why = rustix::fs::access(device, Access::READ_OK | Access::WRITE_OK).err()?;
    Some(format!("{device}: {why}"))
}

pub fn measure(rounds: usize) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let client = Client::connect(daemon.socket(), "vm")?;
    let Ring { mut end, bell } = client.ring(64)?;
    let sealing = Sealing {
        region: client.region(TEXT_BYTES as usize)?,
        session: client.open(Algorithm::Aes128Gcm, Key::Secret(Secret(vec![7; 16])))?,
    };
    // From here on, all that is used in the guest is mapped.
    let mut guest = Guest::new()?;
    let ring = || bell.ring();
    let mut nulls = [const { Vec::new() }; DEPTHS.len()];
    let mut sealed = Vec::new();
    for _ in 0..rounds {
        for (nulls, depth) in nulls.iter_mut().zip(DEPTHS) {
            let mut run = |ring: &dyn Fn()| {
                turn(&mut end, 1, WAKING, ring);
                turn(&mut end, depth, OPERATIONS, ring)
            };
            nulls.push(by_turns(&mut guest, &ring, &mut run)?);
        }
        let mut run = |ring: &dyn Fn()| {
            turn(&mut end, 1, WAKING, ring);
            sealing.turn(&mut end, OPERATIONS, ring)
        };
        sealed.push(by_turns(&mut guest, &ring, &mut run)?);
    }
    let before = guest.exits();
    for depth in DEPTHS {
        let mut run = || turn(&mut end, depth, COUNTED, &ring_from_guest);
        in_guest(&mut guest, &ring, &mut run)?;
    }
    let exits = guest.exits().since(before);
    if sealed.iter().flatten().any(|figure| *figure == f64::MAX) {
        return Err("the daemon has not sealed what it should".into());
    }

    let (mut found, peer) = (Findings::default(), "between processes");
    for (nulls, depth) in nulls.iter().zip(DEPTHS) {
        let name = format!("1 null operation from a guest, {depth} in flight");
        let (host, guest) = (column(nulls, 0), column(nulls, 1));
        found.claims.push(Claim::cost(&name, "ns", &guest, peer, &host).demand(1.0 / MOST));
    }
    let name = format!("1 AES-128-GCM of {TEXT_BYTES} B from a guest, 1 in flight");
    let (host, guest) = (column(&sealed, 0), column(&sealed, 1));
    found.claims.push(Claim::cost(&name, "ns", &guest, peer, &host).secondary());
    let counted = (COUNTED * DEPTHS.len()) as f64;
    let own = [exits.but_rings_and_interrupts() as f64 / counted];
    found.claims.push(Claim::at_most("1 exits an operation, polled", "exits", &own, EXITS_MAX));
    found.tables.push(table(&exits, counted));
    Ok(found)
}

/// A row for each kind of exit.
fn table(exits: &Exits, operations: f64) -> Table {
    let title = format!("1 exits during {operations} operations");
    let mut table = Table::new(&title, &["kind", "exits", "an operation"]);
    let kinds = [
        ("all that KVM counts", exits.all),
        ("by interrupts of the host", exits.interrupts),
        ("to ring, when the daemon slept", Some(exits.rings)),
        ("with which 2 runs ended, or by signals", Some(exits.others)),
    ];
    for (kind, exits) in kinds {
        let exits =
            exits.map(|exits| [exits.to_string(), format!("{:.7}", exits as f64 / operations)]);
        let [exits, each] = exits.unwrap_or_else(|| ["not counted".into(), String::new()]);
        table.rows.push(vec![kind.into(), exits, each]);
    }
    table
}

/// The best figures of the host and of the guest, which run this by turns. It gets its side's way to ring; `ring` is the
/// host's.
fn by_turns(
    guest: &mut Guest,
    ring: &dyn Fn(),
    run: &mut dyn FnMut(&dyn Fn()) -> f64,
) -> Result<[f64; 2], String> {
    let (run, mut ended) = (RefCell::new(run), Ok(()));
    let mut on_host = || (run.borrow_mut())(ring);
    let mut in_it = || {
        // Borrowed here: a function that ends in the guest gives nothing back.
        let mut run = run.borrow_mut();
        let figure = in_guest(guest, ring, &mut || run(&ring_from_guest));
        figure.unwrap_or_else(|why| {
            ended = Err(why);
            f64::MAX
        })
    };
    let best = best(RUNS, [&mut on_host, &mut in_it]);
    ended.map(|()| best)
}

/// The figure of a run in the guest.
fn in_guest(
    guest: &mut Guest,
    ring: &dyn Fn(),
    run: &mut dyn FnMut() -> f64,
) -> Result<f64, String> {
    let mut figure = f64::MAX;
    // SAFETY: the runs keep numbers and words of shared memory, which are valid between any two instructions.
    unsafe { guest.call(&mut || figure = run(), ring) }?;
    Ok(figure)
}

/// A session, and a text of its own.
struct Sealing {
    region: Region,
    session: SessionHandle,
}

impl Sealing {
    /// Nanoseconds of one of so many texts, which are written, sealed and read one by one. The longest there are if
    /// one is not.
    fn turn(&self, end: &mut ClientEnd, operations: usize, ring: &dyn Fn()) -> f64 {
        let data = Segment { offset: 0, bytes: TEXT_BYTES };
        let request = self.region.request(Opcode::Seal, self.session, 0, data);
        let mut text = [1; TEXT_BYTES as usize];
        let mut done = 0;
        let begun = Instant::now();
        for _ in 0..operations {
            let written = self.region.memory.write(0, &text);
            end.submit(&request);
            if end.must_ring() {
                ring();
            }
            let completion = loop {
                match end.poll() {
                    Some(completion) => break completion,
                    None => spin_loop(),
                }
            };
            let read = self.region.memory.read(0, &mut text);
            done += usize::from(written.and(read).is_ok() && completion.status == Status::Done);
        }
        let each = begun.elapsed().as_secs_f64() * 1e9 / operations as f64;
        if done == operations { each } else { f64::MAX }
    }
}
