//! Operations, what must come of each, and the verdict on its result.

use crate::bench::{Bench, Stop};
use crate::vectors;
use crate::work::{OwnKey, PHASE_SINCE, Work, bytes, keys, outputs};
use fastrand::Rng;
use keyway_engine::{
    Algorithm, Cost, Demand, Direction, Effort, Error, IV_BYTES_MAX, Iv, Key, Kind, MASK_BYTES,
    Nonces, Opened, Operation, Parameters, Part, Phase, SAMPLE_BYTES, Session, Step, TAG_BYTES,
    workload,
};
use std::ops::Range;
use zeroize::Zeroizing;

/// With nonces given, since jobs are done again and in any order.
fn parameters(algorithm: Algorithm, key: &OwnKey) -> Parameters<'_> {
    Parameters::new(algorithm, key.view()).nonces(Nonces::Given)
}

/// One session opened twice: on the driver under test and on the reference.
pub(crate) struct Pair {
    pub subject: Session,
    pub reference: Session,
    /// Whether the subject has a private key.
    pub private: bool,
    /// Whether both have the same key.
    pub shared: bool,
}

impl Bench {
    pub fn rng(&self, work: &Work) -> Rng {
        let steps = work.steps.iter();
        let name = steps.fold(7u64, |seed, step| seed.wrapping_mul(131) + *step as u64);
        Rng::with_seed(self.plan.seed ^ name << 32)
    }

    pub fn pair(&self, work: &Work, rng: &mut Rng) -> Result<Pair, Stop> {
        let open = |parameters: Parameters<'_>| self.subject_engine.session(parameters);
        self.pair_on(work, rng, Demand::Named(self.driver.name()), &open)
    }

    /// A pair whose subject is opened by `open`.
    pub fn pair_on(
        &self,
        work: &Work,
        rng: &mut Rng,
        demand: Demand<'_>,
        open: &dyn Fn(Parameters<'_>) -> Result<Session, Error>,
    ) -> Result<Pair, Stop> {
        if let [algorithm] = *work.steps {
            let mut refused = Error::Unsupported(algorithm);
            for key in keys(algorithm, rng) {
                match open(parameters(algorithm, &key).on(demand)) {
                    Ok(subject) => return self.beside(subject, algorithm, &key, rng),
                    Err(error @ Error::Unsupported(_)) => refused = error,
                    Err(error) => {
                        return Err(Stop::fail(format!("{:?}", key.view()), error.to_string()));
                    }
                }
            }
            let why = format!("it says that it does {algorithm}, and opens no session");
            return Err(Stop::fail(refused.to_string(), why));
        }
        let keys: Vec<_> = work.steps.iter().flat_map(|step| keys(*step, rng)).collect();
        let pairs = work.steps.iter().zip(&keys);
        let steps: Vec<_> =
            pairs.map(|(algorithm, key)| Step { algorithm: *algorithm, key: key.view() }).collect();
        let subject = open(Parameters::chain(&steps).on(demand));
        let subject = subject.map_err(|error| Stop::fail("opening", error.to_string()))?;
        let named = Demand::Named(self.reference.name());
        let reference = self.reference_engine.session(Parameters::chain(&steps).on(named));
        let reference = reference.map_err(|_| no_reference())?;
        Ok(Pair { subject, reference, private: true, shared: true })
    }

    fn beside(
        &self,
        subject: Session,
        algorithm: Algorithm,
        key: &OwnKey,
        rng: &mut Rng,
    ) -> Result<Pair, Stop> {
        let named = Demand::Named(self.reference.name());
        let open = |key: &OwnKey| {
            let parameters = parameters(algorithm, key).on(named);
            self.reference_engine.session(parameters).ok()
        };
        let private = !matches!(key, OwnKey::None);
        // Without a pepper a password is hashed all the same.
        let whole = private || algorithm.kind() == Kind::Password;
        let same = open(key).filter(|_| whole || keys(algorithm, rng).len() == 1);
        let shared = same.is_some() && !matches!(key, OwnKey::Generate);
        let reference = same.or_else(|| keys(algorithm, rng).iter().find_map(open));
        Ok(Pair { subject, reference: reference.ok_or_else(no_reference)?, private, shared })
    }
}

fn no_reference() -> Stop {
    Stop::Skip("the reference does not do it".into())
}

/// One operation and what has to come of it.
pub(crate) struct Job {
    pub what: String,
    pub operation: Operation,
    pub expect: Expect,
}

type Proof = Box<dyn Fn(&Operation, usize) -> bool + Send + Sync>;

pub(crate) enum Expect {
    /// These bytes.
    Same { outputs: Vec<Vec<u8>>, result: usize },
    /// A refusal, and nothing of this text at this position.
    Refused { never: Vec<u8>, at: usize },
    /// The proof that this check gives.
    Proved(Proof),
}

impl Job {
    fn same(what: &str, reference: &Session, operation: Operation) -> Result<Job, Stop> {
        let (done, result) = by(reference, what, operation.clone())?;
        let outputs = outputs(&done, result).iter().map(|out| out.to_vec()).collect();
        Ok(Job { what: what.into(), operation, expect: Expect::Same { outputs, result } })
    }

