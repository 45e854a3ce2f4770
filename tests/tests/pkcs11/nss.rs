//! NSS: a database whose keys are in a token.

use super::Site;
use keyway_tests::pkcs11_module;
use std::fs;

#[test]
fn nss_signs_messages() {
    let Some(site) = Site::with_certificates(&["certutil", "modutil", "cmsutil"]) else { return };
    let database = "sql:database";
    fs::create_dir(site.file("database")).unwrap();
    site.run("certutil", &["-N", "-d", database, "--empty-password"]).expect(0);
    let module = pkcs11_module().to_str().unwrap();
    let add = ["-dbdir", database, "-add", "keyway", "-libfile", module, "-force"];
    site.run("modutil", &add).expect(0);
    let trust = ["-A", "-d", database, "-n", "authority", "-t", "C,C,C", "-i", "rsa.crt"];
    site.run("certutil", &trust).expect(0);
    let listed = site.run("certutil", &["-L", "-d", database, "-h", "Keyway"]).expect(0).out;
    for name in ["ec", "ec384", "ec521", "rsa"] {
        // It has found the certificate's key.
        let line = listed.lines().find(|line| line.starts_with(&format!("Keyway:{name} ")));
        assert!(line.is_some_and(|line| line.contains("u,u,u")), "{listed}");
        let nickname = format!("Keyway:{name}");
        let sign =
            ["-S", "-d", database, "-N", &nickname, "-i", "text", "-o", "message", "-H", "SHA256"];
        site.run("cmsutil", &sign).expect(0);
        let verify = ["cms", "-verify", "-inform", "DER", "-in", "message", "-CAfile", "rsa.crt"];
        site.run("openssl", &[&verify[..], &["-purpose", "any"]].concat()).expect(0);
    }
    assert!(site.cryptod.stop().success());
}
