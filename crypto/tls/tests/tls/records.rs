//! Records by themselves, without a connection around them.

use keyway_tls::provider;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, MessageDecrypter, MessageEncrypter, OutboundChunks,
    OutboundPlainMessage,
};
use rustls::{ContentType, Error, ProtocolVersion, SupportedCipherSuite};

type Both = (Box<dyn MessageEncrypter>, Box<dyn MessageDecrypter>);

/// Both ends of one direction, for each suite that takes a key of full length.
fn directions() -> Vec<(ProtocolVersion, Both)> {
    let provider = provider(&keyway_drivers::engine());
    let mut all = Vec::new();
    for suite in &provider.cipher_suites {
        let key = || AeadKey::from([7; 32]);
        let both: Both = match suite {
            SupportedCipherSuite::Tls13(suite) if suite.aead_alg.key_len() == 32 => (
                suite.aead_alg.encrypter(key(), [9; 12].into()),
                suite.aead_alg.decrypter(key(), [9; 12].into()),
            ),
            SupportedCipherSuite::Tls12(suite) => {
                let shape = suite.aead_alg.key_block_shape();
                if shape.enc_key_len != 32 {
                    continue;
                }
                let iv = [9; 12];
                let (iv, explicit) = iv.split_at(shape.fixed_iv_len);
                assert_eq!(explicit.len(), shape.explicit_nonce_len);
                (suite.aead_alg.encrypter(key(), iv, explicit), suite.aead_alg.decrypter(key(), iv))
            }
            _ => continue,
        };
        all.push((suite.version().version, both));
    }
    all
}

fn pass(
    version: ProtocolVersion,
    (encrypter, decrypter): &mut Both,
    payload: OutboundChunks<'_>,
    seq: u64,
) -> Result<Vec<u8>, Error> {
    let bytes = payload.len();
    let typ = ContentType::ApplicationData;
    let sealed = encrypter.encrypt(OutboundPlainMessage { typ, version, payload }, seq)?;
    let mut wire = sealed.payload.as_ref().to_vec();
    assert_eq!(wire.len(), encrypter.encrypted_payload_len(bytes));
    let opened =
        decrypter.decrypt(InboundOpaqueMessage::new(sealed.typ, sealed.version, &mut wire), seq)?;
    assert_eq!(opened.typ, typ);
    Ok(opened.payload.to_vec())
}

#[test]
fn chunks_come_out_as_one() {
    for (version, mut both) in directions() {
        let chunks = [&b"first "[..], b"", b"second ", b"third"];
        for seq in [0, 1, 1 << 40] {
            let opened = pass(version, &mut both, OutboundChunks::new(&chunks), seq).unwrap();
            assert_eq!(opened, b"first second third");
        }
    }
}

#[test]
fn a_record_holds_two_to_the_fourteen_bytes() {
    for (version, mut both) in directions() {
        let plain = vec![1; 16_385];
        let opened = pass(version, &mut both, plain[..16_384].into(), 0);
        assert_eq!(opened.unwrap().len(), 16_384);
        let opened = pass(version, &mut both, plain[..].into(), 1);
        assert_eq!(opened, Err(Error::PeerSentOversizedRecord));
    }
}

#[test]
fn a_record_of_another_place_does_not_open() {
    for (version, (mut encrypter, mut decrypter)) in directions() {
        let typ = ContentType::ApplicationData;
        let payload = OutboundChunks::new_empty();
        let sealed = encrypter.encrypt(OutboundPlainMessage { typ, version, payload }, 5).unwrap();
        let mut wire = sealed.payload.as_ref().to_vec();
        let message = InboundOpaqueMessage::new(sealed.typ, sealed.version, &mut wire);
        assert_eq!(decrypter.decrypt(message, 6).err(), Some(Error::DecryptError));
    }
}
