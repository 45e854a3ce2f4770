//! The cards of the two OCF papers, in numbers.
//!
//! "OpenBSD" is Keromytis, Wright, de Raadt: *The Design of the OpenBSD Cryptographic Framework*
//! (USENIX 2003), "FreeBSD" is Leffler: *Cryptographic Device Support for FreeBSD* (BSDCon 2003).
//! Speeds are those they name. Sizes of rings and of batches are those of the drivers they
//! describe, hifn(4) and ubsec(4): 24 commands, and 60 requests in batches of 5.
//!
//! **Fixed costs** come from OpenBSD's tables 1 and 2, the rows with one thread: there a request
//! takes its bytes at the card's rated speed and 37 to 44 µs more on the 7751 (16 B to 16 KiB), 23
//! to 28 µs more on the 5820 (16 B to 1 KiB). 19.5 µs of that are the host's: so long takes the
//! null algorithm at 1 KiB (420 Mbit/s, § 5.2). The rest, 19 and 6 µs, is the card with its bus and
//! its interrupt. How much of it occupies the card the tables do not show, since with 32 threads
//! and small requests the host was full before the cards were. We take a fifth on the Hifn and a
//! third on the Broadcom: little enough for 16 KiB to run at the rated speed within 1 %. The rest
//! is delay that overlaps with the next request's work.

use keyway_engine::{Algorithm, Direction};

/// The abilities of one card, and how fast it is. 1 Mbit/s is 1,000,000 bits a second.
#[derive(Clone, Debug)]
pub struct Card {
    /// Requests that its ring of descriptors holds, at least 1: those it works on, those that wait,
    /// and those that are done and not yet announced. The public-key unit has a ring of its own, as
    /// long.
    pub ring: usize,
    /// Nanoseconds that any request occupies the card beside its bytes.
    pub operation_ns: u64,
    /// Nanoseconds from the end of the work until the host can see it: bus and interrupt. The card
    /// works on during that time.
    pub latency_ns: u64,
    /// Mbit/s of the cipher alone, either way, and of everything that is not a chain.
    pub cipher_mbit: u64,
    /// Mbit/s of a chain of cipher and MAC that protects.
    pub protect_mbit: u64,
    /// Mbit/s of one that unprotects.
    pub unprotect_mbit: u64,
    /// Signatures a second with an RSA key of 1,024 bits; 0 for a card that cannot sign. Longer
    /// keys take longer by the third power.
    pub rsa_1024_per_second: u64,
    /// Most completions that one interrupt announces; 1 where each request has its own.
    pub coalesce: u64,
    /// Nanoseconds after which a completion is announced even if it is the only one.
    pub coalesce_ns: u64,
    /// Nanoseconds after which a card that hangs is taken for dead.
    pub watchdog_ns: u64,
    /// Its algorithms; one cipher and one MAC of these in that order also in one pass.
    pub algorithms: Vec<Algorithm>,
}

/// Signatures that the cards' public-key units make, given their number theory; the padding and the
/// hash are the host's.
const RSA: [Algorithm; 6] = [
    Algorithm::RsaPkcs1Sha256,
    Algorithm::RsaPkcs1Sha384,
    Algorithm::RsaPkcs1Sha512,
    Algorithm::RsaPssSha256,
    Algorithm::RsaPssSha384,
    Algorithm::RsaPssSha512,
];

impl Card {
    /// Hifn 7751: by its data sheet 83 Mbit/s of 3DES alone, both ways; with IPsec's 3DES, SHA-1
    /// and LZS compression 62 out and 110 in (OpenBSD § 5.1). The 110 count what LZS unpacks;
    /// without it the 3DES engine's 83 are the bound. It interrupts once for each request (OpenBSD
    /// § 3.1).
    pub fn hifn_7751() -> Card {
        Card { protect_mbit: 62, ..Card::hifn(83) }
    }

    /// Hifn 7811, on the XL-Crypt: faster than a 7751. The papers' figures are in drawings that
    /// give no number; 250 Mbit/s is what was said of it. Costs are the 7751's, since its interface
    /// is.
    pub fn hifn_7811() -> Card {
        Card::hifn(250)
    }

    /// Hifn 7951, on the Soekris vpn1201: FreeBSD's card with the small ring, which 28 threads
    /// found full at 51 % of their requests. The papers give no speed in words; it is taken as the
    /// 7751's. Its public-key unit has no driver (OpenBSD § 3.1).
    pub fn hifn_7951() -> Card {
        Card { protect_mbit: 62, ..Card::hifn(83) }
    }

    /// Broadcom 5805: DES and 3DES alike (OpenBSD § 5.2). The papers give no speed in words; 120
    /// Mbit/s is what was said of it. Costs are the 5820's. How fast it signs is not known, so that
    /// it does not.
    pub fn broadcom_5805() -> Card {
        Card::broadcom(120, 0)
    }

    /// Broadcom 5820: 310 Mbit/s of 3DES with SHA-1, 800 signatures a second with RSA-1024, both by
    /// its maker (OpenBSD § 5.1). Its interrupts are coalesced by chaining requests (§ 3.1).
    pub fn broadcom_5820() -> Card {
        Card::broadcom(310, 800)
    }

    /// Broadcom 5822: 410 Mbit/s of 3DES at its peak, measured in batches of 8 KiB (FreeBSD § 3.1).
    /// Costs and signatures are the 5820's, of which no other figures are given.
    pub fn broadcom_5822() -> Card {
        Card::broadcom(410, 800)
    }

    /// This card, able to do these too, at the speed of its cipher.
    #[must_use]
    pub fn also(mut self, algorithms: &[Algorithm]) -> Card {
        self.algorithms.extend(algorithms);
        self
    }

    fn hifn(mbit: u64) -> Card {
        Card {
            ring: 24,
            operation_ns: 4_000,
            latency_ns: 15_000,
            cipher_mbit: mbit,
            protect_mbit: mbit,
            unprotect_mbit: mbit,
            rsa_1024_per_second: 0,
            coalesce: 1,
            coalesce_ns: 0,
            watchdog_ns: WATCHDOG_NS,
            algorithms: vec![Algorithm::TripleDesCbc, Algorithm::HmacSha1],
        }
    }

    fn broadcom(mbit: u64, rsa_1024_per_second: u64) -> Card {
        let card = Card {
            ring: 60,
            operation_ns: 2_000,
            latency_ns: 4_000,
            rsa_1024_per_second,
            coalesce: 5,
            coalesce_ns: 50_000,
            ..Card::hifn(mbit)
        };
        if rsa_1024_per_second > 0 { card.also(&RSA) } else { card }
    }

    /// Nanoseconds that a request of so many bytes occupies the card, one of a chain in the
    /// direction given.
    pub(super) fn symmetric_ns(&self, bytes: usize, chain: Option<Direction>) -> u64 {
        let mbit = match chain {
            None => self.cipher_mbit,
            Some(Direction::Protect) => self.protect_mbit,
            Some(Direction::Unprotect) => self.unprotect_mbit,
        };
        self.operation_ns + bytes as u64 * 8_000 / mbit.max(1)
    }

    /// Nanoseconds that an RSA signature occupies the public-key unit.
    pub(super) fn signature_ns(&self, modulus_bytes: usize) -> u64 {
        let (bytes, rate) = (modulus_bytes as u64, self.rsa_1024_per_second.max(1));
        self.operation_ns + 1_000_000_000 * bytes.pow(3) / (rate * 128_u64.pow(3))
    }
}

/// The papers do not say how long their drivers wait for a card that hangs.
const WATCHDOG_NS: u64 = 100_000_000;
