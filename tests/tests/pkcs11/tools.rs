//! `pkcs11-tool` of OpenSC and `p11tool` of GnuTLS: objects, and every mechanism, verified by OpenSSL.

use super::{KEYS, Site};
use keyway_tests::{finish, pkcs11_module};
use std::fs;

#[test]
fn pkcs11_tool_finds_its_test_passed() {
    let Some(site) = Site::new(&["pkcs11-tool"]) else { return };
    let listed = site.with_module("pkcs11-tool", "--module", &["--list-objects"]).expect(0).out;
    for (name, _) in KEYS {
        assert_eq!(listed.matches(&format!("label:      {name}\n")).count(), 2, "{listed}");
    }
    // It tries all mechanisms with each key that it is shown.
    let mut test = site.command("pkcs11-tool");
    test.args(["--test", "--module"]).arg(pkcs11_module()).env("KEYWAY_KEYS", "rsa,ec");
    let tested = finish(&mut test, "").expect(0).out;
    for line in ["    SHA256-RSA-PKCS: OK", "    RSA-PKCS-OAEP: ", "No errors"] {
        assert!(tested.contains(line), "{tested}");
    }
    assert!(site.cryptod.stop().success());
}

/// Runs `pkcs11-tool`, which is shown one key: it takes a label for any key's.
fn with_key(site: &Site, key: &str, arguments: &[&str]) {
    let mut tool = site.command("pkcs11-tool");
    tool.arg("--module").arg(pkcs11_module()).args(arguments).env("KEYWAY_KEYS", key);
    finish(&mut tool, "").expect(0);
}

#[test]
fn signatures_by_every_mechanism_are_verified_by_openssl() {
    let Some(site) = Site::new(&["pkcs11-tool"]) else { return };
    let sign = |key: &str, mechanism: &str, options: &[&str], input: &str| {
        let how = ["--sign", "--mechanism", mechanism, "--input-file", input];
        let rest = ["--output-file", "signature", "--signature-format", "openssl"];
        with_key(&site, key, &[&how[..], &rest, options].concat());
    };
    let verify = |key: &str, digest: &str, options: &[&str]| {
        let public = format!("{key}.pub");
        let how = ["dgst", digest, "-verify", &public, "-signature", "signature"];
        site.run("openssl", &[&how[..], options, &["text"]].concat()).expect(0);
    };
    for (hash, digest) in [
        ("SHA1", "-sha1"),
        ("SHA224", "-sha224"),
        ("SHA256", "-sha256"),
        ("SHA384", "-sha384"),
        ("SHA512", "-sha512"),
    ] {
        site.run("openssl", &["dgst", digest, "-binary", "-out", "digest", "text"]).expect(0);
        sign("rsa", &format!("{hash}-RSA-PKCS"), &[], "text");
        verify("rsa", digest, &[]);
        let pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt"];
        sign("rsa", &format!("{hash}-RSA-PKCS-PSS"), &[], "text");
        verify("rsa", digest, &[&pss[..], &["rsa_pss_saltlen:digest"]].concat());
        let number = if hash == "SHA1" { "SHA-1" } else { hash };
        let mgf = "MGF1-SHA1";
        let given = ["--hash-algorithm", number, "--mgf", mgf, "--salt-len", "7"];
        sign("rsa", "RSA-PKCS-PSS", &given, "digest");
        let salt = ["rsa_pss_saltlen:7", "-sigopt", "rsa_mgf1_md:sha1"];
        verify("rsa", digest, &[&pss[..], &salt].concat());
        for key in ["ec", "ec384", "ec521"] {
            sign(key, "ECDSA", &[], "digest");
            verify(key, digest, &[]);
            sign(key, &format!("ECDSA-{hash}"), &[], "text");
            verify(key, digest, &[]);
        }
    }
    sign("one", "SHA256-RSA-PKCS", &[], "text");
    verify("one", "-sha256", &[]);
    sign("ed", "EDDSA", &[], "text");
    let verified = ["pkeyutl", "-verify", "-pubin", "-inkey", "ed.pub", "-rawin", "-in", "text"];
    site.run("openssl", &[&verified[..], &["-sigfile", "signature"]].concat()).expect(0);
    assert!(site.cryptod.stop().success());
}

/// OpenSSL has encrypted them to a public key.
#[test]
fn texts_are_decrypted() {
    let Some(site) = Site::new(&["pkcs11-tool"]) else { return };
    let encrypted = |options: &[&str]| {
        let how = ["pkeyutl", "-encrypt", "-pubin", "-inkey", "rsa.pub", "-in", "text"];
        site.run("openssl", &[&how[..], &["-out", "sealed"], options].concat()).expect(0);
    };
    let decrypted = |mechanism: &[&str]| {
        let how = ["--decrypt", "--input-file", "sealed", "--output-file", "opened"];
        with_key(&site, "rsa", &[&how[..], &["--mechanism"], mechanism].concat());
        assert_eq!(fs::read_to_string(site.file("opened")).unwrap(), "a text", "{mechanism:?}");
    };
    encrypted(&[]);
    decrypted(&["RSA-PKCS"]);
    let oaep = ["-pkeyopt", "rsa_padding_mode:oaep", "-pkeyopt"];
    for hash in ["sha1", "sha256", "sha384", "sha512"] {
        encrypted(&[&oaep[..], &[&format!("rsa_oaep_md:{hash}")]].concat());
        let name = if hash == "sha1" { "SHA-1" } else { &hash.to_uppercase() };
        let mgf = format!("MGF1-{}", hash.to_uppercase());
        decrypted(&["RSA-PKCS-OAEP", "--hash-algorithm", name, "--mgf", &mgf]);
    }
    assert!(site.cryptod.stop().success());
}

