//! OpenSSH: `ssh-keygen` as a certificate authority whose key is in a token.

use super::Site;
use keyway_tests::pkcs11_module;
use std::fs;

#[test]
fn ssh_keygen_lists_keys_and_certifies() {
    let Some(site) = Site::new(&["ssh-keygen"]) else { return };
    let listed = site.with_module("ssh-keygen", "-D", &[]).expect(0).out;
    // It knows no Ed25519 in a token.
    assert_eq!(listed.lines().count(), 6, "{listed}");
    site.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "user"]).expect(0);
    let module = pkcs11_module().to_str().unwrap();
    for key in ["ec", "ec384", "ec521", "rsa"] {
        let line = listed.lines().find(|line| line.ends_with(&format!(" {key}"))).unwrap();
        let public = format!("{key}.ssh");
        fs::write(site.file(&public), format!("{line}\n")).unwrap();
        let certify = ["-D", module, "-s", &public, "-I", "it", "-n", "user", "user.pub"];
        site.run("ssh-keygen", &certify).expect(0);
        // It verifies the signature when it reads the certificate.
        let shown = site.run("ssh-keygen", &["-L", "-f", "user-cert.pub"]).expect(0).out;
        assert!(shown.contains("Key ID: \"it\""), "{shown}");
    }
    assert!(site.cryptod.stop().success());
}
