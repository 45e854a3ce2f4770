//! Objects, as a program finds them and asks for their attributes.

use crate::abi::*;
use crate::object::{Object, objects};
use crate::{module, registry, secrets, sessions};

/// The objects that this process may use now, from cryptod.
fn all() -> Result<Vec<Ulong>, Rv> {
    let module = module::current()?;
    // A program may change its root before it signs.
    module.client.prepare();
    let keys = module.client.keys_and_certificates();
    let keys = keys.map_err(|why| module.failed(&why, DEVICE_ERROR))?;
    let shown = keys.into_iter().filter(|(key, _)| module.shows(&key.name)).collect();
    let handles = objects(shown).into_iter().map(registry::handle);
    handles.map(|handle| handle.ok_or(HOST_MEMORY)).collect()
}

fn object(handle: Ulong) -> Result<&'static Object, Rv> {
    registry::get(handle).ok_or(OBJECT_HANDLE_INVALID)
}

pub extern "C" fn find_objects_init(session: Ulong, template: Template, count: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        let wanted = template.read(count)?;
        let is_active = |session: &mut sessions::Session| Ok(session.found.is_some());
        if sessions::with(session, is_active)? {
            return Err(OPERATION_ACTIVE);
        }
        let mut found = all()?;
        found.retain(|handle| registry::get(*handle).is_some_and(|it| it.matches(&wanted)));
        found.reverse();
        sessions::with(session, |session| {
            session.found = Some(found);
            Ok(())
        })
    })
}

pub extern "C" fn find_objects(
    session: Ulong,
    mut handles: Array<Ulong>,
    most: Ulong,
    mut count: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |session| {
            let left = session.found.as_mut().ok_or(OPERATION_NOT_INITIALIZED)?;
            if count.is_none() || (handles.is_none() && most != 0) {
                return Err(ARGUMENTS_BAD);
            }
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            let mut next = left.split_off(left.len() - left.len().min(most));
            next.reverse();
            count.put(next.len() as Ulong)?;
            match next.is_empty() {
                true => Ok(()),
                false => handles.put(&mut count, &next),
            }
        })
    })
}

pub extern "C" fn find_objects_final(session: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        let end =
            |session: &mut sessions::Session| session.found.take().ok_or(OPERATION_NOT_INITIALIZED);
        sessions::with(session, end).map(drop)
    })
}

pub extern "C" fn get_attribute_value(
    session: Ulong,
    handle: Ulong,
    mut template: Template,
    count: Ulong,
) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        if let Some(secret) = secrets::get(handle) {
            return template.answer(count, |kind| secret.value(kind));
        }
        let object = object(handle)?;
        template.answer(count, |kind| object.value(kind))
    })
}

pub extern "C" fn get_object_size(session: Ulong, handle: Ulong, mut place: Place<Ulong>) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        place.put(object(handle)?.bytes() as Ulong)
    })
}

/// Objects are made and changed with `keyway key`.
pub extern "C" fn set_attribute_value(
    session: Ulong,
    handle: Ulong,
    _template: Template,
    _count: Ulong,
) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        object(handle)?;
        Err(ACTION_PROHIBITED)
    })
}

pub extern "C" fn destroy_object(session: Ulong, handle: Ulong) -> Rv {
    guard(|| {
        let module = module::current()?;
        sessions::with(session, |_| Ok(()))?;
        if secrets::forget(handle) {
            return Ok(());
        }
        // Its public key and its certificates go with a private key.
        let Object { class: CLASS_PRIVATE_KEY, key: Some(key), .. } = object(handle)? else {
            return Err(ACTION_PROHIBITED);
        };
        let destroyed = module.client.destroy(&key.name);
        destroyed.map_err(|why| match module.failed(&why, ACTION_PROHIBITED) {
            KEY_FUNCTION_NOT_PERMITTED => ACTION_PROHIBITED,
            other => other,
        })
    })
}

pub extern "C" fn create_object(
    session: Ulong,
    _template: Template,
    _count: Ulong,
    _place: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        Err(TOKEN_WRITE_PROTECTED)
    })
}
