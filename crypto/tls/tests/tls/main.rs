//! TLS as a whole, in memory and against OpenSSL: it works, every operation of it is a request to
//! the engine, and it ends cleanly when the engine fails.

mod authority;
mod clients;
mod faults;
mod handshakes;
mod keys;
mod offers;
mod openssl;
mod probe;
mod quic;
mod records;
mod requests;
mod wire;
