//! CBC-MAC (FIPS 113, with AES), which CMAC and CCM have in common.
//!
//! The library encrypts CBC in place only, so the message goes through a buffer. That still takes
//! half the time of chaining the blocks one by one, because its loop keeps the key in registers.

use super::session::failed;
use aws_lc_rs::cipher::{EncryptingKey, EncryptionContext};
use aws_lc_rs::iv::FixedLength;
use keyway_engine::Error;
use zeroize::{Zeroize, Zeroizing};

/// AES's block, in bytes.
pub(super) const BLOCK: usize = 16;
/// Bytes that are encrypted in one call of the library.
const BUFFER: usize = 32 * BLOCK;

/// A message on its way through the chain.
pub(super) struct Chain<'k> {
    /// For CBC.
    key: &'k EncryptingKey,
    state: Zeroizing<[u8; BLOCK]>,
    buffer: [u8; BUFFER],
    /// Bytes in the buffer; not 0 once there was any, so that the last block can still be changed.
    filled: usize,
}

impl<'k> Chain<'k> {
    pub fn new(key: &'k EncryptingKey) -> Self {
        Chain { key, state: Zeroizing::new([0; BLOCK]), buffer: [0; BUFFER], filled: 0 }
    }

    /// Takes the next piece.
    pub fn update(&mut self, mut data: &[u8]) -> Result<(), Error> {
        while !data.is_empty() {
            if self.filled == BUFFER {
                self.encrypt()?;
            }
            let free = &mut self.buffer[self.filled..];
            let (now, later) = data.split_at(data.len().min(free.len()));
            free[..now.len()].copy_from_slice(now);
            self.filled += now.len();
            data = later;
        }
        Ok(())
    }

    /// Fills up the last block with zeros.
    pub fn pad(&mut self) {
        let whole = self.filled.next_multiple_of(BLOCK);
        self.buffer[self.filled..whole].fill(0);
        self.filled = whole;
    }

    /// The last block of the chain.
    pub fn finish(mut self) -> Result<Zeroizing<[u8; BLOCK]>, Error> {
        self.pad();
        self.encrypt()?;
        Ok(self.state)
    }

    /// CMAC's end (SP 800-38B § 6.2): the last block is xored with the first subkey if it is whole,
    /// else ended by a bit, filled up, and xored with the second.
    pub fn finish_cmac(mut self, subkeys: &[Zeroizing<[u8; BLOCK]>; 2]) -> Result<Tag, Error> {
        let [whole, ended] = subkeys;
        let subkey = if self.filled > 0 && self.filled.is_multiple_of(BLOCK) {
            whole
        } else {
            // The buffer is not full, or its last block would be whole.
            self.buffer[self.filled] = 0x80;
            self.filled += 1;
            self.pad();
            ended
        };
        let last = &mut self.buffer[self.filled - BLOCK..self.filled];
        last.iter_mut().zip(&**subkey).for_each(|(byte, key)| *byte ^= key);
        self.finish()
    }

    /// Encrypts the whole blocks that the buffer holds.
    fn encrypt(&mut self) -> Result<(), Error> {
        let state = EncryptionContext::Iv128(FixedLength::from(*self.state));
        let blocks = &mut self.buffer[..self.filled];
        self.key.less_safe_encrypt(blocks, state).map_err(|_| failed("AES failed"))?;
        if let Some(last) = blocks.last_chunk_mut() {
            *self.state = *last;
            // A MAC may be a caller's key, so no copy of it stays behind.
            last.zeroize();
        }
        self.filled = 0;
        Ok(())
    }
}

/// The output of CMAC.
type Tag = Zeroizing<[u8; BLOCK]>;

/// The subkeys of CMAC (SP 800-38B § 6.1): zeros encrypted, doubled, and doubled again.
pub(super) fn subkeys(key: &EncryptingKey) -> Result<[Zeroizing<[u8; BLOCK]>; 2], Error> {
    let mut chain = Chain::new(key);
    chain.update(&[0; BLOCK])?;
    let first = double(&*chain.finish()?);
    let second = double(&first);
    Ok([first, second])
}

/// Times x in the field of 2^128 elements, in constant time.
fn double(block: &[u8; BLOCK]) -> Zeroizing<[u8; BLOCK]> {
    let block = u128::from_be_bytes(*block);
    let carry = (block >> 127) * 0x87;
    Zeroizing::new(((block << 1) ^ carry).to_be_bytes())
}
