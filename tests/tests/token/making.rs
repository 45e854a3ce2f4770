//! Keys of every kind, made in a token and used from a shell; what OpenSSL says of their signatures.

use super::{Site, Tokens};
use keyway_engine::{Algorithm, Key, Parameters, Request, SignatureParameters};
use keyway_tests::ALL_CALLERS;
use std::fs;

fn site(needs: &[&str]) -> Option<Site> {
    let site = Tokens::new(&["office", "cellar"], needs)?.site(&["office", "cellar"]);
    fs::write(site.path("text"), "a text").unwrap();
    Some(site)
}

#[test]
fn signatures_of_every_kind_are_verified_by_openssl() {
    let Some(site) = site(&[]) else { return };
    for kind in ["ec-p256", "ec-p384", "ec-p521", "rsa", "ed25519"] {
        site.key(&["generate", kind, "--algorithm", kind, "--in", "office"]);
        site.key(&["allow", kind, "--for", ALL_CALLERS]);
        fs::write(site.path(&format!("{kind}.pub")), site.key(&["public", kind, "--pem"])).unwrap();
    }
    let hashes = [
        ("sha-1", "-sha1"),
        ("sha-256", "-sha256"),
        ("sha-384", "-sha384"),
        ("sha-512", "-sha512"),
    ];
    for (hash, digest) in hashes {
        site.openssl(&["dgst", digest, "-binary", "-out", "digest", "text"]);
        for kind in ["ec-p256", "ec-p384", "ec-p521", "rsa"] {
            let public = format!("{kind}.pub");
            let verify = ["dgst", digest, "-verify", &public, "-signature", "signature"];
            let whole = ["sign", kind, "text", "-o", "signature", "--hash", hash];
            site.key(&whole);
            site.openssl(&[&verify[..], &["text"]].concat());
            site.key(&["sign", kind, "digest", "--digest", "-o", "signature", "--hash", hash]);
            site.openssl(&[&verify[..], &["text"]].concat());
        }
        let pss = ["--algorithm", "rsa-pss", "--hash", hash, "--salt", "11"];
        site.key(&[&["sign", "rsa", "text", "-o", "signature"], &pss[..]].concat());
        let options = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:11"];
        let verify = ["dgst", digest, "-verify", "rsa.pub", "-signature", "signature"];
        site.openssl(&[&verify[..], &options, &["text"]].concat());
    }
    site.key(&["sign", "ed25519", "text", "-o", "signature"]);
    let verify = ["-verify", "-pubin", "-inkey", "ed25519.pub", "-rawin", "-in", "text"];
    site.openssl(&[&["pkeyutl"], &verify[..], &["-sigfile", "signature"]].concat());
    // A DigestInfo as it is given, which is any bytes.
    let (engine, connection) = site.cryptod.engine("tokens");
    let session = engine.session(Parameters::new(Algorithm::RsaPkcs1, Key::Named("rsa"))).unwrap();
    let mut out = vec![0; session.signature_bytes_max()];
    let parameters = SignatureParameters { prehashed: true, ..Default::default() };
    let sign = &mut Request::Sign { message: b"any bytes", parameters, out: &mut out };
    assert_eq!(session.run(sign), Ok(384));
    fs::write(site.path("signature"), out).unwrap();
    let recover = ["pkeyutl", "-verifyrecover", "-pubin", "-inkey", "rsa.pub", "-in", "signature"];
    assert_eq!(site.openssl(&recover), "any bytes");
    drop((session, engine, connection));
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_key_in_a_token_is_listed_rotated_and_deleted_there() {
    let Some(site) = site(&["pkcs11-tool"]) else { return };
    let made = ["generate", "web", "--algorithm", "ec-p256", "--for", ALL_CALLERS];
    site.key(&[&made[..], &["--in", "cellar"]].concat());
    site.key(&["generate", "signer", "--algorithm", "rsa-2048", "--in", "office"]);
    for token in ["cellar", "office"] {
        let listed = site.tokens.tool(token, &["--list-objects", "--type", "privkey"]);
        let usages = listed.lines().filter_map(|line| line.trim().strip_prefix("Usage:"));
        assert_eq!(usages.map(str::trim).collect::<Vec<_>>(), ["sign"], "{listed}");
    }
    site.key(&["revoke", "signer"]);
    site.key(&["delete", "signer"]);
    site.key(&["generate", "here", "--algorithm", "ec-p256"]);
    let listed = site.key(&["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let tokens = |at: usize| listed["keys"][at]["tokens"].to_string();
    assert_eq!((tokens(0), tokens(1)), ("[]".to_owned(), r#"["cellar"]"#.to_owned()));
    assert!(site.key(&["list"]).contains("in cellar"));
    let before = site.key(&["public", "web"]);
    site.key(&["sign", "web", "text", "-o", "signature"]);
    site.key(&["rotate", "web"]);
    assert_ne!(site.key(&["public", "web"]), before);
    assert!(site.try_key(&["verify", "web", "text", "--signature", "signature"]).code == 1);
    site.key(&["sign", "web", "text", "-o", "signature"]);
    site.key(&["verify", "web", "text", "--signature", "signature"]);
    assert_eq!(site.keys_of("cellar"), ["web", "web"]);
    site.key(&["revoke", "web"]);
    site.refused(&["sign", "web", "text"], "web");
    site.key(&["delete", "web"]);
    assert_eq!(site.keys_of("cellar"), <[&str; 0]>::default());
    assert_eq!(site.said(), "");
    let audit = fs::read_to_string(site.cryptod.data().join("cryptod/keys/audit.log")).unwrap();
    let made = audit.lines().find(|line| line.contains("generate")).unwrap();
    assert!(made.contains("in token cellar, sign to everybody"), "{made}");
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_key_that_was_there_is_used_and_stays() {
    let Some(tokens) = Tokens::new(&["office"], &["pkcs11-tool"]) else { return };
    let rsa = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
    let (one, other) = (tokens.private_key("one", &rsa), tokens.private_key("other", &rsa));
    tokens.import(&one, "office", "root", "0a1b");
    tokens.import(&other, "office", "root", "0c");
    let site = tokens.site(&["office"]);
    fs::write(site.path("text"), "a text").unwrap();
    let import = |name: &str, how: &[&str], algorithm: &str| -> Vec<String> {
        let fixed = ["import", name, "--in", "office", "--for", ALL_CALLERS, "--algorithm"];
        [&fixed[..], &[algorithm], how].concat().iter().map(|it| (*it).to_owned()).collect()
    };
    let import = |name, how: &[&str], algorithm| import(name, how, algorithm);
    let refused = |arguments: Vec<String>, why: &str| {
        site.refused(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), why);
    };
    refused(
        import("ca", &["--label", "root"], "rsa"),
        "several private keys with the label \"root\"",
    );
    refused(import("ca", &["--id", "77"], "rsa"), "it has: \"root\" (");
    refused(import("ca", &["--id", "0c"], "ec-p256"), "another kind");
    refused(import("ca", &["--id", "xy"], "rsa"), "hexadecimal");
    let taken = import("ca", &["--id", "0A:1b"], "rsa");
    site.key(&taken.iter().map(String::as_str).collect::<Vec<_>>());
    site.key(&["sign", "ca", "text", "-o", "signature"]);
    let one = one.display().to_string();
    site.openssl(&["dgst", "-sha256", "-prverify", &one, "-signature", "signature", "text"]);
    site.key(&["revoke", "ca"]);
    site.key(&["delete", "ca"]);
    assert_eq!(site.keys_of("office").len(), 2);
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_key_that_a_token_cannot_have_is_refused_when_it_is_made() {
    let Some(site) = site(&["pkcs11-tool"]) else { return };
    let refused = |options: &[&str], why: &str| {
        let generate = ["generate", "key", "--in", "office", "--algorithm"];
        site.refused(&[&generate[..], options].concat(), why);
    };
    refused(&["aes-256-gcm"], "only keys of RSA");
    refused(&["ml-dsa-65"], "only keys of RSA");
    refused(&["rsaes-pkcs1"], "Bleichenbacher");
    // SoftHSM has the mechanism, and does it with SHA-1 alone.
    refused(&["rsa-oaep-sha-256"], "CKR_ARGUMENTS_BAD in C_DecryptInit");
    site.refused(
        &["generate", "key", "--in", "attic", "--algorithm", "rsa"],
        "knows no token attic (it knows: office, cellar); start it with --token attic=MODULE.so",
    );
    let adopt = ["import", "key", "--in", "office,office", "--label", "x", "--algorithm", "rsa"];
    site.refused(&adopt, "it has no private key");
    // Nothing is left behind of what was tried.
    assert_eq!(site.keys_of("office"), <[&str; 0]>::default());
    site.key(&[
        "generate",
        "oaep",
        "--in",
        "office",
        "--algorithm",
        "rsa-oaep-sha-1",
        "--for",
        ALL_CALLERS,
    ]);
    fs::write(site.path("text"), "a text").unwrap();
    site.key(&["encrypt", "oaep", "text", "-o", "sealed"]);
    assert_eq!(site.key(&["decrypt", "oaep", "sealed"]), "a text");
    let mut spoilt = fs::read(site.path("sealed")).unwrap();
    spoilt[40] ^= 1;
    fs::write(site.path("sealed"), spoilt).unwrap();
    site.refused(&["decrypt", "oaep", "sealed"], "was not encrypted with the key oaep");
    assert!(site.cryptod.stop().success());
}
