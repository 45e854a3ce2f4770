//! C_DeriveKey: a secret that a key and a peer agree on.

use crate::abi::*;
use crate::key::TokenKey;
use crate::module;
use crate::operations::key;
use crate::secrets::{self, Secret};
use crate::sessions;
use keyway_engine::Request;
use keyway_wire::der::split;
use zeroize::Zeroizing;

const OCTET_STRING: u8 = 0x04;

pub extern "C" fn derive_key(
    session: Ulong,
    mechanism: MechanismArgument,
    handle: Ulong,
    template: Template,
    count: Ulong,
    mut place: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        if place.is_none() {
            return Err(ARGUMENTS_BAD);
        }
        let template = template.read(count)?;
        let (mechanism, parameters) = mechanism.read()?;
        if mechanism != ECDH1_DERIVE {
            return Err(MECHANISM_INVALID);
        }
        let Parameters::Ecdh { kdf: KDF_NULL, shared, peer } = parameters else {
            return Err(MECHANISM_PARAM_INVALID);
        };
        if !shared.is_empty() {
            return Err(MECHANISM_PARAM_INVALID);
        }
        let value = agreed(key(handle, CLASS_PRIVATE_KEY)?, &peer)?;
        place.put(secrets::keep(Secret::new(session, template, value)?)?)
    })
}

/// The secret that a key agrees on with a peer's public key, which is given as it is or as an OCTET STRING.
fn agreed(key: &TokenKey, peer: &[u8]) -> Result<Zeroizing<Vec<u8>>, Rv> {
    let agreement = key.agreement().ok_or(KEY_FUNCTION_NOT_PERMITTED)?;
    let peer = match split(OCTET_STRING, peer) {
        Some((point, [])) if peer.len() != agreement.peer_bytes => point,
        _ => peer,
    };
    if peer.len() != agreement.peer_bytes {
        return Err(MECHANISM_PARAM_INVALID);
    }
    let module = module::current()?;
    let mut out = Zeroizing::new(vec![0; agreement.secret_bytes]);
    let mut request = Request::Agree { peer, out: &mut out };
    let done = module.client.run(&key.name, &key.info, agreement.algorithm, &mut request);
    done.map_err(|why| module.failed(&why, MECHANISM_PARAM_INVALID))?;
    Ok(out)
}
