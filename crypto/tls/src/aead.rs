//! Records: sealed and opened in place, one engine request each.
//!
//! rustls has no way to hear that sealing failed: it panics on an error. So a record that the
//! engine did not seal leaves as noise (see [`random_fallback`]).

use crate::limits::FRAGMENT_BYTES_MAX;
use crate::random_fallback::{self, fault};
use keyway_engine::{Algorithm, Engine, Key, NONCE_BYTES, Parameters, Request, Session, TAG_BYTES};
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, KeyBlockShape, MessageDecrypter,
    MessageEncrypter, Nonce, OutboundOpaqueMessage, OutboundPlainMessage, PrefixedPayload,
    Tls12AeadAlgorithm, Tls13AeadAlgorithm, UnsupportedOperationError, make_tls12_aad,
    make_tls13_aad,
};
use rustls::{ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion};

/// Length of the nonce's part that AES-GCM sends with each record of TLS 1.2, in bytes (RFC 5288).
const EXPLICIT_NONCE_BYTES: usize = 8;

/// An AEAD as both versions of TLS use it.
#[derive(Clone, Copy)]
pub(crate) struct Aead {
    pub engine: &'static Engine,
    pub algorithm: Algorithm,
}

impl Aead {
    fn key_bytes(&self) -> usize {
        if self.algorithm == Algorithm::Aes128Gcm { 16 } else { 32 }
    }

    /// The bytes of the nonce that TLS 1.2 sends: ChaCha20-Poly1305 sends nothing (RFC 7905).
    fn explicit_bytes(&self) -> usize {
        if self.algorithm == Algorithm::ChaCha20Poly1305 { 0 } else { EXPLICIT_NONCE_BYTES }
    }

    fn cipher(&self, key: &AeadKey) -> Cipher {
        Cipher::new(self.engine, self.algorithm, key)
    }

    fn tls12(&self, key: &AeadKey, iv: &[u8], explicit: &[u8]) -> Tls12Records {
        let mut whole = [0; NONCE_BYTES];
        // rustls cuts its key block by `key_block_shape`, so these lengths add up to the nonce's,
        // or to the salt's when opening.
        for (to, from) in whole.iter_mut().zip(iv.iter().chain(explicit)) {
            *to = *from;
        }
        Tls12Records {
            cipher: self.cipher(key),
            iv: Iv::from(whole),
            explicit_bytes: self.explicit_bytes(),
        }
    }
}

impl Tls13AeadAlgorithm for Aead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Box::new(Tls13Records { cipher: self.cipher(&key), iv })
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(Tls13Records { cipher: self.cipher(&key), iv })
    }

    fn key_len(&self) -> usize {
        self.key_bytes()
    }

    /// Always refused: a key that went into the engine does not come out.
    fn extract_keys(
        &self,
        _: AeadKey,
        _: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

impl Tls12AeadAlgorithm for Aead {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Box::new(self.tls12(&key, iv, extra))
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Box::new(self.tls12(&key, iv, &[]))
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        KeyBlockShape {
            enc_key_len: self.key_bytes(),
            fixed_iv_len: NONCE_BYTES - self.explicit_bytes(),
            explicit_nonce_len: self.explicit_bytes(),
        }
    }

    /// Always refused: a key that went into the engine does not come out.
    fn extract_keys(
        &self,
        _: AeadKey,
        _: &[u8],
        _: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        Err(UnsupportedOperationError)
    }
}

/// A traffic key in the engine, or why there is none.
pub(crate) struct Cipher {
    engine: &'static Engine,
    session: Result<Session, keyway_engine::Error>,
}

impl Cipher {
    pub fn new(engine: &'static Engine, algorithm: Algorithm, key: &AeadKey) -> Self {
        let session = engine.session(Parameters::new(algorithm, Key::Secret(key.as_ref())));
        Cipher { engine, session }
    }

    /// Seals in place and returns the tag: noise, both, if the engine does not.
    #[inline]
    pub fn seal(&self, nonce: &Nonce, aad: &[u8], data: &mut [u8]) -> [u8; TAG_BYTES] {
        let mut tag = [0; TAG_BYTES];
        let request = &mut Request::Seal { nonce: &nonce.0, aad, data, tag: &mut tag };
        let sealed = match &self.session {
            Ok(session) => session.run(request).is_ok(),
            Err(_) => false,
        };
        if !sealed {
            random_fallback::fill(self.engine, data);
            random_fallback::fill(self.engine, &mut tag);
        }
        tag
    }

