//! A session's steps with their keys, on their way to the daemon.

use keyway_engine::{
    Algorithm, Engine, Error, Key, Kind, NONCE_BYTES, Nonces, PacketKey, PacketKeys, Parameters,
    Session, Step,
};
use keyway_ring::control;

/// A step with its key.
pub fn step(step: &Step<'_>) -> control::Step {
    let key = match step.key {
        Key::None => control::Key::None,
        Key::Secret(secret) => control::Key::Secret(secret.into()),
        Key::Extract { salt, secret } => {
            control::Key::Extract { salt: salt.into(), secret: secret.into() }
        }
        Key::Packet(keys) => control::Key::Packet(Box::new(packet_keys(&keys))),
        Key::Generate => control::Key::Generate,
        Key::Pkcs8(der) => control::Key::Pkcs8(der.into()),
        Key::Pkcs1(der) => control::Key::Pkcs1(der.into()),
        Key::Sec1(der) => control::Key::Sec1(der.into()),
        Key::Named(name) => control::Key::Named(name.to_owned()),
    };
    control::Step { algorithm: step.algorithm.name().to_owned(), key }
}

fn packet_keys(keys: &PacketKeys<'_>) -> control::PacketKeys {
    let put = |key: PacketKey<'_>| control::PacketKey {
        key: key.key.into(),
        iv: key.iv.as_slice().into(),
    };
    control::PacketKeys {
        header: keys.header.into(),
        current: put(keys.current),
        phase: keys.phase,
        since: keys.since,
        previous: keys.previous.map(put),
        next: keys.next.map(put),
    }
}

/// Opens a session with the steps of a client. A client that brings the key makes the nonces and
/// counts its use.
///
/// # Errors
/// [`Error::InvalidRequest`] for an algorithm that is not known, [`Error::Unsupported`] for a key
/// that the engine does not hold, [`Error::InvalidKey`], and those of [`Engine::session`].
pub fn open(engine: &Engine, steps: &[control::Step]) -> Result<Session, Error> {
    let opened = steps.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let parameters = match *opened {
        [Step { algorithm, key }] => Parameters::new(algorithm, key),
        _ => Parameters::chain(&opened),
    };
    let is_packet = matches!(*opened, [Step { algorithm, .. }] if algorithm.kind() == Kind::Packet);
    // The client's engine lets packet numbers only go upwards, in whatever order they come here.
    engine.session(if is_packet { parameters.nonces(Nonces::Given) } else { parameters })
}

/// Reads a step that [`step`] has written.
pub fn read(step: &control::Step) -> Result<Step<'_>, Error> {
    let unknown = Error::invalid_request("it names an algorithm that the daemon does not know");
    let algorithm: Algorithm = step.algorithm.parse().map_err(|_| unknown)?;
    let key = match &step.key {
        control::Key::None => Key::None,
        control::Key::Secret(secret) => Key::Secret(&secret.0),
        control::Key::Extract { salt, secret } => Key::Extract { salt: &salt.0, secret: &secret.0 },
        control::Key::Packet(keys) => Key::Packet(read_packet_keys(keys)?),
        control::Key::Generate => Key::Generate,
        control::Key::Pkcs8(der) => Key::Pkcs8(&der.0),
        control::Key::Pkcs1(der) => Key::Pkcs1(&der.0),
        control::Key::Sec1(der) => Key::Sec1(&der.0),
        // Only its holder opens it.
        control::Key::Named(_) => return Err(Error::Unsupported(algorithm)),
    };
    Ok(Step { algorithm, key })
}

fn read_packet_keys(keys: &control::PacketKeys) -> Result<PacketKeys<'_>, Error> {
    Ok(PacketKeys {
        header: &keys.header.0,
        current: read_packet_key(&keys.current)?,
        phase: keys.phase,
        since: keys.since,
        previous: keys.previous.as_ref().map(read_packet_key).transpose()?,
        next: keys.next.as_ref().map(read_packet_key).transpose()?,
    })
}

fn read_packet_key(key: &control::PacketKey) -> Result<PacketKey<'_>, Error> {
    let wrong = Error::InvalidKey("an initialisation vector has 12 bytes");
    let iv: &[u8; NONCE_BYTES] = key.iv.0.as_slice().try_into().map_err(|_| wrong)?;
    Ok(PacketKey { key: &key.key.0, iv })
}
