//! Claim 7: four clients in load. The throughput of three of them, and their waiting time, when the
//! fourth is like them, and when it takes as much as it can.
//!
//! The hostile one keeps a ring of a thousand entries full of long texts, nonsense, strangers'
//! handles and segments that lie over each other, and rings all the time. All four are driven by
//! one thread, so that none of them takes another's processor.

use super::client::{Client, Region, Ring};
use super::daemon::Daemon;
use super::{Arguments, text};
use crate::report::{Claim, Findings, Table, median};
use keyway_engine::Algorithm;
use keyway_ring::control::{Key, Secret};
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, SessionHandle, Status};
use std::path::Path;
use std::time::{Duration, Instant};

const POLITE: usize = 3;
/// In flight of a polite client, and bytes of each text.
const DEPTH: usize = 32;
const BYTES: u32 = 1504;
const HOSTILE_DEPTH: u32 = 1024;
const HOSTILE_BYTES: u32 = 64 << 10;
/// Half as often as the daemon takes amiss.
const BETWEEN_RINGS: Duration = Duration::from_micros(20);
/// Windows of each kind in a round, by turns; the best count, since most are disturbed.
const WINDOWS: usize = 40;
const WINDOW: Duration = Duration::from_millis(2);

const SHARE_MIN: f64 = 0.9;
const LATENCY_MOST: f64 = 2.0;

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let polite = |number| Polite::new(daemon.socket(), number);
    let mut clients = (0..POLITE).map(polite).collect::<Result<Vec<_>, _>>()?;
    let mut fourth = polite(POLITE)?;
    let mut hostile = Hostile::new(daemon.socket())?;
    let [mut rate, mut late, mut fair_rate, mut fair_late] = [(); 4].map(|()| Vec::new());
    let mut floods = Vec::new();
    for _ in 0..arguments.rounds {
        let (mut fair, mut beside) = (Window::WORST, Window::WORST);
        let (before, mut passed) = (hostile.answered, Duration::ZERO);
        for _ in 0..WINDOWS {
            fair = fair.best(window(&mut clients, &mut fourth)?);
            let begun = Instant::now();
            beside = beside.best(window(&mut clients, &mut hostile)?);
            passed += begun.elapsed();
        }
        fair_rate.push(fair.rate);
        fair_late.push(fair.p99);
        rate.push(beside.rate);
        late.push(beside.p99);
        floods.push((hostile.answered - before) as f64 / passed.as_secs_f64());
    }
    let peer = "four alike";
    let claims = vec![
        Claim::rate("7 what three get beside a hostile one", "a second", &rate, peer, &fair_rate)
            .demand(SHARE_MIN),
        Claim::cost("7 how long they wait, p99", "us", &late, peer, &fair_late)
            .demand(1.0 / LATENCY_MOST),
    ];
    let title = "7 three clients, AES-128-GCM of 1504 B, 32 in flight each: medians";
    let header = ["the fourth is", "a second", "p99 us", "answers to the fourth a second"];
    let mut table = Table::new(title, &header);
    let show = |figures: &[f64]| format!("{:.1}", median(figures));
    table.rows.push(vec!["like them".into(), show(&fair_rate), show(&fair_late), String::new()]);
    table.rows.push(vec!["hostile".into(), show(&rate), show(&late), show(&floods)]);
    Ok(Findings { claims, tables: vec![table] })
}

/// The throughput of the polite ones: requests a second, and the time that one of a hundred waits longer
/// than, in microseconds.
struct Window {
    rate: f64,
    p99: f64,
}

impl Window {
    const WORST: Window = Window { rate: 0.0, p99: f64::MAX };

    fn best(self, other: Window) -> Self {
        Window { rate: self.rate.max(other.rate), p99: self.p99.min(other.p99) }
    }
}

/// A client that is served now and then.
trait Guest {
    /// Takes what was answered and, if it goes on, asks for more. Waiting times go to `waits`.
    fn look(&mut self, goes_on: bool, waits: &mut Vec<Duration>) -> Result<(), String>;
    /// Requests that were not answered.
    fn in_flight(&self) -> usize;
}

