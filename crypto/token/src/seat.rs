//! A session of a token on its thread: opened, logged in, and opened anew when it is lost.

use crate::error::{Error, is_lost};
use crate::module::{Inside, Module, Restarts};
use crate::pin::Pin;
use cryptoki::context::Pkcs11;
use cryptoki::error::{Error as ModuleError, RvError};
use cryptoki::object::ObjectHandle;
use cryptoki::session::Session;
use cryptoki::slot::Slot;
use keyway_lock::Unpoisoned;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Why work in a session was not done.
pub(crate) enum Fault {
    /// The module's answer.
    Module(ModuleError),
    /// The token has no private key of the wanted `CKA_ID`.
    NoKey,
    /// It has another one in its place.
    OtherKey,
    /// It does not tell whether the one that it has is the wanted one.
    NoHalf,
    Token(Error),
}

impl From<ModuleError> for Fault {
    fn from(error: ModuleError) -> Self {
        Fault::Module(error)
    }
}

impl Fault {
    /// Whether nothing was done, and another session may do it. One whose login was lost finds no private keys.
    fn is_lost(&self) -> bool {
        match self {
            Fault::NoKey => true,
            Fault::Module(ModuleError::Pkcs11(code, _)) => is_lost(*code),
            _ => false,
        }
    }

    fn error(self, label: &str) -> Error {
        match self {
            Fault::Module(error) => Error::of_call(label, &error),
            Fault::NoKey => {
                let why =
                    "the key is not in the token any more, or the token shows it to no other login"
                        .to_owned();
                Error::Key { label: label.to_owned(), why }
            }
            Fault::OtherKey => Error::OtherKey { label: label.to_owned() },
            Fault::NoHalf => {
                let why = "it shows no public half of the key any more, so that another key could be in its place; \
                           put the public key back, with its CKA_ID"
                    .to_owned();
                Error::Key { label: label.to_owned(), why }
            }
            Fault::Token(error) => error,
        }
    }
}

/// Where sessions of a token come from.
pub(crate) struct Source {
    pub label: String,
    pub module: Arc<Module>,
    pub pin: Option<Pin>,
    pub restarts: Mutex<Restarts>,
}

/// The place of a thread at its token.
pub(crate) struct Seat {
    source: Arc<Source>,
    open: Option<Open>,
}

struct Open {
    session: Session,
    slot: Slot,
    /// The generation of the module that it was opened in.
    generation: u64,
    /// As [`Seated`] has them.
    handles: HashMap<Vec<u8>, ObjectHandle>,
}

/// A session that is open and logged in, in a module that stays as it is.
pub(crate) struct Seated<'a> {
    pub session: &'a Session,
    pub pkcs11: &'a Pkcs11,
    pub slot: Slot,
    /// Handles of private keys by their `CKA_ID`, as this session has found them.
    pub handles: &'a mut HashMap<Vec<u8>, ObjectHandle>,
}

impl Seat {
    pub fn new(source: Arc<Source>) -> Self {
        Seat { source, open: None }
    }

    /// Opens a session and logs in, unless that is done.
    ///
    /// # Errors
    /// Why not; then the module was started anew, if that could help and was due.
    pub fn open(&mut self) -> Result<(), Error> {
        let source = self.source.clone();
        for is_second in [false, true] {
            let inside = source.module.enter()?;
            let error = match self.open_in(&inside) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let generation = inside.generation;
            drop(inside);
            let may_help = matches!(error, Error::NotThere { .. } | Error::Gone { .. });
            let is_due = || {
                let mut restarts = source.restarts.lock().unpoisoned();
                !source.module.is_in(generation) || restarts.is_due(Instant::now())
            };
            if is_second || !may_help || !is_due() || !source.module.restart(generation) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn open_in(&mut self, inside: &Inside<'_>) -> Result<(), Error> {
        if self.open.as_ref().is_some_and(|open| open.generation == inside.generation) {
            return Ok(());
        }
        let Source { label, pin, restarts, .. } = &*self.source;
        let failed = |why: ModuleError| Error::of_call(label, &why);
        let (slot, info) = inside.find(label)?;
        // It is not closed when it is dropped, since its handle may be another session's by then.
        let session = match inside.pkcs11.open_rw_session_no_drop(slot) {
            Err(ModuleError::Pkcs11(RvError::TokenWriteProtected, _)) => {
                inside.pkcs11.open_ro_session_no_drop(slot).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        let log_in = || match (info.login_required(), pin) {
            (false, _) => Ok(()),
            (true, None) => Err(Error::PinNeeded { label: label.clone() }),
            (true, Some(pin)) => pin.log_in(label, (&inside.pkcs11, slot), &session),
        };
        if let Err(why) = log_in() {
            let _ = session.close();
            return Err(why);
        }
        *restarts.lock().unpoisoned() = Restarts::default();
        let (generation, handles) = (inside.generation, HashMap::new());
        self.open = Some(Open { session, slot, generation, handles });
        Ok(())
    }

    /// Does something in the session; see `Token::call`. After a fault the session is
    /// closed: an operation may be under way in it.
    pub fn attempt<T>(
        &mut self,
        work: &impl Fn(&mut Seated<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let first = match self.once(work)? {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        if !first.is_lost() {
            return Err(first.error(&self.source.label));
        }
        self.open()?;
        self.once(work)?.map_err(|fault| fault.error(&self.source.label))
    }

    fn once<T>(
        &mut self,
        work: &impl Fn(&mut Seated<'_>) -> Result<T, Fault>,
    ) -> Result<Result<T, Fault>, Error> {
        let source = self.source.clone();
        let inside = source.module.enter()?;
        self.open_in(&inside)?;
        let none = || Error::Sessions { label: source.label.clone() };
        let open = self.open.as_mut().ok_or_else(none)?;
        let Open { session, slot, handles, .. } = open;
        let done = work(&mut Seated { session, pkcs11: &inside.pkcs11, slot: *slot, handles });
        if done.is_err() {
            self.close_in(&inside);
        }
        Ok(done)
    }

    fn close_in(&mut self, inside: &Inside<'_>) {
        if let Some(open) = self.open.take()
            && open.generation == inside.generation
        {
            // A session that is lost cannot be closed either.
            let _ = open.session.close();
        }
    }

    /// Closes the session, after a panic too.
    pub fn close(&mut self) {
        let source = self.source.clone();
        let generation = self.open.as_ref().map(|open| open.generation);
        if let Some(inside) = generation.and_then(|it| source.module.enter_again(it)) {
            self.close_in(&inside);
        }
        self.open = None;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.close();
    }
}
