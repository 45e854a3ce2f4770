//! Every number, layout and place in the lists, against the headers that are installed.

use super::mechanism::{RawEcdh, RawMechanism, RawOaep, RawPss};
use super::structures::RawInitialize;
use super::template::RawAttribute;
use super::*;
use crate::exports::FUNCTIONS;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

/// p11-kit's header, which has PKCS #11 2.40 and some of 3.0, and NSS' with the lists of 3.0.
const P11_KIT: &str = "/usr/include/p11-kit-1/p11-kit/pkcs11.h";
const NSS: &str = "/usr/include/nss/pkcs11.h";

fn compiles(header: &str, flags: &[&str], include: &str, program: &str) {
    if !std::path::Path::new(header).exists() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but {header} is missing");
        eprintln!("skipped: not installed: {header}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("abi.c");
    let text = format!("#include <stddef.h>\n#include <{include}>\n{program}");
    std::fs::write(&source, text).unwrap();
    let compiled =
        Command::new("cc").args(["-fsyntax-only"]).args(flags).arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

fn check(program: &mut String, c: &str, of: usize) {
    writeln!(program, "_Static_assert({c} == {of}, \"{c}\");").unwrap();
}

/// Structures and numbers.
fn values() -> String {
    let mut program = String::new();
    for (name, value) in NUMBERS.iter().chain(ANSWERS) {
        writeln!(program, "#ifdef {name}").unwrap();
        check(&mut program, name, usize::try_from(*value).unwrap());
        writeln!(program, "#endif").unwrap();
    }
    for (name, bytes) in [
        ("CK_INFO", size_of::<Info>()),
        ("CK_SLOT_INFO", size_of::<SlotInfo>()),
        ("CK_TOKEN_INFO", size_of::<TokenInfo>()),
        ("CK_SESSION_INFO", size_of::<SessionInfo>()),
        ("CK_MECHANISM_INFO", size_of::<MechanismInfo>()),
        ("CK_MECHANISM", size_of::<RawMechanism>()),
        ("CK_ATTRIBUTE", size_of::<RawAttribute>()),
        ("CK_RSA_PKCS_PSS_PARAMS", size_of::<RawPss>()),
        ("CK_RSA_PKCS_OAEP_PARAMS", size_of::<RawOaep>()),
        ("CK_ECDH1_DERIVE_PARAMS", size_of::<RawEcdh>()),
        ("CK_FUNCTION_LIST", size_of::<FunctionList<68>>()),
    ] {
        check(&mut program, &format!("sizeof({name})"), bytes);
    }
    for (field, at) in [
        ("CK_INFO, flags", offset_of!(Info, flags)),
        ("CK_TOKEN_INFO, flags", offset_of!(TokenInfo, flags)),
        ("CK_SLOT_INFO, flags", offset_of!(SlotInfo, flags)),
        ("CK_SESSION_INFO, state", offset_of!(SessionInfo, state)),
        ("CK_MECHANISM_INFO, flags", offset_of!(MechanismInfo, flags)),
    ] {
        check(&mut program, &format!("offsetof({field})"), at);
    }
    program
}

/// Fields whose names differ between the headers.
fn nss_fields() -> String {
    let mut program = String::new();
    for (field, at) in [
        ("CK_ATTRIBUTE, pValue", offset_of!(RawAttribute, value)),
        ("CK_ATTRIBUTE, ulValueLen", offset_of!(RawAttribute, value_len)),
        ("CK_MECHANISM, pParameter", offset_of!(RawMechanism, parameter)),
        ("CK_MECHANISM, ulParameterLen", offset_of!(RawMechanism, parameter_len)),
        ("CK_RSA_PKCS_PSS_PARAMS, sLen", offset_of!(RawPss, salt_len)),
        ("CK_RSA_PKCS_OAEP_PARAMS, pSourceData", offset_of!(RawOaep, data)),
        ("CK_ECDH1_DERIVE_PARAMS, pPublicData", offset_of!(RawEcdh, public)),
        ("CK_C_INITIALIZE_ARGS, UnlockMutex", offset_of!(RawInitialize, unlock_mutex)),
        ("CK_TOKEN_INFO, ulMaxPinLen", offset_of!(TokenInfo, max_pin_len)),
        ("CK_TOKEN_INFO, utcTime", offset_of!(TokenInfo, utc_time)),
    ] {
        check(&mut program, &format!("offsetof({field})"), at);
    }
    check(&mut program, "sizeof(CK_INTERFACE)", size_of::<Interface>());
    check(&mut program, "sizeof(CK_FUNCTION_LIST_3_0)", size_of::<FunctionList<92>>());
    for (at, function) in FUNCTIONS.iter().enumerate() {
        let list = if at < 68 { "CK_FUNCTION_LIST" } else { "CK_FUNCTION_LIST_3_0" };
        let place = format!("offsetof({list}, {})", function.name);
        check(&mut program, &place, 8 * (at + 1));
    }
    program
}

#[test]
fn numbers_layouts_and_lists_are_those_of_the_headers() {
    assert_eq!(FUNCTIONS.len(), 92);
    let flags = ["-I/usr/include/p11-kit-1"];
    let mut program = values();
    // NSS' has another field.
    check(&mut program, "sizeof(CK_C_INITIALIZE_ARGS)", size_of::<RawInitialize>());
    compiles(P11_KIT, &flags, "p11-kit/pkcs11.h", &program);
    let flags = ["-I/usr/include/nss", "-I/usr/include/nspr"];
    compiles(NSS, &flags, "pkcs11.h", &(values() + &nss_fields()));
}

#[test]
fn texts_have_blanks_behind_them() {
    assert_eq!(padded::<8>("Keyway"), *b"Keyway  ");
    assert_eq!(padded::<3>("Keyway"), *b"Key");
}
