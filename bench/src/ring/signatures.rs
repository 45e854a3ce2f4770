//! Claim 4: signatures through the ring beside those in this process, where who waits polls, and
//! where it sleeps.

use super::client::{Client, Region, Ring};
use super::daemon::Daemon;
use super::{Arguments, best, column, text};
use crate::report::{Claim, Findings};
use keyway_drivers::generate_private_key;
use keyway_engine::{Algorithm, Demand, Key, Parameters, Session};
use keyway_ring::control;
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, Status};
use std::hint::{black_box, spin_loop};
use std::time::Instant;

/// Signatures of every side in a round, the quickest of which counts: of ML-DSA's, which try
/// several times as chance will have it, one that was right at once.
const RUNS: usize = 150;
const MESSAGE: [u8; 64] = [7; 64];
/// Where the signature goes.
const OUT: usize = 4096;

/// Each with the share of the rate in process that is demanded. A request that sleeps is four
/// wake-ups of some 5 us, which weigh more the shorter the signature takes.
const ALGORITHMS: [(&str, Algorithm, f64); 2] =
    [("RSA-2048", Algorithm::RsaPkcs1Sha256, 0.9), ("ML-DSA-65", Algorithm::MlDsa65, 0.75)];

pub fn measure(arguments: &Arguments) -> Result<Findings, String> {
    let folder = tempfile::tempdir().map_err(text)?;
    let daemon = Daemon::start(folder.path(), &[])?;
    let (engine, _remote) = daemon.client("signatures by call")?;
    let client = Client::connect(daemon.socket(), "signatures")?;
    let mut claims = Vec::new();
    for (name, algorithm, share) in ALGORITHMS {
        let key = generate_private_key(algorithm, 2048).map_err(text)?;
        let open = |demand| engine.session(Parameters::new(algorithm, Key::Pkcs8(&key)).on(demand));
        let here = open(Demand::Software).map_err(text)?;
        let there = open(Demand::Named("remote")).map_err(text)?;
        let (ring, region) = (client.ring(8)?, client.region(2 * OUT)?);
        region.memory.write(0, &MESSAGE).map_err(text)?;
        let session = client.open(algorithm, control::Key::Pkcs8(key.as_slice().into()))?;
        let bytes = there.signature_bytes_max() as u32;
        let out = Segment { offset: OUT as u32, bytes };
        let mut request = region.request(Opcode::Sign, session, 0, out);
        request.segments[0] = Segment { offset: 0, bytes: MESSAGE.len() as u32 };
        let mut signer = Signer { ring, _region: region, request };
        signer.sign(false)?;
        let mut rounds = Vec::new();
        for _ in 0..arguments.rounds {
            let signer = std::cell::RefCell::new(&mut signer);
            let sides: [&mut dyn FnMut() -> f64; 4] = [
                &mut || call(&here),
                &mut || signer.borrow_mut().turn(false),
                &mut || signer.borrow_mut().turn(true),
                &mut || call(&there),
            ];
            rounds.push(best(RUNS, sides));
        }
        let theirs = column(&rounds, 0);
        for (side, how) in [(1, "polling"), (2, "sleeping"), (3, "by call")] {
            let name = format!("4 {name} signature, {how}");
            let ours = column(&rounds, side);
            let claim = Claim::cost(&name, "us", &ours, "by call, in process", &theirs);
            claims.push(if side == 3 { claim.secondary() } else { claim.demand(share) });
        }
    }
    Ok(Findings { claims, tables: Vec::new() })
}

/// Microseconds of a signature by call.
fn call(session: &Session) -> f64 {
    let begun = Instant::now();
    black_box(session.sign(&MESSAGE).is_ok());
    begun.elapsed().as_secs_f64() * 1e6
}

/// A client that waits for one signature after the other.
struct Signer {
    ring: Ring,
    // Where the request lies.
    _region: Region,
    request: Descriptor,
}

impl Signer {
    fn sign(&mut self, sleeping: bool) -> Result<(), String> {
        self.ring.submit(&self.request);
        self.ring.ring();
        loop {
            match self.ring.poll() {
                Some(completion) if completion.status == Status::Done => return Ok(()),
                Some(completion) => {
                    return Err(format!("it does not sign: {:?}", completion.status));
                }
                None if sleeping => self.ring.sleep(),
                None => spin_loop(),
            }
        }
    }

    /// Microseconds of a signature.
    fn turn(&mut self, sleeping: bool) -> f64 {
        let begun = Instant::now();
        black_box(self.sign(sleeping).is_ok());
        begun.elapsed().as_secs_f64() * 1e6
    }
}
