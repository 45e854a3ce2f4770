//! The path of a record allocates nothing.

use keyway_engine::{
    Algorithm, Engine, Error, Key, Kind, Opened, Operation, PacketKey, PacketKeys, Parameters,
    Request, Task,
};
use keyway_test_allocator::within;

#[test]
fn records_ciphers_hashes_and_macs_allocate_nothing() {
    assert_eq!(within(|| drop(std::hint::black_box(Box::new(1)))), 1);
    let engine = Engine::builder().legacy(true).driver(keyway_drivers::software()).build();
    let open = |algorithm, key| engine.session(Parameters::new(algorithm, key)).unwrap();
    let mut data = vec![0; 16 * 1024 + 16];
    for (algorithm, key) in [
        (Algorithm::Aes128Gcm, &[7; 16][..]),
        (Algorithm::Aes256Gcm, &[7; 32]),
        (Algorithm::ChaCha20Poly1305, &[7; 32]),
        (Algorithm::Aes128Ccm, &[7; 16]),
        (Algorithm::Aes256Ccm, &[7; 32]),
    ] {
        let session = open(algorithm, Key::Secret(key));
        let record = |data: &mut [u8], nonce: [u8; 12]| {
            let (text, tag) = data.split_last_chunk_mut().unwrap();
            *tag = session.seal(&nonce, b"header", text).unwrap();
            session.open_in_place(&nonce, b"header", data).unwrap();
        };
        // The first request of a thread may get it its shard of the meter.
        record(&mut data, [0; 12]);
        for length in [64, 1350, 16 * 1024] {
            let made = within(|| record(&mut data[..length + 16], [1; 12]));
            assert_eq!(made, 0, "{algorithm} {length}");
        }
    }
    let key: [u8; 64] = std::array::from_fn(|index| index as u8);
    for &algorithm in Algorithm::ALL {
        let key = Key::Secret(&key[..algorithm.key_bytes().unwrap_or(32)]);
        let mut digest = vec![0; algorithm.output_bytes().unwrap_or(0)];
        let (data, out) = (&mut data[..1_024], &mut digest[..]);
        let made = match algorithm.kind() {
            Kind::Cipher => {
                let session = open(algorithm, key);
                let iv = &[7; 16];
                within(|| {
                    session.run(&mut Request::Encrypt { iv, data }).unwrap();
                    session.run(&mut Request::Decrypt { iv, data }).unwrap();
                })
            }
            Kind::Mac => {
                let session = open(algorithm, key);
                within(|| {
                    session.run(&mut Request::Mac { data: &[data], out }).unwrap();
                    session.run(&mut Request::Mac { data: &[b"two", b"parts"], out }).unwrap();
                })
            }
            Kind::Hash => {
                engine.digest(algorithm, &[b"opens its session"], out).unwrap();
                within(|| {
                    engine.digest(algorithm, &[data], out).unwrap();
                    engine.digest(algorithm, &[b"two", b"parts"], out).unwrap();
                })
            }
            Kind::Compression => {
                let session = open(algorithm, Key::None);
                let (mut small, mut large) = ([0; 2_048], [0; 1_024]);
                let mut there_and_back = || {
                    let out = &mut small[..];
                    let used = session.run(&mut Request::Compress { data, out }).unwrap();
                    let (data, out) = (&small[..used], &mut large[..]);
                    session.run(&mut Request::Decompress { data, out }).unwrap();
                };
                // The first request of a thread makes its contexts.
                there_and_back();
                within(there_and_back)
            }
            _ => continue,
        };
        assert_eq!(made, 0, "{algorithm}");
    }
    let mut out = [0; 32];
    engine.random(&mut out).unwrap();
    assert_eq!(within(|| engine.random(&mut out).unwrap()), 0);
}

