//! Work to be done by any driver: sessions with keys that fit, operations over and over, and the
//! check of what came of them.
//!
//! The check does not go through the engine, whose meters would count it, but straight to the
//! software driver.

use super::Interrupt;
use crate::failure::Failure;
use crate::output::grouped;
use keyway_drivers::software;
use keyway_engine::{
    Algorithm, Cost, Demand, Direction, DriverSession, Engine, Error, IV_BYTES_MAX, Iv, Key, Kind,
    MASK_BYTES, NONCE_BYTES, Nonces, Opened, Operation, PacketKey, PacketKeys, Parameters, Part,
    Queue, Request, SAMPLE_BYTES, Session, Step, TAG_BYTES, Task, limits, run_chain,
};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Authenticated beside the text of an AEAD, in bytes; about a record's header.
const AAD_BYTES: usize = 16;
/// A packet's header up to its number: first byte, and a connection's name of eight.
const PACKET_HEADER: [u8; 9] = [0x43; 9];
/// Length of the number behind it, in bytes, as the first byte says; that is the longest, so that a
/// packet may be empty.
const PACKET_NUMBER_BYTES: usize = 4;
/// What a password derivation puts out where nothing else is fixed, in bytes.
const DERIVED_BYTES: usize = 32;
/// The message that is decrypted with a private key, in bytes: a key.
const MESSAGE_BYTES: usize = 32;
/// Room behind a message for what compression adds to what it cannot compress, in bytes.
const COMPRESSION_ROOM: usize = 1_024;
/// What an operation takes beside its text, in bytes; about.
const OPERATION_BYTES: usize = 256;
/// Most memory for operations, in bytes.
const MEMORY_BYTES_MAX: usize = 2 << 30;
/// After this time without any completion a queue is taken to have lost its tasks.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a waiting thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);

/// An algorithm, or the steps of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub steps: Vec<Algorithm>,
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Work, String> {
        let known = |name: &str| {
            name.parse::<Algorithm>().map_err(|why| match text.contains('+') {
                true => format!("{name}: {why}"),
                false => why.to_string(),
            })
        };
        let steps = text.split('+').map(known).collect::<Result<Vec<_>, _>>()?;
        let chained =
            |step: &Algorithm| matches!(step.kind(), Kind::Cipher | Kind::Mac | Kind::Compression);
        let most = limits::CHAIN_STEPS_MAX;
        if steps.len() > 1 && (steps.len() > most || !steps.iter().all(chained)) {
            let what = "each a cipher, a MAC or a compression";
            return Err(format!("a chain has 2 to {most} steps, {what}"));
        }
        let compresses = |step: &Algorithm| step.kind() == Kind::Compression;
        if let Some(at) = steps.iter().position(compresses)
            && steps.iter().skip(at).any(|step| step.block_bytes() > 1)
        {
            return Err("what compression leaves is seldom whole blocks: take aes-128-ctr".into());
        }
        Ok(Work { steps })
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.steps.iter().map(|step| step.name()).collect();
        f.write_str(&names.join("+"))
    }
}

impl Work {
    /// The algorithm; of a chain, the first.
    fn algorithm(&self) -> Algorithm {
        self.steps.first().copied().unwrap_or(Algorithm::Random)
    }

    fn is_chain(&self) -> bool {
        self.steps.len() > 1
    }

