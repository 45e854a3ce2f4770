//! QUIC packets: payloads sealed and opened in place, headers masked, one engine request each
//! (RFC 9001 § 5.3, § 5.4).
//!
//! The user of these keys takes a failure to seal or to mask for impossible, and panics (quinn
//! does). So a packet that the engine did not seal leaves as noise, and a header that it has no
//! mask for gets one that cannot be predicted (see [`random_fallback`]): at either end the packet
//! then fails to open, and is dropped like one that the network damaged.

use crate::aead::Cipher;
use crate::limits::{
    CHACHA20_PACKETS_FORGED_MAX, CHACHA20_PACKETS_MAX, GCM_PACKETS_FORGED_MAX, GCM_PACKETS_MAX,
};
use crate::random_fallback;
use crate::table::{leak, offers};
use keyway_engine::{
    Algorithm, Engine, Key, MASK_BYTES, Parameters, Request, SAMPLE_BYTES, Session, TAG_BYTES,
};
use rustls::Error;
use rustls::crypto::cipher::{AeadKey, Iv, Nonce};
use rustls::quic;

/// QUIC's keys for an AEAD, if the engine's drivers make its masks.
pub(crate) fn quic(
    engine: &'static Engine,
    aead: Algorithm,
) -> Option<&'static dyn quic::Algorithm> {
    let mask = match aead {
        Algorithm::Aes128Gcm => Algorithm::QuicMaskAes128,
        Algorithm::Aes256Gcm => Algorithm::QuicMaskAes256,
        Algorithm::ChaCha20Poly1305 => Algorithm::QuicMaskChaCha20,
        _ => return None,
    };
    offers(engine, mask)
        .then(|| -> &'static dyn quic::Algorithm { leak(Keys { engine, aead, mask }) })
}

struct Keys {
    engine: &'static Engine,
    aead: Algorithm,
    mask: Algorithm,
}

impl quic::Algorithm for Keys {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn quic::PacketKey> {
        let cipher = Cipher::new(self.engine, self.aead, &key);
        Box::new(PacketKey { cipher, iv: number_of(iv.as_ref()), algorithm: self.aead })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn quic::HeaderProtectionKey> {
        let parameters = Parameters::new(self.mask, Key::Secret(key.as_ref()));
        Box::new(HeaderKey { engine: self.engine, session: self.engine.session(parameters) })
    }

    fn aead_key_len(&self) -> usize {
        if self.aead == Algorithm::Aes128Gcm { 16 } else { 32 }
    }
}

/// Up to 16 bytes as a number, the first byte the lowest.
fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Payloads as in RFC 9001 § 5.3. The whole header, unmasked, is authenticated.
struct PacketKey {
    cipher: Cipher,
    /// [`number_of`] the IV.
    iv: u128,
    algorithm: Algorithm,
}

impl PacketKey {
    /// The IV, its last eight bytes xored with the packet number (RFC 9001 § 5.3).
    #[inline]
    fn nonce(&self, packet_number: u64) -> Nonce {
        let nonce = self.iv ^ u128::from(packet_number.swap_bytes()) << 32;
        let [nonce @ .., _, _, _, _] = nonce.to_le_bytes();
        Nonce(nonce)
    }
}

impl quic::PacketKey for PacketKey {
    fn encrypt_in_place(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<quic::Tag, Error> {
        let nonce = self.nonce(packet_number);
        Ok(quic::Tag::from(&self.cipher.seal(&nonce, header, payload)[..]))
    }

    fn decrypt_in_place<'a>(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let nonce = self.nonce(packet_number);
        let bytes = self.cipher.open(&nonce, header, payload)?;
        payload.get(..bytes).ok_or(Error::DecryptError)
    }

    fn tag_len(&self) -> usize {
        TAG_BYTES
    }

    fn confidentiality_limit(&self) -> u64 {
        match self.algorithm {
            Algorithm::ChaCha20Poly1305 => CHACHA20_PACKETS_MAX,
            _ => GCM_PACKETS_MAX,
        }
    }

    fn integrity_limit(&self) -> u64 {
        match self.algorithm {
            Algorithm::ChaCha20Poly1305 => CHACHA20_PACKETS_FORGED_MAX,
            _ => GCM_PACKETS_FORGED_MAX,
        }
    }
}

/// Headers as in RFC 9001 § 5.4.
struct HeaderKey {
    engine: &'static Engine,
    session: Result<Session, keyway_engine::Error>,
}

impl HeaderKey {
    /// # Errors
    /// Only if the caller's slices have lengths that no packet has.
    #[inline(always)]
    fn mask(
        &self,
        sample: &[u8],
        packet_number: &[u8],
        mask: &mut [u8; MASK_BYTES],
    ) -> Result<(), Error> {
        let Ok(sample) = <&[u8; SAMPLE_BYTES]>::try_from(sample) else {
            return Err(Error::General("a sample for header protection has 16 bytes".into()));
        };
        if packet_number.len() >= MASK_BYTES {
            return Err(Error::General("a packet number has at most 4 bytes".into()));
        }
        let request = &mut Request::Mask { sample, out: mask };
        let made = match &self.session {
            Ok(session) => session.run(request).is_ok(),
            Err(_) => false,
        };
        if !made {
            random_fallback::fill(self.engine, mask);
        }
        Ok(())
    }
}

/// The bits of the first byte that are protected: of a long header four, of a short one five.
fn protected_bits(first: u8) -> u8 {
    if first & 0x80 == 0 { 0x1f } else { 0x0f }
}

/// Masks as many bytes as the (unprotected) first byte says that the number has. That is a secret:
/// no branch depends on it.
#[inline(always)]
fn apply(mask: &[u8; MASK_BYTES], unprotected: u8, packet_number: &mut [u8]) {
    // Byte by byte, as wider loads would wait for several stores.
    for ((byte, mask), at) in packet_number.iter_mut().zip(&mask[1..]).zip(0..) {
        let is_there = u8::from(at <= unprotected & 0x03);
        *byte ^= mask & is_there.wrapping_neg();
    }
}

impl quic::HeaderProtectionKey for HeaderKey {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let mut mask = [0; MASK_BYTES];
        self.mask(sample, packet_number, &mut mask)?;
        apply(&mask, *first, packet_number);
        *first ^= mask[0] & protected_bits(*first);
        Ok(())
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        let mut mask = [0; MASK_BYTES];
        self.mask(sample, packet_number, &mut mask)?;
        *first ^= mask[0] & protected_bits(*first);
        apply(&mask, *first, packet_number);
        Ok(())
    }

    fn sample_len(&self) -> usize {
        SAMPLE_BYTES
    }
}
