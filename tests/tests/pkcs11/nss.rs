//! NSS: a database whose keys are in a token.

use super::Site;
use keyway_tests::pkcs11_module;
use std::fs;

#[test]
fn nss_signs_requests() {
    let Some(site) = Site::with_certificates(&["certutil", "modutil"]) else { return };
    let database = "sql:database";
    fs::create_dir(site.file("database")).unwrap();
    site.run("certutil", &["-N", "-d", database, "--empty-password"]).expect(0);
    let module = pkcs11_module().to_str().unwrap();
    let add = ["-dbdir", database, "-add", "keyway", "-libfile", module, "-force"];
    site.run("modutil", &add).expect(0);
    let listed = site.run("certutil", &["-L", "-d", database, "-h", "Keyway"]).expect(0).out;
    for name in ["ec", "ec384", "ec521", "rsa"] {
        // It has found the certificate's key.
        let its = |line: &&str| line.starts_with(&format!("Keyway:{name} "));
        let trust = listed.lines().find(its).and_then(|line| line.split_whitespace().last());
        assert!(trust.is_some_and(|trust| trust.contains('u')), "{listed}");
        let nickname = format!("Keyway:{name}");
        let sign = ["-R", "-d", database, "-h", "Keyway", "-k", &nickname, "-s", "CN=it"];
        site.run("certutil", &[&sign[..], &["-Z", "SHA256", "-a", "-o", "csr"]].concat()).expect(0);
        site.run("openssl", &["req", "-verify", "-noout", "-in", "csr"]).expect(0);
    }
    assert!(site.cryptod.stop().success());
}