    /// What is done over and over.
    pub fn verb(&self) -> &'static str {
        if self.is_chain() {
            return "protect";
        }
        match self.algorithm().kind() {
            Kind::Aead => "seal",
            Kind::Packet => "protect",
            Kind::Mask => "mask",
            Kind::Cipher => "encrypt",
            Kind::Compression => "compress",
            Kind::Hash => "digest",
            Kind::Mac => "mac",
            Kind::Hkdf => "expand",
            Kind::Exchange => "agree",
            Kind::Kem => "encapsulate",
            Kind::Signature => "sign",
            Kind::Encryption => "decrypt",
            Kind::Random => "generate",
            Kind::Password => "derive",
        }
    }

    /// Whether it takes longer the more bytes it is given.
    pub fn is_sized(&self) -> bool {
        use Kind::*;
        !matches!(self.algorithm().kind(), Exchange | Kem | Encryption | Password)
    }

    /// Whether one operation takes so long that few have to do at a time.
    fn is_heavy(&self) -> bool {
        !self.algorithm().kind().is_fast()
    }

    /// Whether an operation can be run again as it is, its result being as good an input.
    fn is_repeatable(&self) -> bool {
        !(self.is_chain() && self.steps.iter().any(|step| step.kind() == Kind::Compression))
    }

    /// The size that comes nearest to what was asked for, in bytes: whole blocks, and what limits
    /// allow.
    pub fn fit(&self, bytes: usize) -> usize {
        let block = self.steps.iter().map(|step| step.block_bytes()).max().unwrap_or(1);
        let xts = |step: &Algorithm| matches!(step, Algorithm::Aes128Xts | Algorithm::Aes256Xts);
        let least = if self.steps.iter().any(xts) { 16 } else { 1 };
        match (self.algorithm().kind(), self.algorithm().output_bytes()) {
            _ if !self.is_sized() => 0,
            (Kind::Hkdf, Some(hash)) => bytes.min(255 * hash),
            _ => bytes.max(least).next_multiple_of(block),
        }
    }
}

/// A session on the engine, and what it takes to check its results.
pub struct Subject {
    pub session: Session,
    pub work: Work,
    check: Check,
}

/// The software driver's side.
struct Check {
    /// One for each step, with the same keys; or the peer's.
    sessions: Vec<Box<dyn DriverSession>>,
    /// What goes in beside the text: the peer's public key, or a ciphertext for ours.
    input: Vec<u8>,
    /// Our public key, for those who verify.
    public_key: Vec<u8>,
}

impl Subject {
    /// Opens a session with keys of its own; for RSA with this one.
    ///
    /// # Errors
    /// A clause that says why there is none.
    pub fn open(
        engine: &Engine,
        work: &Work,
        demand: Demand<'_>,
        rsa: Option<&[u8]>,
    ) -> Result<Subject, String> {
        let plain = |why: Error| match why {
            Error::Disabled(algorithm) => format!("{algorithm} is legacy; --legacy allows it"),
            why => why.to_string(),
        };
        let secrets = work.steps.iter().map(|step| secret(engine, *step));
        let secrets = secrets.collect::<Result<Vec<_>, _>>().map_err(plain)?;
        let pairs = || work.steps.iter().zip(&secrets);
        let steps = pairs()
            .map(|(step, secret)| Ok(Step { algorithm: *step, key: key(*step, secret, rsa)? }));
        let steps = steps.collect::<Result<Vec<_>, String>>()?;
        let parameters = match *steps {
            // Threads share it, so that packets are not numbered upwards.
            [step] => Parameters::new(step.algorithm, step.key).nonces(Nonces::Given),
            _ => Parameters::chain(&steps),
        };
        let session = engine.session(parameters.on(demand)).map_err(plain)?;
        let check = Check::new(work, &steps, &session).map_err(plain)?;
        Ok(Subject { session, work: work.clone(), check })
    }

    /// Whether that is what had to come of it.
    fn is_right(&self, operation: &Operation, result: usize, plain: &[u8]) -> bool {
        self.check.undo(&self.work, operation, result, plain).unwrap_or(false)
    }
}

/// Random bytes for a key; none where it takes another sort of key.
fn secret(engine: &Engine, algorithm: Algorithm) -> Result<Zeroizing<Vec<u8>>, Error> {
    let bytes = match algorithm.kind() {
        Kind::Aead | Kind::Packet | Kind::Mask | Kind::Cipher | Kind::Mac | Kind::Hkdf => {
            algorithm.key_bytes().or(algorithm.output_bytes()).unwrap_or(32)
        }
        _ => 0,
    };
    let mut secret = Zeroizing::new(vec![0; bytes]);
    engine.random(&mut secret)?;
    Ok(secret)
}

