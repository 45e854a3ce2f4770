//! An operation of a session: it is begun, may get parts, and is over when it has an answer or has failed. A question
//! for a length, and an answer for which there is too little room, leave it as it was.

use crate::abi::*;
use crate::key::TokenKey;
use crate::object::Object;
use crate::registry;
use crate::sessions::{self, Session};
use std::sync::Arc;

/// Where a session has an operation of a kind.
pub type Field<T> = fn(&mut Session) -> &mut Option<Box<T>>;

/// The key of a handle, which has to be of that class.
pub fn key(handle: Ulong, class: Ulong) -> Result<&'static Arc<TokenKey>, Rv> {
    let object: Option<&'static Object> = registry::get(handle);
    let object = object.ok_or(KEY_HANDLE_INVALID)?;
    match &object.key {
        Some(key) if object.class == class => Ok(key),
        Some(_) => Err(KEY_FUNCTION_NOT_PERMITTED),
        None => Err(KEY_HANDLE_INVALID),
    }
}

/// Begins an operation. A program that passes no mechanism ends the one that is under way (PKCS #11 3.0 § 5.13.1).
pub fn begin<T>(
    session: Ulong,
    field: Field<T>,
    mechanism: &MechanismArgument,
    new: impl FnOnce(Ulong, Parameters) -> Result<T, Rv>,
) -> Result<(), Rv> {
    sessions::with(session, |session| {
        let operation = field(session);
        if mechanism.is_none() {
            return operation.take().map(drop).ok_or(ARGUMENTS_BAD);
        }
        if operation.is_some() {
            return Err(OPERATION_ACTIVE);
        }
        let (mechanism, parameters) = mechanism.read()?;
        *operation = Some(Box::new(new(mechanism, parameters)?));
        Ok(())
    })
}

/// Takes an operation out of its session: it is over, unless it is put back.
pub fn take<T>(session: Ulong, field: Field<T>) -> Result<Box<T>, Rv> {
    sessions::with(session, |session| field(session).take().ok_or(OPERATION_NOT_INITIALIZED))
}

/// Gives an operation a part.
pub fn update<T>(
    session: Ulong,
    field: Field<T>,
    part: &Input,
    length: Ulong,
    take_part: impl FnOnce(&mut T, &[u8]) -> Result<(), Rv>,
) -> Result<(), Rv> {
    let mut operation = take(session, field)?;
    take_part(&mut operation, part.bytes(length)?)?;
    put_back(session, field, operation)
}

/// Puts an operation back into its session.
fn put_back<T>(session: Ulong, field: Field<T>, operation: Box<T>) -> Result<(), Rv> {
    sessions::with(session, |session| {
        *field(session) = Some(operation);
        Ok(())
    })
}

/// Room for an answer, and for its length.
pub struct Answer {
    pub out: Output,
    pub count: Place<Ulong>,
}

/// Ends an operation with an answer of at most so many bytes.
pub fn answer<T>(
    session: Ulong,
    field: Field<T>,
    mut answer: Answer,
    bytes: impl FnOnce(&T) -> usize,
    end: impl FnOnce(T) -> Result<Vec<u8>, Rv>,
) -> Result<(), Rv> {
    let operation = take(session, field)?;
    let needed = bytes(&operation);
    match answer.out.takes(&mut answer.count, needed) {
        Ok(true) => answer.out.put(&mut answer.count, &end(*operation)?),
        Ok(false) => put_back(session, field, operation),
        Err(BUFFER_TOO_SMALL) => {
            put_back(session, field, operation)?;
            Err(BUFFER_TOO_SMALL)
        }
        Err(why) => Err(why),
    }
}
