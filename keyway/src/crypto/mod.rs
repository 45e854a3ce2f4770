//! `keyway crypto`: the engine and its drivers, looked at from outside: what there is, whether it
//! is right, how fast it is. The work is that of `keyway-cryptotest`; here are its flags and its
//! words.
//!
//! Each command makes an engine of its own. Results go to standard output; that they have no reader
//! any more is no failure. The first Ctrl-C ends the measuring and shows what there is by then.

mod arguments;
mod bench;
mod failed;
mod list;
mod shared;
mod test;

pub use arguments::Crypto;

use keyway_host::failure::Failure;

/// Does what the arguments ask for. Says whether all was right.
///
/// # Errors
/// If it could not be done.
pub fn run(command: &Crypto) -> Result<bool, Failure> {
    match command {
        Crypto::List(arguments) => list::run(arguments),
        Crypto::Test(arguments) => test::run(arguments),
        Crypto::Bench(arguments) => bench::run(arguments),
    }
}
