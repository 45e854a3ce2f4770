//! The functions that a program finds by name, and the lists by which it finds all others.

use crate::abi::*;
use crate::{
    decrypt_functions, digest_functions, finding, general, generate_functions, secret_functions,
    session_functions, sign_functions,
};
use std::ffi::{CStr, c_void};

const fn of(name: &'static str, function: *const c_void) -> Function {
    Function { name, function }
}

/// All functions of PKCS #11 3.0, in the order of its list.
pub static FUNCTIONS: [Function; 92] = [
    of("C_Initialize", general::initialize as *const c_void),
    of("C_Finalize", general::finalize as *const c_void),
    of("C_GetInfo", general::get_info as *const c_void),
    of("C_GetFunctionList", C_GetFunctionList as *const c_void),
    of("C_GetSlotList", general::get_slot_list as *const c_void),
    of("C_GetSlotInfo", general::get_slot_info as *const c_void),
    of("C_GetTokenInfo", general::get_token_info as *const c_void),
    of("C_GetMechanismList", general::get_mechanism_list as *const c_void),
    of("C_GetMechanismInfo", general::get_mechanism_info as *const c_void),
    of("C_InitToken", unsupported as *const c_void),
    of("C_InitPIN", unsupported as *const c_void),
    of("C_SetPIN", unsupported as *const c_void),
    of("C_OpenSession", session_functions::open_session as *const c_void),
    of("C_CloseSession", session_functions::close_session as *const c_void),
    of("C_CloseAllSessions", session_functions::close_all_sessions as *const c_void),
    of("C_GetSessionInfo", session_functions::get_session_info as *const c_void),
    of("C_GetOperationState", unsupported as *const c_void),
    of("C_SetOperationState", unsupported as *const c_void),
    of("C_Login", session_functions::login as *const c_void),
    of("C_Logout", session_functions::logout as *const c_void),
    of("C_CreateObject", finding::create_object as *const c_void),
    of("C_CopyObject", unsupported as *const c_void),
    of("C_DestroyObject", finding::destroy_object as *const c_void),
    of("C_GetObjectSize", finding::get_object_size as *const c_void),
    of("C_GetAttributeValue", finding::get_attribute_value as *const c_void),
    of("C_SetAttributeValue", finding::set_attribute_value as *const c_void),
    of("C_FindObjectsInit", finding::find_objects_init as *const c_void),
    of("C_FindObjects", finding::find_objects as *const c_void),
    of("C_FindObjectsFinal", finding::find_objects_final as *const c_void),
    of("C_EncryptInit", decrypt_functions::encrypt_init as *const c_void),
    of("C_Encrypt", decrypt_functions::encrypt as *const c_void),
    of("C_EncryptUpdate", decrypt_functions::encrypt_update as *const c_void),
    of("C_EncryptFinal", decrypt_functions::encrypt_final as *const c_void),
    of("C_DecryptInit", decrypt_functions::decrypt_init as *const c_void),
    of("C_Decrypt", decrypt_functions::decrypt as *const c_void),
    of("C_DecryptUpdate", decrypt_functions::decrypt_update as *const c_void),
    of("C_DecryptFinal", decrypt_functions::decrypt_final as *const c_void),
    of("C_DigestInit", digest_functions::digest_init as *const c_void),
    of("C_Digest", digest_functions::digest as *const c_void),
    of("C_DigestUpdate", digest_functions::digest_update as *const c_void),
    of("C_DigestKey", unsupported as *const c_void),
    of("C_DigestFinal", digest_functions::digest_final as *const c_void),
    of("C_SignInit", sign_functions::sign_init as *const c_void),
    of("C_Sign", sign_functions::sign as *const c_void),
    of("C_SignUpdate", sign_functions::sign_update as *const c_void),
    of("C_SignFinal", sign_functions::sign_final as *const c_void),
    of("C_SignRecoverInit", unsupported as *const c_void),
    of("C_SignRecover", unsupported as *const c_void),
    of("C_VerifyInit", sign_functions::verify_init as *const c_void),
    of("C_Verify", sign_functions::verify as *const c_void),
    of("C_VerifyUpdate", sign_functions::verify_update as *const c_void),
    of("C_VerifyFinal", sign_functions::verify_final as *const c_void),
    of("C_VerifyRecoverInit", unsupported as *const c_void),
    of("C_VerifyRecover", unsupported as *const c_void),
    of("C_DigestEncryptUpdate", unsupported as *const c_void),
    of("C_DecryptDigestUpdate", unsupported as *const c_void),
    of("C_SignEncryptUpdate", unsupported as *const c_void),
    of("C_DecryptVerifyUpdate", unsupported as *const c_void),
    of("C_GenerateKey", unsupported as *const c_void),
    of("C_GenerateKeyPair", generate_functions::generate_key_pair as *const c_void),
    of("C_WrapKey", unsupported as *const c_void),
    of("C_UnwrapKey", unsupported as *const c_void),
    of("C_DeriveKey", secret_functions::derive_key as *const c_void),
    of("C_SeedRandom", digest_functions::seed_random as *const c_void),
    of("C_GenerateRandom", digest_functions::generate_random as *const c_void),
    of("C_GetFunctionStatus", session_functions::no_parallel_function as *const c_void),
    of("C_CancelFunction", session_functions::no_parallel_function as *const c_void),
    of("C_WaitForSlotEvent", general::wait_for_slot_event as *const c_void),
    of("C_GetInterfaceList", C_GetInterfaceList as *const c_void),
    of("C_GetInterface", C_GetInterface as *const c_void),
    of("C_LoginUser", session_functions::login_user as *const c_void),
    of("C_SessionCancel", session_functions::session_cancel as *const c_void),
    of("C_MessageEncryptInit", unsupported as *const c_void),
    of("C_EncryptMessage", unsupported as *const c_void),
    of("C_EncryptMessageBegin", unsupported as *const c_void),
    of("C_EncryptMessageNext", unsupported as *const c_void),
    of("C_MessageEncryptFinal", unsupported as *const c_void),
    of("C_MessageDecryptInit", unsupported as *const c_void),
    of("C_DecryptMessage", unsupported as *const c_void),
    of("C_DecryptMessageBegin", unsupported as *const c_void),
    of("C_DecryptMessageNext", unsupported as *const c_void),
    of("C_MessageDecryptFinal", unsupported as *const c_void),
    of("C_MessageSignInit", unsupported as *const c_void),
    of("C_SignMessage", unsupported as *const c_void),
    of("C_SignMessageBegin", unsupported as *const c_void),
    of("C_SignMessageNext", unsupported as *const c_void),
    of("C_MessageSignFinal", unsupported as *const c_void),
    of("C_MessageVerifyInit", unsupported as *const c_void),
    of("C_VerifyMessage", unsupported as *const c_void),
    of("C_VerifyMessageBegin", unsupported as *const c_void),
    of("C_VerifyMessageNext", unsupported as *const c_void),
    of("C_MessageVerifyFinal", unsupported as *const c_void),
];