    fn refused(what: &str, operation: Operation, never: &[u8], at: usize) -> Job {
        let never = never.to_vec();
        Job { what: what.into(), operation, expect: Expect::Refused { never, at } }
    }

    fn proved(
        what: &str,
        operation: Operation,
        proof: impl Fn(&Operation, usize) -> bool + Send + Sync + 'static,
    ) -> Job {
        Job { what: what.into(), operation, expect: Expect::Proved(Box::new(proof)) }
    }

    /// A sentence about the operation, for reports.
    pub fn case(&self) -> String {
        format!("{}, {} bytes", self.what, self.operation.bytes())
    }

    /// Whether that is what had to come of it.
    pub fn judge(&self, done: &Operation, result: Result<usize, Error>) -> Result<(), Stop> {
        self.verdict(done, result).map_err(|why| Stop::fail(self.case(), why))
    }

    fn verdict(&self, done: &Operation, result: Result<usize, Error>) -> Result<(), String> {
        match (&self.expect, result) {
            (Expect::Refused { never, at }, Err(error)) => {
                use keyway_engine::Blame;
                if !matches!(error.blame(), Blame::Peer | Blame::Caller) {
                    return Err(format!("it refused, but with: {error}"));
                }
                let left = match done {
                    Operation::Open { data, .. } | Operation::Chain { data, .. } => data,
                    Operation::Unprotect { packet, .. } => packet,
                    _ => return Ok(()),
                };
                let left = left.get(*at..).unwrap_or(&[]);
                let leaked = never.chunks_exact(16).zip(left.chunks(16)).any(|(a, b)| a == b);
                if leaked { Err("plaintext is left after a refusal".into()) } else { Ok(()) }
            }
            (Expect::Refused { .. }, Ok(_)) => Err("it took what had to be refused".into()),
            (_, Err(error)) => Err(format!("it failed: {error}")),
            (Expect::Same { outputs: expected, result: wanted }, Ok(result)) => {
                if result != *wanted {
                    return Err(format!("it says {result} bytes, which are {wanted}"));
                }
                let found = outputs(done, result);
                let same = found.len() == expected.len()
                    && found.iter().zip(expected).all(|(found, wanted)| found == wanted);
                if same { Ok(()) } else { Err("the bytes are wrong".into()) }
            }
            (Expect::Proved(proof), Ok(result)) => {
                if proof(done, result) {
                    Ok(())
                } else {
                    Err("the reference does not accept the result".into())
                }
            }
        }
    }
}

/// Has the reference do it, which must not fail.
fn by(
    reference: &Session,
    what: &str,
    mut operation: Operation,
) -> Result<(Operation, usize), Stop> {
    let result = operation.with(|request| reference.run(request));
    let case = || format!("{what}, {} bytes", operation.bytes());
    match result {
        Ok(result) => Ok((operation, result)),
        Err(error) => Err(Stop::fail(case(), format!("the reference failed: {error}"))),
    }
}

/// As [`by`], with what it put out first.
fn made(reference: &Session, what: &str, operation: Operation) -> Result<Vec<u8>, Stop> {
    let (done, result) = by(reference, what, operation)?;
    Ok(outputs(&done, result).first().map(|out| out.to_vec()).unwrap_or_default())
}

fn public_key(session: &Session, whose: &str) -> Result<Vec<u8>, Stop> {
    session
        .public_key()
        .map_err(|error| Stop::fail(format!("{whose} public key"), error.to_string()))
}

fn flip(rng: &mut Rng, bytes: &mut [u8]) {
    if !bytes.is_empty() {
        bytes[rng.usize(..bytes.len())] ^= 1 << rng.u8(..8);
    }
}

fn zeros(length: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(vec![0; length])
}

/// Text that can be compressed a little.
fn text(rng: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| if rng.u8(..4) == 0 { rng.u8(..) } else { b'a' + rng.u8(..3) }).collect()
}