fn is_rsa(algorithm: Algorithm) -> bool {
    algorithm.name().starts_with("rsa-")
}

fn key<'a>(
    algorithm: Algorithm,
    secret: &'a [u8],
    rsa: Option<&'a [u8]>,
) -> Result<Key<'a>, String> {
    Ok(match algorithm.kind() {
        Kind::Signature | Kind::Encryption if is_rsa(algorithm) => {
            Key::Pkcs8(rsa.ok_or("it needs an RSA key: name one with --key FILE")?)
        }
        Kind::Signature | Kind::Exchange => Key::Generate,
        Kind::Packet => {
            let current = PacketKey { key: secret, iv: &[0; NONCE_BYTES] };
            Key::Packet(PacketKeys::new(secret, current))
        }
        Kind::Aead | Kind::Mask | Kind::Cipher | Kind::Mac | Kind::Hkdf => Key::Secret(secret),
        // Encapsulation is to the peer's key.
        _ => Key::None,
    })
}

impl Check {
    fn new(work: &Work, steps: &[Step<'_>], session: &Session) -> Result<Check, Error> {
        let driver = software();
        let open = |step: Step<'_>| driver.open(&[step]);
        let mut check = Check { sessions: Vec::new(), input: Vec::new(), public_key: Vec::new() };
        let algorithm = work.algorithm();
        match algorithm.kind() {
            Kind::Signature => {
                if session.signature_bytes_max() == 0 {
                    return Err(Error::Unsupported(algorithm));
                }
                check.public_key = session.public_key()?;
                check.sessions.push(open(Step { algorithm, key: Key::None })?);
            }
            Kind::Exchange | Kind::Kem => {
                let peer = open(Step { algorithm, key: Key::Generate })?;
                let mut input = vec![0; algorithm.public_key_bytes().unwrap_or(0)];
                let used = peer.run(&mut Request::PublicKey { out: &mut input })?;
                input.truncate(used);
                check.input = input;
                if algorithm.kind() == Kind::Exchange {
                    check.public_key = session.public_key()?;
                }
                check.sessions.push(peer);
            }
            Kind::Encryption => {
                let public_key = session.public_key()?;
                let mut out = vec![0; public_key.len()];
                let message = &[0x6b; MESSAGE_BYTES];
                let anybody = open(Step { algorithm, key: Key::None })?;
                let request =
                    &mut Request::PublicEncrypt { public_key: &public_key, message, out: &mut out };
                let used = anybody.run(request)?;
                out.truncate(used);
                check.input = out;
            }
            _ => check.sessions = steps.iter().map(|step| open(*step)).collect::<Result<_, _>>()?,
        }
        Ok(check)
    }

    /// Has the software driver run a request.
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        self.sessions.first().ok_or(Error::NoSuchDriver)?.run(request)
    }

