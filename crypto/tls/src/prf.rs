//! TLS 1.2's pseudo-random function (RFC 5246 § 5) on HMAC requests.

use crate::hash::Function;
use crate::random_fallback::{self, fault};
use keyway_engine::{Engine, Error, Key, Parameters, Request};
use rustls::crypto::ActiveKeyExchange;
use rustls::crypto::tls12::Prf;
use rustls::version::TLS12;
use zeroize::Zeroizing;

pub(crate) struct Tls12Prf {
    pub engine: &'static Engine,
    pub function: Function,
}

impl Tls12Prf {
    /// P_hash: A(0) = label + seed, A(i) = HMAC(A(i-1)), output HMAC(A(i) + label + seed).
    fn expand(
        &self,
        secret: &[u8],
        label: &[u8],
        seed: &[u8],
        out: &mut [u8],
    ) -> Result<(), Error> {
        let parameters = Parameters::new(self.function.mac(), Key::Secret(secret));
        let session = self.engine.session(parameters)?;
        let mac =
            |data: &[&[u8]], out: &mut [u8]| session.run(&mut Request::Mac { data, out }).map(drop);
        let bytes = self.function.bytes();
        let mut buffers = Zeroizing::new([[0; Function::BYTES_MAX]; 3]);
        let [a, next, block] = &mut *buffers;
        let (mut a, mut next) = (&mut a[..bytes], &mut next[..bytes]);
        let block = &mut block[..bytes];
        mac(&[label, seed], a)?;
        for (index, chunk) in out.chunks_mut(bytes).enumerate() {
            if index > 0 {
                mac(&[a], next)?;
                std::mem::swap(&mut a, &mut next);
            }
            mac(&[a, label, seed], block)?;
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
        Ok(())
    }
}

impl Prf for Tls12Prf {
    fn for_key_exchange(
        &self,
        output: &mut [u8; 48],
        kx: Box<dyn ActiveKeyExchange>,
        peer_pub_key: &[u8],
        label: &[u8],
        seed: &[u8],
    ) -> Result<(), rustls::Error> {
        let secret = kx.complete_for_tls_version(peer_pub_key, &TLS12)?;
        self.expand(secret.secret_bytes(), label, seed, output).map_err(fault)
    }

    fn for_secret(&self, output: &mut [u8], secret: &[u8], label: &[u8], seed: &[u8]) {
        if self.expand(secret, label, seed, output).is_err() {
            random_fallback::fill(self.engine, output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers for the PRF, from
    /// <https://mailarchive.ietf.org/arch/msg/tls/fzVCzk-z3FShgGJ6DOXqM1ydxms/>.
    #[test]
    fn known_answers() {
        let engine = crate::leak(keyway_drivers::engine());
        let prf = |function, secret: &str, seed: &str, bytes| {
            let mut out = vec![0; bytes];
            Tls12Prf { engine, function }
                .expand(&unhex(secret), b"test label", &unhex(seed), &mut out)
                .unwrap();
            out
        };
        assert_eq!(
            prf(
                Function::Sha256,
                "9bbe436ba940f017b17652849a71db35",
                "a0ba9f936cda311827a6f796ffd5198c",
                100
            ),
            unhex(
                "e3f229ba727be17b8d122620557cd453c2aab21d07c3d495329b52d4e61edb5a\
                 6b301791e90d35c9c9a46b4e14baf9af0fa022f7077def17abfd3797c0564bab\
                 4fbc91666e9def9b97fce34f796789baa48082d122ee42c5a72e5a5110fff701\
                 87347b66"
            )
        );
        assert_eq!(
            prf(
                Function::Sha384,
                "b80b733d6ceefcdc71566ea48e5567df",
                "cd665cf6a8447dd6ff8b27555edb7465",
                148
            ),
            unhex(
                "7b0c18e9ced410ed1804f2cfa34a336a1c14dffb4900bb5fd7942107e81c83cd\
                 e9ca0faa60be9fe34f82b1233c9146a0e534cb400fed2700884f9dc236f80edd\
                 8bfa961144c9e8d792eca722a7b32fc3d416d473ebc2c5fd4abfdad05d918425\
                 9b5bf8cd4d90fa0d31e2dec479e4f1a26066f2eea9a69236a3e52655c9e9aee6\
                 91c8f3a26854308d5eaa3be85e0990703d73e56f"
            )
        );
    }

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            text.chars().map(|c| c.to_digit(16).unwrap().try_into().unwrap()).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }
}
