//! Whose turn it is: weighted round robin by cost, not by count (deficit round robin, Shreedhar and
//! Varghese 1996).
//!
//! Each turn gives a client credit in nanoseconds of work. It may have requests done as long as it
//! has any left, and what a request costs beyond that is taken off its next turns. So a client that
//! asks for signatures gets as much of the processor as one that asks for hashes, and not as many
//! requests. Who asks for nothing saves nothing up.

use keyway_engine::{Algorithm, Kind};

/// About how many nanoseconds of one processor a request takes. Only the proportions matter.
pub fn cost(algorithm: Algorithm, bytes: usize) -> u32 {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let (fixed, eighths) = match algorithm.kind() {
        Kind::Aead | Kind::Packet | Kind::Mask => match algorithm {
            Algorithm::Aes128Ccm | Algorithm::Aes256Ccm => (200, 8),
            Algorithm::ChaCha20Poly1305 | Algorithm::QuicChaCha20Poly1305 => (200, 4),
            _ => (60, 1),
        },
        Kind::Cipher if algorithm == Algorithm::TripleDesCbc => (200, 240),
        Kind::Cipher => (100, 6),
        Kind::Hash | Kind::Mac => (200, 8),
        Kind::Compression => (5_000, 40),
        Kind::Hkdf => (1_000, 8),
        Kind::Random => (400, 8),
        Kind::Exchange | Kind::Kem => (40_000, 0),
        Kind::Signature => (40_000, 8),
        // Those run elsewhere, and their number is bounded. They cost the pump what taking them
        // does.
        Kind::Encryption | Kind::Password => (1_000, 0),
    };
    (bytes / 8).saturating_mul(eighths).saturating_add(fixed)
}

/// What one client has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Credit {
    left: i64,
}

impl Credit {
    /// A new turn: so much more, and no more than that in all. Says whether it may have anything
    /// done.
    pub fn turn(&mut self, quantum: u32) -> bool {
        self.left = (self.left + i64::from(quantum)).min(i64::from(quantum));
        self.left > 0
    }

    /// Whether it may have another request done in this turn.
    pub fn has_any(&self) -> bool {
        self.left > 0
    }

    /// Takes off what a request costs.
    pub fn spend(&mut self, cost: u32) {
        self.left -= i64::from(cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients that always have something to ask for, each of another size: in the long run each
    /// gets its weight's share of the time.
    #[test]
    fn shares_are_of_time_and_by_weight() {
        let quantum = 8_000;
        let clients = [(1, 60), (1, 9_000), (2, 1_000), (4, 100_000)];
        let mut credits = [Credit::default(); 4];
        let mut spent = [0_u64; 4];
        for _ in 0..10_000 {
            for ((credit, spent), (weight, cost)) in credits.iter_mut().zip(&mut spent).zip(clients)
            {
                let mut may = credit.turn(quantum * weight);
                while may {
                    credit.spend(cost);
                    *spent += u64::from(cost);
                    may = credit.has_any();
                }
            }
        }
        for (spent, (weight, _)) in spent.into_iter().zip(clients) {
            let share = spent as f64 / f64::from(weight);
            assert!((share / 80_000_000.0 - 1.0).abs() < 0.02, "{share}");
        }
    }

    #[test]
    fn who_asks_for_nothing_saves_nothing_up() {
        let mut credit = Credit::default();
        for _ in 0..100 {
            assert!(credit.turn(10));
        }
        credit.spend(10);
        assert!(!credit.has_any());
        credit.spend(25);
        assert!(!credit.turn(10) && !credit.turn(10) && credit.turn(10));
    }
}
