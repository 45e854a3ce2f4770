//! C_Digest, and random bytes of the system's.

use crate::abi::*;
use crate::module;
use crate::operations::{Answer, Field, answer, begin, update};
use crate::scheme::hash_of_mechanism;
use crate::sessions::{self, Session};
use keyway_client::Hasher;

fn digesting(session: &mut Session) -> &mut Option<Box<Hasher>> {
    &mut session.digesting
}

const DIGESTING: Field<Hasher> = digesting;

pub extern "C" fn digest_init(session: Ulong, mechanism: MechanismArgument) -> Rv {
    guard(|| {
        module::current()?;
        begin(session, DIGESTING, &mechanism, |mechanism, _| {
            hash_of_mechanism(mechanism).map(Hasher::new).ok_or(MECHANISM_INVALID)
        })
    })
}

pub extern "C" fn digest(
    session: Ulong,
    data: Input,
    length: Ulong,
    out: Output,
    count: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        answer(session, DIGESTING, Answer { out, count }, Hasher::bytes, |mut it| {
            it.update(data.bytes(length)?);
            Ok(it.finish())
        })
    })
}

pub extern "C" fn digest_update(session: Ulong, part: Input, length: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        update(session, DIGESTING, &part, length, |it, part| {
            it.update(part);
            Ok(())
        })
    })
}

pub extern "C" fn digest_final(session: Ulong, out: Output, count: Place<Ulong>) -> Rv {
    guard(|| {
        module::current()?;
        answer(session, DIGESTING, Answer { out, count }, Hasher::bytes, |it| Ok(it.finish()))
    })
}

pub extern "C" fn generate_random(session: Ulong, mut out: Output, length: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        let mut filled = Ok(());
        out.fill(length, |bytes| filled = getrandom::fill(bytes))?;
        filled.map_err(|_| RANDOM_NO_RNG)
    })
}

pub extern "C" fn seed_random(session: Ulong, _seed: Opaque, _length: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        Err(RANDOM_SEED_NOT_SUPPORTED)
    })
}
