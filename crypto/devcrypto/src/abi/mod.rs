//! The interface between a program and the device, by hand: the functions of libc that lead there, and the numbers and
//! structures of cryptodev-linux (`crypto/cryptodev.h`, on machines of 64 bits).
//!
//! All of this crate's unsafe code is here, but for the names that `exports` gives functions. Types that stand for an
//! argument ([`Path`], [`Descriptor`], [`Argument`]) or a pointer in a structure ([`Bytes`]) cannot be made of an
//! address by other modules: their values are those that a program passes, and are valid as long as its call lasts.
//! What they point to is only ever copied: another thread of the program may change it.

mod errno;
mod next;
mod numbers;
mod opening;
mod pointers;
mod structures;
mod undisturbed;

pub use errno::{answer, quietly};
pub use next::{Next, close, close_own, ioctl, open, open_checked, openat, openat_checked};
pub use numbers::*;
pub use opening::open_or;
pub use pointers::{Argument, Descriptor, Path};
pub use structures::{AlgorithmName, AuthOp, CopyHashOp, CryptOp, SessionInfo, SessionOp};
pub use undisturbed::guard;
