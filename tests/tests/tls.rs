//! OpenSSL's `s_client` on both ports: versions, suites, groups, StartTLS, client certificates.

use keyway_tests::{Server, available, finish, sample};
use std::process::Command;

fn s_client(server: &Server, arguments: &[&str]) -> keyway_tests::Finished {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-connect", server.tls_address(), "-CAfile"]);
    command.arg(server.text("ca_certificate")).args([
        "-verify_return_error",
        "-verify_ip",
        "127.0.0.1",
    ]);
    finish(command.args(arguments), "Q\n")
}

#[test]
fn versions_suites_and_groups() {
    if !available(&["openssl"]) {
        return;
    }
    let (_folder, mut server) = sample(0);
    let good: &[&[&str]] = &[
        &["-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256"],
        &["-tls1_3", "-ciphersuites", "TLS_AES_256_GCM_SHA384"],
        &["-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"],
        &["-tls1_3", "-groups", "X25519"],
        &["-tls1_3", "-groups", "P-256"],
        &["-tls1_3", "-groups", "P-384"],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"],
    ];
    for arguments in good {
        let done = s_client(&server, arguments).expect(0);
        assert!(done.out.contains("Verify return code: 0 (ok)"), "{arguments:?}\n{}", done.out);
    }
    let bad: &[&[&str]] = &[
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
        &["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
        &["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
    ];
    for arguments in bad {
        let refused = s_client(&server, arguments);
        assert_ne!(refused.code, 0, "{arguments:?} must be refused");
        assert!(refused.err.contains(" alert "), "why: {}", refused.err);
    }
    assert!(server.is_up());
}

#[test]
fn start_tls_by_another_implementation() {
    if !available(&["openssl"]) {
        return;
    }
    let (_folder, server) = sample(0);
    let mut command = Command::new("openssl");
    command.args(["s_client", "-starttls", "ldap", "-connect", server.address(), "-CAfile"]);
    command.arg(server.text("ca_certificate")).arg("-verify_return_error");
    let done = finish(&mut command, "Q\n").expect(0);
    assert!(done.out.contains("Verify return code: 0 (ok)"), "{}", done.out);
}

/// Messages of TLS between answers: that there is no renegotiation, and new keys.
#[test]
fn tls_answers_its_own_messages() {
    if !available(&["openssl", "timeout"]) {
        return;
    }
    let (_folder, mut server) = sample(0);
    let ca = server.text("ca_certificate").to_owned();
    let s_client = |arguments: &[&str], input: &str| {
        let mut command = Command::new("timeout");
        command.args(["60", "openssl", "s_client", "-CAfile", &ca]);
        finish(command.args(arguments), input)
    };
    const TIMED_OUT: i32 = 124;
    let (ldap, ldaps) = (server.address(), server.tls_address());
    for port in [&["-connect", ldaps][..], &["-connect", ldap, "-starttls", "ldap"]] {
        let asked = s_client(&[port, &["-tls1_2"]].concat(), "R");
        assert_ne!(asked.code, TIMED_OUT, "{port:?}: {}{}", asked.out, asked.err);
        assert!(asked.err.contains("no renegotiation"), "{port:?}: {}", asked.err);
        for letter in ["K", "k"] {
            let keys = s_client(&[port, &["-tls1_3"]].concat(), letter).expect(0);
            assert!(keys.err.contains("KEYUPDATE"), "{}{}", keys.out, keys.err);
        }
    }
    assert!(server.is_up());
}

/// SASL EXTERNAL: a certificate of our CA whose subject is an entry's DN is that entry.
#[test]
fn a_client_certificate_authenticates_its_subject() {
    if !available(&["openssl", "ldapwhoami", "ldapadd", "ldapsearch"]) {
        return;
    }
    // Alone it has its authority's key in a file, with which OpenSSL can issue.
    let folder = tempfile::tempdir().unwrap();
    let server = Server::ldapd(&folder.path().join("data"), &["--sample", "0"]);
    let entry = "dn: cn=robot,dc=example,dc=com\nobjectClass: applicationProcess\ncn: robot\n";
    finish(&mut server.admin_tool("ldapadd"), entry).expect(0);
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let openssl = |arguments: &[&str]| {
        finish(Command::new("openssl").args(arguments), "").expect(0);
    };
    let (key, request, certificate) = (path("c.key"), path("c.csr"), path("c.pem"));
    let subject = "/DC=com/DC=example/CN=robot";
    let new = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    openssl(&[&new[..], &["-keyout", &key, "-out", &request, "-subj", subject]].concat());
    let (ca, ca_key) = (server.text("ca_certificate"), server.text("ca_key"));
    let sign = ["x509", "-req", "-days", "1", "-CAcreateserial", "-CAserial"];
    let serial = path("serial");
    let extensions = path("ext");
    std::fs::write(&extensions, "extendedKeyUsage=clientAuth\n").unwrap();
    let files = ["-in", &request, "-CA", ca, "-CAkey", ca_key, "-out", &certificate];
    openssl(&[&sign[..], &[&serial, "-extfile", &extensions], &files].concat());
    let whoami = |with_certificate: bool| {
        let mut command = Command::new("ldapwhoami");
        command.args(["-Y", "EXTERNAL", "-Q", "-H", server.ldaps()]);
        command.env("LDAPTLS_CACERT", ca).env("LDAPTLS_REQCERT", "demand");
        if with_certificate {
            command.env("LDAPTLS_CERT", &certificate).env("LDAPTLS_KEY", &key);
        }
        finish(&mut command, "")
    };
    let out = whoami(true).expect(0).out;
    assert_eq!(out.trim(), "dn:cn=robot,dc=example,dc=com");
    assert_ne!(whoami(false).code, 0);
    // It is offered where it can help.
    let offered = |with_certificate: bool| {
        let mut command = server.tool("ldapsearch", server.ldaps());
        command.args(["-LLL", "-b", "", "-s", "base", "supportedSASLMechanisms"]);
        if with_certificate {
            command.env("LDAPTLS_CERT", &certificate).env("LDAPTLS_KEY", &key);
        }
        finish(&mut command, "").expect(0).out
    };
    let (with, without) = (offered(true), offered(false));
    assert!(with.contains(": EXTERNAL") && with.contains(": PLAIN"), "{with}");
    assert!(!without.contains(": EXTERNAL") && without.contains(": PLAIN"), "{without}");
}
