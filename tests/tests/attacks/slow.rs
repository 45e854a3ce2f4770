//! Requests that take long: passwords of the highest cost, and many bytes.

use keyway_drivers::generate_private_key;
use keyway_engine::Algorithm;
use keyway_ring::control::{Key, Secret};
use keyway_ring::descriptor::{Descriptor, Opcode, Segment, SessionHandle, Status};
use keyway_tests::cryptod::{Cryptod, Neighbour, beside_neighbours};
use keyway_tests::ring_client::{Client, Region};

fn at(offset: u32, bytes: u32) -> Segment {
    Segment { offset, bytes }
}

fn bcrypt(region: &Region, session: SessionHandle, log_rounds: u32) -> Descriptor {
    let mut parameters = [0; 16];
    parameters[0] = 3;
    parameters[4..8].copy_from_slice(&log_rounds.to_ne_bytes());
    Descriptor {
        opcode: Opcode::Derive as u8,
        session,
        region: region.handle,
        parameters,
        segments: [at(0, 8), at(64, 23), at(8, 16)],
        ..Descriptor::default()
    }
}

/// One that signs with a key of RSA.
fn signing(cryptod: &Cryptod) -> Neighbour {
    let socket = cryptod.socket().to_owned();
    Neighbour::start("signatures with RSA", move || {
        let client = Client::new(&socket);
        let (mut pair, region) = (client.pair(8), client.region(4096));
        let key = generate_private_key(Algorithm::RsaPssSha256, 2_048).unwrap();
        let session = client.open("rsa-pss-sha-256", Key::Pkcs8(Secret::from(&key[..])));
        let sign = Descriptor {
            opcode: Opcode::Sign as u8,
            session,
            region: region.handle,
            segments: [at(0, 9), at(64, 256), at(0, 0)],
            ..Descriptor::default()
        };
        move || {
            let _ = &client;
            assert_eq!(pair.run(&sign).status, Status::Done);
        }
    })
}

/// One client fills a queue with such passwords, beside another client's signatures. The daemon
/// does not wait for them at its end.
#[test]
fn passwords_of_the_highest_cost_hold_up_no_client() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let neighbour = signing(cryptod);
        let attack = || {
            let client = Client::new(cryptod.socket());
            let (mut pair, region) = (client.pair(256), client.region(4096));
            let session = client.open("bcrypt", Key::None);
            for log_rounds in [20, 31, 17] {
                assert_eq!(
                    pair.run(&bcrypt(&region, session, log_rounds)).status,
                    Status::InvalidRequest
                );
            }
            (0..200).for_each(|_| pair.submit(&bcrypt(&region, session, 16)));
            (client, pair, region)
        };
        let gone = attack();
        neighbour.goes_on();
        drop(gone);
        let there = attack();
        neighbour.goes_on();
        there
    });
}

/// Requests of many bytes by many clients, beside small ones.
#[test]
fn large_requests_hold_up_no_client() {
    const LARGE: u32 = 32 << 20;
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let mut chance = 1_u64;
        let noise = std::iter::repeat_with(|| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (chance >> 60) as u8
        });
        let noise: Vec<u8> = noise.take(1 << 20).collect();
        let attackers = (0..16).map(|_| {
            let client = Client::new(cryptod.socket());
            let (mut pair, region) = (client.pair(4), client.region(2 * LARGE as usize));
            for place in (0..LARGE as usize).step_by(noise.len()) {
                region.memory.write(place, &noise).unwrap();
            }
            let session = client.open("deflate", Key::None);
            pair.submit(&Descriptor {
                opcode: Opcode::Compress as u8,
                session,
                region: region.handle,
                segments: [at(0, LARGE), at(LARGE, LARGE), at(0, 0)],
                ..Descriptor::default()
            });
            (client, pair, region)
        });
        attackers.collect::<Vec<_>>()
    });
}
