//! C_Sign and C_Verify, at once and in parts.

use crate::abi::*;
use crate::module;
use crate::operations::{Answer, Field, answer, begin, key, take, update};
use crate::scheme::Scheme;
use crate::sessions::Session;
use crate::signing::Signing;

fn signing(session: &mut Session) -> &mut Option<Box<Signing>> {
    &mut session.signing
}

fn verifying(session: &mut Session) -> &mut Option<Box<Signing>> {
    &mut session.verifying
}

const SIGNING: Field<Signing> = signing;
const VERIFYING: Field<Signing> = verifying;

pub extern "C" fn sign_init(session: Ulong, mechanism: MechanismArgument, handle: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        begin(session, SIGNING, &mechanism, |mechanism, parameters| {
            let key = key(handle, CLASS_PRIVATE_KEY)?;
            let signing = Signing::new(key, Scheme::read(mechanism, &parameters)?)?;
            if signing.is_permitted() { Ok(signing) } else { Err(KEY_FUNCTION_NOT_PERMITTED) }
        })
    })
}

pub extern "C" fn sign(
    session: Ulong,
    data: Input,
    length: Ulong,
    out: Output,
    count: Place<Ulong>,
) -> Rv {
    guard(|| {
        let module = module::current()?;
        answer(session, SIGNING, Answer { out, count }, Signing::signature_bytes, |mut it| {
            it.update(data.bytes(length)?)?;
            it.sign(module)
        })
    })
}

pub extern "C" fn sign_update(session: Ulong, part: Input, length: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        update(session, SIGNING, &part, length, Signing::update)
    })
}

pub extern "C" fn sign_final(session: Ulong, out: Output, count: Place<Ulong>) -> Rv {
    guard(|| {
        let module = module::current()?;
        let answered = Answer { out, count };
        answer(session, SIGNING, answered, Signing::signature_bytes, |it| it.sign(module))
    })
}

pub extern "C" fn verify_init(session: Ulong, mechanism: MechanismArgument, handle: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        begin(session, VERIFYING, &mechanism, |mechanism, parameters| {
            let key = key(handle, CLASS_PUBLIC_KEY)?;
            Signing::new(key, Scheme::read(mechanism, &parameters)?)
        })
    })
}

pub extern "C" fn verify(
    session: Ulong,
    data: Input,
    length: Ulong,
    signature: Input,
    signature_length: Ulong,
) -> Rv {
    guard(|| {
        let module = module::current()?;
        let mut it = take(session, VERIFYING)?;
        it.update(data.bytes(length)?)?;
        it.verify(module, signature.bytes(signature_length)?)
    })
}

pub extern "C" fn verify_update(session: Ulong, part: Input, length: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        update(session, VERIFYING, &part, length, Signing::update)
    })
}

pub extern "C" fn verify_final(session: Ulong, signature: Input, length: Ulong) -> Rv {
    guard(|| {
        let module = module::current()?;
        take(session, VERIFYING)?.verify(module, signature.bytes(length)?)
    })
}
