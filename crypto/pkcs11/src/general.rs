//! The module, its one slot, and the token in it: a cryptod that answers.

use crate::abi::*;
use crate::{module, secrets, session_functions, sessions};

/// The one slot.
pub const SLOT: Ulong = 1;

const MAKER: &str = "Keyway";
const NONE: Version = Version { major: 0, minor: 0 };
const OWN: Version = Version { major: 0, minor: 1 };

/// Not done in the program: `pkcs11-tool` tests no others.
const SIGNS: Ulong = FLAG_HW | FLAG_SIGN | FLAG_VERIFY;
const CRYPTS: Ulong = FLAG_HW | FLAG_DECRYPT | FLAG_ENCRYPT;
/// Where cryptod has a name space for the program.
const MAKES: Ulong = FLAG_HW | FLAG_GENERATE_KEY_PAIR;
const CURVES: Ulong = FLAG_EC_F_P | FLAG_EC_NAMEDCURVE | FLAG_EC_UNCOMPRESS;

const fn info(min_key_size: Ulong, max_key_size: Ulong, flags: Ulong) -> MechanismInfo {
    MechanismInfo { min_key_size, max_key_size, flags }
}

const RSA: MechanismInfo = info(2048, 8192, SIGNS);
const EC: MechanismInfo = info(256, 521, SIGNS | CURVES);
const ECDH: MechanismInfo = info(256, 521, FLAG_HW | FLAG_DERIVE | CURVES);
const HASH: MechanismInfo = info(0, 0, FLAG_DIGEST);

/// The mechanisms of the module; a key may be for few of them.
const MECHANISMS: [(Ulong, MechanismInfo); 30] = [
    (RSA_PKCS_KEY_PAIR_GEN, info(2048, 8192, MAKES)),
    (EC_KEY_PAIR_GEN, info(256, 521, MAKES | CURVES)),
    (EC_EDWARDS_KEY_PAIR_GEN, info(255, 255, MAKES)),
    (EC_MONTGOMERY_KEY_PAIR_GEN, info(255, 255, MAKES)),
    (RSA_PKCS, info(2048, 8192, SIGNS | CRYPTS)),
    (RSA_PKCS_OAEP, info(2048, 8192, CRYPTS)),
    (SHA1_RSA_PKCS, RSA),
    (SHA224_RSA_PKCS, RSA),
    (SHA256_RSA_PKCS, RSA),
    (SHA384_RSA_PKCS, RSA),
    (SHA512_RSA_PKCS, RSA),
    (RSA_PKCS_PSS, RSA),
    (SHA1_RSA_PKCS_PSS, RSA),
    (SHA224_RSA_PKCS_PSS, RSA),
    (SHA256_RSA_PKCS_PSS, RSA),
    (SHA384_RSA_PKCS_PSS, RSA),
    (SHA512_RSA_PKCS_PSS, RSA),
    (ECDSA, EC),
    (ECDSA_SHA1, EC),
    (ECDSA_SHA224, EC),
    (ECDSA_SHA256, EC),
    (ECDSA_SHA384, EC),
    (ECDSA_SHA512, EC),
    (EDDSA, info(255, 255, SIGNS)),
    (ECDH1_DERIVE, ECDH),
    (SHA_1, HASH),
    (SHA224, HASH),
    (SHA256, HASH),
    (SHA384, HASH),
    (SHA512, HASH),
];

/// Refuses another slot.
pub fn check(slot: Ulong) -> Result<(), Rv> {
    if slot == SLOT { Ok(()) } else { Err(SLOT_ID_INVALID) }
}

pub extern "C" fn initialize(argument: InitializeArgument) -> Rv {
    guard(|| {
        argument.check()?;
        module::begin()?;
        // Those that a parent process has opened are not this one's.
        sessions::close_all();
        secrets::forget_all();
        Ok(())
    })
}

