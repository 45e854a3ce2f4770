//! C_Decrypt and C_Encrypt, at once and in parts.

use crate::abi::*;
use crate::decrypt::Crypting;
use crate::module;
use crate::operations::{Answer, Field, answer, begin, key, take, update};
use crate::scheme::Decryption;
use crate::sessions::{self, Session};

fn decrypting(session: &mut Session) -> &mut Option<Box<Crypting>> {
    &mut session.decrypting
}

fn encrypting(session: &mut Session) -> &mut Option<Box<Crypting>> {
    &mut session.encrypting
}

const DECRYPTING: Field<Crypting> = decrypting;
const ENCRYPTING: Field<Crypting> = encrypting;

pub extern "C" fn decrypt_init(session: Ulong, mechanism: MechanismArgument, handle: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        begin(session, DECRYPTING, &mechanism, |mechanism, parameters| {
            let key = key(handle, CLASS_PRIVATE_KEY)?;
            let crypting = Crypting::new(key, Decryption::read(mechanism, parameters)?)?;
            if crypting.is_permitted() { Ok(crypting) } else { Err(KEY_FUNCTION_NOT_PERMITTED) }
        })
    })
}

/// Ends a decryption. Only its end says how long the text is: if it does not go there, the operation goes on.
fn end(session: Ulong, last: Result<&[u8], Rv>, mut place: Answer) -> Result<(), Rv> {
    let module = module::current()?;
    let operation = take(session, DECRYPTING)?;
    let put_back = |operation: Box<Crypting>| {
        sessions::with(session, |session| {
            *decrypting(session) = Some(operation);
            Ok(())
        })
    };
    if place.out.is_none() {
        place.count.put(operation.bytes() as Ulong)?;
        return put_back(operation);
    }
    let mut whole = operation.clone();
    whole.update(last?)?;
    let put = place.out.put(&mut place.count, &whole.decrypt(module)?);
    if put == Err(BUFFER_TOO_SMALL) {
        put_back(operation)?;
    }
    put
}

pub extern "C" fn decrypt(
    session: Ulong,
    data: Input,
    length: Ulong,
    out: Output,
    count: Place<Ulong>,
) -> Rv {
    guard(|| end(session, data.bytes(length), Answer { out, count }))
}

/// Nothing comes out before the end.
pub extern "C" fn decrypt_update(
    session: Ulong,
    part: Input,
    length: Ulong,
    _out: Output,
    mut count: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        count.put(0)?;
        update(session, DECRYPTING, &part, length, Crypting::update)
    })
}

pub extern "C" fn decrypt_final(session: Ulong, out: Output, count: Place<Ulong>) -> Rv {
    guard(|| end(session, Ok(&[]), Answer { out, count }))
}

pub extern "C" fn encrypt_init(session: Ulong, mechanism: MechanismArgument, handle: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        begin(session, ENCRYPTING, &mechanism, |mechanism, parameters| {
            let key = key(handle, CLASS_PUBLIC_KEY)?;
            Crypting::new(key, Decryption::read(mechanism, parameters)?)
        })
    })
}

pub extern "C" fn encrypt(
    session: Ulong,
    data: Input,
    length: Ulong,
    out: Output,
    count: Place<Ulong>,
) -> Rv {
    guard(|| {
        let module = module::current()?;
        answer(session, ENCRYPTING, Answer { out, count }, Crypting::bytes, |mut it| {
            it.update(data.bytes(length)?)?;
            it.encrypt(module)
        })
    })
}

pub extern "C" fn encrypt_update(
    session: Ulong,
    part: Input,
    length: Ulong,
    _out: Output,
    mut count: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        count.put(0)?;
        update(session, ENCRYPTING, &part, length, Crypting::update)
    })
}

pub extern "C" fn encrypt_final(session: Ulong, out: Output, count: Place<Ulong>) -> Rv {
    guard(|| {
        let module = module::current()?;
        let answered = Answer { out, count };
        answer(session, ENCRYPTING, answered, Crypting::bytes, |it| it.encrypt(module))
    })
}
