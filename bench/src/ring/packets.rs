//! Claim 3: sixteen clients that each seal one QUIC packet at a time, beside one packet a call in this
//! process.
//!
//! The sixteen are connections of one thread, which is quick enough for the daemon to always have
//! something to do: then its processor time is what the packets cost it, rings included.

use super::client::{Client, Region, Ring};
use super::daemon::Daemon;
use super::{Arguments, best, text};
use crate::packet::{HEADER_BYTES, TAG_BYTES, write_header};
use crate::report::{Claim, Findings, Table, median};
use keyway_engine::{Algorithm, Demand, Key, PacketKey, PacketKeys, Parameters, Request};
use keyway_ring::control;
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, Status};
use std::time::{Duration, Instant};

const CLIENTS: usize = 16;
/// Bytes of a payload, and of the packet around it.
const PAYLOAD: usize = 64;
const PACKET: usize = HEADER_BYTES + PAYLOAD + TAG_BYTES;
/// Long beside the ticks by which processor time is counted.
const WINDOW: Duration = Duration::from_millis(400);
const RUNS: usize = 40;
const OPERATIONS: usize = 4_000;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let one = |number| Sealer::new(&daemon, number);
    let mut clients = (0..CLIENTS as u8).map(one).collect::<Result<Vec<_>, _>>()?;
    let mut alone = vec![one(CLIENTS as u8)?];
    let [mut ours, mut theirs, mut single, mut clock] = [(); 4].map(|()| Vec::new());
    for _ in 0..arguments.rounds {
        theirs.push(in_process()?);
        let (spent, passed) = seal(&daemon, &mut clients)?;
        ours.push(spent);
        clock.push(passed);
        single.push(seal(&daemon, &mut alone)?.0);
    }
    let name = "3 a 64 B packet of sixteen clients, 1 in flight each";
    let peer = "one a call, in process";
    let claims = vec![Claim::cost(name, "ns CPU", &ours, peer, &theirs).demand(1.0)];
    let title = "3 a 64 B QUIC packet sealed, ns: medians";
    let header = ["clients", "the daemon's processor time", "by the clock", "in process"];
    let mut table = Table::new(title, &header);
    let show = |figures: &[f64]| format!("{:.1}", median(figures));
    table.rows.push(vec!["16".into(), show(&ours), show(&clock), show(&theirs)]);
    table.rows.push(vec!["1".into(), show(&single), String::new(), String::new()]);
    Ok(Findings { claims, tables: vec![table] })
}

/// A client with one packet.
struct Sealer {
    // Its connection is open as long as it lives.
    _client: Client,
    ring: Ring,
    region: Region,
    packet: Descriptor,
    number: u64,
}

fn keys(number: u8) -> ([u8; 16], [u8; 16], [u8; 12]) {
    ([number; 16], [number ^ 0x55; 16], [number ^ 0xaa; 12])
}

impl Sealer {
    fn new(daemon: &Daemon, number: u8) -> Result<Self, String> {
        let client = Client::connect(daemon.socket(), &format!("packets {number}"))?;
        let (ring, region) = (client.ring(8)?, client.region(4096)?);
        let (header, key, iv) = keys(number);
        let secret = |bytes: &[u8]| control::Secret(bytes.to_vec());
        let keys = control::PacketKeys {
            header: secret(&header),
            current: control::PacketKey { key: secret(&key), iv: secret(&iv) },
            phase: false,
            since: 0,
            previous: None,
            next: None,
        };
        let session =
            client.open(Algorithm::QuicAes128Gcm, control::Key::Packet(Box::new(keys)))?;
        let data = Segment { offset: 0, bytes: PACKET as u32 };
        let mut packet = region.request(Opcode::Protect, session, 0, data);
        packet.extra = HEADER_BYTES as u32;
        Ok(Sealer { _client: client, ring, region, packet, number: 0 })
    }

    /// Writes the packet and has it sealed.
    #[inline]
    fn submit(&mut self) {
        self.number += 1;
        let mut packet = [1; PACKET];
        write_header(&mut packet, self.number);
        // It lies within.
        let _ = self.region.memory.write(0, &packet);
        self.packet.parameters[..8].copy_from_slice(&self.number.to_ne_bytes());
        self.ring.submit(&self.packet);
        self.ring.ring();
    }
}

/// Nanoseconds of the daemon's processor, and by the clock, for a packet of these clients, which all have
/// one in flight.
fn seal(daemon: &Daemon, clients: &mut [Sealer]) -> Result<(f64, f64), String> {
    let (before, begun) = (daemon.time(), Instant::now());
    clients.iter_mut().for_each(Sealer::submit);
    let (mut in_flight, mut done) = (clients.len(), 0_u64);
    let mut over = false;
    while in_flight > 0 {
        for client in &mut *clients {
            let Some(completion) = client.ring.poll() else { continue };
            if completion.status != Status::Done {
                return Err(format!("a packet is not sealed: {:?}", completion.status));
            }
            done += 1;
            match over {
                true => in_flight -= 1,
                false => client.submit(),
            }
        }
        if done.is_multiple_of(256) {
            over = over || begun.elapsed() >= WINDOW;
        }
    }
    let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9 / done as f64;
    Ok((nanoseconds(daemon.time().saturating_sub(before)), nanoseconds(begun.elapsed())))
}

/// Nanoseconds of a packet by call.
fn in_process() -> Result<f64, String> {
    let engine = keyway_drivers::engine();
    let (header, key, iv) = keys(0);
    let keys = PacketKeys {
        header: &header,
        current: PacketKey { key: &key, iv: &iv },
        phase: false,
        since: 0,
        previous: None,
        next: None,
    };
    let parameters = Parameters::new(Algorithm::QuicAes128Gcm, Key::Packet(keys));
    let session = engine.session(parameters.on(Demand::Software)).map_err(text)?;
    let (mut packet, mut number, mut good) = ([1; PACKET], 0, true);
    let [each] = best(
        RUNS,
        [&mut || {
            let begun = Instant::now();
            for _ in 0..OPERATIONS {
                number += 1;
                write_header(&mut packet, number);
                let header_bytes = HEADER_BYTES;
                let mut request = Request::Protect { number, header_bytes, packet: &mut packet };
                good &= session.run(&mut request).is_ok();
            }
            begun.elapsed().as_secs_f64() * 1e9 / OPERATIONS as f64
        }],
    );
    if good { Ok(each) } else { Err("a packet is not sealed".into()) }
}
