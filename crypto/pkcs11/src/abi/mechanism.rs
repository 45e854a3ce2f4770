//! CK_MECHANISM, and the parameters of those mechanisms that have some.

use super::numbers::*;
use super::{Rv, Ulong};
use std::ffi::c_void;

/// CK_MECHANISM.
#[repr(C)]
pub(super) struct RawMechanism {
    pub mechanism: Ulong,
    pub parameter: *const c_void,
    pub parameter_len: Ulong,
}

/// CK_RSA_PKCS_PSS_PARAMS.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawPss {
    pub hash: Ulong,
    pub mgf: Ulong,
    pub salt_len: Ulong,
}

/// CK_RSA_PKCS_OAEP_PARAMS.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawOaep {
    pub hash: Ulong,
    pub mgf: Ulong,
    pub source: Ulong,
    pub data: *const u8,
    pub data_len: Ulong,
}

/// CK_ECDH1_DERIVE_PARAMS.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawEcdh {
    pub kdf: Ulong,
    pub shared_len: Ulong,
    pub shared: *const u8,
    pub public_len: Ulong,
    pub public: *const u8,
}

/// A mechanism with its parameters, or none.
#[repr(transparent)]
pub struct MechanismArgument(*const RawMechanism);

/// The parameters of a mechanism.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// Nothing, or something that no mechanism here has.
    None,
    /// PSS: hash, mask generation function, and the salt's length in bytes.
    Pss { hash: Ulong, mgf: Ulong, salt_bytes: Ulong },
    /// OAEP: hash, mask generation function, and label.
    Oaep { hash: Ulong, mgf: Ulong, label: Vec<u8> },
    /// ECDH: key derivation function, what it is given beside the secret, and the peer's point.
    Ecdh { kdf: Ulong, shared: Vec<u8>, peer: Vec<u8> },
}

impl MechanismArgument {
    /// Whether there is none.
    pub fn is_none(&self) -> bool {
        self.0.is_null()
    }

    /// The mechanism, and its parameters.
    ///
    /// # Errors
    /// If there is none, or its parameters have another form.
    pub fn read(&self) -> Result<(Ulong, Parameters), Rv> {
        // SAFETY: the program passes none, or a mechanism.
        let raw = unsafe { self.0.as_ref() }.ok_or(ARGUMENTS_BAD)?;
        let parameters = match raw.mechanism {
            RSA_PKCS_PSS | SHA1_RSA_PKCS_PSS | SHA224_RSA_PKCS_PSS | SHA256_RSA_PKCS_PSS
            | SHA384_RSA_PKCS_PSS | SHA512_RSA_PKCS_PSS => {
                let RawPss { hash, mgf, salt_len } = raw.parameters()?;
                Parameters::Pss { hash, mgf, salt_bytes: salt_len }
            }
            RSA_PKCS_OAEP => {
                let RawOaep { hash, mgf, source, data, data_len } = raw.parameters()?;
                // Some programs leave the source out where the label is empty.
                if source != DATA_SPECIFIED && data_len != 0 {
                    return Err(MECHANISM_PARAM_INVALID);
                }
                Parameters::Oaep { hash, mgf, label: copied(data, data_len)? }
            }
            ECDH1_DERIVE => {
                let RawEcdh { kdf, shared_len, shared, public_len, public } = raw.parameters()?;
                let (shared, peer) = (copied(shared, shared_len)?, copied(public, public_len)?);
                Parameters::Ecdh { kdf, shared, peer }
            }
            _ => Parameters::None,
        };
        Ok((raw.mechanism, parameters))
    }
}

impl RawMechanism {
    /// Parameters of the type that this mechanism has.
    fn parameters<T: Copy>(&self) -> Result<T, Rv> {
        if self.parameter.is_null() || self.parameter_len != size_of::<T>() as Ulong {
            return Err(MECHANISM_PARAM_INVALID);
        }
        // SAFETY: the program passes parameters of the mechanism's type; they may lie anywhere.
        Ok(unsafe { self.parameter.cast::<T>().read_unaligned() })
    }
}

fn copied(start: *const u8, length: Ulong) -> Result<Vec<u8>, Rv> {
    match (start.is_null(), usize::try_from(length)) {
        (_, Ok(0)) => Ok(Vec::new()),
        (false, Ok(length)) if length <= PARAMETER_BYTES_MAX => {
            // SAFETY: the program passes the start and the length of the same bytes.
            Ok(unsafe { std::slice::from_raw_parts(start, length) }.to_vec())
        }
        _ => Err(MECHANISM_PARAM_INVALID),
    }
}

/// Longest label of OAEP, and longest point of ECDH.
const PARAMETER_BYTES_MAX: usize = 64 << 10;
