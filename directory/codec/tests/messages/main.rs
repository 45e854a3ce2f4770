//! The message codec from outside: examples, properties, and comparison with two other codecs.

mod ldap3_peer;
mod malformed;
mod properties;
mod random;
mod rasn_peer;
mod rfc;
