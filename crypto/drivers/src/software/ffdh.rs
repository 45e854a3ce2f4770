//! Finite-field Diffie-Hellman in the groups of RFC 7919, all of generator 2.
//!
//! Their primes are safe (`(p - 1) / 2` is prime as well), so a share between 1 and p - 1, both
//! excluded, has an order that gives at most one bit of our exponent away (§ 5.1). The time that is
//! taken depends on the group and on the length of the exponent, on nothing else.

use super::session::{Opened, failed, misfit, opened};
use aws_lc_rs::rand;
use crypto_bigint::modular::{ConstMontyForm, ConstMontyParams};
use crypto_bigint::{Limb, U384, U2048, U3072, U4096, Uint, const_monty_params};
use keyway_engine::{Algorithm, DriverSession, Error, Key, Request};
use zeroize::Zeroizing;

/// The longest exponent taken, in bytes.
const EXPONENT_BYTES_MAX: usize = 48;

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    // § 5.2: 225, 275 and 325 bits at least, here in whole bytes.
    match algorithm {
        Algorithm::Ffdhe2048 => opened(Session::<P2048, _>::open(algorithm, 29, key)?),
        Algorithm::Ffdhe3072 => opened(Session::<P3072, _>::open(algorithm, 35, key)?),
        Algorithm::Ffdhe4096 => opened(Session::<P4096, _>::open(algorithm, 41, key)?),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

struct Session<P: ConstMontyParams<LIMBS>, const LIMBS: usize> {
    exponent: Zeroizing<U384>,
    /// How many bits of the exponent count.
    bits: u32,
    public: ConstMontyForm<P, LIMBS>,
}

impl<P: ConstMontyParams<LIMBS>, const LIMBS: usize> Session<P, LIMBS> {
    fn open(algorithm: Algorithm, exponent_bytes: usize, key: Key<'_>) -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; EXPONENT_BYTES_MAX]);
        let length = match key {
            Key::Generate => exponent_bytes,
            Key::Secret(raw) => raw.len(),
            _ => return Err(Error::Unsupported(algorithm)),
        };
        let unfit = Error::InvalidKey("it is not an exponent of this group");
        let zeros = EXPONENT_BYTES_MAX.checked_sub(length).ok_or(unfit)?;
        let exponent = bytes.get_mut(zeros..).filter(|_| length >= exponent_bytes).ok_or(unfit)?;
        match key {
            Key::Secret(raw) => exponent.copy_from_slice(raw),
            _ => rand::fill(exponent).map_err(|_| failed("no key was generated"))?,
        }
        let exponent = Zeroizing::new(U384::from_be_slice(&*bytes));
        let bits = 8 * length as u32;
        let public = ConstMontyForm::new(&Uint::from_u8(2)).pow_bounded_exp(&exponent, bits);
        if !Self::is_share(&public.retrieve()) {
            return Err(unfit);
        }
        Ok(Session { exponent, bits, public })
    }

    /// § 5.1.
    fn is_share(share: &Uint<LIMBS>) -> bool {
        let last = P::PARAMS.modulus().wrapping_sub(&Uint::ONE);
        *share > Uint::ONE && *share < last
    }

    fn parse(peer: &[u8]) -> Option<ConstMontyForm<P, LIMBS>> {
        let share = (peer.len() == LIMBS * Limb::BYTES).then(|| Uint::from_be_slice(peer))?;
        Self::is_share(&share).then(|| ConstMontyForm::new(&share))
    }
}

/// Writes a number in all the bytes of its group's prime, as RFC 8446 § 4.2.8.1 and § 7.4.1 want
/// shares and secrets.
fn put<const LIMBS: usize>(number: &Uint<LIMBS>, out: &mut [u8]) -> Result<usize, Error> {
    let bytes = LIMBS * Limb::BYTES;
    let out = out.get_mut(..bytes).ok_or(Error::invalid_request("there is too little room"))?;
    for (place, limb) in out.rchunks_mut(Limb::BYTES).zip(number.as_limbs()) {
        place.copy_from_slice(&limb.0.to_be_bytes());
    }
    Ok(bytes)
}

impl<P: ConstMontyParams<LIMBS>, const LIMBS: usize> DriverSession for Session<P, LIMBS> {
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        match request {
            Request::PublicKey { out } => put(&self.public.retrieve(), out),
            Request::Agree { peer, out } => {
                let share = Self::parse(peer).ok_or(Error::Authentication)?;
                let secret = Zeroizing::new(share.pow_bounded_exp(&self.exponent, self.bits));
                put(&*Zeroizing::new(secret.retrieve()), out)
            }
            other => misfit(other),
        }
    }
}

