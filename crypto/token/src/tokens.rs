//! The tokens of a daemon, and the driver of the keys that live in them.

use crate::error::Error;
use crate::held::{HeldKey, HeldPlace, NAME, TokenSession};
use crate::kind::{ALGORITHMS, KeyKind, mechanism};
use crate::known::Known;
use crate::limits::{CLOSE, NEW_ID_BYTES, PLACES_MAX, TOKENS_MAX};
use crate::module::Module;
use crate::object::{self, Uses, Wanted};
use crate::pin::Pin;
use crate::token::{Report, Token};
use crate::trial;
use keyway_engine::{
    Algorithm, Driver, DriverSession, Error as EngineError, Key, Place, Request, Selection, Step,
};
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, mpsc};
use std::thread;
use std::time::Instant;

/// A token that the daemon is to use.
pub struct TokenOptions {
    /// Its label.
    pub label: String,
    /// The module's library.
    pub module: PathBuf,
    /// The PIN, for a token that wants one.
    pub pin: Option<Pin>,
}

/// Where a key lives: a token, by its label, and its `CKA_ID` there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenPlace {
    /// The token's label.
    pub token: String,
    /// The key's `CKA_ID`.
    pub id: Vec<u8>,
}

/// A key that was made in a token, or found there.
#[derive(Clone, Debug)]
pub struct TokenKey {
    /// Where it lives: one place at least.
    pub places: Vec<TokenPlace>,
    /// Its public half, as the engine has it.
    pub public: Vec<u8>,
}

/// The tokens of a daemon, and the keys that it has there. As a driver it opens sessions for keys by the names under
/// which they are [held](Tokens::hold).
pub struct Tokens {
    all: Vec<Arc<Token>>,
    modules: Vec<Arc<Module>>,
    held: RwLock<HashMap<String, Arc<HeldKey>>>,
    software: Arc<dyn Driver>,
    report: Report,
    is_closed: Mutex<bool>,
}

impl Tokens {
    /// With these tokens, none of which is looked for yet. `software` hashes, verifies and encrypts; `report` hears
    /// when a token fails and when it works again, from any thread.
    ///
    /// # Errors
    /// [`Error::Kind`] if there are more than [`TOKENS_MAX`], or two of one label.
    pub fn new(
        tokens: Vec<TokenOptions>,
        software: Arc<dyn Driver>,
        report: Report,
    ) -> Result<Tokens, Error> {
        if tokens.len() > TOKENS_MAX {
            return Err(Error::Kind("a daemon has 8 tokens at most"));
        }
        let mut modules: HashMap<PathBuf, Arc<Module>> = HashMap::new();
        let mut all: Vec<Arc<Token>> = Vec::new();
        for TokenOptions { label, module, pin } in tokens {
            if all.iter().any(|token| token.label() == label) {
                return Err(Error::Kind("a token is named twice"));
            }
            let new = |path: &Path| Arc::new(Module::new(path));
            let module = modules.entry(module).or_insert_with_key(|path| new(path)).clone();
            all.push(Arc::new(Token::new(&label, module, pin, report.clone())));
        }
        let modules = modules.into_values().collect();
        let (held, is_closed) = (RwLock::default(), Mutex::default());
        Ok(Tokens { all, modules, held, software, report, is_closed })
    }

    /// Closes all sessions, for good: before the process ends, which would tear the modules down around its threads.
    /// Requests that wait for a token fail. It takes no longer than two times [`CLOSE`], whatever the modules do.
    pub fn close(&self) {
        let mut is_closed = self.is_closed.lock().unpoisoned();
        if std::mem::replace(&mut *is_closed, true) {
            return;
        }
        self.all.iter().for_each(|token| token.shut());
        let until = Instant::now() + CLOSE;
        self.all.iter().for_each(|token| token.wait(until));
        let (tell, told) = mpsc::channel();
        for (index, module) in self.modules.iter().enumerate() {
            let (module, tell) = (module.clone(), tell.clone());
            let thread = thread::Builder::new().name("token-end".to_owned());
            let _ = thread.spawn(move || {
                module.finish();
                let _ = tell.send(index);
            });
        }
        drop(tell);
        let until = Instant::now() + CLOSE;
        let left = || until.saturating_duration_since(Instant::now());
        let ended: Vec<_> = std::iter::from_fn(|| told.recv_timeout(left()).ok()).collect();
        for (index, module) in self.modules.iter().enumerate() {
            if !ended.contains(&index) {
                (self.report)(&format!(
                    "the PKCS#11 module {} does not end (C_Finalize); the daemon ends without it",
                    module.path().display()
                ));
            }
        }
    }