pub extern "C" fn finalize(reserved: Opaque) -> Rv {
    guard(|| {
        if !reserved.is_none() {
            return Err(ARGUMENTS_BAD);
        }
        module::end()?;
        session_functions::log_out();
        sessions::close_all();
        secrets::forget_all();
        Ok(())
    })
}

pub extern "C" fn get_info(mut place: Place<Info>) -> Rv {
    guard(|| {
        module::current()?;
        place.put(Info {
            cryptoki_version: Version { major: 3, minor: 0 },
            manufacturer: padded(MAKER),
            flags: 0,
            library_description: padded("keys of a cryptod"),
            library_version: OWN,
        })
    })
}

fn is_present() -> Result<bool, Rv> {
    let module = module::current()?;
    let answer = module.client.reach();
    Ok(answer.map_err(|why| module.failed(&why, DEVICE_ERROR)).is_ok())
}

pub extern "C" fn get_slot_list(
    only_present: u8,
    mut slots: Array<Ulong>,
    mut count: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        let shown = only_present == 0 || is_present()?;
        slots.put(&mut count, if shown { &[SLOT] } else { &[] })
    })
}

pub extern "C" fn get_slot_info(slot: Ulong, mut place: Place<SlotInfo>) -> Rv {
    guard(|| {
        module::current()?;
        check(slot)?;
        place.put(SlotInfo {
            description: padded("cryptod"),
            manufacturer: padded(MAKER),
            flags: if is_present()? { FLAG_TOKEN_PRESENT } else { 0 },
            hardware_version: NONE,
            firmware_version: OWN,
        })
    })
}

pub extern "C" fn get_token_info(slot: Ulong, mut place: Place<TokenInfo>) -> Rv {
    guard(|| {
        module::current()?;
        check(slot)?;
        if !is_present()? {
            return Err(TOKEN_NOT_PRESENT);
        }
        let open = sessions::count() as Ulong;
        let makes_keys = module::current()?.client.name_spaces().is_ok_and(|all| !all.is_empty());
        place.put(TokenInfo {
            label: padded("Keyway"),
            manufacturer: padded(MAKER),
            model: padded("cryptod"),
            serial_number: padded("1"),
            // No login is required.
            flags: FLAG_RNG
                | if makes_keys { 0 } else { FLAG_WRITE_PROTECTED }
                | FLAG_TOKEN_INITIALIZED
                | FLAG_USER_PIN_INITIALIZED,
            // As many as there are.
            max_session_count: 0,
            session_count: open,
            max_rw_session_count: 0,
            rw_session_count: UNAVAILABLE,
            max_pin_len: 255,
            min_pin_len: 0,
            total_public_memory: UNAVAILABLE,
            free_public_memory: UNAVAILABLE,
            total_private_memory: UNAVAILABLE,
            free_private_memory: UNAVAILABLE,
            hardware_version: NONE,
            firmware_version: OWN,
            utc_time: [b' '; 16],
        })
    })
}

pub extern "C" fn get_mechanism_list(
    slot: Ulong,
    mut mechanisms: Array<Ulong>,
    mut count: Place<Ulong>,
) -> Rv {
    guard(|| {
        module::current()?;
        check(slot)?;
        mechanisms.put(&mut count, &MECHANISMS.map(|(number, _)| number))
    })
}

pub extern "C" fn get_mechanism_info(
    slot: Ulong,
    mechanism: Ulong,
    mut place: Place<MechanismInfo>,
) -> Rv {
    guard(|| {
        module::current()?;
        check(slot)?;
        let found = MECHANISMS.iter().find(|(number, _)| *number == mechanism);
        place.put(found.ok_or(MECHANISM_INVALID)?.1)
    })
}

pub extern "C" fn wait_for_slot_event(flags: Ulong, _slot: Place<Ulong>, _reserved: Opaque) -> Rv {
    guard(|| {
        module::current()?;
        // The slot stays, and a thread that waits for its token would wait for ever.
        Err(if flags & FLAG_DONT_BLOCK != 0 { NO_EVENT } else { FUNCTION_NOT_SUPPORTED })
    })
}