/// Everything that can be done with such sessions and so many bytes.
pub(crate) fn jobs(
    bench: &Bench,
    pair: &Pair,
    work: &Work,
    rng: &mut Rng,
    size: usize,
) -> Result<Vec<Job>, Stop> {
    let [algorithm] = *work.steps else { return chain(pair, work, rng, size) };
    let (reference, output) = (&pair.reference, algorithm.output_bytes().unwrap_or(0));
    match algorithm.kind() {
        Kind::Aead => aead(reference, algorithm, rng, size),
        Kind::Packet => packet(reference, rng, size),
        Kind::Mask => {
            let mut sample = [0; SAMPLE_BYTES];
            rng.fill(&mut sample);
            let mask = Operation::Mask { sample, out: [0; MASK_BYTES] };
            Ok(vec![Job::same("mask", reference, mask)?])
        }
        Kind::Cipher => {
            let mut iv = [0; IV_BYTES_MAX];
            rng.fill(&mut iv);
            if rng.u8(..4) == 0 {
                // A counter about to overflow.
                iv[4..].fill(0xff);
            }
            let least =
                if algorithm.iv_bytes() == 16 && algorithm.block_bytes() == 1 { 16 } else { 0 };
            let data = bytes(rng, size.next_multiple_of(algorithm.block_bytes()).max(least));
            let decrypt = Operation::decrypt(iv, data.clone());
            Ok(vec![
                Job::same("encrypt", reference, Operation::encrypt(iv, data))?,
                Job::same("decrypt", reference, decrypt)?,
            ])
        }
        Kind::Compression => {
            let (data, capacity) = (text(rng, size), 2 * size + 1024);
            let compress = Operation::compress(data.clone(), capacity);
            let small = made(reference, "compress", compress.clone())?;
            let (inverse, original) = (reference.clone(), data.clone());
            let proof = move |done: &Operation, result: usize| {
                let Operation::Compress { out, .. } = done else { return false };
                let data = &out[..result.min(out.len())];
                let back = Operation::decompress(data, original.len());
                made(&inverse, "decompress", back).is_ok_and(|data| data == original)
            };
            let decompress = |capacity| Operation::decompress(small.clone(), capacity);
            let mut jobs = vec![
                Job::proved("compress", compress, proof),
                Job::same("decompress", reference, decompress(size))?,
                Job::same("decompress with room", reference, decompress(capacity))?,
            ];
            if size > 0 {
                let bomb = decompress(size - 1);
                jobs.push(Job::refused("decompress without room", bomb, &[], 0));
                let cramped = Operation::compress(data, 1.min(size / 64));
                jobs.push(Job::refused("compress without room", cramped, &[], 0));
            }
            Ok(jobs)
        }
        Kind::Hash => {
            let digest = Operation::digest(algorithm, bytes(rng, size));
            Ok(vec![Job::same("digest", reference, digest)?])
        }
        Kind::Mac => {
            let mac = Operation::mac(algorithm, bytes(rng, size));
            Ok(vec![Job::same("mac", reference, mac)?])
        }
        Kind::Hkdf => {
            let info = rng.usize(..200);
            let most = 255 * output;
            let expand = Operation::Expand { info: bytes(rng, info), out: zeros(size.min(most)) };
            let much = Operation::Expand { info: Vec::new(), out: zeros(most + 1) };
            Ok(vec![
                Job::same("expand", reference, expand)?,
                Job::refused("expand too much", much, &[], 0),
            ])
        }
        Kind::Exchange => exchange(bench, pair, algorithm, rng),
        Kind::Kem => kem(bench, pair, algorithm, rng),
        Kind::Signature => signature(pair, algorithm, rng, size),
        Kind::Encryption => encryption(pair, algorithm, rng, size),
        Kind::Random => {
            let random = Operation::Random { out: zeros(size) };
            Ok(vec![Job::proved("random", random, move |done, result| {
                let Operation::Random { out } = done else { return false };
                result == size && (size < 16 || out.chunks_exact(16).all(|part| part != [0; 16]))
            })])
        }
        Kind::Password => {
            let lanes = rng.u32(1..3);
            let cost = match algorithm {
                Algorithm::Scrypt => {
                    Cost::Scrypt { log_n: rng.u8(1..7), r: rng.u32(1..9), p: lanes }
                }
                Algorithm::Argon2id | Algorithm::Argon2i => {
                    Cost::Argon2 { memory_kib: rng.u32(16..80), passes: rng.u32(1..3), lanes }
                }
                Algorithm::Bcrypt => Cost::Bcrypt { log_rounds: rng.u32(4..6) },
                Algorithm::Md5Crypt => Cost::Md5Crypt,
                Algorithm::Sha256Crypt | Algorithm::Sha512Crypt => {
                    Cost::ShaCrypt { rounds: rng.u32(1_000..1_100) }
                }
                _ => Cost::Pbkdf2 { iterations: rng.u32(1..20) },
            };
            let out = zeros(if output > 0 { output } else { 4 + size % 96 });
            let password = Zeroizing::new(bytes(rng, size % 150));
            let salt = (0..16).map(|_| rng.alphanumeric() as u8).collect();
            let derive = Operation::Derive { cost, password, salt, out };
            password_jobs(reference, rng, derive)
        }
    }
}

