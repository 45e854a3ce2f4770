//! `cargo xtask emulate`: simd's tests with its AVX-512 backends, on a processor without AVX-512.
//!
//! A copy of simd calls functions for that processor's instructions, and asks for features that
//! others have as well. This shows that the backends compute what they should; not what the
//! compiler makes of them, nor how fast it is.

use crate::shell::{cargo, root, run as sh, strict};
use std::fs;
use std::path::{Path, PathBuf};

/// A workspace of its own, and the copy in it. In a folder of the same name as simd's, Cargo would
/// take the one for the other.
const WORKSPACE: &str = "target/emulated";
const COPY: &str = "emulated-simd";
const SIMD: &str = "crypto/simd";
/// The functions.
pub const EMULATED: &str = "crypto/simd/tests/emulated/avx512.rs";
/// A test that is about instructions.
const NOT_RUN: &str = "secrets";

/// The text in the sources, and the copy's instead.
const REWRITTEN: [(&str, &str); 4] = [
    ("mod x86;\n", "mod x86;\n#[allow(unsafe_code)]\nmod emulated;\n"),
    ("use std::arch::x86_64::*;", "use crate::emulated::*;"),
    (
        r#"unsafe { asm!("/* {} */", inout(zmm_reg) value, options(nomem, nostack, preserves_flags)) };"#,
        "value = std::hint::black_box(value);",
    ),
    // Warnings of imports that are not used, and of code that is no longer unsafe.
    ("#![deny(unsafe_code)]", "#![deny(unsafe_code)]\n#![allow(warnings)]"),
];

/// Features, and what takes their place in sources that ask for AVX-512.
const FEATURES: [(&str, &str); 6] = [
    ("avx512vbmi", "avx2"),
    ("avx512bw", "avx2"),
    ("avx512vl", "avx2"),
    ("avx512f", "avx2"),
    ("vpclmulqdq", "pclmulqdq"),
    ("vaes", "aes"),
];

pub fn run() -> Result<(), String> {
    if !able() {
        let why = "AVX-512 is emulated with AVX2, AES-NI, PCLMULQDQ and BMI2, which are not here";
        // Other processors have no such backends.
        if strict() && cfg!(target_arch = "x86_64") {
            return Err(why.into());
        }
        eprintln!("skipped: {why}");
        return Ok(());
    }
    copy()?;
    let mut tests = cargo();
    tests
        .args(["test", "--no-fail-fast", "--manifest-path"])
        .arg(root().join(WORKSPACE).join("Cargo.toml"));
    // With the libraries that other tests were built with.
    tests.args(["--target-dir", "target", "--lib"]);
    for path in files(&root().join(SIMD).join("tests"))? {
        let name = path.file_stem().unwrap_or_default();
        if path.parent() == Some(Path::new("")) && name != NOT_RUN {
            tests.arg("--test").arg(name);
        }
    }
    sh(&mut tests)
}

/// Whether the processor has AVX-512 itself, as simd uses it, or is one that never has.
pub fn native() -> bool {
    #[cfg(target_arch = "x86_64")]
    let native = std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512vbmi")
        && std::is_x86_feature_detected!("vaes")
        && std::is_x86_feature_detected!("vpclmulqdq");
    #[cfg(not(target_arch = "x86_64"))]
    let native = true;
    native
}

/// Whether the processor has what takes AVX-512's place.
fn able() -> bool {
    #[cfg(target_arch = "x86_64")]
    let able = std::is_x86_feature_detected!("avx2")
        && std::is_x86_feature_detected!("aes")
        && std::is_x86_feature_detected!("pclmulqdq")
        && std::is_x86_feature_detected!("bmi2");
    #[cfg(not(target_arch = "x86_64"))]
    let able = false;
    able
}

/// Makes the copy. Where a source is no longer as it is rewritten here, the copy does not compile,
/// or the functions' own test fails.
fn copy() -> Result<(), String> {
    let (simd, workspace) = (root().join(SIMD), root().join(WORKSPACE));
    let copy = workspace.join(COPY);
    let manifest = read(&root().join("Cargo.toml"))?;
    let (_, rest) = manifest.split_once("[workspace.package]").ok_or("no [workspace.package]")?;
    let members = format!("[workspace]\nresolver = \"3\"\nmembers = [\"{COPY}\"]\n\n");
    write(&workspace.join("Cargo.toml"), &format!("{members}[workspace.package]{rest}"))?;
    write(&workspace.join("Cargo.lock"), &read(&root().join("Cargo.lock"))?)?;
    // Files that simd no longer has would be compiled, too.
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|why| format!("{}: {why}", copy.display()))?;
    }
    for path in files(&simd)? {
        write(&copy.join(&path), &rewritten(read(&simd.join(&path))?))?;
    }
    write(&copy.join("src/emulated.rs"), &read(&root().join(EMULATED))?)
}

/// The copy's text for a source.
fn rewritten(mut text: String) -> String {
    for (from, to) in REWRITTEN {
        text = text.replace(from, to);
    }
    // Other backends keep what they ask for.
    if text.contains("avx512") {
        for (from, to) in FEATURES {
            text = text.replace(from, to);
        }
    }
    text
}

/// All files below a folder, from there.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))? {
        let path = entry.map_err(|why| format!("{}: {why}", folder.display()))?.path();
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        if path.is_dir() {
            all.extend(files(&path)?.into_iter().map(|below| name.join(below)));
        } else {
            all.push(name);
        }
    }
    Ok(all)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))
}

/// Leaves a file that says the same as it is, so that nothing is compiled anew for it.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|why| format!("{}: {why}", path.display()))
}