    /// Seals all of `payload` after its first `clear` bytes and appends the tag.
    fn seal_record(&self, nonce: &Nonce, aad: &[u8], clear: usize, payload: &mut PrefixedPayload) {
        let (_, data) = payload.as_mut().split_at_mut(clear);
        let tag = self.seal(nonce, aad, data);
        payload.extend_from_slice(&tag);
    }

    /// Opens ciphertext and tag in place and returns the plaintext's length.
    #[inline]
    pub fn open(&self, nonce: &Nonce, aad: &[u8], data: &mut [u8]) -> Result<usize, Error> {
        let session = self.session.as_ref().map_err(|error| fault(*error))?;
        session.open_in_place(&nonce.0, aad, data).map_err(|error| match error {
            keyway_engine::Error::Authentication => Error::DecryptError,
            error => fault(error),
        })
    }
}

/// Records as in RFC 8446 § 5.2.
struct Tls13Records {
    cipher: Cipher,
    iv: Iv,
}

impl MessageEncrypter for Tls13Records {
    fn encrypt(
        &mut self,
        msg: OutboundPlainMessage<'_>,
        seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let bytes = self.encrypted_payload_len(msg.payload.len());
        let mut payload = PrefixedPayload::with_capacity(bytes);
        payload.extend_from_chunks(&msg.payload);
        payload.extend_from_slice(&msg.typ.to_array());
        let aad = make_tls13_aad(bytes);
        self.cipher.seal_record(&Nonce::new(&self.iv, seq), &aad, 0, &mut payload);
        // The outer version of a protected record is 1.2's, whatever the inner one.
        let (typ, version) = (ContentType::ApplicationData, ProtocolVersion::TLSv1_2);
        Ok(OutboundOpaqueMessage::new(typ, version, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        payload_len + 1 + TAG_BYTES
    }
}

impl MessageDecrypter for Tls13Records {
    fn decrypt<'a>(
        &mut self,
        mut msg: InboundOpaqueMessage<'a>,
        seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let aad = make_tls13_aad(msg.payload.len());
        let bytes = self.cipher.open(&Nonce::new(&self.iv, seq), &aad, &mut msg.payload)?;
        msg.payload.truncate(bytes);
        msg.into_tls13_unpadded_message()
    }
}

/// Records as in RFC 5246 § 6.2.3.3, with the nonces of RFC 5288 or of RFC 7905.
///
/// Both build their nonces as TLS 1.3 does; AES-GCM then also sends the last eight bytes. RFC 5288
/// leaves these to the sender as long as none repeats, which the sequence number in them ensures.
struct Tls12Records {
    cipher: Cipher,
    iv: Iv,
    explicit_bytes: usize,
}

impl MessageEncrypter for Tls12Records {
    fn encrypt(
        &mut self,
        msg: OutboundPlainMessage<'_>,
        seq: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let bytes = self.encrypted_payload_len(msg.payload.len());
        let mut payload = PrefixedPayload::with_capacity(bytes);
        let nonce = Nonce::new(&self.iv, seq);
        let (_, explicit) = nonce.0.split_at(NONCE_BYTES - self.explicit_bytes);
        payload.extend_from_slice(explicit);
        payload.extend_from_chunks(&msg.payload);
        let aad = make_tls12_aad(seq, msg.typ, msg.version, msg.payload.len());
        self.cipher.seal_record(&nonce, &aad, self.explicit_bytes, &mut payload);
        Ok(OutboundOpaqueMessage::new(msg.typ, msg.version, payload))
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.explicit_bytes + payload_len + TAG_BYTES
    }
}

impl MessageDecrypter for Tls12Records {
    fn decrypt<'a>(
        &mut self,
        mut msg: InboundOpaqueMessage<'a>,
        seq: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let overhead = self.explicit_bytes + TAG_BYTES;
        let text_bytes = msg.payload.len().checked_sub(overhead).ok_or(Error::DecryptError)?;
        let aad = make_tls12_aad(seq, msg.typ, msg.version, text_bytes);
        let mut nonce = Nonce::new(&self.iv, seq);
        let (explicit, data) = msg.payload.split_at_mut(self.explicit_bytes);
        let (_, place) = nonce.0.split_at_mut(NONCE_BYTES - self.explicit_bytes);
        place.copy_from_slice(explicit);
        let bytes = self.cipher.open(&nonce, &aad, data)?;
        if bytes > FRAGMENT_BYTES_MAX {
            return Err(Error::PeerSentOversizedRecord);
        }
        let start = self.explicit_bytes;
        Ok(msg.into_plain_message_range(start..start + bytes))
    }
}
