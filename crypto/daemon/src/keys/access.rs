//! Access rules: which caller may do what with a key.

use keyway_engine::{Algorithm, Direction, Kind, Request};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A purpose that a key may serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Make signatures.
    Sign,
    /// Open, decrypt and decapsulate.
    Decrypt,
    /// Seal and encrypt.
    Encrypt,
    /// Make MACs, which is also how they are verified.
    Mac,
    /// Derive keys (HKDF).
    Derive,
    /// Agree on a secret (Diffie-Hellman).
    Agree,
    /// Wrap sessions and keys that leave the daemon. Such a key does nothing else, as a client that
    /// could decrypt with it would see the wrapped bytes.
    Wrap,
    /// Protect and open ESP's packets (RFC 4303), whose numbers are the nonces: the client gives them, and keeps
    /// count. Such a key does nothing else, as nonces that others draw may meet those.
    Esp,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Purpose; 8] = [
        Purpose::Sign,
        Purpose::Decrypt,
        Purpose::Encrypt,
        Purpose::Mac,
        Purpose::Derive,
        Purpose::Agree,
        Purpose::Wrap,
        Purpose::Esp,
    ];

    /// Its name, in flags and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Purpose::Sign => "sign",
            Purpose::Decrypt => "decrypt",
            Purpose::Encrypt => "encrypt",
            Purpose::Mac => "mac",
            Purpose::Derive => "derive",
            Purpose::Agree => "agree",
            Purpose::Wrap => "wrap",
            Purpose::Esp => "esp",
        }
    }

    /// The purpose that a request needs; `None` for one that needs no secret, like to verify.
    pub fn of(request: &Request<'_>) -> Option<Purpose> {
        match request {
            Request::Sign { .. } => Some(Purpose::Sign),
            Request::Open { .. }
            | Request::Unprotect { .. }
            | Request::Decrypt { .. }
            | Request::Decapsulate { .. }
            | Request::PrivateDecrypt { .. }
            | Request::Chain { direction: Direction::Unprotect, .. } => Some(Purpose::Decrypt),
            Request::Seal { .. }
            | Request::Protect { .. }
            | Request::Mask { .. }
            | Request::Encrypt { .. }
            | Request::Chain { direction: Direction::Protect, .. } => Some(Purpose::Encrypt),
            Request::Mac { .. } => Some(Purpose::Mac),
            Request::Expand { .. } | Request::Derive { .. } | Request::VerifyPassword { .. } => {
                Some(Purpose::Derive)
            }
            Request::Agree { .. } => Some(Purpose::Agree),
            Request::Compress { .. }
            | Request::Decompress { .. }
            | Request::Digest { .. }
            | Request::PublicKey { .. }
            | Request::Encapsulate { .. }
            | Request::Verify { .. }
            | Request::PublicEncrypt { .. }
            | Request::Random { .. } => None,
        }
    }

    /// Whether only a key's newest version serves it. With older ones, what was made before them is
    /// read and verified, and nothing new is made.
    pub(crate) const fn needs_newest(self) -> bool {
        matches!(self, Purpose::Sign | Purpose::Encrypt | Purpose::Wrap)
    }
}

/// Several purposes. Shown and parsed as their names with commas between.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purposes(u8);

impl Purposes {
    /// None.
    pub const NONE: Purposes = Purposes(0);

    /// The purposes that an algorithm's keys can serve; none for one that has no key to keep.
    pub const fn of(algorithm: Algorithm) -> Purposes {
        const fn set(purposes: &[Purpose]) -> Purposes {
            let (mut bits, mut at) = (0, 0);
            while at < purposes.len() {
                bits |= 1 << purposes[at] as u8;
                at += 1;
            }
            Purposes(bits)
        }
        match (algorithm, algorithm.kind()) {
            (Algorithm::Aes256Gcm, _) => {
                set(&[Purpose::Encrypt, Purpose::Decrypt, Purpose::Wrap, Purpose::Esp])
            }
            (Algorithm::Aes128Gcm | Algorithm::ChaCha20Poly1305, _) => {
                set(&[Purpose::Encrypt, Purpose::Decrypt, Purpose::Esp])
            }
            (_, Kind::Aead | Kind::Cipher) => set(&[Purpose::Encrypt, Purpose::Decrypt]),
            (_, Kind::Mac) => set(&[Purpose::Mac]),
            // Under a key, which is a pepper, passwords are derived.
            (_, Kind::Hkdf | Kind::Password) => set(&[Purpose::Derive]),
            (_, Kind::Exchange) => set(&[Purpose::Agree]),
            (_, Kind::Kem | Kind::Encryption) => set(&[Purpose::Decrypt]),
            (_, Kind::Signature) => set(&[Purpose::Sign]),
            _ => Purposes::NONE,
        }
    }

    /// Whether it is among them.
    pub const fn contains(self, purpose: Purpose) -> bool {
        self.0 & 1 << purpose as u8 != 0
    }

