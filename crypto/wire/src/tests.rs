//! The daemon's half reads all that the client's half writes, and the other way round: every kind
//! of request there and back.

use crate::{Space, bytes_max, decode, empty, encode, keys, load, step, store, values};
use keyway_engine::limits::CHAIN_STEPS_MAX;
use keyway_engine::*;
use keyway_ring::descriptor::{Descriptor, Opcode, Status};
use keyway_ring::{SharedMemory, control};

const OWNER: u32 = 7;

fn bytes(from: u8, count: usize) -> Vec<u8> {
    (0..count).map(|at| from.wrapping_add(at as u8)).collect()
}

fn secret(from: u8, count: usize) -> Zeroizing<Vec<u8>> {
    bytes(from, count).into()
}

/// Parameters of which none is as the algorithm would have it.
fn pss() -> SignatureParameters {
    SignatureParameters {
        prehashed: true,
        hash: Some(Algorithm::Sha384),
        mgf1_hash: Some(Algorithm::Sha1),
        salt_bytes: Some(300),
    }
}

fn labelled() -> OaepParameters {
    OaepParameters { hash: Some(Algorithm::Sha512_256), mgf1_hash: Some(Algorithm::Md5) }
}

/// One of each kind, no two fields of which are the same, with empty room for what is put out.
fn operations() -> Vec<Operation> {
    let parts = [
        Part::Cipher { iv: Iv::Given([9; 16]), text: 1..33 },
        Part::Cipher { iv: Iv::At(3), text: 40..usize::MAX },
        Part::Mac { over: 0..48, tag: 48..64 },
        Part::Compression { text: 5..6 },
    ];
    assert_eq!(parts.len(), CHAIN_STEPS_MAX);
    let kem = Algorithm::MlKem768;
    let all = vec![
        Operation::seal([1; 12], bytes(2, 20), bytes(30, 100)),
        Operation::open([3; 12], bytes(4, 20), bytes(50, 100)),
        Operation::protect(u64::MAX - 1, 20, bytes(5, 70)),
        Operation::unprotect(Some(0), 9, bytes(6, 70)),
        Operation::mask([7; 16]),
        Operation::encrypt([8; 16], bytes(9, 64)),
        Operation::decrypt([10; 16], bytes(11, 64)),
        Operation::compress(bytes(12, 300), 400),
        Operation::decompress(bytes(13, 300), 500),
        Operation::chain(Direction::Unprotect, bytes(1, 90), 10, parts),
        Operation::digest(Algorithm::Sha256, bytes(14, 77)),
        Operation::mac(Algorithm::HmacSha256, bytes(15, 78)),
        Operation::expand(bytes(16, 30), 42),
        Operation::public_key(Algorithm::X25519),
        Operation::agree(Algorithm::X25519, bytes(17, 32)),
        Operation::encapsulate(kem, bytes(18, 1184)),
        Operation::decapsulate(kem, bytes(19, 1088)),
        Operation::Sign { message: bytes(20, 50), parameters: pss(), out: vec![0; 64] },
        Operation::Verify {
            public_key: bytes(21, 32),
            message: bytes(22, 51),
            parameters: SignatureParameters::digest(Algorithm::Sha3_512),
            signature: bytes(23, 64),
        },
        Operation::PublicEncrypt {
            public_key: bytes(24, 270),
            message: bytes(25, 52),
            parameters: labelled(),
            label: bytes(33, 11),
            out: vec![0; 256],
        },
        Operation::PrivateDecrypt {
            ciphertext: bytes(26, 256),
            parameters: labelled(),
            label: bytes(34, 12),
            out: secret(35, 255),
        },
        Operation::random(33),
        Operation::derive(Cost::Md5Crypt, secret(27, 12), bytes(28, 8), 22),
        Operation::VerifyPassword {
            effort: Effort::Full,
            cost: Cost::Argon2 { memory_kib: 1, passes: 2, lanes: 3 },
            entry: bytes(29, 31),
            password: secret(30, 13),
            salt: bytes(31, 9),
            expected: bytes(32, 24),
        },
    ];
    assert_eq!(all.len(), Opcode::ALL.len() - 1, "one of them is missing");
    all
}

/// The client's encoding of it, and where that lies.
fn encoded(operation: &mut Operation) -> (Descriptor, SharedMemory) {
    let memory = SharedMemory::create(1 << 16).unwrap();
    let mut space = Space::new(memory.whole());
    let descriptor = operation.with(|request| {
        assert!(bytes_max(request) <= memory.bytes());
        encode(request, &mut space).unwrap()
    });
    (descriptor, memory)
}

