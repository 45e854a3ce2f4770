//! The library stays in its process after `dlclose`: threads may be in it, and what it keeps open would be lost.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