/// A peer that sends unauthentic bytes causes no more work than one that sends authentic ones: each
/// kind of error that a peer can provoke is counted without an allocation, by direct calls, for a
/// client that is counted, and through a queue.
#[test]
fn what_peers_get_wrong_allocates_nothing() {
    let engine = keyway_drivers::engine();
    let gcm = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
    let header = [9; 16];
    let keys = PacketKeys::new(&header, PacketKey { key: &[1; 16], iv: &[3; 12] });
    let quic = Parameters::new(Algorithm::QuicAes128Gcm, Key::Packet(keys));
    let sessions = [gcm, gcm.client("allocations")].map(|gcm| engine.session(gcm).unwrap());
    let packets = [quic, quic.client("allocations")].map(|quic| engine.session(quic).unwrap());
    let verify = || {
        let (public_key, message, signature) = (&[9; 32], b"text", &[1; 64]);
        engine.run(
            Algorithm::Ed25519,
            &mut Request::Verify { parameters: Default::default(), public_key, message, signature },
        )
    };
    let forge = || {
        for session in &sessions {
            // A wrong tag, and no room for one.
            for bytes in [64, 15] {
                let opened = session.open_in_place(&[0; 12], b"header", &mut [1; 64][..bytes]);
                assert_eq!(opened, Err(Error::Authentication));
            }
        }
        for session in &packets {
            let (packet, opened) = (&mut [0x40; 64][..], &mut Opened::default());
            let request = &mut Request::Unprotect { largest: None, number_at: 9, packet, opened };
            assert_eq!(session.run(request), Err(Error::Authentication));
        }
        assert_eq!(verify(), Err(Error::Authentication));
    };
    // The first of its kind gets its counter.
    forge();
    assert_eq!(within(forge), 0);

    let mut queue = engine.queue(64);
    let open = |_| Task::new(&sessions[0], Operation::open([0; 12], [], [1; 64]));
    let mut tasks: Vec<_> = (0..64).map(open).collect();
    let mut there_and_back = |count: usize| {
        assert_eq!(queue.submit(&mut tasks, false), count);
        queue.poll(&mut tasks);
        assert_eq!(tasks.len(), count);
        assert!(tasks.iter().all(|task| task.result() == Err(Error::Authentication)));
    };
    (0..3).for_each(|_| there_and_back(64));
    let made = within(|| there_and_back(64));
    // A few for the batch, as for what is authentic, and none for each of its 64.
    assert!(made < 16, "{made}");
}

/// On the client's side: it encodes into its slots.
#[test]
fn requests_through_a_ring_allocate_nothing() {
    use keyway_daemon::limits::{ClientLimits, SharedLimits};
    use keyway_daemon::{Admission, Daemon, Machines, NameSpaces, Options, Weights, listen};
    use keyway_drivers::remote::{Remote, RemoteOptions};
    use std::time::Duration;

    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("socket");
    let (admission, limits) = (Admission::default(), ClientLimits::default());
    let spin = Duration::from_micros(20);
    let (shared, weights) = (SharedLimits::of_this_machine(), Weights::default());
    let (keys, socket) = (None, None);
    let (name_spaces, machines, pumps) = (NameSpaces::default(), Machines::default(), 1);
    let options = Options {
        admission,
        limits,
        shared,
        weights,
        name_spaces,
        keys,
        machines,
        socket,
        pumps,
        spin,
    };
    let served = Engine::builder().driver(keyway_drivers::software()).build();
    let _daemon =
        Daemon::start(&served, listen(&path).unwrap(), options, Box::new(|_| {})).unwrap();
    let engine = Engine::builder().build();
    let _remote = Remote::connect(&engine, RemoteOptions::new(&path, "test")).unwrap();
    let parameters = Parameters::new(Algorithm::Aes128Gcm, Key::Secret(&[7; 16]));
    let session = engine.session(parameters).unwrap();
    let mut data = vec![0; 16 * 1024];
    let mut queue = engine.queue(32);
    let seal = || Task::new(&session, Operation::seal([0; 12], b"header", vec![0; 1500]));
    let mut tasks: Vec<_> = (0..32).map(|_| seal()).collect();
    let mut done = Vec::with_capacity(32);
    let mut all = || {
        session.seal(&[0; 12], b"header", &mut data).unwrap();
        queue.submit(&mut tasks, false);
        while queue.in_flight() > 0 {
            queue.wait(&mut done, Duration::from_secs(60));
        }
        std::mem::swap(&mut tasks, &mut done);
    };
    // The first time lists grow, and sockets are asked.
    (0..3).for_each(|_| all());
    assert_eq!(within(|| (0..10).for_each(|_| all())), 0);
    assert!(tasks.iter().all(|task| task.result() == Ok(1500)));
}
