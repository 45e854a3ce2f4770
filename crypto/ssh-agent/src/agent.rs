//! The agent's answers.

use crate::key::AgentKey;
use crate::message::{AgentAnswer, AgentRequest, Malformed};
use crate::signature::{Signing, encode_signature};
use std::fmt;
use std::sync::Arc;

/// The keys behind an agent.
pub trait Keys {
    /// The keys as they are now.
    ///
    /// # Errors
    /// If their holder does not say.
    fn list(&self) -> Result<Arc<[AgentKey]>, Unavailable>;

    /// The keys as they were listed last.
    fn known(&self) -> Arc<[AgentKey]>;

    /// A signature of the engine's, which verifies under [`AgentKey::public_key`].
    ///
    /// # Errors
    /// If the holder of the key is away, or refuses, or has another key of that name by now.
    fn sign(&self, key: &AgentKey, signing: Signing, data: &[u8]) -> Result<Vec<u8>, Unavailable>;
}

/// Keys cannot be had now, or not by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key cannot be used now")
    }
}

impl std::error::Error for Unavailable {}

/// Answers a message, which comes without its length: the answer has its length before it.
///
/// # Errors
/// If it is none; then its connection has to end.
pub fn answer(message: &[u8], keys: &impl Keys) -> Result<Vec<u8>, Malformed> {
    let answer = match AgentRequest::decode(message)? {
        AgentRequest::List => keys.list().map(|keys| AgentAnswer::Keys(keys.to_vec())).ok(),
        AgentRequest::Sign { key, data, flags } => sign(&key, &data, flags, keys),
        AgentRequest::Query => Some(AgentAnswer::Extensions),
        AgentRequest::Other => None,
    };
    answer.unwrap_or(AgentAnswer::Failure).encode()
}

fn sign(blob: &[u8], data: &[u8], flags: u32, keys: &impl Keys) -> Option<AgentAnswer> {
    // A key may have two names, of which one may sign in this way.
    let find = |listed: &[AgentKey]| {
        let its = listed.iter().filter(|key| key.blob() == blob);
        its.filter_map(|key| Some((key.clone(), Signing::of(key, flags)?))).next()
    };
    let found = find(&keys.known()).or_else(|| find(&keys.list().ok()?));
    let (key, signing) = found?;
    let signature = keys.sign(&key, signing, data).ok()?;
    encode_signature(signing, &signature).map(AgentAnswer::Signature)
}