    /// Undoes an operation on `plain`, or does it again, and compares.
    fn undo(
        &self,
        work: &Work,
        operation: &Operation,
        result: usize,
        plain: &[u8],
    ) -> Result<bool, Error> {
        Ok(match operation {
            Operation::Seal { nonce, aad, data, tag } => {
                let mut text = [&data[..], &tag[..]].concat();
                let used = self.run(&mut Request::Open { nonce, aad, data: &mut text })?;
                // GMAC authenticates what it does not encrypt.
                let plain = if data.is_empty() { &[] } else { plain };
                result == data.len() && text.get(..used) == Some(plain)
            }
            Operation::Protect { number, packet, .. } => {
                let (mut packet, mut opened) = (packet.clone(), Opened::default());
                let used = self.run(&mut Request::Unprotect {
                    largest: number.checked_sub(1),
                    number_at: PACKET_HEADER.len(),
                    packet: &mut packet,
                    opened: &mut opened,
                })?;
                let text = packet.get(opened.header_bytes..opened.header_bytes + used);
                opened.number == *number && text == Some(plain)
            }
            Operation::Mask { sample, out } => {
                let mut again = [0; MASK_BYTES];
                self.run(&mut Request::Mask { sample, out: &mut again })?;
                again == *out
            }
            Operation::Encrypt { iv, data } => {
                let mut text = data.clone();
                self.run(&mut Request::Decrypt { iv, data: &mut text })?;
                text == plain
            }
            Operation::Compress { out, .. } => {
                let Some(data) = out.get(..result) else { return Ok(false) };
                let mut text = vec![0; plain.len()];
                let used = self.run(&mut Request::Decompress { data, out: &mut text })?;
                text.get(..used) == Some(plain)
            }
            Operation::Chain { data, length, parts, .. } => {
                let mut text = data.clone();
                let moved = result as isize - *length as isize;
                let parts = moved_parts(parts, plain.len(), moved);
                let (direction, data) = (Direction::Unprotect, &mut text[..]);
                let request =
                    &mut Request::Chain { direction, data, length: result, parts: &parts };
                run_chain(request, &work.steps, |index, request| {
                    self.sessions.get(index).ok_or(Error::NoSuchDriver)?.run(request)
                })?;
                text.get(..plain.len()) == Some(plain)
            }
            Operation::Digest { data, out } => {
                let mut again = vec![0; out.len()];
                self.run(&mut Request::Digest { data: &[data], out: &mut again })?;
                again == *out
            }
            Operation::Mac { data, out } => {
                let mut again = vec![0; out.len()];
                self.run(&mut Request::Mac { data: &[data], out: &mut again })?;
                again == *out
            }
            Operation::Expand { info, out } => {
                let mut again = Zeroizing::new(vec![0; out.len()]);
                self.run(&mut Request::Expand { info: &[info], out: &mut again })?;
                again == *out
            }
            Operation::Agree { out, .. } => {
                let mut again = Zeroizing::new(vec![0; out.len()]);
                self.run(&mut Request::Agree { peer: &self.public_key, out: &mut again })?;
                again == *out
            }
            Operation::Encapsulate { ciphertext, secret, .. } => {
                let mut again = Zeroizing::new(vec![0; secret.len()]);
                self.run(&mut Request::Decapsulate { ciphertext, secret: &mut again })?;
                again == *secret
            }
            Operation::Sign { message, out } => {
                let Some(signature) = out.get(..result) else { return Ok(false) };
                let public_key = &self.public_key;
                self.run(&mut Request::Verify { public_key, message, signature })?;
                true
            }
            Operation::PrivateDecrypt { out, .. } => {
                out.get(..result) == Some(&[0x6b; MESSAGE_BYTES][..])
            }
            Operation::Random { out } => out.chunks_exact(16).all(|part| part != [0; 16]),
            Operation::Derive { cost, password, salt, out } => {
                let mut again = Zeroizing::new(vec![0; out.len()]);
                let cost = *cost;
                self.run(&mut Request::Derive { cost, password, salt, out: &mut again })?;
                again == *out
            }
            _ => false,
        })
    }
}

/// The parts of a chain after compression has moved all that lies behind the text.
fn moved_parts(parts: &[Part], text: usize, moved: isize) -> Vec<Part> {
    let at = |at: usize| if at >= text { at.saturating_add_signed(moved) } else { at };
    let parts = parts.iter().map(|part| match part {
        Part::Cipher { iv, text } => Part::Cipher { iv: *iv, text: text.start..at(text.end) },
        Part::Mac { over, tag } => {
            Part::Mac { over: over.start..at(over.end), tag: at(tag.start)..at(tag.end) }
        }
        Part::Compression { text } => Part::Compression { text: text.start..at(text.end) },
    });
    parts.collect()
}

