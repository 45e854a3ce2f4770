//! The OpenSSL of Debian 13 (3.5), which has names for ML-DSA: certificates and TLS with such keys, and with the others.

use super::tls::Running;
use super::{KEYS, Site};
use keyway_tests::{ALL_CALLERS, Finished, finish, nightly, openssl_provider, port};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Debian 13 with OpenSSL, kept for the next time.
fn debian_13() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/packages/debian-13");
    if !root.join("complete").exists() {
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let mut fetch = Command::new("debootstrap");
        fetch.args(["--variant=minbase", "--include=openssl", "trixie"]);
        finish(fetch.arg(&root), "").expect(0);
        fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        fs::write(root.join("complete"), "").unwrap();
    }
    root.canonicalize().unwrap()
}

/// `openssl` in that Debian, in the site's folder, which has the same place there.
fn openssl(site: &Site, root: &Path, configuration: &str) -> Command {
    let place = site.place();
    let inside = format!("{}{}", root.display(), place.display());
    fs::create_dir_all(&inside).unwrap();
    let script = "mount --bind \"$1\" \"$2\" && exec chroot \"$3\" sh -c 'cd \"$0\" && exec openssl \"$@\"' \
                  \"$1\" \"${@:4}\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", script, "bash"]).arg(place).arg(inside).arg(root);
    command.env("OPENSSL_CONF", site.file(configuration));
    command
}

#[test]
fn keys_of_every_kind_serve_openssl_3_5() {
    if !nightly() {
        return;
    }
    let Some(site) = Site::new(&["debootstrap"]) else { return };
    let root = debian_13();
    let provider = site.file("keyway.so");
    fs::copy(openssl_provider(), &provider).unwrap();
    let text = site.configuration();
    let usual = openssl_provider().display().to_string();
    let text = text.replace(&usual, &provider.display().to_string());
    fs::write(site.file("openssl.cnf"), text).unwrap();
    let run = |configuration: &str, arguments: &[&str]| -> Finished {
        finish(openssl(&site, &root, configuration).args(arguments), "")
    };
    let ours = |arguments: &[&str]| run("openssl.cnf", arguments).expect(0).out;
    let stock = |arguments: &[&str]| run("stock.cnf", arguments).expect(0).out;
    assert!(stock(&["version"]).contains("OpenSSL 3.5"));
    let ml_dsa = ["ml-dsa-44", "ml-dsa-65", "ml-dsa-87"];
    let others = KEYS.map(|(name, kind, ..)| (name, kind));
    for (name, kind) in others.into_iter().chain(ml_dsa.map(|kind| (kind, kind))) {
        site.generate(name, kind, ALL_CALLERS);
        let (pem, certificate) = (&format!("{name}.pem"), &format!("{name}.crt"));
        let public = fs::read_to_string(site.file(&format!("{name}.pub"))).unwrap();
        assert_eq!(ours(&["pkey", "-in", pem, "-pubout"]), public);
        let made = ["req", "-x509", "-new", "-subj", "/CN=localhost", "-days", "3", "-key", pem];
        let names = ["-addext", "subjectAltName=DNS:localhost", "-out", certificate];
        ours(&[&made[..], &names].concat());
        stock(&["verify", "-CAfile", certificate, certificate]);
        let address = port();
        let mut server = openssl(&site, &root, "openssl.cnf");
        server.args(["s_server", "-quiet", "-www", "-accept", &address, "-cert", certificate]);
        let _running = Running::start(&site, server.args(["-key", pem]), &[&address]);
        let client = ["s_client", "-connect", &address, "-CAfile", certificate, "-tls1_3"];
        let said = stock(&[&client[..], &["-verify_return_error"]].concat());
        assert!(said.contains("Verify return code: 0 (ok)"), "{name}: {said}");
        let signature = format!("Peer signature type: {}", kind.replace('-', ""));
        assert!(!ml_dsa.contains(&kind) || said.contains(&signature), "{name}: {said}");
    }
    site.generate("x", "x25519", ALL_CALLERS);
    stock(&["genpkey", "-algorithm", "X25519", "-out", "peer.pem"]);
    stock(&["pkey", "-in", "peer.pem", "-pubout", "-out", "peer.pub"]);
    ours(&["pkeyutl", "-derive", "-inkey", "x.pem", "-peerkey", "peer.pub", "-out", "own"]);
    stock(&["pkeyutl", "-derive", "-inkey", "peer.pem", "-peerkey", "x.pub", "-out", "theirs"]);
    assert_eq!(fs::read(site.file("own")).unwrap(), fs::read(site.file("theirs")).unwrap());
    assert!(site.cryptod.stop().success());
}
