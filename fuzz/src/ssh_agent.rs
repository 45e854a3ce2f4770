//! Messages to an SSH agent, public keys as they come from cryptod, and signatures on their way to SSH.

use keyway_engine::Algorithm;
use keyway_ssh_agent::limits::MESSAGE_BYTES_MAX;
use keyway_ssh_agent::{
    AgentKey, AgentRequest, Keys, Signing, Unavailable, answer, encode_signature, message_bytes,
};
use keyway_wire::{read_subject_public_key_info, subject_public_key_info};
use std::sync::{Arc, LazyLock};

/// The algorithms that SSH has.
const ALGORITHMS: [Algorithm; 5] = [
    Algorithm::Ed25519,
    Algorithm::EcdsaP256Sha256,
    Algorithm::EcdsaP384Sha384,
    Algorithm::RsaPkcs1Sha256,
    Algorithm::RsaPkcs1Sha512,
];

/// Keys of every kind, which sign with the message itself.
struct Fixed(Arc<[AgentKey]>);

static KEYS: LazyLock<Fixed> = LazyLock::new(|| {
    let rsa = b"\x30\x09\x02\x02\x00\xc1\x02\x03\x01\x00\x01";
    let points: [&[u8]; 4] = [&[7; 32], &[4; 65], &[4; 97], rsa];
    let key = |(algorithm, bits): (&Algorithm, &[u8])| {
        let info = subject_public_key_info(*algorithm, bits)?;
        AgentKey::new(algorithm.name(), &ALGORITHMS, &info)
    };
    Fixed(ALGORITHMS.iter().zip(points).filter_map(key).collect())
});

impl Keys for Fixed {
    fn list(&self) -> Result<Arc<[AgentKey]>, Unavailable> {
        Ok(self.0.clone())
    }

    fn known(&self) -> Arc<[AgentKey]> {
        self.0.clone()
    }

    fn sign(&self, key: &AgentKey, signing: Signing, data: &[u8]) -> Result<Vec<u8>, Unavailable> {
        assert!(key.algorithms().contains(&signing.algorithm));
        Ok(data.to_vec())
    }
}

/// Answers the bytes as a message: an answer has its length before it, and a signature is of a key that was listed. A
/// public key is the same after it was read and written, and so is one that SSH has.
pub fn ssh_agent(data: &[u8]) {
    assert_eq!(KEYS.0.len(), 4);
    if let Ok(written) = answer(data, &*KEYS) {
        let (length, message) = written.split_at(4);
        let length = message_bytes([length[0], length[1], length[2], length[3]]);
        assert_eq!(length, Ok(message.len()));
        assert!(message.len() <= MESSAGE_BYTES_MAX);
        if let Ok(AgentRequest::Sign { key, .. }) = AgentRequest::decode(data)
            && message[0] != 5
        {
            assert!(message[0] == 14 && KEYS.0.iter().any(|listed| listed.blob() == key));
        }
    }
    if let Some((algorithms, key)) = read_subject_public_key_info(data) {
        assert_eq!(subject_public_key_info(algorithms[0], key).as_deref(), Some(data));
        if let Some(listed) = AgentKey::new("key", &ALGORITHMS, data) {
            assert!(listed.public_key() == key && !listed.blob().is_empty());
        }
    }
    for algorithm in ALGORITHMS {
        let signing = Signing { algorithm, name: "ecdsa-sha2-nistp256" };
        if let Some(signature) = encode_signature(signing, data) {
            assert!(signature.len() <= data.len() + 64);
        }
    }
}
