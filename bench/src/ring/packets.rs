//! Claim 3: sixteen clients that each seal one QUIC packet at a time, beside one packet a call in
//! this process.
//!
//! The sixteen are connections of one thread, which is quick enough for the daemon to always have
//! something to do. The time that passes is then the most that the packets cost the daemon's processor,
//! rings included; where neither of the two is disturbed. No ratio is demanded: packets are protected in
//! the caller's process.

use super::client::{Client, Region, Ring};
use super::daemon::Daemon;
use super::{Arguments, best, column, text};
use crate::packet::{HEADER_BYTES, TAG_BYTES, write_header};
use crate::report::{Claim, Findings, Table, median};
use keyway_engine::{Algorithm, Demand, Key, PacketKey, PacketKeys, Parameters, Request, Session};
use keyway_ring::control;
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, Status};
use std::time::Instant;

const CLIENTS: usize = 16;
/// Bytes of a payload, and of the packet around it.
const PAYLOAD: usize = 64;
const PACKET: usize = HEADER_BYTES + PAYLOAD + TAG_BYTES;
/// Runs of every side in a round, and operations of a run.
const RUNS: usize = 60;
const OPERATIONS: usize = 2_000;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let one = |number| Sealer::new(&daemon, number);
    let mut clients = (0..CLIENTS as u8).map(one).collect::<Result<Vec<_>, _>>()?;
    let mut alone = vec![one(CLIENTS as u8)?];
    let mut packets = Packets::new()?;
    let rounds: Vec<[f64; 3]> = (0..arguments.rounds)
        .map(|_| {
            let (many, one) = (&mut clients, &mut alone);
            best(RUNS, [&mut || seal(many), &mut || seal(one), &mut || packets.turn()])
        })
        .collect();
    if rounds.iter().flatten().any(|figure| *figure == f64::MAX) {
        return Err("packets are not sealed".into());
    }
    let [ours, single, theirs] = [0, 1, 2].map(|side| column(&rounds, side));
    let name = "3 a 64 B packet of sixteen clients, 1 in flight each";
    let peer = "one a call, in process";
    let claims = vec![Claim::cost(name, "ns", &ours, peer, &theirs)];
    let title = "3 a 64 B QUIC packet sealed, 1 in flight of each client, ns: medians";
    let mut table = Table::new(title, &["16 clients", "1 client", "in process"]);
    table.rows.push([&ours, &single, &theirs].map(|it| format!("{:.1}", median(it))).to_vec());
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
    }
}

/// Nanoseconds that pass for a packet of these clients, which all have one in flight. Not a number
/// if one is not sealed.
fn seal(clients: &mut [Sealer]) -> f64 {
    let begun = Instant::now();
    let (mut submitted, mut done, mut good) = (0, 0, true);
    let mut ready = (1_u32 << clients.len()) - 1;
    while done < OPERATIONS {
        // All first: then who has to be rung is seen once for all.
        for (index, client) in clients.iter_mut().enumerate() {
            if ready & 1 << index != 0 && submitted < OPERATIONS {
                client.submit();
                submitted += 1;
            } else {
                ready &= !(1 << index);
            }
        }
        for (index, client) in clients.iter().enumerate() {
            if ready & 1 << index != 0 {
                client.ring.ring();
            }
        }
        ready = 0;
        for (index, client) in clients.iter_mut().enumerate() {
            if let Some(completion) = client.ring.poll() {
                good &= completion.status == Status::Done;
                done += 1;
                ready |= 1 << index;
            }
        }
    }
    if good { begun.elapsed().as_secs_f64() * 1e9 / done as f64 } else { f64::NAN }
}

/// Packets by call.
struct Packets {
    session: Session,
    packet: [u8; PACKET],
    number: u64,
}

impl Packets {
    fn new() -> Result<Self, String> {
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
        Ok(Packets { session, packet: [1; PACKET], number: 0 })
    }

    /// Nanoseconds of a packet. Not a number if one is not sealed.
    fn turn(&mut self) -> f64 {
        let (begun, mut good) = (Instant::now(), true);
        for _ in 0..OPERATIONS {
            self.number += 1;
            write_header(&mut self.packet, self.number);
            let (number, header_bytes) = (self.number, HEADER_BYTES);
            let packet = &mut self.packet;
            good &=
                self.session.run(&mut Request::Protect { number, header_bytes, packet }).is_ok();
        }
        if good { begun.elapsed().as_secs_f64() * 1e9 / OPERATIONS as f64 } else { f64::NAN }
    }
}
