//! What a client can do to the descriptor by which it rings: its flags and its counter are the client's too.

use keyway_tests::cryptod::{Cryptod, beside_neighbours};
use keyway_tests::ring_client::Client;

/// One that rings all the time and for nothing.
#[test]
fn ringing_for_nothing_harms_nobody() {
    beside_neighbours(Cryptod::start(&[]), |cryptod| {
        let client = Client::new(cryptod.socket());
        let mut pair = client.pair(8);
        for _ in 0..100_000 {
            pair.bell.ring();
        }
        pair.null();
        (client, pair)
    });
}