fn content(memory: &SharedMemory) -> Vec<u8> {
    let mut bytes = vec![0; memory.bytes()];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

/// The work of a driver on a request: puts something out.
fn work(request: &mut Request<'_>) -> usize {
    let filled = |out: &mut [u8], with: u8| {
        out.fill(with);
        out.len()
    };
    match request {
        Request::Seal { data, tag, .. } => {
            tag.fill(0xa0);
            filled(data, 0xa1)
        }
        Request::Open { data, .. } => filled(data, 0xa2) - TAG_BYTES,
        Request::Protect { packet, .. } => filled(packet, 0xa3),
        Request::Unprotect { packet, opened, .. } => {
            **opened = Opened { number: 1 << 40, header_bytes: 21, phase: Phase::Next };
            filled(packet, 0xa4) - 21 - TAG_BYTES
        }
        Request::Mask { out, .. } => filled(&mut out[..], 0xa5),
        Request::Encrypt { data, .. } | Request::Decrypt { data, .. } => filled(data, 0xa6),
        Request::Chain { data, .. } => filled(data, 0xa7) - 3,
        Request::Encapsulate { ciphertext, secret, .. } => {
            secret.fill(0xa8);
            filled(ciphertext, 0xa9)
        }
        Request::Decapsulate { secret, .. } => filled(secret, 0xaa),
        Request::Compress { out, .. } | Request::Decompress { out, .. } => filled(out, 0xab) - 7,
        Request::Digest { out, .. }
        | Request::Mac { out, .. }
        | Request::Expand { out, .. }
        | Request::PublicKey { out }
        | Request::Agree { out, .. }
        | Request::Sign { out, .. }
        | Request::PublicEncrypt { out, .. }
        | Request::PrivateDecrypt { out, .. }
        | Request::Random { out }
        | Request::Derive { out, .. } => filled(out, 0xac),
        Request::Verify { .. } => 0,
        Request::VerifyPassword { .. } => 1,
    }
}

/// The output: as much of it as the result says, and the part that lies apart.
fn put_out(operation: &Operation, used: usize) -> (Vec<u8>, String) {
    let out = operation.output();
    let opened = match operation {
        Operation::Unprotect { opened, .. } => Some(*opened),
        _ => None,
    };
    let apart = format!("{:?} {:?} {opened:?}", operation.tag(), operation.secret());
    (out[..used.min(out.len())].to_vec(), apart)
}

#[test]
fn every_request_comes_there_and_back() {
    for mut sent in operations() {
        let name = sent.name();
        let (descriptor, memory) = encoded(&mut sent);
        let opcode = Opcode::new(descriptor.opcode).unwrap();
        // The buffers of another request are no matter, and neither are those of one of its kind.
        for mut loaded in [Operation::random(3), empty(opcode).unwrap()] {
            load(&descriptor, opcode, &memory, OWNER, &mut loaded).unwrap();
            assert_eq!((loaded.name(), loaded.bytes()), (name, sent.bytes()));
            let mut again = loaded.clone();
            if let Operation::VerifyPassword { entry, .. } = &mut again {
                assert!(entry.drain(..4).eq(OWNER.to_ne_bytes()));
            }
            let (same, rest) = encoded(&mut again);
            assert_eq!(same, descriptor, "{name}");
            assert!(content(&rest) == content(&memory), "{name}");

            let used = loaded.with(work);
            let completion = store(&descriptor, &memory, &loaded, Ok(used), false);
            assert_eq!(completion.status, Status::Done);
            let segments = &descriptor.segments;
            let mut received = sent.clone();
            let result =
                received.with(|it| decode(&completion, segments, memory.whole(), false, it));
            assert_eq!(result, Ok(used), "{name}");
            assert_eq!(put_out(&received, used), put_out(&loaded, used), "{name}");
            memory.write(0, &content(&rest)).unwrap();
        }
    }
}

/// Nothing of a text that was not authentic comes back, nor of a request that failed.
#[test]
fn what_failed_comes_back_as_its_error() {
    let errors = [
        Error::Unsupported(Algorithm::Random),
        Error::InvalidKey("it"),
        Error::invalid_request("it"),
        Error::Authentication,
        Error::Busy,
        Error::Exhausted("it"),
        Error::Gone,
        Error::Driver { driver: "remote", why: "it" },
    ];
    for mut sent in operations() {
        let (descriptor, memory) = encoded(&mut sent);
        let opcode = Opcode::new(descriptor.opcode).unwrap();
        for error in errors {
            let mut loaded = empty(opcode).unwrap();
            load(&descriptor, opcode, &memory, OWNER, &mut loaded).unwrap();
            let completion = store(&descriptor, &memory, &loaded, Err(error), false);
            let heard = crate::error(completion.status, Algorithm::Random);
            let kind = std::mem::discriminant::<Error>;
            assert_eq!((kind(&heard), completion.used), (kind(&error), 0));
            assert_eq!(completion.result, [0; 16]);
        }
    }
}

#[test]
fn the_daemons_nonce_lies_where_its_client_looks() {
    let mut sent = Operation::seal([0; 12], [], bytes(1, 40));
    let (descriptor, memory) = encoded(&mut sent);
    let mut loaded = empty(Opcode::Seal).unwrap();
    load(&descriptor, Opcode::Seal, &memory, OWNER, &mut loaded).unwrap();
    let Operation::Seal { nonce, .. } = &mut loaded else { panic!() };
    *nonce = [5; 12];
    store(&descriptor, &memory, &loaded, Ok(40), true);
    let mut nonce = [0; 12];
    memory.read(descriptor.segments[2].offset as usize, &mut nonce).unwrap();
    assert_eq!(nonce, [5; 12]);
}

#[test]
fn values_are_read_as_they_were_written() {
    use values::*;
    let costs = [
        Cost::Pbkdf2 { iterations: 1 },
        Cost::Argon2 { memory_kib: 1, passes: 2, lanes: u32::MAX },
        Cost::Scrypt { log_n: 255, r: 2, p: 3 },
        Cost::Bcrypt { log_rounds: 4 },
        Cost::Md5Crypt,
        Cost::ShaCrypt { rounds: 1_000 },
    ];
    for (cost, effort) in costs.into_iter().zip([Effort::Recall, Effort::Full].repeat(3)) {
        let bytes = put_cost(cost, effort);
        assert_eq!((values::cost(&bytes), values::effort(&bytes)), (Some(cost), Some(effort)));
    }
    for phase in [Phase::Current, Phase::Previous, Phase::Next] {
        let opened = Opened { number: u64::MAX, header_bytes: 1_200, phase };
        assert_eq!(values::opened(&put_opened(&opened)), Some(opened));
    }
    for number in [None, Some(0), Some(u64::MAX)] {
        assert_eq!(largest(&put_largest(number)), number);
    }
    for way in [Direction::Protect, Direction::Unprotect] {
        assert_eq!(direction(put_direction(way)), Some(way));
    }
    for parameters in
        [SignatureParameters::default(), pss(), SignatureParameters::message(Algorithm::Sha224)]
    {
        assert_eq!(signature(&put_signature(&parameters)), Some(parameters));
    }
    for parameters in [OaepParameters::default(), labelled()] {
        assert_eq!(values::oaep(&put_oaep(&parameters)), Some(parameters));
    }
    let no_hash = SignatureParameters::message(Algorithm::Random);
    assert_eq!(signature(&put_signature(&no_hash)), None);
    for wrong in [[2, 0, 0, 0], [0, 11, 0, 0], [0, 0, 11, 0], [0, 0, 0, 2]] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&wrong);
        assert_eq!(signature(&bytes), None);
    }
    let nonsense = [255; 16];
    assert_eq!((signature(&nonsense), values::oaep(&nonsense)), (None, None));
    assert_eq!((values::cost(&nonsense), values::effort(&nonsense)), (None, None));
    assert_eq!((values::opened(&nonsense), direction(2)), (None, None));
    assert_eq!((parts(&[3; 56]), parts(&[0; 55])), (None, None));
    assert_eq!(parts(&[0; 56 * (CHAIN_STEPS_MAX + 1)]), None);
}