/// Makes the operations of one thread, all of one size.
struct Maker {
    subject: Arc<Subject>,
    /// What those that work in place begin with.
    plain: Vec<u8>,
    number: u64,
}

impl Maker {
    fn new(subject: &Arc<Subject>, bytes: usize) -> Maker {
        // Text that compression halves, more or less.
        let mut state = 1u64;
        let plain = (0..bytes).map(|at| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if at % 2 == 0 { (state >> 56) as u8 } else { b'e' }
        });
        Maker { subject: subject.clone(), plain: plain.collect(), number: 0 }
    }

    /// A new one.
    fn operation(&mut self) -> Operation {
        let Subject { session, work, check } = &*self.subject;
        let (algorithm, plain) = (work.algorithm(), self.plain.clone());
        let zeros = |length: usize| Zeroizing::new(vec![0; length]);
        let output = algorithm.output_bytes().unwrap_or(0);
        let mut operation = match algorithm.kind() {
            _ if work.is_chain() => chain(&work.steps, plain),
            Kind::Aead => {
                let gmac = matches!(algorithm, Algorithm::Aes128Gmac | Algorithm::Aes256Gmac);
                let (aad, data) =
                    if gmac { (plain, Vec::new()) } else { (vec![0; AAD_BYTES], plain) };
                Operation::Seal { nonce: [0; NONCE_BYTES], aad, data, tag: [0; TAG_BYTES] }
            }
            Kind::Packet => {
                let header_bytes = PACKET_HEADER.len() + PACKET_NUMBER_BYTES;
                let packet = vec![0; header_bytes + plain.len() + TAG_BYTES];
                Operation::Protect { number: 0, header_bytes, packet }
            }
            Kind::Mask => Operation::Mask { sample: [0; SAMPLE_BYTES], out: [0; MASK_BYTES] },
            Kind::Cipher => Operation::Encrypt { iv: [0; IV_BYTES_MAX], data: plain },
            Kind::Compression => {
                let out = vec![0; 2 * plain.len() + COMPRESSION_ROOM];
                Operation::Compress { data: plain, out }
            }
            Kind::Hash => Operation::Digest { data: plain, out: vec![0; output] },
            Kind::Mac => Operation::Mac { data: plain, out: vec![0; output] },
            Kind::Hkdf => Operation::Expand { info: vec![0; 16], out: zeros(plain.len()) },
            Kind::Exchange => Operation::Agree { peer: check.input.clone(), out: zeros(output) },
            Kind::Kem => Operation::Encapsulate {
                peer: check.input.clone(),
                ciphertext: vec![0; algorithm.ciphertext_bytes().unwrap_or(0)],
                secret: zeros(output),
            },
            Kind::Signature => {
                Operation::Sign { message: plain, out: vec![0; session.signature_bytes_max()] }
            }
            Kind::Encryption => Operation::PrivateDecrypt {
                ciphertext: check.input.clone(),
                out: zeros(check.input.len()),
            },
            Kind::Random => Operation::Random { out: zeros(plain.len()) },
            Kind::Password => Operation::Derive {
                cost: cost(algorithm),
                password: Zeroizing::new(b"correct horse battery staple".to_vec()),
                salt: b"saltsaltsaltsalt".to_vec(),
                out: zeros(if output > 0 { output } else { DERIVED_BYTES }),
            },
        };
        self.renew(&mut operation);
        operation
    }

    /// Makes it ready to be run and checked again: another nonce, vector or text, and nothing left
    /// of the last result.
    fn renew(&mut self, operation: &mut Operation) {
        self.number += 1;
        let number = self.number.to_be_bytes();
        let stamp = |bytes: &mut [u8]| {
            bytes.iter_mut().zip(number.iter().rev()).for_each(|(byte, new)| *byte = *new);
        };
        match operation {
            Operation::Seal { nonce, data, tag, .. } => {
                stamp(nonce);
                *tag = [0; TAG_BYTES];
                if !data.is_empty() {
                    data.copy_from_slice(&self.plain);
                }
            }
            Operation::Protect { number, header_bytes, packet } => {
                *number = self.number;
                packet.fill(0);
                let (header, rest) = packet.split_at_mut(*header_bytes);
                header[..PACKET_HEADER.len()].copy_from_slice(&PACKET_HEADER);
                rest[..self.plain.len()].copy_from_slice(&self.plain);
            }
            Operation::Mask { sample, out } => {
                stamp(sample);
                out.fill(0);
            }
            Operation::Encrypt { iv, data } => {
                stamp(iv);
                data.copy_from_slice(&self.plain);
            }
            Operation::Chain { data, parts, .. } => {
                let (text, rest) = data.split_at_mut(self.plain.len());
                text.copy_from_slice(&self.plain);
                rest.fill(0);
                for part in parts {
                    if let Part::Cipher { iv: Iv::Given(iv), .. } = part {
                        stamp(iv);
                    }
                }
            }
            Operation::Compress { out, .. } => out.fill(0),
            Operation::Digest { data, out } | Operation::Mac { data, out } => {
                stamp(data);
                out.fill(0);
            }
            Operation::Sign { message, out } => {
                stamp(message);
                out.fill(0);
            }
            Operation::Expand { info, out } => {
                stamp(info);
                out.fill(0);
            }
            Operation::Agree { out, .. }
            | Operation::PrivateDecrypt { out, .. }
            | Operation::Random { out }
            | Operation::Derive { out, .. } => out.fill(0),
            Operation::Encapsulate { ciphertext, secret, .. } => {
                ciphertext.fill(0);
                secret.fill(0);
            }
            _ => {}
        }
    }
}

