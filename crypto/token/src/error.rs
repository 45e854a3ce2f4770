//! Errors of tokens: what failed, where, and what to do.

use cryptoki::error::{Error as ModuleError, RvError};
use keyway_engine::Algorithm;
use std::fmt;
use std::path::PathBuf;

/// Why a token did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No token was named so at the start.
    Unknown {
        /// The label that was asked for.
        label: String,
        /// Those that were named.
        known: Vec<String>,
    },
    /// The module cannot be loaded.
    Module {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The module does not start, or shows no slots.
    Start {
        /// Its file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The module shows no token, or several tokens, of that label.
    NotThere {
        /// The label.
        label: String,
        /// The module's file.
        path: PathBuf,
        /// The labels that it shows.
        there: Vec<String>,
    },
    /// The token wants a PIN, and none was given.
    PinNeeded {
        /// The token's label.
        label: String,
    },
    /// The token has refused the PIN, which is not tried again.
    PinRefused {
        /// The token's label.
        label: String,
        /// The file with the PIN.
        file: PathBuf,
        /// The file that notes the refusal.
        note: PathBuf,
        /// The token's reason, and what is known of the tries that are left.
        why: String,
    },
    /// The token does not do an algorithm.
    Unsupported {
        /// The token's label.
        label: String,
        /// The algorithm.
        algorithm: Algorithm,
        /// The reason.
        why: String,
    },
    /// No key of a kind that lives in tokens.
    Kind(&'static str),
    /// There is no such key in the token, or several keys.
    Key {
        /// The token's label.
        label: String,
        /// The key that was looked for, and the keys that are there.
        why: String,
    },
    /// The token has another key in the place of the one that is known.
    OtherKey {
        /// The token's label.
        label: String,
    },
    /// The token has made a signature that does not fit the key.
    WrongSignature {
        /// The token's label.
        label: String,
    },
    /// The token has not answered in time.
    Silent {
        /// The token's label.
        label: String,
    },
    /// As many calls wait for the token as may.
    Busy {
        /// The token's label.
        label: String,
    },
    /// All sessions that the token allows are in use.
    Sessions {
        /// The token's label.
        label: String,
    },
    /// The token cannot be reached any more, or has failed as a whole.
    Gone {
        /// The token's label.
        label: String,
        /// The module's reason.
        why: String,
    },
    /// The token has refused one request.
    Refused {
        /// The token's label.
        label: String,
        /// The module's reason.
        why: String,
    },
}

impl Error {
    /// Whether another token that has the key may do better at once and for the next requests too.
    pub(crate) fn is_of_token(&self) -> bool {
        !matches!(self, Error::Busy { .. } | Error::Refused { .. } | Error::Kind(_))
    }

    /// Whether it is worth a word to the administrator, and lasts: a fault of the token, and not of one key in it. A
    /// module that is none keeps the daemon from starting.
    pub(crate) fn is_notable(&self) -> bool {
        let is_of_key = matches!(
            self,
            Error::Key { .. } | Error::OtherKey { .. } | Error::WrongSignature { .. }
        );
        let is_other = matches!(self, Error::Unsupported { .. } | Error::Module { .. });
        self.is_of_token() && !is_of_key && !is_other
    }

    /// The module's answer to a call in a session of this token.
    pub(crate) fn of_call(label: &str, error: &ModuleError) -> Error {
        let (label, why) = (label.to_owned(), reason(error));
        match error {
            ModuleError::Pkcs11(RvError::SessionCount, _) => Error::Sessions { label },
            ModuleError::Pkcs11(code, _) if is_lost(*code) => Error::Gone { label, why },
            _ => Error::Refused { label, why },
        }
    }
}

/// Whether it says that the session, the login or the device is gone, and nothing was done.
pub(crate) fn is_lost(code: RvError) -> bool {
    use RvError::*;
    matches!(
        code,
        CryptokiNotInitialized
            | DeviceError
            | DeviceRemoved
            | KeyHandleInvalid
            | ObjectHandleInvalid
            | SessionClosed
            | SessionHandleInvalid
            | SlotIdInvalid
            | TokenNotPresent
            | TokenNotRecognized
            | UserNotLoggedIn
    )
}

/// The module's error in the standard's words: `CKR_DEVICE_REMOVED in C_Sign`.
pub(crate) fn reason(error: &ModuleError) -> String {
    let ModuleError::Pkcs11(code, function) = error else { return error.to_string() };
    match code {
        RvError::VendorDefined(number) | RvError::UnknownErrorCode(number) => {
            format!("error {number:#x} in C_{function:?}")
        }
        code => format!("CKR_{} in C_{function:?}", screaming(&format!("{code:?}"))),
    }
}

/// `DEVICE_REMOVED` of `DeviceRemoved`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for (at, letter) in name.chars().enumerate() {
        if at > 0 && letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

fn list(labels: &[String]) -> String {
    match labels {
        [] => "none".to_owned(),
        labels => labels.join(", "),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unknown { label, known } => write!(
                f,
                "this daemon knows no token {label} (it knows: {}); start it with --token {label}=MODULE.so",
                list(known)
            ),
            Error::Module { path, why } => write!(
                f,
                "the PKCS#11 module {} cannot be loaded: {why}; name the library of a PKCS#11 module",
                path.display()
            ),
            Error::Start { path, why } => write!(
                f,
                "the PKCS#11 module {} does not start: {why}; see that its device is connected and its \
                 configuration right, and let the daemon reach its files (--token-files)",
                path.display()
            ),
            Error::NotThere { label, path, there } if there.contains(label) => write!(
                f,
                "the module {} shows several tokens {label}; give each a label of its own",
                path.display()
            ),
            Error::NotThere { label, path, there } => write!(
                f,
                "the module {} shows no token {label} (it shows: {}); connect it, correct the label, or let the \
                 daemon reach the module's files (--token-files)",
                path.display(),
                list(there)
            ),
            Error::PinNeeded { label } => write!(
                f,
                "token {label} wants a PIN; start the daemon with --token-pin {label}=FILE"
            ),
            Error::PinRefused { label, file, note, why } => write!(
                f,
                "token {label} has refused the PIN in {} ({why}); it is not tried again: put the right one into \
                 the file, or remove {} if it is right, and start the daemon again",
                file.display(),
                note.display()
            ),
            Error::Unsupported { label, algorithm, why } => write!(
                f,
                "token {label} does not do {algorithm}: {why}; make the key for other algorithms, or not in this \
                 token"
            ),
            Error::Kind(why) => f.write_str(why),
            Error::Key { label, why } => write!(f, "token {label}: {why}"),
            Error::OtherKey { label } => write!(
                f,
                "token {label} has another key in its place, under its CKA_ID, which is not used: put the right key \
                 back into the token, or delete the key here, which leaves the other one there"
            ),
            Error::WrongSignature { label } => write!(
                f,
                "token {label} has made a signature that does not fit the key's public half, and it is kept back: \
                 the token or its module is at fault, or has another key there"
            ),
            Error::Silent { label } => write!(
                f,
                "token {label} does not answer; its keys are refused until it does, or the daemon is started again"
            ),
            Error::Busy { label } => {
                write!(f, "as many requests wait for token {label} as may; try again later")
            }
            Error::Sessions { label } => write!(
                f,
                "token {label} opens no session for this daemon: other programs have all that it allows"
            ),
            Error::Gone { label, why } => {
                write!(
                    f,
                    "token {label} is gone or has failed ({why}); its keys are refused until it is back"
                )
            }
            Error::Refused { label, why } => write!(f, "token {label} has refused that: {why}"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use cryptoki::context::Function;

    #[test]
    fn reasons_are_in_the_words_of_the_standard() {
        let removed = ModuleError::Pkcs11(RvError::DeviceRemoved, Function::Sign);
        assert_eq!(reason(&removed), "CKR_DEVICE_REMOVED in C_Sign");
        let own = ModuleError::Pkcs11(RvError::VendorDefined(0x8000_0001), Function::Login);
        assert_eq!(reason(&own), "error 0x80000001 in C_Login");
    }
}