/// A derivation, and passwords checked against what it comes to.
fn password_jobs(reference: &Session, rng: &mut Rng, derive: Operation) -> Result<Vec<Job>, Stop> {
    let expected = made(reference, "derive", derive.clone())?;
    let entry = bytes(rng, 12);
    let verify = |effort, password: &Zeroizing<Vec<u8>>, expected: &[u8]| match &derive {
        Operation::Derive { cost, salt, .. } => Operation::VerifyPassword {
            effort,
            cost: *cost,
            entry: entry.clone(),
            password: password.clone(),
            salt: salt.clone(),
            expected: expected.to_vec(),
        },
        other => other.clone(),
    };
    let right = match &derive {
        Operation::Derive { password, .. } => password.clone(),
        _ => zeros(0),
    };
    // In front, where all algorithms look.
    let wrong = Zeroizing::new([b"x", &right[..]].concat());
    let mut other = expected.clone();
    flip(rng, &mut other);
    let full = verify(Effort::Full, &right, &expected);
    let recall = verify(Effort::Recall, &right, &expected);
    let recall_wrong = verify(Effort::Recall, &wrong, &expected);
    Ok(vec![
        Job::same("derive", reference, derive.clone())?,
        Job::proved("verify the right password", full, |_, result| result == 1),
        Job::refused("verify a wrong password", verify(Effort::Full, &wrong, &expected), &[], 0),
        Job::refused("verify against another value", verify(Effort::Full, &right, &other), &[], 0),
        // Whether it remembers is its own affair.
        Job::proved("recall the right password", recall, |_, result| result <= 1),
        Job::proved("recall a wrong password", recall_wrong, |_, result| result == 0),
    ])
}

/// Under the key in use; a request under another key cannot be made by one session.
fn packet(reference: &Session, rng: &mut Rng, size: usize) -> Result<Vec<Job>, Stop> {
    let number_bytes = rng.usize(1..=4);
    // A long header, or a short one of the phase that the keys have.
    let first = if rng.bool() { 0x80 | rng.u8(..) & 0x70 } else { 0x40 | rng.u8(..) & 0x20 | 4 };
    let number_at = 1 + rng.usize(..45);
    let header_bytes = number_at + number_bytes;
    // Number and text have 4 bytes at least.
    let text = size.max(4 - number_bytes);
    let mut packet = bytes(rng, header_bytes + text + TAG_BYTES);
    packet[0] = first | (number_bytes - 1) as u8;
    let number = PHASE_SINCE + rng.u64(..1 << 40);
    let text = packet[header_bytes..header_bytes + text].to_vec();
    let protect = Operation::protect(number, header_bytes, packet);
    let protected = made(reference, "protect", protect.clone())?;
    let unprotect = |packet: &[u8]| Operation::unprotect(Some(number - 1), number_at, packet);
    let (mut bad, mut bad_tag, mut bad_header) =
        (protected.clone(), protected.clone(), protected.clone());
    flip(rng, &mut bad[number_at..]);
    flip(rng, &mut bad_tag[header_bytes + text.len()..]);
    flip(rng, &mut bad_header[..number_at]);
    let short = &protected[..number_at + 3 + TAG_BYTES];
    let found = Opened { number, header_bytes, phase: Phase::Current };
    let original = text.clone();
    let proof = move |done: &Operation, result: usize| {
        let Operation::Unprotect { packet, opened, .. } = done else { return false };
        *opened == found && packet.get(header_bytes..header_bytes + result) == Some(&original)
    };
    Ok(vec![
        Job::same("protect", reference, protect)?,
        Job::same("unprotect", reference, unprotect(&protected))?,
        Job::proved("unprotect and find", unprotect(&protected), proof),
        Job::refused("unprotect a forged packet", unprotect(&bad), &text, header_bytes),
        Job::refused("unprotect with a forged tag", unprotect(&bad_tag), &text, header_bytes),
        Job::refused("unprotect with a forged header", unprotect(&bad_header), &text, header_bytes),
        Job::refused("unprotect too short a packet", unprotect(short), &text, header_bytes),
    ])
}