/// Text, with room for a tag of each MAC behind it and for compression behind them.
fn chain(steps: &[Algorithm], mut data: Vec<u8>) -> Operation {
    let (text, mut length) = (0..data.len(), data.len());
    let parts = steps.iter().map(|step| match step.kind() {
        Kind::Mac => {
            let over = 0..length;
            length += step.output_bytes().unwrap_or(0);
            Part::Mac { tag: over.end..length, over }
        }
        Kind::Compression => Part::Compression { text: text.clone() },
        _ => Part::Cipher { iv: Iv::Given([0; IV_BYTES_MAX]), text: text.clone() },
    });
    let parts = parts.collect();
    let compresses = steps.iter().any(|step| step.kind() == Kind::Compression);
    data.resize(length + if compresses { text.end + COMPRESSION_ROOM } else { 0 }, 0);
    Operation::Chain { direction: Direction::Protect, data, length, parts }
}

/// About what is asked of a login, so that one derivation takes some tens of milliseconds.
fn cost(algorithm: Algorithm) -> Cost {
    use Algorithm::*;
    match algorithm {
        Argon2id | Argon2i => Cost::Argon2 { memory_kib: 19_456, passes: 2, lanes: 1 },
        Scrypt => Cost::Scrypt { log_n: 14, r: 8, p: 1 },
        Bcrypt => Cost::Bcrypt { log_rounds: 9 },
        Md5Crypt => Cost::Md5Crypt,
        Sha256Crypt | Sha512Crypt => Cost::ShaCrypt { rounds: 5_000 },
        _ => Cost::Pbkdf2 { iterations: 10_000 },
    }
}

/// How many of each error.
pub type Errors = BTreeMap<&'static str, u64>;

/// How operations get to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// One after the other on the caller's stack.
    Direct,
    /// Through a queue, so many under way.
    Queue(usize),
}

impl Door {
    /// How many are under way.
    pub fn in_flight(self) -> usize {
        match self {
            Door::Direct => 1,
            Door::Queue(number) => number,
        }
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Direct => f.write_str("direct"),
            Door::Queue(number) => write!(f, "{number} in flight"),
        }
    }
}

