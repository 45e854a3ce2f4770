//! XTS (IEEE 1619 § 5).

use super::session::{Opened, WRONG_LENGTH, misfit, opened};
use aes::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16,
};
use aes::{Aes128, Aes256};
use keyway_engine::{Algorithm, DriverSession, Error, IV_BYTES_MAX, Key, Request};
use subtle::ConstantTimeEq;

pub(super) fn open(algorithm: Algorithm, key: Key<'_>) -> Opened {
    match (algorithm, key) {
        (Algorithm::Aes128Xts, Key::Secret(secret)) => opened(Xts::<Aes128>::new(secret)?),
        (Algorithm::Aes256Xts, Key::Secret(secret)) => opened(Xts::<Aes256>::new(secret)?),
        _ => Err(Error::Unsupported(algorithm)),
    }
}

type Block = Array<u8, U16>;
/// Blocks that are encrypted side by side.
const BATCH_BLOCKS: usize = 64;
/// Longest text under one tweak, in blocks (SP 800-38E § 4).
const XTS_BLOCKS_MAX: usize = 1 << 20;

/// XTS with ciphertext stealing (IEEE 1619 § 5). The library does not offer it, and what does goes
/// block by block; these blocks go as many at a time as the processor has lanes for.
struct Xts<C> {
    text: C,
    tweak: C,
}

impl<C> Xts<C>
where
    C: KeyInit + BlockSizeUser<BlockSize = U16> + BlockCipherEncrypt + BlockCipherDecrypt,
{
    fn new(secret: &[u8]) -> Result<Self, Error> {
        let (text, tweak) = secret.split_at(secret.len() / 2);
        // FIPS 140 (IG C.I): the same key twice would make it another mode with other bounds.
        if text.ct_eq(tweak).into() {
            return Err(Error::InvalidKey("its halves are the same"));
        }
        let half = |half| C::new_from_slice(half).map_err(|_| WRONG_LENGTH);
        Ok(Xts { text: half(text)?, tweak: half(tweak)? })
    }

    fn first_tweak(&self, iv: &[u8; IV_BYTES_MAX]) -> u128 {
        let mut tweak = Array(*iv);
        self.tweak.encrypt_block(&mut tweak);
        u128::from_le_bytes(tweak.0)
    }

    fn encrypt(&self, iv: &[u8; IV_BYTES_MAX], data: &mut [u8]) -> Option<()> {
        let (blocks, rest) = Block::slice_as_chunks_mut(data);
        let encrypt = |blocks: &mut [Block]| self.text.encrypt_blocks(blocks);
        let tweak = each(self.first_tweak(iv), blocks, encrypt);
        let last = blocks.last_mut()?;
        if !rest.is_empty() {
            last[..rest.len()].swap_with_slice(rest);
            each(tweak, std::slice::from_mut(last), encrypt);
        }
        Some(())
    }

    fn decrypt(&self, iv: &[u8; IV_BYTES_MAX], data: &mut [u8]) -> Option<()> {
        let (blocks, rest) = Block::slice_as_chunks_mut(data);
        let decrypt = |blocks: &mut [Block]| self.text.decrypt_blocks(blocks);
        let tweak = self.first_tweak(iv);
        if rest.is_empty() {
            each(tweak, blocks, decrypt);
            return Some(());
        }
        // The last two tweaks have changed places.
        let (last, blocks) = blocks.split_last_mut()?;
        let last = std::slice::from_mut(last);
        let tweak = each(tweak, blocks, decrypt);
        each(doubled(tweak), last, decrypt);
        last[0][..rest.len()].swap_with_slice(rest);
        each(tweak, last, decrypt);
        Some(())
    }
}

/// Runs the cipher over blocks, each xored with its tweak before and after, and returns the tweak
/// of the next block.
fn each(mut tweak: u128, blocks: &mut [Block], cipher: impl Fn(&mut [Block])) -> u128 {
    let mut tweaks = [0; BATCH_BLOCKS];
    for blocks in blocks.chunks_mut(BATCH_BLOCKS) {
        for (block, place) in blocks.iter_mut().zip(&mut tweaks) {
            *place = tweak;
            block.0 = (u128::from_le_bytes(block.0) ^ tweak).to_le_bytes();
            tweak = doubled(tweak);
        }
        cipher(blocks);
        for (block, tweak) in blocks.iter_mut().zip(&tweaks) {
            block.0 = (u128::from_le_bytes(block.0) ^ tweak).to_le_bytes();
        }
    }
    tweak
}

/// Times x in the field of 2^128 elements, in constant time.
fn doubled(tweak: u128) -> u128 {
    (tweak << 1) ^ ((tweak >> 127) * 0x87)
}

impl<C> DriverSession for Xts<C>
where
    C: KeyInit
        + BlockSizeUser<BlockSize = U16>
        + BlockCipherEncrypt
        + BlockCipherDecrypt
        + Send
        + Sync
        + 'static,
{
    fn run(&self, request: &mut Request<'_>) -> Result<usize, Error> {
        if let Request::Encrypt { data, .. } | Request::Decrypt { data, .. } = request
            && data.len() > XTS_BLOCKS_MAX * 16
        {
            return Err(Error::invalid_request("the text is longer than 2^20 blocks"));
        }
        let done = match request {
            Request::Encrypt { iv, data } => self.encrypt(iv, data).map(|()| data.len()),
            Request::Decrypt { iv, data } => self.decrypt(iv, data).map(|()| data.len()),
            other => return misfit(other),
        };
        done.ok_or(Error::invalid_request("the text is shorter than a block"))
    }
}
