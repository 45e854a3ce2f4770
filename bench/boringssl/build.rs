//! Compiles the peer, which `boring-sys` brings the library for.

fn main() {
    println!("cargo:rerun-if-changed=../src/packet");
    let mut peer = cc::Build::new();
    peer.file("../src/packet/boringssl.c").define("main", "peer_main");
    peer.define("BORING_SYS", "\"5.4.0\"").compile("peer");
}
