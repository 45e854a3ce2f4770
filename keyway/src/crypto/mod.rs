//! `keyway crypto`: the engine and its drivers, looked at from outside: what there is, whether it
//! is right, how fast it is. The work is that of `keyway-cryptotest`; here are its flags and its words.
//!
//! Each command makes an engine of its own. Results go to standard output; that nobody reads them
//! any more is no failure. The first Ctrl-C ends the measuring and shows what there is by then.

mod arguments;
mod bench;
mod list;
mod test;

pub use arguments::Crypto;

use crate::failure::{Failure, plain};
use crate::output::{self, grouped};
use crate::signals::Signals;
use keyway_cryptotest::{Error, Interrupt, LeftOut};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use std::fmt::Display;
use std::io;
use std::path::Path;
use zeroize::Zeroizing;

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

/// What went wrong, and with which flag it would not.
impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Driver { name, why } => {
                Failure::new(format!("cannot make the driver {name}: {}", plain(&why)))
            }
            Error::Register { .. } => Failure::usage(format!("{error}; leave out a --with")),
            Error::NoSuchDriver { .. } => {
                Failure::usage(format!("{error}, and --with registers more"))
            }
            Error::Memory { threads, in_flight, operation_bytes, needed_mib, allowed_mib } => {
                Failure::usage(format!(
                    "{threads} threads with {in_flight} operations in flight of {} bytes each take \
                     {} MiB of memory, more than {}; take less of one",
                    grouped(operation_bytes as u64),
                    grouped(needed_mib as u64),
                    grouped(allowed_mib as u64),
                ))
            }
            Error::Interrupted { done, total } => {
                let (done, total) = (grouped(done as u64), grouped(total as u64));
                Failure::new(format!("interrupted after {done} of {total} checks"))
            }
            error => Failure::new(error),
        }
    }
}

/// Why work is left out, and with which flag it would not be.
fn words(why: &LeftOut) -> String {
    match why {
        LeftOut::Legacy(_) => format!("{why}; --legacy allows it"),
        LeftOut::NeedsRsaKey => format!("{why}: name one with --key FILE"),
        why => why.to_string(),
    }
}

/// Reads a private key as PKCS#8, PEM or DER.
fn private_key(path: Option<&Path>) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let file = std::fs::read(path).map_err(|why| Failure::system("read", path, &why))?;
    let file = Zeroizing::new(file);
    if file.first() == Some(&0x30) {
        return Ok(Some(file));
    }
    match PrivatePkcs8KeyDer::from_pem_slice(&file) {
        Ok(key) => Ok(Some(Zeroizing::new(key.secret_pkcs8_der().to_vec()))),
        Err(_) => Err(Failure::new(format!(
            "there is no PKCS#8 private key in {}; openssl pkcs8 -topk8 -nocrypt makes one of it",
            path.display()
        ))),
    }
}

/// Writes to standard output. Says whether anybody reads it.
fn say(text: impl Display) -> Result<bool, Failure> {
    match output::write(text) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(why) => Err(Failure::output(&why)),
        Ok(()) => Ok(true),
    }
}

/// Catches SIGINT and SIGTERM from now on: the first ends the measuring, the second the process.
fn interrupt() -> Result<Interrupt, Failure> {
    let cannot = |why| Failure::new(format!("cannot start: {why}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(cannot)?;
    let mut signals = {
        let _inside = runtime.enter();
        Signals::catch()?
    };
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    let watch = move || {
        runtime.block_on(async {
            signals.next().await;
            flag.end();
            signals.end_at_next().await
        })
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(watch).map_err(cannot)?;
    Ok(interrupt)
}