fn aead(
    reference: &Session,
    algorithm: Algorithm,
    rng: &mut Rng,
    size: usize,
) -> Result<Vec<Job>, Stop> {
    let gmac = matches!(algorithm, Algorithm::Aes128Gmac | Algorithm::Aes256Gmac);
    let (aad, data) = if gmac { (size, 0) } else { (rng.usize(..48), size) };
    let (aad, data) = (bytes(rng, aad), bytes(rng, data));
    let mut nonce = [0; 12];
    rng.fill(&mut nonce);
    let seal = Operation::seal(nonce, aad.clone(), data.clone());
    let (done, result) = by(reference, "seal", seal.clone())?;
    let sealed = outputs(&done, result).concat();
    let open = |nonce, aad: &[u8], sealed: &[u8]| Operation::open(nonce, aad, sealed);
    let (mut bad, mut bad_tag, mut bad_aad, mut bad_nonce) =
        (sealed.clone(), sealed.clone(), aad.clone(), nonce);
    flip(rng, &mut bad);
    flip(rng, &mut bad_tag[data.len()..]);
    bad_aad.push(0);
    flip(rng, &mut bad_nonce);
    Ok(vec![
        Job::same("seal", reference, seal)?,
        Job::same("open", reference, open(nonce, &aad, &sealed))?,
        Job::refused("open a damaged text", open(nonce, &aad, &bad), &data, 0),
        Job::refused("open with a damaged tag", open(nonce, &aad, &bad_tag), &data, 0),
        Job::refused("open with other AAD", open(nonce, &bad_aad, &sealed), &data, 0),
        Job::refused("open with another nonce", open(bad_nonce, &aad, &sealed), &data, 0),
        Job::refused("open less than a tag", open(nonce, &aad, &sealed[..15]), &[], 0),
    ])
}

/// Where the parts of a chain's message lie: a header, perhaps the initialisation vector, the text,
/// what is put behind it.
struct Layout {
    iv: Iv,
    text: Range<usize>,
    tag: Range<usize>,
    end: usize,
}

impl Layout {
    fn parts(&self, steps: &[Algorithm], moved: isize) -> Vec<Part> {
        let move_end = |at: usize| at.saturating_add_signed(moved);
        let text = self.text.start..move_end(self.text.end);
        let tag = move_end(self.tag.start)..move_end(self.tag.end);
        let mac_first = steps.first().is_some_and(|step| step.kind() == Kind::Mac);
        let part = |step: &Algorithm| match step.kind() {
            Kind::Compression => Part::Compression { text: text.clone() },
            Kind::Mac => Part::Mac { over: 0..tag.start, tag: tag.clone() },
            // A MAC that is made first is encrypted with the text, and with the padding.
            _ if mac_first => Part::Cipher { iv: self.iv, text: text.start..move_end(self.end) },
            _ => Part::Cipher { iv: self.iv, text: text.clone() },
        };
        steps.iter().map(part).collect()
    }
}

