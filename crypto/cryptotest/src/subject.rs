//! A session with keys that fit, and the check of its results.
//!
//! The check does not go through the engine, whose meters would count it, but straight to the
//! software driver.

use crate::error::LeftOut;
use crate::work::Work;
use keyway_drivers::software;
use keyway_engine::{
    Algorithm, Demand, Direction, DriverSession, Engine, Error, Key, Kind, Nonces, Operation,
    Parameters, Part, Request, Session, Step, limits, run_chain, workload,
};
use zeroize::Zeroizing;

/// The message that is decrypted with a private key, in bytes: a key.
const MESSAGE_BYTES: usize = 32;
/// No signature is longer, in bytes: ML-DSA-87 has 4,627.
const SIGNATURE_BYTES_MAX: usize = 8_192;

/// A session on the engine, and what it takes to check its results.
pub struct Subject {
    /// On the engine.
    pub session: Session,
    /// Its work.
    pub work: Work,
    check: Check,
}

/// The software driver's side.
struct Check {
    /// One for each step, with the same keys; or the peer's.
    sessions: Vec<Box<dyn DriverSession>>,
    /// The input beside the text: the peer's public key, or a ciphertext for ours.
    input: Vec<u8>,
    /// Our public key, for those who verify.
    public_key: Vec<u8>,
    /// Whether the session takes a signature that is wrong for right.
    is_fooled: bool,
}

impl Subject {
    /// The input beside the text: the peer's public key, or a ciphertext for ours.
    pub(crate) fn input(&self) -> &[u8] {
        &self.check.input
    }

    /// Opens a session with keys of its own; for RSA with this one.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open(
        engine: &Engine,
        work: &Work,
        demand: Demand<'_>,
        rsa: Option<&[u8]>,
    ) -> Result<Subject, LeftOut> {
        let secrets = work.steps.iter().map(|step| secret(engine, *step));
        let secrets = secrets.collect::<Result<Vec<_>, _>>()?;
        let pairs = || work.steps.iter().zip(&secrets);
        let steps = pairs()
            .map(|(step, secret)| Ok(Step { algorithm: *step, key: key(*step, secret, rsa)? }));
        let steps = steps.collect::<Result<Vec<_>, LeftOut>>()?;
        let parameters = match *steps {
            // Verification takes the public key with each request.
            [step] if work.verifies => Parameters::new(step.algorithm, Key::None),
            // Threads share it, so that packets are not numbered upwards.
            [step] => Parameters::new(step.algorithm, step.key).nonces(Nonces::Given),
            _ => Parameters::chain(&steps),
        };
        let session = engine.session(parameters.on(demand))?;
        let check = Check::new(work, &steps, &session)?;
        Ok(Subject { session, work: work.clone(), check })
    }

    /// A signature of this text to verify. An empty one where none is made: that is an error of
    /// each operation.
    pub(crate) fn verification(&self, message: &[u8]) -> Operation {
        let mut signature = vec![0; SIGNATURE_BYTES_MAX];
        let parameters = workload::signature_parameters(self.work.algorithm());
        let out = &mut signature;
        let made = self.check.run(&mut Request::Sign { message, parameters, out });
        signature.truncate(made.unwrap_or(0));
        let (public_key, message) = (self.check.public_key.clone(), message.to_vec());
        Operation::Verify { public_key, message, parameters, signature }
    }

    /// Whether that is what had to come of it.
    pub(crate) fn is_right(&self, operation: &Operation, result: usize, plain: &[u8]) -> bool {
        self.check.undo(&self.work, operation, result, plain).unwrap_or(false)
    }
}

/// Random bytes for a key; none where it takes another sort of key.
fn secret(engine: &Engine, algorithm: Algorithm) -> Result<Zeroizing<Vec<u8>>, Error> {
    let bytes = workload::secret_bytes(algorithm).unwrap_or(0);
    let mut secret = Zeroizing::new(vec![0; bytes]);
    engine.random(&mut secret)?;
    Ok(secret)
}

fn key<'a>(
    algorithm: Algorithm,
    secret: &'a [u8],
    rsa: Option<&'a [u8]>,
) -> Result<Key<'a>, LeftOut> {
    Ok(match algorithm.kind() {
        _ if Work::from(algorithm).is_rsa() => Key::Pkcs8(rsa.ok_or(LeftOut::NeedsRsaKey)?),
        // Encapsulation is to the peer's key.
        Kind::Kem => Key::None,
        _ => workload::key(algorithm, secret),
    })
}