    /// The labels of all tokens.
    pub fn labels(&self) -> Vec<String> {
        self.all.iter().map(|token| token.label().to_owned()).collect()
    }

    /// The place of a token among all, from 0 on.
    pub fn index(&self, label: &str) -> Option<usize> {
        self.all.iter().position(|token| token.label() == label)
    }

    /// Opens a session in a token and logs in, to see whether that works.
    ///
    /// # Errors
    /// Why not.
    pub fn look(&self, label: &str) -> Result<(), Error> {
        self.token(label)?.mechanisms().map(drop)
    }

    /// Makes a key in a token, which never leaves it, and sees that the token does all the algorithms with it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if it does not; then no key is left behind. Else errors of the token.
    pub fn generate(
        &self,
        label: &str,
        name: &str,
        algorithms: &[Algorithm],
        uses: Uses,
        rsa_bits: u32,
    ) -> Result<TokenKey, Error> {
        let (kind, token) = (KeyKind::of(algorithms)?, self.token(label)?);
        self.offers(token, kind, algorithms, true)?;
        let id = self.random_id()?;
        let made = object::generate(token, kind, rsa_bits, uses, (name, id))?;
        let place = TokenPlace { token: label.to_owned(), id: made.id.clone() };
        let tried = self.try_out(&place, &made.public, kind, algorithms, uses);
        if let Err(why) = tried {
            // The first fault says more than one on the way back.
            let _ = object::destroy(token, made);
            return Err(why);
        }
        Ok(TokenKey { places: vec![place], public: made.public })
    }

    /// Finds a key that is in all of these tokens, and sees that each does all the algorithms with it.
    ///
    /// # Errors
    /// [`Error::Key`] if one has none or another one, [`Error::Unsupported`], and errors of the tokens.
    pub fn adopt(
        &self,
        labels: &[String],
        wanted: &Wanted,
        algorithms: &[Algorithm],
        uses: Uses,
    ) -> Result<TokenKey, Error> {
        let kind = KeyKind::of(algorithms)?;
        if labels.is_empty() || labels.len() > PLACES_MAX {
            return Err(Error::Kind("a key is in one token at least, and in four at most"));
        }
        let mut places: Vec<TokenPlace> = Vec::new();
        let mut public = Vec::new();
        for label in labels {
            let token = self.token(label)?;
            if places.iter().any(|place| place.token == *label) {
                return Err(Error::Kind("a token is named twice"));
            }
            self.offers(token, kind, algorithms, false)?;
            let found = object::find(token, kind, wanted)?;
            if !places.is_empty() && found.public != public {
                let why = format!(
                    "its key is another one than that of token {}: their public halves differ",
                    labels[0]
                );
                return Err(Error::Key { label: label.clone(), why });
            }
            let place = TokenPlace { token: label.clone(), id: found.id };
            self.try_out(&place, &found.public, kind, algorithms, uses)?;
            public = found.public;
            places.push(place);
        }
        Ok(TokenKey { places, public })
    }

    /// Destroys a key in all its tokens. One that has taken its place there stays.
    ///
    /// # Errors
    /// Errors of the tokens; a token that this daemon does not know is passed over.
    pub fn destroy(&self, name: &str, key: &TokenKey) -> Result<(), Error> {
        for TokenPlace { token, id } in &key.places {
            let Ok(token) = self.token(token) else { continue };
            let known = Known { id: id.clone(), public: key.public.clone() };
            if object::destroy(token, known)? {
                token.say(&format!(
                    "key {name} is deleted; token {} has another key under its CKA_ID, which stays there",
                    token.label()
                ));
            }
        }
        Ok(())
    }

    /// Takes sessions for a key by this name from now on. It is not looked for in its tokens before it is used; those
    /// that this daemon does not know are left out.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it knows none of them, [`Error::Kind`].
    pub fn hold(&self, name: &str, key: &TokenKey, algorithms: &[Algorithm]) -> Result<(), Error> {
        let held = self.held(Some(name), key, KeyKind::of(algorithms)?)?;
        self.held.write().unpoisoned().insert(name.to_owned(), Arc::new(held));
        Ok(())
    }

    /// Takes no sessions by this name any more; those that are open go on.
    pub fn let_go(&self, name: &str) {
        self.held.write().unpoisoned().remove(name);
    }

