//! The libraries that a Rust program seals packets with: ring and aws-lc-rs by their own calls, and
//! through rustls' QUIC keys, which is what quinn calls. All of them take one packet a call.

use super::sample::{
    Algorithm, Case, HEADER_BYTES, NUMBER_AT, SAMPLE_AT, SAMPLE_BYTES, Side, TAG_BYTES, Way,
    read_number, write_header,
};
use super::secrets::Secrets;
use rustls::quic::{DirectionalKeys, Version};
use rustls::{Side as End, SupportedCipherSuite, crypto};

fn sample(packet: &[u8]) -> &[u8] {
    &packet[SAMPLE_AT..SAMPLE_AT + SAMPLE_BYTES]
}

fn apply(packet: &mut [u8], mask: [u8; 5]) {
    packet[0] ^= mask[0] & 0x1f;
    packet[NUMBER_AT] ^= mask[1];
    packet[NUMBER_AT + 1] ^= mask[2];
}

/// ring, and aws-lc-rs, which has ring's interface.
macro_rules! raw {
    ($side:ident, $library:ident, $name:literal) => {
        pub struct $side {
            name: String,
            keys: Vec<(
                $library::aead::LessSafeKey,
                [u8; 12],
                $library::aead::quic::HeaderProtectionKey,
            )>,
        }

        impl $side {
            pub fn new(algorithm: Algorithm, secrets: &[Secrets]) -> Result<Self, String> {
                use $library::aead::{self, LessSafeKey, UnboundKey, quic};
                let (aead, mask) = match algorithm {
                    Algorithm::Aes128Gcm => (&aead::AES_128_GCM, &quic::AES_128),
                    Algorithm::ChaCha20Poly1305 => (&aead::CHACHA20_POLY1305, &quic::CHACHA20),
                };
                let key = |one: &Secrets| {
                    let key = LessSafeKey::new(UnboundKey::new(aead, &one.key)?);
                    let mask = quic::HeaderProtectionKey::new(mask, &one.header_key)?;
                    Ok::<_, $library::error::Unspecified>((key, one.iv, mask))
                };
                let keys = secrets.iter().map(key).collect::<Result<_, _>>();
                let keys = keys.map_err(|_| concat!($name, " does not take a key"))?;
                Ok(Self { name: $name.into(), keys })
            }
        }

        impl Side for $side {
            fn name(&self) -> String {
                self.name.clone()
            }

            fn does(&self, case: &Case) -> bool {
                case.batch == 1
            }

            fn call(&mut self, case: &Case, packet: &mut [u8], number: u64, key: usize) -> bool {
                use $library::aead::{Aad, Nonce};
                let (key, iv, mask) = &self.keys[key];
                match case.way {
                    Way::Seal => {
                        write_header(packet, number);
                        let (header, rest) = packet.split_at_mut(HEADER_BYTES);
                        let (payload, tag) = rest.split_at_mut(case.bytes);
                        let nonce = Nonce::assume_unique_for_key(Secrets::nonce(iv, number));
                        let aad = Aad::from(&header[..]);
                        match key.seal_in_place_separate_tag(nonce, aad, payload) {
                            Ok(made) => tag.copy_from_slice(made.as_ref()),
                            Err(_) => return false,
                        }
                        if case.header {
                            match mask.new_mask(sample(packet)) {
                                Ok(mask) => apply(packet, mask),
                                Err(_) => return false,
                            }
                        }
                        true
                    }
                    Way::Open => {
                        if case.header {
                            match mask.new_mask(sample(packet)) {
                                Ok(mask) => apply(packet, mask),
                                Err(_) => return false,
                            }
                        }
                        let nonce = Secrets::nonce(iv, read_number(packet));
                        let nonce = Nonce::assume_unique_for_key(nonce);
                        let (header, rest) = packet.split_at_mut(HEADER_BYTES);
                        key.open_in_place(nonce, Aad::from(&header[..]), rest).is_ok()
                    }
                }
            }
        }
    };
}

raw!(Ring, ring, "ring");
raw!(AwsLc, aws_lc_rs, "aws-lc-rs");

/// rustls' keys for QUIC, as quinn calls them.
pub struct Rustls {
    name: String,
    keys: Vec<DirectionalKeys>,
}

impl Rustls {
    pub fn over_ring(algorithm: Algorithm, secrets: &[Secrets]) -> Result<Self, String> {
        use crypto::ring::cipher_suite as suite;
        let aes = suite::TLS13_AES_128_GCM_SHA256;
        Self::over("ring", algorithm, aes, suite::TLS13_CHACHA20_POLY1305_SHA256, secrets)
    }

    pub fn over_aws_lc(algorithm: Algorithm, secrets: &[Secrets]) -> Result<Self, String> {
        use crypto::aws_lc_rs::cipher_suite as suite;
        let aes = suite::TLS13_AES_128_GCM_SHA256;
        Self::over("aws-lc-rs", algorithm, aes, suite::TLS13_CHACHA20_POLY1305_SHA256, secrets)
    }

    fn over(
        library: &str,
        algorithm: Algorithm,
        aes: SupportedCipherSuite,
        chacha: SupportedCipherSuite,
        secrets: &[Secrets],
    ) -> Result<Self, String> {
        let suite = match algorithm {
            Algorithm::Aes128Gcm => aes,
            Algorithm::ChaCha20Poly1305 => chacha,
        };
        let quic = suite.tls13().and_then(|suite| suite.quic_suite());
        let quic = quic.ok_or_else(|| format!("rustls with {library} has no QUIC"))?;
        let key = |one: &Secrets| quic.keys(&one.id, End::Client, Version::V1).local;
        let name = format!("rustls + {library}");
        Ok(Rustls { name, keys: secrets.iter().map(key).collect() })
    }
}

impl Side for Rustls {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn does(&self, case: &Case) -> bool {
        case.batch == 1
    }

    fn call(&mut self, case: &Case, packet: &mut [u8], number: u64, key: usize) -> bool {
        let keys = &self.keys[key];
        match case.way {
            Way::Seal => {
                write_header(packet, number);
                let (header, rest) = packet.split_at_mut(HEADER_BYTES);
                let (payload, tag) = rest.split_at_mut(case.bytes);
                match keys.packet.encrypt_in_place(number, header, payload) {
                    Ok(made) => tag.copy_from_slice(made.as_ref()),
                    Err(_) => return false,
                }
                if !case.header {
                    return true;
                }
                let (header, sampled) = packet.split_at_mut(SAMPLE_AT);
                let (first, header) = header.split_at_mut(1);
                let number = &mut header[NUMBER_AT - 1..HEADER_BYTES - 1];
                let sample = &sampled[..SAMPLE_BYTES];
                keys.header.encrypt_in_place(sample, &mut first[0], number).is_ok()
            }
            Way::Open => {
                if case.header {
                    let (header, sampled) = packet.split_at_mut(SAMPLE_AT);
                    let (first, header) = header.split_at_mut(1);
                    let number = &mut header[NUMBER_AT - 1..HEADER_BYTES - 1];
                    let sample = &sampled[..SAMPLE_BYTES];
                    if keys.header.decrypt_in_place(sample, &mut first[0], number).is_err() {
                        return false;
                    }
                }
                let number = read_number(packet);
                let (header, rest) = packet.split_at_mut(HEADER_BYTES);
                debug_assert_eq!(rest.len(), case.bytes + TAG_BYTES);
                keys.packet.decrypt_in_place(number, header, rest).is_ok()
            }
        }
    }
}