/// How many of them are in the list of 2.40.
const FUNCTIONS_OF_2_40: usize = 68;

static LIST_2_40: FunctionList<FUNCTIONS_OF_2_40> =
    FunctionList::new(Version { major: 2, minor: 40 }, &FUNCTIONS);
static LIST_3_0: FunctionList<{ FUNCTIONS.len() }> =
    FunctionList::new(Version { major: 3, minor: 0 }, &FUNCTIONS);

const NAME: &CStr = c"PKCS 11";
/// A process that is forked goes on with what it has inherited.
const FLAGS: Ulong = FLAG_INTERFACE_FORK_SAFE;
static INTERFACES: [Interface; 2] =
    [Interface::new(NAME, &LIST_3_0, FLAGS), Interface::new(NAME, &LIST_2_40, FLAGS)];

/// The list of 2.40, which every program knows.
#[unsafe(no_mangle)]
extern "C" fn C_GetFunctionList(mut place: Place<&'static FunctionList<FUNCTIONS_OF_2_40>>) -> Rv {
    guard(|| place.put(&LIST_2_40))
}

/// Both lists, the newer first.
#[unsafe(no_mangle)]
extern "C" fn C_GetInterfaceList(mut interfaces: Array<Interface>, mut count: Place<Ulong>) -> Rv {
    guard(|| interfaces.put(&mut count, &INTERFACES))
}

/// The list of a version, or the newest.
#[unsafe(no_mangle)]
extern "C" fn C_GetInterface(
    name: InterfaceName,
    version: Place<Version>,
    mut place: Place<&'static Interface>,
    flags: Ulong,
) -> Rv {
    guard(|| {
        let versions = [LIST_3_0.version(), LIST_2_40.version()];
        let mut all = INTERFACES.iter().zip(versions);
        let is_wanted = |own: Version| version.version().is_none_or(|wanted| wanted == own);
        let found = all.find(|(_, own)| is_wanted(*own));
        let found = found.filter(|_| name.accepts(NAME) && flags & !FLAGS == 0);
        place.put(found.ok_or(FUNCTION_FAILED)?.0)
    })
}