impl Check {
    fn new(work: &Work, steps: &[Step<'_>], session: &Session) -> Result<Check, Error> {
        let driver = software();
        let open = |step: Step<'_>| driver.open(&[step]);
        let mut check = Check {
            sessions: Vec::new(),
            input: Vec::new(),
            public_key: Vec::new(),
            is_fooled: false,
        };
        let algorithm = work.algorithm();
        match algorithm.kind() {
            Kind::Signature if work.verifies => {
                let signer = steps.iter().map(|step| open(*step)).collect::<Result<Vec<_>, _>>()?;
                check.sessions = signer;
                let mut public_key = vec![0; limits::PUBLIC_KEY_BYTES_MAX];
                let used = check.run(&mut Request::PublicKey { out: &mut public_key })?;
                public_key.truncate(used);
                check.public_key = public_key;
                check.is_fooled = check.fools(session);
            }
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
                let keyless = open(Step { algorithm, key: Key::None })?;
                let request = &mut Request::PublicEncrypt {
                    parameters: workload::oaep_parameters(algorithm),
                    label: &[],
                    public_key: &public_key,
                    message,
                    out: &mut out,
                };
                let used = keyless.run(request)?;
                out.truncate(used);
                check.input = out;
            }
            _ => check.sessions = steps.iter().map(|step| open(*step)).collect::<Result<_, _>>()?,
        }
        Ok(check)
    }

    /// Whether the session takes the signature of one text for that of another.
    fn fools(&self, session: &Session) -> bool {
        let mut signature = vec![0; SIGNATURE_BYTES_MAX];
        let parameters = workload::signature_parameters(session.algorithm());
        let out = &mut signature;
        let made = self.run(&mut Request::Sign { message: b"one", parameters, out });
        signature.truncate(made.unwrap_or(0));
        let (public_key, message, signature) = (&self.public_key[..], b"other", &signature[..]);
        session.run(&mut Request::Verify { public_key, message, parameters, signature }).is_ok()
    }

    /// Has the software driver run a request.
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        self.sessions.first().ok_or(Error::NoSuchDriver)?.run(request)
    }

    /// Has the software driver undo an operation.
    fn inverse(&self, operation: &Operation, result: usize) -> Result<(Operation, usize), Error> {
        let inverse = workload::inverse(operation, result);
        let mut inverse = inverse.ok_or(Error::invalid_request("nothing undoes it"))?;
        let used = inverse.with(|request| self.run(request))?;
        Ok((inverse, used))
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
            Operation::Seal { data, .. } => {
                let (back, used) = self.inverse(operation, result)?;
                // GMAC authenticates what it does not encrypt.
                let plain = if data.is_empty() { &[] } else { plain };
                result == data.len() && back.output().get(..used) == Some(plain)
            }
            Operation::Protect { number, .. } => {
                let (back, used) = self.inverse(operation, result)?;
                let Operation::Unprotect { opened, packet, .. } = back else { return Ok(false) };
                let text = packet.get(opened.header_bytes..opened.header_bytes + used);
                opened.number == *number && text == Some(plain)
            }
            Operation::Encrypt { .. } | Operation::Compress { .. } => {
                let (back, used) = self.inverse(operation, result)?;
                back.output().get(..used) == Some(plain)
            }
            Operation::Encapsulate { .. } => {
                let (back, _) = self.inverse(operation, result)?;
                back.secret() == operation.secret()
            }
            Operation::Mask { .. }
            | Operation::Digest { .. }
            | Operation::Mac { .. }
            | Operation::Expand { .. }
            | Operation::Derive { .. } => {
                let mut again = operation.clone();
                again.with(|request| self.run(request))?;
                again.output() == operation.output()
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
            Operation::Agree { out, .. } => {
                let mut again = Zeroizing::new(vec![0; out.len()]);
                self.run(&mut Request::Agree { peer: &self.public_key, out: &mut again })?;
                again == *out
            }
            Operation::Sign { message, parameters, out } => {
                let Some(signature) = out.get(..result) else { return Ok(false) };
                let (public_key, parameters) = (&self.public_key, *parameters);
                self.run(&mut Request::Verify { public_key, message, parameters, signature })?;
                true
            }
            Operation::Verify { .. } => !self.is_fooled,
            Operation::PrivateDecrypt { out, .. } => {
                out.get(..result) == Some(&[0x6b; MESSAGE_BYTES][..])
            }
            Operation::Random { out } => out.chunks_exact(16).all(|part| part != [0; 16]),
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