    /// Whether all of the others are among them.
    pub const fn covers(self, others: Purposes) -> bool {
        self.0 & others.0 == others.0
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// These and the others.
    #[must_use]
    pub const fn and(self, others: Purposes) -> Purposes {
        Purposes(self.0 | others.0)
    }

    /// Those that are among the others too.
    #[must_use]
    pub const fn among(self, others: Purposes) -> Purposes {
        Purposes(self.0 & others.0)
    }

    /// These without the others.
    #[must_use]
    pub const fn without(self, others: Purposes) -> Purposes {
        Purposes(self.0 & !others.0)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Purpose> {
        Purpose::ALL.into_iter().filter(move |purpose| self.contains(*purpose))
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    pub(crate) fn from_bits(bits: u8) -> Option<Purposes> {
        (u32::from(bits) >> Purpose::ALL.len() == 0).then_some(Purposes(bits))
    }
}

impl From<Purpose> for Purposes {
    fn from(purpose: Purpose) -> Self {
        Purposes(1 << purpose as u8)
    }
}

impl FromIterator<Purpose> for Purposes {
    fn from_iter<I: IntoIterator<Item = Purpose>>(purposes: I) -> Self {
        purposes.into_iter().fold(Purposes::NONE, |all, purpose| all.and(purpose.into()))
    }
}

impl fmt::Display for Purposes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, purpose) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{}", purpose.name())?;
        }
        Ok(())
    }
}

impl FromStr for Purposes {
    type Err = UnknownPurpose;

    fn from_str(names: &str) -> Result<Self, UnknownPurpose> {
        let named = |name: &str| Purpose::ALL.into_iter().find(|purpose| purpose.name() == name);
        names.split(',').map(|name| named(name.trim()).ok_or(UnknownPurpose)).collect()
    }
}

/// No purpose has that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPurpose;

impl fmt::Display for UnknownPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("purposes are sign, decrypt, encrypt, mac, derive, agree, wrap and esp")
    }
}

impl std::error::Error for UnknownPurpose {}

/// The process that asks, as it was when it connected, as the kernel says.
///
/// It is the connection's for good, also if the process hands that on to another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
    /// The groups that it has beside that.
    pub groups: Vec<u32>,
    /// Its number.
    pub pid: u32,
    /// The program that it executes: the path at which this process, too, finds that very file.
    pub executable: Result<PathBuf, Unseen>,
    /// The virtual machine that it is, by its name. Then its user is a number that no process has, and its process that
    /// of the hypervisor.
    pub vm: Option<String>,
}

/// Why a process's program is not to be relied on. Then a grant to a program is not for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unseen {
    /// The system does not say which process it is.
    Unnamed,
    /// It has ended.
    Gone,
    /// It may not be looked at.
    Hidden,
    /// It is in another namespace, or has another root.
    Elsewhere,
    /// It has got rights from its file, or changed them since it connected.
    Raised,
    /// Its file is no longer at its path, or was never there.
    Replaced,
    /// The helper that looks does not answer.
    Silent,
    /// It connected to the daemon before this one, which did not say.
    Untold,
    /// It is a virtual machine.
    Machine,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unseen::Unnamed => "this system does not say surely which process it is (Linux 6.5 does)",
            Unseen::Gone => "the process has ended",
            Unseen::Hidden => {
                "the daemon may not look at the process: it is another user's or keeps others from tracing it"
            }
            Unseen::Elsewhere => "the process is in another namespace or has another root",
            Unseen::Raised => {
                "the process has other users, groups or capabilities than it was started with"
            }
            Unseen::Replaced => "the program's file is not, or no longer, at its path",
            Unseen::Silent => "the helper that looks at processes does not answer",
            Unseen::Untold => "the daemon that it had connected to did not know",
            Unseen::Machine => "it is a virtual machine",
        })
    }
}

impl Caller {
    /// Whether it is in a group.
    pub fn is_in(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// The callers that a grant is for: those that meet every condition given here. With no condition,
/// all callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Only this user.
    pub uid: Option<u32>,
    /// Only this group.
    pub gid: Option<u32>,
    /// Only this program, by its path without links. It is as safe as the folder that the program is in
    /// and as the users who may run it, and no more: a user can make a process of any program run the
    /// user's own code (`LD_PRELOAD`, `ptrace`), and a process can hand its connection to another.
    pub executable: Option<PathBuf>,
    /// This virtual machine, with all its processes, and then no other condition. Callers of any other kind, and of no
    /// condition at all, are processes of this system only.
    pub vm: Option<String>,
}

impl Who {
    /// No condition.
    pub const ANY: Who = Who { uid: None, gid: None, executable: None, vm: None };

    /// Whether it is for this caller.
    pub fn is(&self, caller: &Caller) -> bool {
        self.vm == caller.vm
            && self.uid.is_none_or(|uid| uid == caller.uid)
            && self.gid.is_none_or(|gid| caller.is_in(gid))
            && self.executable.as_ref().is_none_or(|path| caller.executable.as_ref() == Ok(path))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Who { uid, gid, executable, vm } = self;
        let vm = vm.as_ref().map(|name| format!("vm {name}"));
        let uid = uid.map(|uid| format!("uid {uid}"));
        let gid = gid.map(|gid| format!("gid {gid}"));
        let executable = executable.as_ref().map(|path| path.display().to_string());
        let given: Vec<_> = [vm, uid, gid, executable].into_iter().flatten().collect();
        if given.is_empty() { f.write_str("everybody") } else { f.write_str(&given.join(", ")) }
    }
}

/// Whether a virtual machine can be called so: like a key, with 64 bytes at most.
pub fn is_vm_name(name: &str) -> bool {
    keyway_engine::is_key_name(name) && name.len() <= 64
}

/// Some callers may do something with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The callers.
    pub who: Who,
    /// The purposes that they may use it for.
    pub purposes: Purposes,
}