// Appendix A of RFC 7919.

const_monty_params!(
    P2048,
    U2048,
    "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE\
     249B3EF97D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3\
     B557135E7F57C935984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797ABC0AB182\
     B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB190B07A7C8EE0A6D70\
     9E02FCE1CDF7E2ECC03404CD28342F619172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC\
     2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA886B423861285C97FFFFFFFFFFFFFFFF"
);
const_monty_params!(
    P3072,
    U3072,
    "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE\
     249B3EF97D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3\
     B557135E7F57C935984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797ABC0AB182\
     B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB190B07A7C8EE0A6D70\
     9E02FCE1CDF7E2ECC03404CD28342F619172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC\
     2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA886B4238611FCFDCDE355B3B6519035BBC34F4DEF99C0238\
     61B46FC9D6E6C9077AD91D2691F7F7EE598CB0FAC186D91CAEFE130985139270B4130C93BC437944F4FD4452\
     E2D74DD364F2E21E71F54BFF5CAE82AB9C9DF69EE86D2BC522363A0DABC521979B0DEADA1DBF9A42D5C4484E\
     0ABCD06BFA53DDEF3C1B20EE3FD59D7C25E41D2B66C62E37FFFFFFFFFFFFFFFF"
);
const_monty_params!(
    P4096,
    U4096,
    "FFFFFFFFFFFFFFFFADF85458A2BB4A9AAFDC5620273D3CF1D8B9C583CE2D3695A9E13641146433FBCC939DCE\
     249B3EF97D2FE363630C75D8F681B202AEC4617AD3DF1ED5D5FD65612433F51F5F066ED0856365553DED1AF3\
     B557135E7F57C935984F0C70E0E68B77E2A689DAF3EFE8721DF158A136ADE73530ACCA4F483A797ABC0AB182\
     B324FB61D108A94BB2C8E3FBB96ADAB760D7F4681D4F42A3DE394DF4AE56EDE76372BB190B07A7C8EE0A6D70\
     9E02FCE1CDF7E2ECC03404CD28342F619172FE9CE98583FF8E4F1232EEF28183C3FE3B1B4C6FAD733BB5FCBC\
     2EC22005C58EF1837D1683B2C6F34A26C1B2EFFA886B4238611FCFDCDE355B3B6519035BBC34F4DEF99C0238\
     61B46FC9D6E6C9077AD91D2691F7F7EE598CB0FAC186D91CAEFE130985139270B4130C93BC437944F4FD4452\
     E2D74DD364F2E21E71F54BFF5CAE82AB9C9DF69EE86D2BC522363A0DABC521979B0DEADA1DBF9A42D5C4484E\
     0ABCD06BFA53DDEF3C1B20EE3FD59D7C25E41D2B669E1EF16E6F52C3164DF4FB7930E9E4E58857B6AC7D5F42\
     D69F6D187763CF1D5503400487F55BA57E31CC7A7135C886EFB4318AED6A1E012D9E6832A907600A918130C4\
     6DC778F971AD0038092999A333CB8B7A1A1DB93D7140003C2A4ECEA9F98D0ACC0A8291CDCEC97DCF8EC9B55A\
     7F88A46B4DB5A851F44182E1C68A007E5E655F6AFFFFFFFFFFFFFFFF"
);
