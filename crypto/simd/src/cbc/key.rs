//! Keys for CBC encryption.

use super::portable::substitute;
use crate::aes::{ROUND_KEYS_MAX, Schedule};
use std::fmt;

/// An expanded AES key for CBC encryption. Wiped when it is dropped.
#[derive(Clone)]
pub struct CbcKey(Schedule);

impl CbcKey {
    /// An AES-128 key.
    pub fn aes128(key: &[u8; 16]) -> Self {
        Self(Schedule::aes128(key, &substitute))
    }

    /// An AES-256 key.
    pub fn aes256(key: &[u8; 32]) -> Self {
        Self(Schedule::aes256(key, &substitute))
    }

    /// 10 or 14.
    pub(crate) fn rounds(&self) -> usize {
        self.0.rounds as usize
    }

    /// One more than there are rounds, the rest is zero.
    pub(crate) fn round_keys(&self) -> &[[u8; 16]; ROUND_KEYS_MAX] {
        &self.0.round_keys
    }
}

impl fmt::Debug for CbcKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CbcKey").field("rounds", &self.0.rounds).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(key: &CbcKey) -> [u8; 16] {
        key.round_keys()[key.rounds()]
    }

    /// FIPS 197 appendix A.1 and A.3: the last four words.
    #[test]
    fn schedules_are_those_of_the_standard() {
        let key = 0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c_u128.to_be_bytes();
        let end = 0xd014_f9a8_c9ee_2589_e13f_0cc8_b663_0ca6_u128.to_be_bytes();
        assert_eq!(last(&CbcKey::aes128(&key)), end);
        let mut key = [0; 32];
        key[..16].copy_from_slice(&0x603d_eb10_15ca_71be_2b73_aef0_857d_7781_u128.to_be_bytes());
        key[16..].copy_from_slice(&0x1f35_2c07_3b61_08d7_2d98_10a3_0914_dff4_u128.to_be_bytes());
        let end = 0xfe48_90d1_e618_8d0b_046d_f344_706c_631e_u128.to_be_bytes();
        assert_eq!(last(&CbcKey::aes256(&key)), end);
    }
}
