//! The key store: clients name its keys, and no client sees them.
//!
//! ```
//! use keyway_daemon::keys::*;
//! use keyway_engine::Algorithm;
//! use std::time::SystemTime;
//!
//! # let place = tempfile::tempdir().unwrap();
//! # let (folder, file) = (place.path().join("keys"), place.path().join("master"));
//! # let caller = Caller { uid: 1000, gid: 1000, groups: vec![], pid: 1, executable: Err(Unseen::Gone), vm: None };
//! let (engine, now) = (keyway_drivers::engine(), SystemTime::now());
//! let master = MasterKey::create_file(&file, &engine)?;
//! let report = |what: &str| eprintln!("{what}");
//! let store = KeyStore::create(&folder, Master::Key(&master), &engine, report)?;
//!
//! let algorithm = Algorithm::EcdsaP256Sha256;
//! let spec = Spec { algorithms: &[algorithm], purposes: Purpose::Sign.into() };
//! store.add("tls.server", spec, Material::NEW, &caller, now)?;
//! let who = Who { uid: Some(1000), ..Who::ANY };
//! store.allow("tls.server", &who, Purpose::Sign.into(), &caller, now)?;
//!
//! let wanted = Wanted::new(algorithm, Purpose::Sign.into());
//! let key = store.session("tls.server", &caller, wanted, now)?;
//! let signature = key.session().sign(b"text")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # On disk
//!
//! A folder (0700) with these files (0600):
//!
//! - `store`: whose it is and how its master key is made ([`Header`]);
//! - `NAME.key`: a key with its versions and grants, sealed under the master key ([`SealedFile`],
//!   [`Record`]);
//! - `index`: which of the keys' files are the newest ([`Index`]);
//! - `audit.log`: who changed what, and who was refused;
//! - `lock`: keeps a second process out.
//!
//! A file is written beside its place, synced, and renamed: after a crash each key is as it was before a change
//! or after it. A key's file that is not what the store wrote last, be it spoilt, exposed or an older one,
//! disables that key, and stays as it is; the others are used as before. Until a manager has
//! [accepted](KeyStore::accept) them, all keys are disabled where the index is missing, spoilt, or older than
//! the audit log. An attacker who puts the whole folder back into an earlier state, audit log included, is not
//! noticed: that is how a backup is restored.
//!
//! # Who may do what
//!
//! A key has *purposes*, and *grants* say which caller may use it for which of them; at first, none
//! may. Those who create, change, list and delete keys are managers: the store does as they say,
//! and writes down who it was; that they are managers, its caller has to know.
//!
//! A caller that asks for a key that is not there, or not for this caller, is told
//! [`Error::Refused`] in either case. The audit log has the reason.
//!
//! # Versions
//!
//! [`KeyStore::rotate`] gives a key a new version. Only the newest signs, seals and wraps; older
//! ones open, decrypt, unwrap, agree and derive, and make the MACs that verification compares with.
//! Sessions that are open when a key is rotated, revoked, deleted or taken from a caller have
//! *ended* ([`KeySession::permits`]): their client opens new ones.
//!
//! # Keys in tokens
//!
//! The store has the public half of a key that lives in a token, and where it is; all else is as with other keys. The
//! engine knows it by the store's name for one of its versions, `NAME@NUMBER`, as a key of the driver `token`.
//!
//! # Usage counts
//!
//! The user of a [`KeySession`] counts the requests there. The counts reach the disk with each
//! change of the key and with [`KeyStore::save_usage`]; a crash forgets those since. Nothing
//! depends on them.

mod access;
mod audit;
mod certificate;
mod changes;
mod disk;
mod error;
mod header;
mod index;
mod info;
mod load;
mod master;
mod material;
mod name;
mod record;
mod reference;
mod refusals;
mod sealed;
mod session;
mod store;
mod tokens;
mod tpm;
mod using;

pub use access::{Caller, Grant, Purpose, Purposes, UnknownPurpose, Unseen, Who, is_vm_name};
pub use changes::Spec;
pub use disk::is_private;
pub use error::Error;
pub use header::{Header, PassphraseHeader};
pub use index::Index;
pub use info::{KeyInfo, VersionInfo};
pub use master::{Master, MasterKey, Passphrase};
pub(crate) use material::generate_for_session;
pub use material::{Material, decode_pem};
pub use record::{Encoding, Record};
pub use sealed::SealedFile;
pub use session::KeySession;
pub use store::KeyStore;
pub use using::{Usable, Wanted};
