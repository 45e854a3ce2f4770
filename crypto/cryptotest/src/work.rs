//! The work that is repeated: an algorithm, or a chain of them.

use keyway_engine::{Algorithm, Kind, limits};
use std::fmt;
use std::str::FromStr;

/// An algorithm, or the steps of a chain. As text the steps are joined by `+`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// One step, or those of a chain in the order in which they protect.
    pub steps: Vec<Algorithm>,
    /// Whether a signature is verified over and over, and not made.
    pub verifies: bool,
}

impl FromStr for Work {
    type Err = String;

    fn from_str(text: &str) -> Result<Work, String> {
        let known = |name: &str| {
            name.parse::<Algorithm>().map_err(|why| match text.contains('+') {
                true => format!("{name}: {why}"),
                false => why.to_string(),
            })
        };
        let steps = text.split('+').map(known).collect::<Result<Vec<_>, _>>()?;
        let chained =
            |step: &Algorithm| matches!(step.kind(), Kind::Cipher | Kind::Mac | Kind::Compression);
        let most = limits::CHAIN_STEPS_MAX;
        if steps.len() > 1 && (steps.len() > most || !steps.iter().all(chained)) {
            let what = "each a cipher, a MAC or a compression";
            return Err(format!("a chain has 2 to {most} steps, {what}"));
        }
        let compresses = |step: &Algorithm| step.kind() == Kind::Compression;
        if let Some(at) = steps.iter().position(compresses)
            && steps.iter().skip(at).any(|step| step.block_bytes() > 1)
        {
            return Err("what compression leaves is seldom whole blocks: take aes-128-ctr".into());
        }
        Ok(Work { steps, verifies: false })
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.steps.iter().map(|step| step.name()).collect();
        f.write_str(&names.join("+"))
    }
}

impl From<Algorithm> for Work {
    fn from(algorithm: Algorithm) -> Work {
        Work { steps: vec![algorithm], verifies: false }
    }
}

impl Work {
    /// This algorithm, with signatures verified instead of made. `None` where it makes none.
    pub fn verifying(&self) -> Option<Work> {
        let signs = !self.is_chain() && self.algorithm().kind() == Kind::Signature;
        signs.then(|| Work { steps: self.steps.clone(), verifies: true })
    }

    /// Whether its key is an RSA key.
    pub fn is_rsa(&self) -> bool {
        self.steps.iter().any(|step| step.name().starts_with("rsa-"))
    }

    /// The algorithm; of a chain, the first.
    pub(crate) fn algorithm(&self) -> Algorithm {
        self.steps.first().copied().unwrap_or(Algorithm::Random)
    }

    pub(crate) fn is_chain(&self) -> bool {
        self.steps.len() > 1
    }

    /// The verb for the work.
    pub fn verb(&self) -> &'static str {
        if self.is_chain() {
            return "protect";
        }
        match self.algorithm().kind() {
            Kind::Aead => "seal",
            Kind::Packet => "protect",
            Kind::Mask => "mask",
            Kind::Cipher => "encrypt",
            Kind::Compression => "compress",
            Kind::Hash => "digest",
            Kind::Mac => "mac",
            Kind::Hkdf => "expand",
            Kind::Exchange => "agree",
            Kind::Kem => "encapsulate",
            Kind::Signature if self.verifies => "verify",
            Kind::Signature => "sign",
            Kind::Encryption => "decrypt",
            Kind::Random => "generate",
            Kind::Password => "derive",
        }
    }

    /// Whether it takes longer the more bytes it is given.
    pub fn is_sized(&self) -> bool {
        use Kind::*;
        !matches!(self.algorithm().kind(), Exchange | Kem | Encryption | Password)
    }

    /// Whether one operation takes so long that few have to do at a time.
    pub(crate) fn is_heavy(&self) -> bool {
        !self.algorithm().kind().is_fast()
    }

    /// Whether an operation can be run again as it is, its result being as good an input.
    pub(crate) fn is_repeatable(&self) -> bool {
        !(self.is_chain() && self.steps.iter().any(|step| step.kind() == Kind::Compression))
    }

    /// The size that comes nearest to what was asked for, in bytes: whole blocks, and what limits
    /// allow.
    pub fn fit(&self, bytes: usize) -> usize {
        let block = self.steps.iter().map(|step| step.block_bytes()).max().unwrap_or(1);
        let xts = |step: &Algorithm| matches!(step, Algorithm::Aes128Xts | Algorithm::Aes256Xts);
        let least = if self.steps.iter().any(xts) { 16 } else { 1 };
        match (self.algorithm().kind(), self.algorithm().output_bytes()) {
            _ if !self.is_sized() => 0,
            (Kind::Hkdf, Some(hash)) => bytes.min(255 * hash),
            _ => bytes.max(least).next_multiple_of(block),
        }
    }
}

/// The works to test where none but these are named: one, if there are none.
#[must_use]
pub fn signing(named: &[Work]) -> Vec<Work> {
    match named.is_empty() {
        true => vec![Algorithm::Aes128Gcm.into()],
        false => named.to_vec(),
    }
}

/// Verifying what these works sign: of RSA's signatures, if there are none.
///
/// # Errors
/// A work that makes no signatures.
pub fn verifying(named: &[Work]) -> Result<Vec<Work>, Work> {
    let usual = [Algorithm::RsaPkcs1Sha256.into()];
    let named = if named.is_empty() { &usual } else { named };
    named.iter().map(|work| work.verifying().ok_or_else(|| work.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read() {
        let work: Work = "aes-128-cbc+hmac-sha-1".parse().unwrap();
        assert_eq!(work.steps, [Algorithm::Aes128Cbc, Algorithm::HmacSha1]);
        assert_eq!((work.to_string().as_str(), work.verb()), ("aes-128-cbc+hmac-sha-1", "protect"));
        assert_eq!(work.fit(100), 112);
        assert!("zstd+aes-128-ctr+hmac-sha-256".parse::<Work>().is_ok());
        let bad = [
            "",
            "aes",
            "aes-128-cbc+",
            "sha-256+aes-128-cbc",
            "zstd+aes-128-cbc",
            "zstd+zstd+zstd+zstd+zstd",
            "aes-128-gcm+hmac-sha-1",
        ];
        for bad in bad {
            assert!(bad.parse::<Work>().is_err(), "{bad}");
        }
    }
}