/// Refuses what takes too much memory.
///
/// # Errors
/// If so many operations of these sizes do.
pub fn check_memory(threads: usize, in_flight: usize, sizes: &[usize]) -> Result<(), Failure> {
    let largest = sizes.iter().max().copied().unwrap_or(0);
    // A queue has several operations for each that is under way, some with an output as long.
    let bytes = 16 * threads * in_flight * (largest + OPERATION_BYTES);
    if bytes <= MEMORY_BYTES_MAX {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{threads} threads with {in_flight} operations in flight of {} bytes each take {} MiB of \
         memory, more than {}; take less of one",
        grouped(largest as u64),
        grouped((bytes >> 20) as u64),
        grouped((MEMORY_BYTES_MAX >> 20) as u64),
    )))
}

/// Operations of one size on one session, run by one thread.
pub struct Load {
    maker: Maker,
    /// `None` for the direct door.
    queue: Option<Queue>,
    depth: usize,
    ready: Vec<Box<Task>>,
    /// Run, and not made ready again.
    finished: Vec<Box<Task>>,
    /// Of what was run so far.
    pub errors: Errors,
    interrupt: Interrupt,
}

impl Load {
    /// Operations are kept in about `room` bytes, but there are some for each that is under way.
    pub fn new(
        engine: &Engine,
        subject: &Arc<Subject>,
        bytes: usize,
        door: Door,
        room: usize,
        interrupt: &Interrupt,
    ) -> Load {
        let mut maker = Maker::new(subject, bytes);
        let depth = door.in_flight();
        let (queue, often) = match door {
            Door::Direct => (None, 1),
            Door::Queue(_) if subject.work.is_heavy() => (Some(engine.queue(depth)), 2),
            Door::Queue(_) => (Some(engine.queue(depth)), 8),
        };
        let number = if subject.work.is_heavy() { 4 } else { room / (bytes + OPERATION_BYTES) };
        let number = number.max(often * depth);
        let ready = (0..number).map(|_| Task::new(&subject.session, maker.operation())).collect();
        Load {
            maker,
            queue,
            depth,
            ready,
            finished: Vec::with_capacity(number),
            errors: Errors::new(),
            interrupt: interrupt.clone(),
        }
    }

    /// How many operations there are.
    pub fn operations(&self) -> usize {
        self.ready.len() + self.finished.len()
    }

    /// Runs so many operations, one of them several times if they are fewer, and returns how many
    /// were run, and how long it took.
    pub fn run(&mut self, operations: usize) -> (usize, Duration) {
        if self.maker.subject.work.is_repeatable() {
            return self.stretch(operations);
        }
        let (mut done, mut took) = (0, Duration::ZERO);
        while done < operations && !self.interrupt.came() {
            self.renew();
            let (number, time) = self.stretch((operations - done).min(self.operations()));
            if number == 0 {
                break;
            }
            done += number;
            took += time;
        }
        (done, took)
    }

    /// The same without a look at what the operations begin with.
    fn stretch(&mut self, operations: usize) -> (usize, Duration) {
        if self.ready.len() < operations {
            self.again();
        }
        let begun = Instant::now();
        let Some(mut queue) = self.queue.take() else {
            let took = self.directly(operations);
            return (operations, took);
        };
        let number = self.through(&mut queue, operations);
        self.queue = Some(queue);
        (number, begun.elapsed())
    }

    fn directly(&mut self, operations: usize) -> Duration {
        let begun = Instant::now();
        let mut left = operations;
        while left > 0 {
            for task in self.ready.iter_mut().take(left) {
                let session = &self.maker.subject.session;
                let result = task.operation.with(|request| session.run(request));
                if let Err(error) = result {
                    count(&mut self.errors, error.name());
                }
                task.complete(result);
            }
            left = left.saturating_sub(self.ready.len());
        }
        let took = begun.elapsed();
        self.finished.extend(self.ready.drain(..operations.min(self.ready.len())));
        took
    }

