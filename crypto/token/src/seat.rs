//! A session of a token on its thread: opened, logged in, and opened anew when it is lost.

use crate::error::{Error, is_lost};
use crate::token::Shared;
use cryptoki::error::{Error as ModuleError, RvError};
use cryptoki::object::{Attribute, ObjectClass, ObjectHandle};
use cryptoki::session::Session;
use std::collections::HashMap;
use std::sync::Arc;

/// Why work in a session was not done.
pub(crate) enum Fault {
    /// The module's answer.
    Module(ModuleError),
    /// The token has no private key of the wanted `CKA_ID`.
    NoKey,
    Token(Error),
}

impl From<ModuleError> for Fault {
    fn from(error: ModuleError) -> Self {
        Fault::Module(error)
    }
}

impl Fault {
    /// Whether nothing was done, and another session may do it.
    fn is_lost(&self) -> bool {
        matches!(self, Fault::Module(ModuleError::Pkcs11(code, _)) if is_lost(*code))
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
            Fault::Token(error) => error,
        }
    }
}

/// The place of a thread at its token.
pub(crate) struct Seat {
    shared: Arc<Shared>,
    open: Option<Open>,
}

struct Open {
    session: Session,
    /// Handles of private keys by their `CKA_ID`, as this session has found them.
    handles: HashMap<Vec<u8>, ObjectHandle>,
}

/// A session that is open and logged in.
pub(crate) struct Seated<'a> {
    pub session: &'a Session,
    handles: &'a mut HashMap<Vec<u8>, ObjectHandle>,
}

impl Seat {
    pub fn new(shared: Arc<Shared>) -> Self {
        Seat { shared, open: None }
    }

    /// Opens a session and logs in, unless that is done.
    pub fn open(&mut self) -> Result<(), Error> {
        if self.open.is_some() {
            return Ok(());
        }
        let Shared { label, module, pin, .. } = &*self.shared;
        let failed = |why: ModuleError| Error::of_call(label, &why);
        let (module, slot, info) = module.find(label)?;
        let session = match module.open_rw_session(slot) {
            Err(ModuleError::Pkcs11(RvError::TokenWriteProtected, _)) => {
                module.open_ro_session(slot).map_err(failed)?
            }
            opened => opened.map_err(failed)?,
        };
        if info.login_required() {
            let pin = pin.as_ref().ok_or_else(|| Error::PinNeeded { label: label.clone() })?;
            pin.log_in(label, (&module, slot), &session)?;
        }
        self.open = Some(Open { session, handles: HashMap::new() });
        Ok(())
    }

    pub fn close(&mut self) {
        self.open = None;
    }

    /// Does something in the session; see [`Token::call`](crate::token::Token::call). After a fault the session is
    /// closed: an operation may be under way in it.
    pub fn attempt<T>(
        &mut self,
        work: &impl Fn(&mut Seated<'_>) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let first = match self.once(work)? {
            Ok(done) => return Ok(done),
            Err(fault) => fault,
        };
        self.close();
        if !first.is_lost() {
            return Err(first.error(&self.shared.label));
        }
        self.open()?;
        let second = self.once(work)?;
        second.map_err(|fault| {
            self.close();
            fault.error(&self.shared.label)
        })
    }

    fn once<T>(
        &mut self,
        work: &impl Fn(&mut Seated<'_>) -> Result<T, Fault>,
    ) -> Result<Result<T, Fault>, Error> {
        let none = || Error::Sessions { label: self.shared.label.clone() };
        let Open { session, handles } = self.open.as_mut().ok_or_else(none)?;
        Ok(work(&mut Seated { session, handles }))
    }
}

impl Seated<'_> {
    /// The private key of this `CKA_ID`.
    pub fn private_key(&mut self, id: &[u8]) -> Result<ObjectHandle, Fault> {
        if let Some(handle) = self.handles.get(id) {
            return Ok(*handle);
        }
        let wanted = [
            Attribute::Class(ObjectClass::PRIVATE_KEY),
            Attribute::Token(true),
            Attribute::Id(id.to_vec()),
        ];
        let found = self.session.find_objects(&wanted)?;
        let handle = *found.first().ok_or(Fault::NoKey)?;
        self.handles.insert(id.to_vec(), handle);
        Ok(handle)
    }
}