fn chain(pair: &Pair, work: &Work, rng: &mut Rng, size: usize) -> Result<Vec<Job>, Stop> {
    let find = |kind| work.steps.iter().copied().find(|step| step.kind() == kind);
    let (Some(cipher), Some(mac)) = (find(Kind::Cipher), find(Kind::Mac)) else {
        return Err(Stop::Skip("a chain without cipher or MAC".into()));
    };
    let compressed = find(Kind::Compression).is_some();
    let mac_first = work.steps.first() == Some(&mac);
    let whole = mac.output_bytes().unwrap_or(0);
    let tag = if rng.bool() { whole } else { 12 };
    let block = cipher.block_bytes();
    let header = rng.usize(..24);
    let mut random_iv = [0; IV_BYTES_MAX];
    rng.fill(&mut random_iv);
    let (iv, start) = match rng.bool() {
        true => (Iv::At(header), header + cipher.iv_bytes()),
        false => (Iv::Given(random_iv), header),
    };
    // The cipher's text is whole blocks, with the tag in it where that is made first.
    let size = if mac_first { size } else { size.next_multiple_of(block) };
    let layout_end = start + size + tag;
    let end = if mac_first { start + (size + tag).next_multiple_of(block) } else { layout_end };
    let layout = Layout { iv, text: start..start + size, tag: start + size..layout_end, end };
    let mut data = bytes(rng, end);
    data[layout.text.clone()].copy_from_slice(&text(rng, size));
    data.resize(end + if compressed { size + 1024 } else { 0 }, 0);
    let original = data[..layout.text.end].to_vec();
    let plain = original[start..].to_vec();
    let protect = Operation::Chain {
        direction: Direction::Protect,
        data: data.clone().into(),
        length: end,
        parts: layout.parts(&work.steps, 0),
    };
    let (done, length) = by(&pair.reference, "protect", protect.clone())?;
    let sealed = outputs(&done, length).concat();
    let capacity = data.len();
    let steps = work.steps.clone();
    let unprotect = move |sealed: &[u8]| {
        let room = capacity.saturating_sub(sealed.len());
        let parts = layout.parts(&steps, sealed.len() as isize - end as isize);
        Operation::chain(Direction::Unprotect, sealed, room, parts)
    };
    let mut damaged = sealed.clone();
    // Somewhere that the tag covers or is; padding is neither.
    let covered = sealed.len() - (end - layout_end);
    // In a cipher's chain before a MAC a changed block changes the padding behind it, no more.
    let covered = if mac_first { covered.min(start + size) } else { covered };
    flip(rng, &mut damaged[..covered]);
    let changed = damaged != sealed;
    let mut jobs = vec![Job::same("unprotect", &pair.reference, unprotect(&sealed))?];
    if changed {
        let damaged = unprotect(&damaged);
        jobs.push(Job::refused("unprotect what was damaged", damaged, &plain, start));
    }
    jobs.push(if compressed {
        let reference = pair.reference.clone();
        Job::proved("protect", protect, move |done, result| {
            let sealed = outputs(done, result).concat();
            let back = made(&reference, "unprotect", unprotect(&sealed));
            back.is_ok_and(|back| back.starts_with(&original))
        })
    } else {
        Job::same("protect", &pair.reference, protect)?
    });
    Ok(jobs)
}

fn exchange(
    bench: &Bench,
    pair: &Pair,
    algorithm: Algorithm,
    rng: &mut Rng,
) -> Result<Vec<Job>, Stop> {
    let capacity = algorithm.public_key_bytes().unwrap_or(0);
    let out = || zeros(algorithm.output_bytes().unwrap_or(0));
    let named = Demand::Named(bench.reference.name());
    let peer = Parameters::new(algorithm, Key::Generate).on(named);
    let peer = bench.reference_engine.session(peer).map_err(|_| no_reference())?;
    let (ours, theirs) = (public_key(&pair.subject, "its")?, public_key(&peer, "the peer's")?);
    let secret = made(&peer, "agree", Operation::Agree { peer: ours, out: out() })?;
    let agree = |peer: Vec<u8>| Operation::Agree { peer, out: out() };
    let result = secret.len();
    let expect = Expect::Same { outputs: vec![secret], result };
    let mut bad = theirs.clone();
    let long = [&theirs[..], &[0]].concat();
    if algorithm == Algorithm::X25519 {
        bad.fill(0);
    } else if matches!(algorithm, Algorithm::EcdhP256 | Algorithm::EcdhP384) {
        // Off the curve, unless by a chance of 2^-128.
        bad[1 + rng.usize(..capacity - 1)] ^= 1 << rng.u8(..8);
    } else {
        // RFC 7919 § 5.1: more than 1, less than p - 1.
        bad.fill(if rng.bool() { 0 } else { 0xff });
    }
    let mut jobs = vec![
        Job { what: "agree".into(), operation: agree(theirs.clone()), expect },
        Job::refused("agree with no share", agree(bad), &[], 0),
        Job::refused("agree with a share too long", agree(long), &[], 0),
        Job::refused(
            "agree with a share cut short",
            agree(theirs[..capacity - 1].to_vec()),
            &[],
            0,
        ),
    ];
    if pair.shared {
        let show = Operation::PublicKey { out: vec![0; capacity] };
        jobs.push(Job::same("public key", &pair.reference, show)?);
    }
    Ok(jobs)
}

