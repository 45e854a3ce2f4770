//! Sessions as a program opens and closes them; logins, which none needs.

use crate::abi::*;
use crate::general::{SLOT, check};
use crate::{module, secrets, sessions};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the program has logged in. It changes nothing but the state that a session tells.
static IS_LOGGED_IN: AtomicBool = AtomicBool::new(false);

pub extern "C" fn open_session(
    slot: Ulong,
    flags: Ulong,
    _application: Opaque,
    _notify: Opaque,
    mut place: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        check(slot)?;
        if flags & FLAG_SERIAL_SESSION == 0 {
            return Err(SESSION_PARALLEL_NOT_SUPPORTED);
        }
        if place.is_none() {
            return Err(ARGUMENTS_BAD);
        }
        place.put(sessions::open(flags & FLAG_RW_SESSION != 0)?)
    })
}

pub extern "C" fn close_session(session: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        sessions::close(session)?;
        secrets::forget_those_of(session);
        Ok(())
    })
}

pub extern "C" fn close_all_sessions(slot: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        check(slot)?;
        sessions::close_all();
        secrets::forget_all();
        IS_LOGGED_IN.store(false, Ordering::Relaxed);
        Ok(())
    })
}

pub extern "C" fn get_session_info(session: Ulong, mut place: Place<SessionInfo>) -> Rv {
    guard(|| {
        module::current()?;
        let is_writable = sessions::with(session, |session| Ok(session.is_writable))?;
        let state = match (is_writable, IS_LOGGED_IN.load(Ordering::Relaxed)) {
            (false, false) => STATE_RO_PUBLIC_SESSION,
            (false, true) => STATE_RO_USER_FUNCTIONS,
            (true, false) => STATE_RW_PUBLIC_SESSION,
            (true, true) => STATE_RW_USER_FUNCTIONS,
        };
        let flags = FLAG_SERIAL_SESSION | if is_writable { FLAG_RW_SESSION } else { 0 };
        place.put(SessionInfo { slot: SLOT, state, flags, device_error: 0 })
    })
}

/// Any PIN will do.
pub extern "C" fn login(session: Ulong, user: Ulong, _pin: Opaque, _pin_len: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        if user != USER_USER && user != USER_CONTEXT_SPECIFIC {
            return Err(USER_TYPE_INVALID);
        }
        // One that logs in for a single use is asked no more than before.
        match IS_LOGGED_IN.swap(true, Ordering::Relaxed) && user == USER_USER {
            true => Err(USER_ALREADY_LOGGED_IN),
            false => Ok(()),
        }
    })
}

pub extern "C" fn login_user(
    session: Ulong,
    user: Ulong,
    pin: Opaque,
    pin_len: Ulong,
    _name: Opaque,
    _name_len: Ulong,
) -> Rv {
    login(session, user, pin, pin_len)
}

pub extern "C" fn logout(session: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |_| Ok(()))?;
        match IS_LOGGED_IN.swap(false, Ordering::Relaxed) {
            true => Ok(()),
            false => Err(USER_NOT_LOGGED_IN),
        }
    })
}

/// The program has logged in no more.
pub fn log_out() {
    IS_LOGGED_IN.store(false, Ordering::Relaxed);
}

/// Ends what is under way in a session, as the flags say (PKCS #11 3.0 § 5.6.8).
pub extern "C" fn session_cancel(session: Ulong, flags: Ulong) -> Rv {
    guard(|| {
        module::current()?;
        sessions::with(session, |session| {
            let is = |flag| flags & flag != 0;
            session.found = session.found.take().filter(|_| !is(FLAG_FIND_OBJECTS));
            session.signing = session.signing.take().filter(|_| !is(FLAG_SIGN));
            session.verifying = session.verifying.take().filter(|_| !is(FLAG_VERIFY));
            session.decrypting = session.decrypting.take().filter(|_| !is(FLAG_DECRYPT));
            session.encrypting = session.encrypting.take().filter(|_| !is(FLAG_ENCRYPT));
            session.digesting = session.digesting.take().filter(|_| !is(FLAG_DIGEST));
            Ok(())
        })
    })
}

/// There is no parallel function to ask about (PKCS #11 § 5.20).
pub extern "C" fn no_parallel_function(_session: Ulong) -> Rv {
    FUNCTION_NOT_PARALLEL
}
