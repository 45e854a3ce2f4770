//! Every number, name and layout, against the headers that are installed.

use super::*;
use std::fmt::Write;
use std::mem::offset_of;
use std::process::Command;

const HEADERS: &str = "/usr/include/openssl/core_dispatch.h";

#[test]
fn numbers_names_and_layouts_are_those_of_the_headers() {
    if !std::path::Path::new(HEADERS).exists() {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "nothing may be skipped in CI, but libssl-dev is missing");
        eprintln!("skipped: not installed: libssl-dev");
        return;
    }
    let mut program = String::from(
        "#include <assert.h>\n#include <stddef.h>\n#include <string.h>\n#include <openssl/core_dispatch.h>\n\
         #include <openssl/core_names.h>\n#include <openssl/core_object.h>\n#include <openssl/err.h>\n#include <openssl/evp.h>\n\
         #include <openssl/proverr.h>\n#include <openssl/rsa.h>\n#include <openssl/store.h>\n",
    );
    for (name, value) in NUMBERS.iter().chain(TYPES) {
        writeln!(program, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    writeln!(program, "_Static_assert(OSSL_PARAM_UNMODIFIED == (size_t)-1, \"\");").unwrap();
    let mut field = |c: &str, of: usize| {
        writeln!(program, "_Static_assert({c} == {of}, \"{}\");", c.replace('"', "")).unwrap();
    };
    field("sizeof(OSSL_DISPATCH)", size_of::<Dispatch>());
    field("offsetof(OSSL_DISPATCH, function)", offset_of!(Dispatch, function));
    field("sizeof(OSSL_ALGORITHM)", size_of::<Algorithm>());
    field("offsetof(OSSL_ALGORITHM, algorithm_names)", offset_of!(Algorithm, names));
    field("offsetof(OSSL_ALGORITHM, property_definition)", offset_of!(Algorithm, properties));
    field("offsetof(OSSL_ALGORITHM, implementation)", offset_of!(Algorithm, implementation));
    field("offsetof(OSSL_ALGORITHM, algorithm_description)", offset_of!(Algorithm, description));
    field("sizeof(OSSL_PARAM)", size_of::<Param>());
    field("offsetof(OSSL_PARAM, data_type)", offset_of!(Param, data_type));
    field("offsetof(OSSL_PARAM, data)", offset_of!(Param, data));
    field("offsetof(OSSL_PARAM, data_size)", offset_of!(Param, data_size));
    field("offsetof(OSSL_PARAM, return_size)", offset_of!(Param, return_size));
    program.push_str("int main(void) {\n");
    for (name, value) in NAMES {
        let value = value.to_str().unwrap();
        writeln!(program, "    if (strcmp({name}, \"{value}\") != 0) return 1;").unwrap();
    }
    program.push_str("    return 0;\n}\n");
    let place = tempfile::tempdir().unwrap();
    let (source, built) = (place.path().join("abi.c"), place.path().join("abi"));
    std::fs::write(&source, program).unwrap();
    let compiled = Command::new("cc").arg("-o").arg(&built).arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    assert!(Command::new(&built).status().unwrap().success(), "a name differs");
}