fn kem(bench: &Bench, pair: &Pair, algorithm: Algorithm, rng: &mut Rng) -> Result<Vec<Job>, Stop> {
    let (sealed, shared) =
        (algorithm.ciphertext_bytes().unwrap_or(0), algorithm.output_bytes().unwrap_or(0));
    let encapsulate = |peer: &[u8]| Operation::Encapsulate {
        peer: peer.to_vec(),
        ciphertext: vec![0; sealed],
        secret: zeros(shared),
    };
    let decapsulate = move |ciphertext: &[u8]| Operation::Decapsulate {
        ciphertext: ciphertext.to_vec(),
        secret: zeros(shared),
    };
    let named = Demand::Named(bench.reference.name());
    let peer = Parameters::new(algorithm, Key::Generate).on(named);
    let peer = bench.reference_engine.session(peer).map_err(|_| no_reference())?;
    let theirs = public_key(&peer, "the peer's")?;
    // FIPS 203 § 7.2: coefficients of 12 bits that are not below q.
    let mut bad = theirs.clone();
    bad[..3].fill(0xff);
    let opened = peer.clone();
    let mut jobs = vec![
        Job::proved("encapsulate", encapsulate(&theirs), move |done, _| {
            let Operation::Encapsulate { ciphertext, secret, .. } = done else { return false };
            made(&opened, "decapsulate", decapsulate(ciphertext)).is_ok_and(|made| made == **secret)
        }),
        Job::refused("encapsulate to no key", encapsulate(&bad), &[], 0),
        Job::refused("encapsulate to a cut key", encapsulate(&theirs[1..]), &[], 0),
    ];
    if pair.private {
        let ours = public_key(&pair.subject, "its")?;
        let (done, result) = by(&pair.reference, "encapsulate", encapsulate(&ours))?;
        let parts: Vec<_> = outputs(&done, result).iter().map(|part| part.to_vec()).collect();
        let [ciphertext, secret] = &parts[..] else { return Err(no_reference()) };
        let expect = Expect::Same { outputs: vec![secret.clone()], result: shared };
        let (what, operation) = ("decapsulate".into(), decapsulate(ciphertext));
        jobs.push(Job { what, operation, expect });
        // Implicit rejection (FIPS 203 § 6.3): a secret, but another.
        let (mut damaged, secret) = (ciphertext.clone(), secret.clone());
        flip(rng, &mut damaged);
        let other = move |done: &Operation, result| *outputs(done, result)[0] != *secret;
        jobs.push(Job::proved("decapsulate what was damaged", decapsulate(&damaged), other));
        let cut = decapsulate(&ciphertext[1..]);
        jobs.push(Job::refused("decapsulate what was cut", cut, &[], 0));
    }
    Ok(jobs)
}

