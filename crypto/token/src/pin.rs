//! The PIN of a token, which is never tried again once the token has refused it: tokens lock after a few wrong tries.

use crate::error::{Error, reason};
use cryptoki::context::Pkcs11;
use cryptoki::error::{Error as ModuleError, RvError};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::{Slot, TokenInfo};
use cryptoki::types::RawAuthPin;
use keyway_lock::Unpoisoned;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use zeroize::Zeroizing;

/// A PIN, and the file that it comes from.
pub struct Pin {
    secret: RawAuthPin,
    file: PathBuf,
    /// Another one for another PIN.
    identity: String,
    /// Where a refusal is noted, for later starts of the daemon.
    note: PathBuf,
    standing: Mutex<Standing>,
}

enum Standing {
    Untried,
    Right,
    Refused(String),
}

impl Pin {
    /// A PIN that was read from a file. `identity` is another one for another PIN, which nothing can be guessed from; the
    /// file `note` says that the token has refused the PIN, if it has.
    pub fn new(
        secret: &Zeroizing<Vec<u8>>,
        file: PathBuf,
        identity: String,
        note: PathBuf,
    ) -> Self {
        let before = fs::read_to_string(&note).is_ok_and(|noted| noted == identity);
        let standing = match before {
            true => Standing::Refused(
                "before this start, or the daemon ended while the token was asked".to_owned(),
            ),
            false => Standing::Untried,
        };
        let secret = RawAuthPin::new(Box::new(secret.to_vec()));
        Pin { secret, file, identity, note, standing: Mutex::new(standing) }
    }

    /// Logs a session in, if the token has not refused this PIN. One thread at a time tries.
    pub(crate) fn log_in(
        &self,
        label: &str,
        (module, slot): (&Pkcs11, Slot),
        session: &Session,
    ) -> Result<(), Error> {
        let mut standing = self.standing.lock().unpoisoned();
        let refused = |why: &str| {
            let (label, why) = (label.to_owned(), why.to_owned());
            Error::PinRefused { label, file: self.file.clone(), note: self.note.clone(), why }
        };
        if let Standing::Refused(why) = &*standing {
            return Err(refused(why));
        }
        // Before the token is asked: a daemon that ends meanwhile, or is ended by the module, does not try it again and
        // again.
        if matches!(*standing, Standing::Untried) {
            self.note_try();
        }
        let error = match session.login_with_raw(UserType::User, &self.secret) {
            Ok(()) | Err(ModuleError::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {
                self.forget_try(&standing);
                *standing = Standing::Right;
                return Ok(());
            }
            Err(error) => error,
        };
        let ModuleError::Pkcs11(code, _) = &error else {
            self.forget_try(&standing);
            return Err(Error::of_call(label, &error));
        };
        use RvError::{
            PinExpired, PinIncorrect, PinInvalid, PinLenRange, PinLocked, UserPinNotInitialized,
        };
        let of_pin = [PinExpired, PinIncorrect, PinInvalid, PinLenRange, PinLocked];
        if !of_pin.contains(code) && *code != UserPinNotInitialized {
            self.forget_try(&standing);
            return Err(Error::of_call(label, &error));
        }
        let why = match module.get_token_info(slot) {
            Ok(info) => format!("{}; {}", reason(&error), tries(&info)),
            Err(_) => reason(&error),
        };
        self.note_try();
        let error = refused(&why);
        *standing = Standing::Refused(why);
        Err(error)
    }
}

impl Pin {
    /// Notes for later starts that the PIN is not to be tried again. If it cannot be noted, this process still remembers.
    fn note_try(&self) {
        let _ = fs::File::create(&self.note).and_then(|mut note| {
            note.write_all(self.identity.as_bytes())?;
            note.sync_all()
        });
        self.sync_folder();
    }

    /// The token has not refused it. A note of before is another one's.
    fn forget_try(&self, standing: &Standing) {
        if matches!(standing, Standing::Untried) {
            let _ = fs::remove_file(&self.note);
            self.sync_folder();
        }
    }

    fn sync_folder(&self) {
        let _ = self.note.parent().map(|folder| fs::File::open(folder)?.sync_all());
    }
}

/// The tries that are left, as far as the token tells: PKCS#11 has no number for them.
fn tries(info: &TokenInfo) -> &'static str {
    if info.user_pin_locked() {
        "no try is left: the token is locked, and its security officer has to unlock it"
    } else if info.user_pin_final_try() {
        "one try is left"
    } else if info.user_pin_count_low() {
        "it was wrong at least once since it was last right, and tries are counted"
    } else {
        "the token does not say how many tries are left"
    }
}
