//! Keyway's own side: each backend that can run here, one call a batch.

use super::sample::{
    Algorithm, BATCH_MAX, Case, HEADER_BYTES, NUMBER_AT, Side, TAG_BYTES, Way, read_number,
    write_header,
};
use super::secrets::Secrets;
use keyway_simd::packet::{
    Aead, HeaderKey, Open, PacketBackend, PacketKey, Phases, Protect, Refusal, Seal, Unprotect,
};
use smallvec::SmallVec;

/// Requests where they are built: an array made by a function would be copied once more.
type Batch<T> = SmallVec<[T; BATCH_MAX]>;

pub struct Keyway {
    backend: PacketBackend,
    keys: Vec<(PacketKey, HeaderKey)>,
}

impl Keyway {
    pub fn new(
        backend: PacketBackend,
        algorithm: Algorithm,
        secrets: &[Secrets],
    ) -> Result<Self, String> {
        let aead = match algorithm {
            Algorithm::Aes128Gcm => Aead::Aes128Gcm,
            Algorithm::ChaCha20Poly1305 => Aead::ChaCha20Poly1305,
        };
        let key = |one: &Secrets| {
            let key = PacketKey::new(backend.aead_key(aead, &one.key)?, one.iv);
            Ok((key, backend.header_key(aead, &one.header_key)?))
        };
        let keys: Result<_, keyway_simd::packet::KeyLength> = secrets.iter().map(key).collect();
        Ok(Keyway { backend, keys: keys.map_err(|why| why.to_string())? })
    }

    pub fn name_of(backend: PacketBackend) -> String {
        format!("Keyway {}", backend.name())
    }
}

impl Side for Keyway {
    fn name(&self) -> String {
        Self::name_of(self.backend)
    }

    fn does(&self, case: &Case) -> bool {
        matches!(case.batch, 1 | 16 | BATCH_MAX)
    }

    /// The call of a program that has packets one behind the other: requests for all of them, one call.
    fn call(&mut self, case: &Case, packets: &mut [u8], number: u64, key: usize) -> bool {
        let keys = &self.keys[..case.keys.min(self.keys.len())];
        let mut which = key;
        let each = packets.chunks_exact_mut(case.packet_bytes()).zip(number..);
        let each = each.map(|(packet, number)| {
            let (key, header_key) = &keys[which];
            // The next connection's; a division would take longer than some packets.
            which += 1;
            if which == keys.len() {
                which = 0;
            }
            (packet, key, header_key, number)
        });
        match (case.way, case.header) {
            (Way::Seal, false) => {
                let mut batch = Batch::new();
                for (packet, key, _, number) in each {
                    write_header(packet, number);
                    let (aad, rest) = packet.split_at_mut(HEADER_BYTES);
                    let (data, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().expect("a tag");
                    let nonce = key.nonce(number);
                    batch.push(Seal { key: key.key(), nonce, aad, data, tag });
                }
                self.backend.seal(&mut batch).is_ok()
            }
            (Way::Seal, true) => {
                let mut batch = Batch::new();
                for (packet, key, header_key, number) in each {
                    write_header(packet, number);
                    let header_bytes = HEADER_BYTES;
                    batch.push(Protect { key, header_key, number, header_bytes, packet });
                }
                self.backend.protect(&mut batch).is_ok()
            }
            (Way::Open, false) => {
                let mut batch = Batch::new();
                for (packet, key, ..) in each {
                    let nonce = key.nonce(read_number(packet));
                    let (aad, rest) = packet.split_at_mut(HEADER_BYTES);
                    let (data, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().expect("a tag");
                    let (key, tag) = (key.key(), *tag);
                    batch.push(Open { key, nonce, aad, data, tag, authentic: false });
                }
                self.backend.open(&mut batch).is_ok() && batch.iter().all(|open| open.authentic)
            }
            (Way::Open, true) => {
                let mut batch = Batch::new();
                for (packet, key, header_key, number) in each {
                    batch.push(Unprotect {
                        keys: Phases::only(key),
                        header_key,
                        largest: Some(number - 1),
                        number_at: NUMBER_AT,
                        packet,
                        verdict: Err(Refusal::Waiting),
                    });
                }
                self.backend.unprotect(&mut batch);
                batch.iter().all(|packet| packet.verdict.is_ok())
            }
        }
    }
}