    fn through(&mut self, queue: &mut Queue, operations: usize) -> usize {
        let (mut submitted, mut collected) = (0, 0);
        let (mut batch, mut done) = (Vec::with_capacity(self.depth), Vec::new());
        let mut last = Instant::now();
        while collected < operations {
            let room = (self.depth - queue.in_flight()).min(operations - submitted);
            if self.ready.len() < room {
                self.again();
            }
            batch.extend(self.ready.drain(self.ready.len().saturating_sub(room)..));
            submitted += queue.submit(&mut batch, false);
            let found = queue.wait(&mut done, LOOK);
            if found == 0 {
                if self.interrupt.came() {
                    break;
                }
                if last.elapsed() < PATIENCE && queue.in_flight() > 0 {
                    continue;
                }
                for _ in 0..queue.in_flight() {
                    count(&mut self.errors, LOST);
                }
                break;
            }
            last = Instant::now();
            collected += found;
            for task in &done {
                if let Err(error) = task.result() {
                    count(&mut self.errors, error.name());
                }
            }
            self.finished.append(&mut done);
        }
        collected
    }

    /// What was run may be run again.
    fn again(&mut self) {
        self.ready.append(&mut self.finished);
    }

    /// Makes what was run ready to be run again, and checked.
    pub fn renew(&mut self) {
        for task in &mut self.finished {
            self.maker.renew(&mut task.operation);
        }
        self.again();
    }

    /// Checks the results of what was run once since it was made ready.
    pub fn verify(&mut self) {
        let Maker { subject, plain, .. } = &self.maker;
        for task in &self.finished {
            if let Ok(result) = task.result()
                && !subject.is_right(&task.operation, result, plain)
            {
                count(&mut self.errors, WRONG);
            }
        }
    }
}

/// The name of an error that only the check sees.
pub const WRONG: &str = "wrong-result";
/// The name of what a queue never handed back.
pub const LOST: &str = "lost";

fn count(errors: &mut Errors, name: &'static str) {
    *errors.entry(name).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read() {
        let work: Work = "aes-128-cbc+hmac-sha-1".parse().unwrap();
        assert_eq!(work.steps, [Algorithm::Aes128Cbc, Algorithm::HmacSha1]);
        assert_eq!((work.to_string().as_str(), work.verb()), ("aes-128-cbc+hmac-sha-1", "protect"));
        assert_eq!(work.fit(100), 112);
        assert!("zstd+aes-128-ctr+hmac-sha-256".parse::<Work>().is_ok());
        let bad = [
            "",
            "aes",
            "aes-128-cbc+",
            "sha-256+aes-128-cbc",
            "zstd+aes-128-cbc",
            "zstd+zstd+zstd+zstd+zstd",
            "aes-128-gcm+hmac-sha-1",
        ];
        for bad in bad {
            assert!(bad.parse::<Work>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_result_is_seen() {
        let engine = keyway_drivers::engine();
        engine.register(keyway_test_drivers::null()).unwrap();
        let interrupt = Interrupt(Arc::default());
        for name in ["aes-128-gcm", "aes-128-cbc+hmac-sha-1", "sha-256", "ed25519", "deflate"] {
            let work: Work = name.parse().unwrap();
            for (driver, wrong) in [("software", 0), ("null", 3)] {
                let subject = Subject::open(&engine, &work, Demand::Named(driver), None);
                // The null driver has no public keys that anybody could verify with.
                let subject = Arc::new(subject.unwrap());
                let mut load = Load::new(&engine, &subject, 64, Door::Queue(2), 4_096, &interrupt);
                assert_eq!(load.run(3).0, 3);
                load.verify();
                assert_eq!(load.errors.get(WRONG).copied().unwrap_or(0), wrong, "{name} {driver}");
            }
        }
    }
}