#[test]
fn secrets_are_agreed_on() {
    let Some(site) = Site::new(&["pkcs11-tool"]) else { return };
    let curve = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"];
    site.run("openssl", &[&curve[..], &["-out", "peer.pem"]].concat()).expect(0);
    let public = ["pkey", "-in", "peer.pem", "-pubout", "-outform", "DER", "-out", "peer.der"];
    site.run("openssl", &public).expect(0);
    let derive = ["pkeyutl", "-derive", "-inkey", "peer.pem", "-peerkey", "agreeing.pub"];
    site.run("openssl", &[&derive[..], &["-out", "secret"]].concat()).expect(0);
    let derive = ["--derive", "--mechanism", "ECDH1-DERIVE", "--input-file", "peer.der"];
    with_key(&site, "agreeing", &[&derive[..], &["--output-file", "own"]].concat());
    assert_eq!(fs::read(site.file("own")).unwrap(), fs::read(site.file("secret")).unwrap());
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_program_makes_keys_in_its_name_space_and_destroys_them() {
    let user = rustix::process::geteuid().as_raw();
    let space = format!("tool.=user:{user}");
    let Some(site) = Site::on(&["pkcs11-tool"], &["--name-space", &space]) else { return };
    let tool = |arguments: &[&str]| site.with_module("pkcs11-tool", "--module", arguments);
    let kinds = [
        ("rsa", "rsa:2048"),
        ("ec", "EC:secp384r1"),
        ("ed", "EC:edwards25519"),
        ("x", "EC:curve25519"),
    ];
    for (label, kind) in kinds {
        let made = tool(&["--keypairgen", "--key-type", kind, "--label", label]).expect(0).out;
        assert!(made.contains(&format!("label:      tool.{label}\n")), "{made}");
        let url = format!("tool.{label}");
        let hash = if label == "rsa" { "SHA256-RSA-PKCS" } else { "ECDSA-SHA256" };
        if label == "rsa" || label == "ec" {
            with_key(
                &site,
                &url,
                &[
                    "--sign",
                    "--mechanism",
                    hash,
                    "--input-file",
                    "text",
                    "--output-file",
                    "signature",
                    "--signature-format",
                    "openssl",
                ],
            );
            fs::write(site.file("made.pub"), site.key(&["public", &url, "--pem"])).unwrap();
            let verify =
                ["dgst", "-sha256", "-verify", "made.pub", "-signature", "signature", "text"];
            site.run("openssl", &verify).expect(0);
        }
    }
    // It could be taken out, or is of a size that there is not.
    tool(&["--keypairgen", "--key-type", "rsa:1024", "--label", "weak"]).expect(1);
    tool(&["--keypairgen", "--key-type", "rsa:2048", "--label", "out", "--extractable"]).expect(1);
    for label in ["tool.rsa", "tool.ec", "tool.ed", "tool.x"] {
        tool(&["--delete-object", "--type", "privkey", "--label", label]).expect(0);
    }
    tool(&["--delete-object", "--type", "privkey", "--label", "rsa"]).expect(1);
    let listed = tool(&["--list-objects"]).expect(0).out;
    assert!(!listed.contains("tool."), "{listed}");
    assert!(site.cryptod.stop().success());
}

#[test]
fn p11tool_signs_with_every_key() {
    let Some(site) = Site::with_certificates(&["p11tool"]) else { return };
    let p11tool = |arguments: &[&str]| site.with_module("p11tool", "--provider", arguments);
    let all = p11tool(&["--list-all"]).expect(0).out;
    // Each certificate once, although it is in several chains.
    assert_eq!(all.matches("type=cert").count(), 5, "{all}");
    assert_eq!(all.matches("type=private").count(), KEYS.len(), "{all}");
    assert!(!all.contains("CKA_EXTRACTABLE"), "{all}");
    for (name, _) in KEYS.into_iter().filter(|(name, _)| *name != "agreeing") {
        let hash = if name == "ed" { "--hash=sha512" } else { "--hash=sha256" };
        let url = format!("pkcs11:token=Keyway;object={name};type=private");
        let signed = p11tool(&["--test-sign", hash, &url]);
        // GnuTLS signs digests, by a mechanism that this key is not for.
        if name == "one" {
            assert!(signed.code != 0 && !signed.err.is_empty(), "{}", signed.err);
        } else {
            let said = signed.expect(0).err;
            assert_eq!(said.matches("... ok").count(), 3, "{name}: {said}");
        }
    }
    let url = "pkcs11:token=Keyway;object=rsa;type=private";
    p11tool(&["--test-sign", "--sign-params=RSA-PSS", url]).expect(0);
    // A program is shown only some keys.
    let mut some = site.command("p11tool");
    some.args(["--list-privkeys", "--provider"]).arg(pkcs11_module());
    let shown = finish(some.env("KEYWAY_KEYS", "ec384, rsa"), "").expect(0).out;
    assert_eq!(shown.matches("type=private").count(), 2, "{shown}");
    assert!(site.cryptod.stop().success());
}
