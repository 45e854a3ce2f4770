//! A key that lives in tokens: in one, or in several that have the same one, which share the work.

use crate::error::Error as TokenError;
use crate::kind::KeyKind;
use crate::known::Known;
use crate::limits::{CALL_MAX, LEFT_OUT};
use crate::operation::Operation;
use crate::token::Token;
use keyway_engine::{
    Algorithm, Driver, DriverSession, Error, ExpectedLength, Field, Key, OaepParameters, Request,
    SignatureParameters, Step,
};
use keyway_lock::Unpoisoned;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use zeroize::Zeroizing;

/// The driver's name.
pub const NAME: &str = "token";

pub(crate) struct HeldKey {
    /// In messages, which a trial has none of: its caller hears.
    name: Option<String>,
    pub kind: KeyKind,
    /// As the engine has it.
    pub public: Vec<u8>,
    /// One at least.
    pub places: Vec<HeldPlace>,
    turn: AtomicUsize,
}

/// A token that has the key.
pub(crate) struct HeldPlace {
    token: Arc<Token>,
    id: Vec<u8>,
    /// Until when it is left out, if it has failed.
    out_until: Mutex<Option<Instant>>,
}

impl HeldPlace {
    pub fn new(token: Arc<Token>, id: Vec<u8>) -> Self {
        HeldPlace { token, id, out_until: Mutex::default() }
    }

    fn is_out(&self, now: Instant) -> bool {
        self.out_until.lock().unpoisoned().is_some_and(|until| now < until)
    }

    /// `is_right` looks at what comes out.
    fn run(
        &self,
        operation: &Operation,
        public: &[u8],
        is_right: &impl Fn(&[u8]) -> bool,
    ) -> Result<Zeroizing<Vec<u8>>, TokenError> {
        let operation = operation.clone();
        let known = Known { id: self.id.clone(), public: public.to_vec() };
        let done = self.token.call(CALL_MAX, move |seated| operation.run(seated, &known));
        let done = done.and_then(|done| match is_right(&done) {
            true => Ok(done),
            false => Err(TokenError::WrongSignature { label: self.token.label().to_owned() }),
        });
        let out = match &done {
            Err(why) if why.is_of_token() => Some(Instant::now() + LEFT_OUT),
            _ => None,
        };
        *self.out_until.lock().unpoisoned() = out;
        done
    }
}

impl HeldKey {
    pub fn new(name: Option<&str>, kind: KeyKind, public: Vec<u8>, places: Vec<HeldPlace>) -> Self {
        HeldKey { name: name.map(str::to_owned), kind, public, places, turn: AtomicUsize::new(0) }
    }

    /// Has one of its tokens do it: the one with the least to do of those that work, and then the others. What comes out
    /// has to be right: a token that fails, or has another key by now, gives no wrong signature away, which could
    /// tell of a key of RSA.
    pub fn run(
        &self,
        operation: &Operation,
        is_right: impl Fn(&[u8]) -> bool,
    ) -> Result<Zeroizing<Vec<u8>>, TokenError> {
        let mut result = Err(NOWHERE);
        for place in self.order() {
            result = place.run(operation, &self.public, &is_right);
            match &result {
                // The token has understood, and its word on the ciphertext is the other one's too.
                Err(TokenError::Refused { .. }) if operation.is_decryption() => break,
                Err(why) => {
                    if let Some(name) = &self.name {
                        place.token.say_of(name, why);
                    }
                }
                Ok(_) => break,
            }
        }
        result
    }

    fn order(&self) -> Vec<&HeldPlace> {
        let mut places: Vec<_> = self.places.iter().collect();
        if let [_, _, ..] = places[..] {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % places.len();
            places.rotate_left(turn);
            let now = Instant::now();
            places.sort_by_key(|place| (place.is_out(now), place.token.load()));
        }
        places
    }
}

const NOWHERE: TokenError = TokenError::Kind("the key is in no token");

/// A key of tokens in a session of the engine.
pub(crate) struct TokenSession {
    pub algorithm: Algorithm,
    pub key: Arc<HeldKey>,
    /// Hashes, and does what the public half is enough for.
    pub software: Arc<dyn Driver>,
}