fn window(polite: &mut [Polite], fourth: &mut impl Guest) -> Result<Window, String> {
    let (mut waits, mut others) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let begun = Instant::now();
    let mut rate = None;
    loop {
        let passed = begun.elapsed();
        let goes_on = passed < WINDOW;
        if !goes_on {
            rate.get_or_insert(waits.len() as f64 / passed.as_secs_f64());
        }
        for client in &mut *polite {
            client.look(goes_on, &mut waits)?;
        }
        fourth.look(goes_on, &mut others)?;
        if !goes_on && fourth.in_flight() == 0 && polite.iter().all(|one| one.in_flight() == 0) {
            break;
        }
    }
    if waits.is_empty() {
        return Ok(Window::WORST);
    }
    let place = waits.len() * 99 / 100;
    let (_, p99, _) = waits.select_nth_unstable(place);
    Ok(Window { rate: rate.unwrap_or(0.0), p99: p99.as_secs_f64() * 1e6 })
}

fn open(client: &Client) -> Result<SessionHandle, String> {
    client.open(Algorithm::Aes128Gcm, Key::Secret(Secret(vec![7; 16])))
}

/// Has one text after the other sealed.
struct Polite {
    // Its connection is open as long as it lives.
    _client: Client,
    ring: Ring,
    region: Region,
    session: SessionHandle,
    free: Vec<u32>,
    since: Vec<Instant>,
}

impl Polite {
    fn new(socket: &Path, number: usize) -> Result<Self, String> {
        let client = Client::connect(socket, &format!("polite {number}"))?;
        let (ring, region) = (client.ring(DEPTH as u32)?, client.region(DEPTH << 12)?);
        let session = open(&client)?;
        let (free, since) = ((0..DEPTH as u32).collect(), vec![Instant::now(); DEPTH]);
        Ok(Polite { _client: client, ring, region, session, free, since })
    }
}

impl Guest for Polite {
    fn look(&mut self, goes_on: bool, waits: &mut Vec<Duration>) -> Result<(), String> {
        let now = Instant::now();
        while let Some(completion) = self.ring.poll() {
            if completion.status != Status::Done {
                return Err(format!("a polite client is refused: {:?}", completion.status));
            }
            waits.push(now.duration_since(self.since[completion.cookie as usize]));
            self.free.push(completion.cookie);
        }
        if goes_on && !self.free.is_empty() {
            while let Some(slot) = self.free.pop() {
                self.since[slot as usize] = now;
                let data = Segment { offset: slot << 12, bytes: BYTES };
                self.ring.submit(&self.region.request(Opcode::Seal, self.session, slot, data));
            }
            self.ring.ring();
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        DEPTH - self.free.len()
    }
}

/// Asks for what it can, and for what it cannot.
struct Hostile {
    _client: Client,
    ring: Ring,
    region: Region,
    session: SessionHandle,
    in_flight: u32,
    next: u32,
    answered: u64,
    rung: Instant,
}

impl Hostile {
    fn new(socket: &Path) -> Result<Self, String> {
        let client = Client::connect(socket, "hostile")?;
        let ring = client.ring(HOSTILE_DEPTH)?;
        let region = client.region(2 * HOSTILE_BYTES as usize)?;
        let session = open(&client)?;
        let (in_flight, next, answered, rung) = (0, 0, 0, Instant::now());
        Ok(Hostile { _client: client, ring, region, session, in_flight, next, answered, rung })
    }

    fn request(&mut self) -> Descriptor {
        self.next = self.next.wrapping_add(1);
        let data = Segment { offset: 0, bytes: HOSTILE_BYTES };
        let mut request = self.region.request(Opcode::Seal, self.session, self.next, data);
        match self.next % 8 {
            0 => request.opcode = 0xff,
            1 => request.session.generation ^= u64::from(self.next),
            2 => request.region.generation = self.next as u16,
            3 => request.segments[0] = data,
            4 => request.segments[1].bytes = u32::MAX,
            _ => {}
        }
        request
    }
}

impl Guest for Hostile {
    fn look(&mut self, goes_on: bool, _: &mut Vec<Duration>) -> Result<(), String> {
        while self.ring.poll().is_some() {
            self.in_flight -= 1;
            self.answered += 1;
        }
        if goes_on {
            while self.in_flight < HOSTILE_DEPTH {
                let request = self.request();
                self.ring.submit(&request);
                self.in_flight += 1;
            }
            // As often as it may without being left alone for it.
            if self.rung.elapsed() >= BETWEEN_RINGS {
                self.rung = Instant::now();
                self.ring.ring_for_nothing();
            }
            self.ring.ring();
        } else {
            self.ring.ring();
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight as usize
    }
}
