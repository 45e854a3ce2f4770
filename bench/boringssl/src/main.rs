//! BoringSSL as a program that `keyway-bench packet` measures.

use boring_sys as _;
use std::ffi::c_int;

unsafe extern "C" {
    fn peer_main() -> c_int;
}

fn main() {
    // SAFETY: it is C's `main`, takes nothing, and is called once.
    std::process::exit(unsafe { peer_main() });
}
