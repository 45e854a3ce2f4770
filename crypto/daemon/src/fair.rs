//! The client whose turn it is: weighted round robin by cost, not by count (deficit round robin,
//! Shreedhar and Varghese 1996).
//!
//! Each turn gives a client credit in nanoseconds of work. It may have requests done as long as it
//! has any left, and what a request costs beyond that is taken off its next turns. So a client that
//! asks for signatures gets as much of the processor as one that asks for hashes, and not as many
//! requests. A client that asks for nothing saves nothing up.

use crate::limits::ClientLimits;
use keyway_engine::{Algorithm, Cost, Effort, Kind, Operation};

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
        Kind::Compression => (5_000, 80),
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

/// The algorithm of a chain that costs most for each byte.
pub fn costliest(steps: &[Algorithm]) -> Option<Algorithm> {
    steps.iter().copied().max_by_key(|step| cost(*step, 64 << 10))
}

/// The expected cost of a slow request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowCost {
    /// Nanoseconds of one processor.
    pub nanoseconds: u64,
    /// Bytes of memory that it is worked on in.
    pub memory_bytes: u64,
}

impl SlowCost {
    /// Whether a client may ask for that.
    pub fn is_within(self, limits: &ClientLimits) -> bool {
        u128::from(self.nanoseconds) <= limits.slow_cost_max.as_nanos()
            && self.memory_bytes <= limits.slow_memory_bytes
    }
}

/// The expected cost of a request of the slow class, under a key whose signatures have at most so
/// many bytes. It is meant to be right within a factor of two on a processor of 2020; the time that
/// the request took is charged afterwards.
pub fn slow_cost(
    algorithm: Algorithm,
    operation: &Operation,
    signature_bytes_max: usize,
) -> SlowCost {
    match operation {
        Operation::Derive { cost, password, out, .. } => {
            password_cost(algorithm, *cost, password.len(), out.len())
        }
        Operation::VerifyPassword { effort: Effort::Full, cost, password, expected, .. } => {
            password_cost(algorithm, *cost, password.len(), expected.len())
        }
        Operation::Sign { message, .. } => {
            let key = if algorithm.is_rsa() { rsa_cost(signature_bytes_max) } else { 1_000_000 };
            SlowCost::of(key.saturating_add(cost(algorithm, message.len()).into()))
        }
        Operation::PrivateDecrypt { ciphertext, .. } => SlowCost::of(rsa_cost(ciphertext.len())),
        // Diffie-Hellman over a finite field, of 4,096 bits at most.
        Operation::Agree { .. } => SlowCost::of(10_000_000),
        _ => SlowCost::of(cost(algorithm, operation.bytes()).into()),
    }
}

impl SlowCost {
    fn of(nanoseconds: u64) -> Self {
        SlowCost { nanoseconds, memory_bytes: 0 }
    }
}

/// A private key of so many bytes: 0.6 ms with 2,048 bits, and with the third power of that.
fn rsa_cost(bytes: usize) -> u64 {
    // None has more than 16,384 bits.
    let quarters = (bytes.min(2_048) as u64).div_ceil(64);
    10_000 * quarters.pow(3)
}

fn password_cost(algorithm: Algorithm, cost: Cost, password: usize, out: usize) -> SlowCost {
    let blocks = |bytes: usize, of: usize| bytes.div_ceil(of).max(1) as u64;
    // All of them are the client's, as large as it likes.
    let product = |factors: &[u64]| factors.iter().fold(1_u64, |one, it| one.saturating_mul(*it));
    let nanoseconds = match cost {
        Cost::Pbkdf2 { iterations } => {
            let (block, each) = match algorithm {
                Algorithm::Pbkdf2Sha512 => (64, 500),
                Algorithm::Pbkdf2Sha256 => (32, 200),
                _ => (20, 200),
            };
            product(&[iterations.into(), each, blocks(out, block)])
        }
        Cost::Argon2 { memory_kib, passes, .. } => {
            return SlowCost {
                nanoseconds: product(&[memory_kib.into(), passes.into(), 1_000]),
                memory_bytes: u64::from(memory_kib) << 10,
            };
        }
        Cost::Scrypt { log_n, r, p } => {
            let blocks = product(&[1 << log_n.min(40), r.into()]);
            return SlowCost {
                nanoseconds: product(&[blocks, p.into(), 400]),
                memory_bytes: product(&[blocks, 128]),
            };
        }
        Cost::Bcrypt { log_rounds } => 60_000 << log_rounds.min(40),
        Cost::Md5Crypt => product(&[1_000, 500, blocks(password, 64)]),
        Cost::ShaCrypt { rounds } => product(&[rounds.into(), 500, blocks(password, 64)]),
    };
    SlowCost::of(nanoseconds)
}

/// The credit that one client has left.
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

    /// A client names costs as it likes; none comes to less than a smaller one.
    #[test]
    fn no_cost_is_too_large_to_count() {
        let most = u32::MAX;
        for cost in [
            Cost::Pbkdf2 { iterations: most },
            Cost::Argon2 { memory_kib: most, passes: most, lanes: most },
            Cost::Scrypt { log_n: u8::MAX, r: most, p: most },
            Cost::Bcrypt { log_rounds: u32::MAX },
            Cost::ShaCrypt { rounds: most },
        ] {
            let huge = password_cost(Algorithm::Pbkdf2Sha1, cost, usize::MAX, usize::MAX);
            assert!(huge.nanoseconds > 1 << 50, "{cost:?}");
        }
        let long = password_cost(Algorithm::Md5Crypt, Cost::Md5Crypt, usize::MAX, 0);
        assert!(long.nanoseconds > 1 << 50);
        for algorithm in Algorithm::ALL {
            let _ = cost(*algorithm, usize::MAX);
        }
    }

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
    fn slow_requests_are_bounded_by_what_they_would_take() {
        let limits = ClientLimits::default();
        let is_taken = |algorithm: Algorithm, cost: Cost, out: usize| {
            let operation = Operation::derive(cost, vec![0; 8].into(), vec![0; 16], out);
            slow_cost(algorithm, &operation, 0).is_within(&limits)
        };
        let bcrypt = |log_rounds| is_taken(Algorithm::Bcrypt, Cost::Bcrypt { log_rounds }, 23);
        assert!(bcrypt(14) && bcrypt(16) && !bcrypt(17) && !bcrypt(20));
        let argon2 = |memory_kib, passes| {
            is_taken(Algorithm::Argon2id, Cost::Argon2 { memory_kib, passes, lanes: 1 }, 32)
        };
        assert!(argon2(64 << 10, 3) && argon2(256 << 10, 1));
        assert!(!argon2(512 << 10, 1) && !argon2(256 << 10, 64));
        let pbkdf2 =
            |iterations, out| is_taken(Algorithm::Pbkdf2Sha256, Cost::Pbkdf2 { iterations }, out);
        // A second block costs as much as the first.
        assert!(pbkdf2(10_000_000, 32) && pbkdf2(1_000_000, 64) && !pbkdf2(10_000_000, 1024));
        let scrypt = |log_n, r, p| is_taken(Algorithm::Scrypt, Cost::Scrypt { log_n, r, p }, 32);
        assert!(scrypt(17, 8, 1) && !scrypt(20, 8, 1) && !scrypt(14, 8, 200));
        let sign = Operation::Sign {
            parameters: Default::default(),
            message: Vec::new(),
            out: Vec::new(),
        };
        let rsa = |bytes| slow_cost(Algorithm::RsaPssSha256, &sign, bytes).nanoseconds;
        assert!(rsa(256) < 1_000_000 && (30_000_000..60_000_000).contains(&rsa(1_024)));
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