#[test]
fn steps_are_read_as_they_were_written() {
    let (one, other) = (PacketKey { key: &[1; 16], iv: &[2; 12] }, [3; 16]);
    let other = PacketKey { key: &other, iv: &[4; 12] };
    let packet = PacketKeys {
        previous: Some(other),
        phase: true,
        since: 1 << 50,
        ..PacketKeys::new(&[5; 16], one)
    };
    let keys = [
        Key::None,
        Key::Secret(&[1, 2]),
        Key::Extract { salt: &[3], secret: &[4, 5] },
        Key::Packet(packet),
        Key::Generate,
        Key::Pkcs8(&[6]),
        Key::Pkcs1(&[7]),
        Key::Sec1(&[8]),
    ];
    for key in keys {
        let written = step(&Step { algorithm: Algorithm::Aes128Gcm, key });
        assert_eq!(step(&keys::read(&written).unwrap()), written);
    }
    let named = step(&Step { algorithm: Algorithm::Aes128Gcm, key: Key::Named("it") });
    assert!(keys::read(&named).is_err());
    let control::Key::Packet(mut keys) =
        step(&Step { algorithm: Algorithm::Aes128Gcm, key: Key::Packet(packet) }).key
    else {
        panic!()
    };
    keys.current.iv.0.pop();
    let short =
        control::Step { algorithm: "aes-128-gcm".to_owned(), key: control::Key::Packet(keys) };
    assert!(matches!(keys::read(&short), Err(Error::InvalidKey(_))));
}
