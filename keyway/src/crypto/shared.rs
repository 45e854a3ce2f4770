//! The parts that the commands share: the key they read, what they say, how they are interrupted.

use keyway_cryptotest::{Interrupt, LeftOut};
use keyway_host::failure::Failure;
use keyway_host::output;
use keyway_host::signals::{self, Second};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;
use std::fmt::Display;
use std::io;
use std::path::Path;
use zeroize::Zeroizing;

/// Why work is left out, and with which flag it would not be.
pub fn words(why: &LeftOut) -> String {
    match why {
        LeftOut::Legacy(_) => format!("{why}; --legacy allows it"),
        LeftOut::NeedsRsaKey => {
            format!("{why}: name one with --key FILE or make some with --rsa-bits")
        }
        why => why.to_string(),
    }
}

/// Reads a private key as PKCS#8, PEM or DER.
pub fn private_key(path: Option<&Path>) -> Result<Option<Zeroizing<Vec<u8>>>, Failure> {
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

/// Writes to standard output. Says whether it has a reader.
pub fn say(text: impl Display) -> Result<bool, Failure> {
    match output::write(text) {
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(why) => Err(Failure::output(&why)),
        Ok(()) => Ok(true),
    }
}

/// Catches SIGINT and SIGTERM from now on: the first ends the measuring, the second the process.
pub fn interrupt() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let flag = interrupt.clone();
    signals::at_end(Second::Ends, move || flag.end())?;
    Ok(interrupt)
}