fn signature(
    pair: &Pair,
    algorithm: Algorithm,
    rng: &mut Rng,
    size: usize,
) -> Result<Vec<Job>, Stop> {
    let reference = &pair.reference;
    let message = bytes(rng, size);
    let verify = move |public_key: &[u8], message: &[u8], signature: &[u8]| Operation::Verify {
        parameters: workload::signature_parameters(algorithm),
        public_key: public_key.to_vec(),
        message: message.to_vec(),
        signature: signature.to_vec(),
    };
    let capacity = reference.signature_bytes_max();
    let (key, message, good) = if capacity > 0 {
        let sign = Operation::Sign {
            parameters: workload::signature_parameters(algorithm),
            message: message.clone(),
            out: vec![0; capacity],
        };
        (public_key(reference, "the reference's")?, message, made(reference, "sign", sign)?)
    } else if let Some(published) = vectors::signed(algorithm) {
        // The reference does not sign with it.
        published
    } else {
        return Err(Stop::Skip("neither the reference nor a vector has a signature".into()));
    };
    let (mut bad, mut cut) = (good.clone(), good.clone());
    flip(rng, &mut bad);
    cut.pop();
    let other = [&message[..], b"!"].concat();
    let mut jobs = vec![
        Job::same("verify", reference, verify(&key, &message, &good))?,
        Job::refused("verify a damaged signature", verify(&key, &message, &bad), &[], 0),
        Job::refused("verify a cut signature", verify(&key, &message, &cut), &[], 0),
        Job::refused("verify no signature", verify(&key, &message, &[]), &[], 0),
        Job::refused("verify over another message", verify(&key, &other, &good), &[], 0),
        Job::refused("verify with a cut key", verify(&key[1..], &message, &good), &[], 0),
    ];
    let capacity = pair.subject.signature_bytes_max();
    if pair.private && capacity > 0 {
        let sign = Operation::Sign {
            parameters: workload::signature_parameters(algorithm),
            message: message.clone(),
            out: vec![0; capacity],
        };
        let (key, verifies) = (public_key(&pair.subject, "its")?, reference.clone());
        jobs.push(Job::proved("sign", sign.clone(), move |done, result| {
            let made = outputs(done, result).concat();
            by(&verifies, "verify", verify(&key, &message, &made)).is_ok()
        }));
        use Algorithm::*;
        if pair.shared
            && matches!(algorithm, Ed25519 | RsaPkcs1Sha256 | RsaPkcs1Sha384 | RsaPkcs1Sha512)
        {
            jobs.push(Job::same("sign as the reference does", reference, sign)?);
        }
    }
    Ok(jobs)
}

fn encryption(
    pair: &Pair,
    algorithm: Algorithm,
    rng: &mut Rng,
    size: usize,
) -> Result<Vec<Job>, Stop> {
    // RFC 8017 § 7.1.1: two hashes and two bytes go off; § 7.2.1: eleven bytes.
    let padding_bytes = match algorithm {
        Algorithm::RsaOaepSha1 => 2 + 2 * 20,
        Algorithm::RsaesPkcs1 => 11,
        _ => 2 + 2 * 32,
    };
    let most = 256 - padding_bytes;
    let message = bytes(rng, size.min(most));
    let key = public_key(&pair.reference, "the reference's")?;
    let encrypt = |message: &[u8]| Operation::PublicEncrypt {
        parameters: workload::oaep_parameters(algorithm),
        label: Default::default(),
        public_key: key.clone(),
        message: message.to_vec(),
        out: vec![0; 256],
    };
    let decrypt = move |ciphertext: Vec<u8>| Operation::PrivateDecrypt {
        parameters: workload::oaep_parameters(algorithm),
        label: Default::default(),
        ciphertext,
        out: zeros(256),
    };
    let (opens, original) = (pair.reference.clone(), message.clone());
    let mut jobs = vec![
        Job::proved("encrypt", encrypt(&message), move |done, result| {
            let ciphertext = outputs(done, result).concat();
            let back = made(&opens, "decrypt", decrypt(ciphertext));
            back.is_ok_and(|back| back == original)
        }),
        Job::refused("encrypt too much", encrypt(&vec![7; most + 1]), &[], 0),
    ];
    if pair.private && pair.shared {
        let sealed = made(&pair.reference, "encrypt", encrypt(&message))?;
        let mut bad = sealed.clone();
        flip(rng, &mut bad);
        let result = message.len();
        let expect = Expect::Same { outputs: vec![message], result };
        let cut = decrypt(sealed[1..].to_vec());
        jobs.push(Job { what: "decrypt".into(), operation: decrypt(sealed), expect });
        // A padding that is wrong is not told: see `RsaesPkcs1`.
        if algorithm != Algorithm::RsaesPkcs1 {
            jobs.push(Job::refused("decrypt what was damaged", decrypt(bad), &[], 0));
        }
        jobs.push(Job::refused("decrypt what was cut", cut, &[], 0));
    }
    Ok(jobs)
}

/// Few jobs of all sorts, for the checks of how work gets to the driver and back.
pub(crate) fn mixture(
    bench: &Bench,
    pair: &Pair,
    work: &Work,
    rng: &mut Rng,
) -> Result<Vec<Job>, Stop> {
    let sizes: &[usize] = if work.is_heavy() { &[33] } else { &[16, 64, 257, 1500] };
    let mut all = Vec::new();
    for size in sizes {
        all.extend(jobs(bench, pair, work, rng, *size)?);
    }
    rng.shuffle(&mut all);
    Ok(all)
}