    fn held(&self, name: Option<&str>, key: &TokenKey, kind: KeyKind) -> Result<HeldKey, Error> {
        let place = |place: &TokenPlace| Some((self.index(&place.token)?, place.id.clone()));
        let places: Vec<_> = key.places.iter().filter_map(place).collect();
        let places = places
            .into_iter()
            .filter_map(|(index, id)| Some(HeldPlace::new(self.all.get(index)?.clone(), id)));
        let places: Vec<_> = places.collect();
        if places.is_empty() {
            let labels: Vec<_> = key.places.iter().map(|place| &*place.token).collect();
            return Err(Error::Unknown { label: labels.join(","), known: self.labels() });
        }
        Ok(HeldKey::new(name, kind, key.public.clone(), places))
    }

    fn token(&self, label: &str) -> Result<&Arc<Token>, Error> {
        let unknown = || Error::Unknown { label: label.to_owned(), known: self.labels() };
        self.all.iter().find(|token| token.label() == label).ok_or_else(unknown)
    }

    /// That the module has what these algorithms need.
    fn offers(
        &self,
        token: &Token,
        kind: KeyKind,
        algorithms: &[Algorithm],
        to_generate: bool,
    ) -> Result<(), Error> {
        let there = token.mechanisms()?;
        let generation = kind.generation().mechanism_type();
        for algorithm in algorithms {
            let mut needed = vec![mechanism(*algorithm)];
            needed.extend(to_generate.then_some(generation));
            if let Some(lacking) = needed.iter().find(|it| !there.contains(it)) {
                let (label, algorithm) = (token.label().to_owned(), *algorithm);
                let why = format!("its module has no mechanism {lacking}");
                return Err(Error::Unsupported { label, algorithm, why });
            }
        }
        Ok(())
    }

    /// Has a token do each algorithm once: many know a mechanism and not all of its parameters.
    fn try_out(
        &self,
        place: &TokenPlace,
        public: &[u8],
        kind: KeyKind,
        algorithms: &[Algorithm],
        uses: Uses,
    ) -> Result<(), Error> {
        let key = TokenKey { places: vec![place.clone()], public: public.to_vec() };
        let key = Arc::new(self.held(None, &key, kind)?);
        let wanted = |algorithm: &&Algorithm| match algorithm.kind() {
            keyway_engine::Kind::Signature => uses.sign,
            keyway_engine::Kind::Encryption => uses.decrypt,
            _ => uses.agree,
        };
        for algorithm in algorithms.iter().filter(wanted) {
            let (key, software) = (key.clone(), self.software.clone());
            let session = TokenSession { algorithm: *algorithm, key, software };
            trial::run(&session).map_err(|why| {
                let label = place.token.clone();
                Error::Unsupported { label, algorithm: *algorithm, why }
            })?;
        }
        Ok(())
    }

    fn random_id(&self) -> Result<Vec<u8>, Error> {
        let mut id = vec![0; NEW_ID_BYTES];
        let step = Step { algorithm: Algorithm::Random, key: Key::None };
        let drawn = self.software.open(&[step]);
        drawn
            .and_then(|session| session.run(&mut Request::Random { out: &mut id }))
            .map_err(|_| Error::Kind("the system has no random bytes"))?;
        Ok(id)
    }
}

impl Drop for Tokens {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("labels", &self.labels()).finish_non_exhaustive()
    }
}

impl Driver for Tokens {
    fn name(&self) -> &str {
        NAME
    }

    fn selection(&self) -> Selection {
        Selection::Named
    }

    fn place(&self) -> Place {
        Place::Device
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        matches!(steps, [algorithm] if ALGORITHMS.contains(algorithm))
    }

    fn open(&self, steps: &[Step<'_>]) -> Result<Box<dyn DriverSession>, EngineError> {
        let [Step { algorithm, key: Key::Named(name) }] = *steps else {
            let any = steps.first().map_or(Algorithm::Random, |step| step.algorithm);
            return Err(EngineError::Unsupported(any));
        };
        let unsupported = EngineError::Unsupported(algorithm);
        let key = self.held.read().unpoisoned().get(name).cloned().ok_or(unsupported)?;
        if KeyKind::of_one(algorithm) != Some(key.kind) {
            return Err(EngineError::InvalidKey("the key in the token is of another kind"));
        }
        Ok(Box::new(TokenSession { algorithm, key, software: self.software.clone() }))
    }
}