impl TokenSession {
    pub fn sign(
        &self,
        parameters: &SignatureParameters,
        message: &[u8],
    ) -> Result<Operation, Error> {
        let hashed = |hash: Algorithm, message: &[u8]| {
            let mut digest = vec![0; hash.output_bytes().unwrap_or(0)];
            let mut request = Request::Digest { data: &[message], out: &mut digest };
            self.keyless(hash)?.run(&mut request)?;
            Ok(digest)
        };
        Operation::sign(self.algorithm, &self.key.public, parameters, message, hashed)
    }

    pub fn decrypt(
        &self,
        parameters: &OaepParameters,
        label: &[u8],
        ciphertext: &[u8],
    ) -> Result<Operation, Error> {
        Operation::decrypt(self.algorithm, &self.key.public, parameters, label, ciphertext)
    }

    /// A point that is not on the curve would tell its sender of the key, and not every token looks.
    pub fn agree(&self, peer: &[u8], secret_bytes: usize) -> Result<Operation, Error> {
        let step = Step { algorithm: self.algorithm, key: Key::Generate };
        let mut unused = Zeroizing::new(vec![0; secret_bytes]);
        let mut request = Request::Agree { peer, out: &mut unused };
        self.software.open(&[step])?.run(&mut request)?;
        Ok(Operation::Ecdh { peer: peer.to_vec(), secret_bytes })
    }

    fn keyless(&self, algorithm: Algorithm) -> Result<Box<dyn DriverSession>, Error> {
        self.software.open(&[Step { algorithm, key: Key::None }])
    }

    fn done(
        &self,
        operation: &Operation,
        is_right: impl Fn(&[u8]) -> bool,
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let done = self.key.run(operation, is_right).map_err(|why| match why {
            TokenError::Refused { .. } if operation.is_decryption() => Error::Authentication,
            TokenError::Busy { .. } => Error::Busy,
            why => Error::Driver { driver: NAME, why: brief(&why) },
        })?;
        put(&done, out)
    }
}

/// The fault, without its particulars: the daemon's own output has these.
fn brief(why: &TokenError) -> &'static str {
    match why {
        TokenError::Silent { .. } => "the token does not answer",
        TokenError::PinRefused { .. } | TokenError::PinNeeded { .. } => {
            "the daemon has no PIN that the token takes"
        }
        TokenError::Key { .. } | TokenError::OtherKey { .. } => {
            "the key is not in its token any more, or another one is"
        }
        TokenError::WrongSignature { .. } => "the token makes wrong signatures",
        TokenError::Refused { .. } => "the token has refused the request",
        TokenError::Sessions { .. } => "the token opens no session",
        _ => "the token is not there",
    }
}

impl DriverSession for TokenSession {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicKey { out } => put(&self.key.public, out),
            Request::Sign { message, parameters, out } => {
                let verifier = self.keyless(self.algorithm)?;
                let (public_key, parameters) = (&self.key.public[..], *parameters);
                let is_right = |signature: &[u8]| {
                    let mut request =
                        Request::Verify { public_key, message, parameters, signature };
                    verifier.run(&mut request).is_ok()
                };
                self.done(&self.sign(&parameters, message)?, is_right, out)
            }
            Request::PrivateDecrypt { ciphertext, parameters, label, out } => {
                self.done(&self.decrypt(parameters, label, ciphertext)?, |_| true, out)
            }
            Request::Agree { peer, out } => {
                let secret_bytes = self.algorithm.output_bytes().unwrap_or(0);
                self.done(&self.agree(peer, secret_bytes)?, |_| true, out)
            }
            Request::Verify { .. } | Request::PublicEncrypt { .. } => {
                self.keyless(self.algorithm)?.run(request)
            }
            _ => Err(Error::invalid_request("it does not fit the algorithm")),
        }
    }

    fn signature_bytes_max(&self) -> usize {
        match self.algorithm.kind() {
            keyway_engine::Kind::Signature => self.key.kind.signature_bytes_max(&self.key.public),
            _ => 0,
        }
    }
}

fn put(bytes: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let no_room = Error::length(Field::Out, out.len(), ExpectedLength::AtLeast(bytes.len()));
    out.get_mut(..bytes.len()).ok_or(no_room)?.copy_from_slice(bytes);
    Ok(bytes.len())
}
