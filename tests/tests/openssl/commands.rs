//! `openssl` at the command line: keys, signatures, certificates, CMS; verified without the provider.

use super::{KEYS, Site};
use keyway_client::KeyReference;
use keyway_tests::{ALL_CALLERS, Finished};
use std::fs;

#[test]
fn a_key_is_loaded_by_uri_and_by_file() {
    let Some(site) = Site::with_keys(&[]) else { return };
    for (name, ..) in KEYS {
        let public = fs::read_to_string(site.file(&format!("{name}.pub"))).unwrap();
        let found = site.client().find(name).unwrap();
        let whole = KeyReference { name: name.to_owned(), public_key: Some(found.public_key) };
        assert_eq!(site.key(&["use", name, "--with", "pem"]), whole.to_pem());
        fs::write(site.file("whole.pem"), whole.to_pem()).unwrap();
        for key in [&format!("keyway:{name}"), &format!("{name}.pem"), "whole.pem"] {
            assert_eq!(
                site.openssl(&["pkey", "-in", key, "-pubout"]).expect(0).out,
                public,
                "{key}"
            );
            // There is no private half to be had.
            let private = site.openssl(&["pkey", "-in", key, "-outform", "DER", "-out", "out"]);
            assert!(!private.expect(1).err.is_empty(), "{key}");
        }
    }
    let lines = site.key(&["use", "rsa", "--with", "nginx"]);
    assert!(lines.contains("ssl_certificate_key /etc/keyway/rsa.pem;"), "{lines}");
    let missing = site.openssl(&["pkey", "-in", "keyway:none", "-pubout"]).expect(1).err;
    assert!(missing.contains("has no key none that user 0 may use"), "{missing}");
    assert!(site.cryptod.stop().success());
}

#[test]
fn signatures_are_verified_by_stock() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let signed = |key: &str, options: &[&str]| {
        let sign = ["dgst", "-sign", key, "-out", "signature"];
        site.openssl(&[&sign[..], options, &["text"]].concat()).expect(0);
        let public = format!("{}.pub", key.trim_start_matches("keyway:").trim_end_matches(".pem"));
        let verify = ["dgst", "-verify", &public, "-signature", "signature"];
        let verified = site.stock_openssl(&[&verify[..], options, &["text"]].concat());
        assert_eq!(verified.expect(0).out, "Verified OK\n", "{key} {options:?}");
    };
    for digest in ["-sha1", "-sha224", "-sha256", "-sha384", "-sha512"] {
        signed("keyway:rsa", &[digest]);
        for salt in ["digest", "max", "0", "17"] {
            let salt = format!("rsa_pss_saltlen:{salt}");
            let pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", &salt];
            signed("rsa.pem", &[&[digest], &pss[..]].concat());
            signed("rsa.pem", &[&[digest], &pss[..], &["-sigopt", "rsa_mgf1_md:sha1"]].concat());
        }
        for key in ["keyway:ec", "ec384.pem", "keyway:ec521"] {
            signed(key, &[digest]);
        }
    }
    let sign = ["pkeyutl", "-sign", "-inkey", "ed.pem", "-rawin", "-in", "text", "-out", "out"];
    site.openssl(&sign).expect(0);
    let verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "ed.pub", "-rawin", "-in", "text"];
    site.stock_openssl(&[&verify[..], &["-sigfile", "out"]].concat()).expect(0);
    // A hash that cryptod does not sign with is named in the error.
    let refused = site.openssl(&["dgst", "-sha3-224", "-sign", "rsa.pem", "text"]).expect(1).err;
    assert!(refused.contains("do not sign with"), "{refused}");
    assert!(site.cryptod.stop().success());
}

/// A key of cryptod's verifies what it has signed, with a salt of any length unless the program asks for one.
#[test]
fn a_key_verifies_its_own_signatures() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let pss = ["-sigopt", "rsa_padding_mode:pss", "-signature", "signature"];
    let verifies = |salt: &[&str]| {
        let verify = ["dgst", "-sha256", "-prverify", "keyway:rsa"];
        site.openssl(&[&verify[..], &pss, salt, &["text"]].concat()).code == 0
    };
    for salt in ["digest", "max", "auto", "0", "17"] {
        let salt = format!("rsa_pss_saltlen:{salt}");
        let sign = ["dgst", "-sha256", "-sign", "keyway:rsa", "-out", "signature"];
        site.openssl(&[&sign[..], &pss[..2], &["-sigopt", &salt, "text"]].concat()).expect(0);
        assert!(verifies(&[]) && verifies(&["-sigopt", "rsa_pss_saltlen:auto"]), "{salt}");
        assert!(verifies(&["-sigopt", &salt]), "{salt}");
        assert!(!verifies(&["-sigopt", "rsa_pss_saltlen:18"]), "{salt}");
    }
    fs::write(site.file("text"), "another text").unwrap();
    assert!(!verifies(&[]));
    assert!(site.cryptod.stop().success());
}

/// A program may hash by itself (`EVP_PKEY_sign`), and name the hash or not.
#[test]
fn digests_are_signed_as_stock_verifies_them() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let signed = |key: &str, input: &str, options: &[&str]| {
        let options: Vec<_> = options.iter().flat_map(|option| ["-pkeyopt", *option]).collect();
        let pem = format!("{key}.pem");
        let sign = ["pkeyutl", "-sign", "-inkey", &pem, "-in", input, "-out", "out"];
        site.openssl(&[&sign[..], &options].concat()).expect(0);
        let public = format!("{key}.pub");
        let verify = ["pkeyutl", "-verify", "-pubin", "-inkey", &public, "-in", input];
        let verify = [&verify[..], &["-sigfile", "out"], &options].concat();
        site.stock_openssl(&verify).expect(0);
        site.openssl(&verify).expect(0);
    };
    for hash in ["sha1", "sha256", "sha384", "sha512"] {
        let hashed = ["dgst", &format!("-{hash}"), "-binary", "-out", "digest", "text"];
        site.stock_openssl(&hashed).expect(0);
        let named = format!("digest:{hash}");
        for key in ["rsa", "ec", "ec384", "ec521"] {
            signed(key, "digest", &[&named]);
        }
        signed("rsa", "digest", &[&named, "rsa_padding_mode:pss", "rsa_pss_saltlen:max"]);
        for key in ["ec", "ec384", "ec521"] {
            signed(key, "digest", &[]);
        }
    }
    // PKCS #1 pads bytes that are named by no hash as they are.
    signed("rsa", "text", &[]);
    let sign = ["pkeyutl", "-sign", "-inkey", "ed.pem", "-in", "digest", "-out", "out"];
    assert_ne!(site.openssl(&sign).code, 0);
    assert!(site.cryptod.stop().success());
}

/// A message is as long as it likes: cryptod gets its digest.
#[test]
fn a_large_message_is_signed() {
    let Some(site) = Site::with_keys(&[]) else { return };
    fs::write(site.file("text"), vec![7; 48 << 20]).unwrap();
    let sign = ["dgst", "-sha256", "-sign", "ec.pem", "-out", "signature", "text"];
    site.openssl(&sign).expect(0);
    let verify = ["dgst", "-sha256", "-verify", "ec.pub", "-signature", "signature", "text"];
    site.stock_openssl(&verify).expect(0);
    assert!(site.cryptod.stop().success());
}

#[test]
fn an_authority_issues_certificates_and_signs_messages() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let authority = ["req", "-x509", "-new", "-key", "keyway:rsa", "-subj", "/CN=authority"];
    site.openssl(&[&authority[..], &["-out", "authority.crt"]].concat()).expect(0);
    for (name, _, digest, _) in KEYS {
        let (pem, certificate) = (format!("{name}.pem"), format!("{name}.crt"));
        site.stock_openssl(&["verify", "-CAfile", &certificate, &certificate]).expect(0);
        let request = ["req", "-new", "-key", &pem, "-subj", "/CN=leaf", "-out", "csr", digest];
        site.openssl(&request).expect(0);
        site.openssl(&["req", "-verify", "-noout", "-in", "csr"]).expect(0);
        let issue = ["x509", "-req", "-in", "csr", "-CA", "authority.crt", "-CAkey", "rsa.pem"];
        site.openssl(&[&issue[..], &["-out", "leaf.crt"]].concat()).expect(0);
        site.stock_openssl(&["verify", "-CAfile", "authority.crt", "leaf.crt"]).expect(0);
        // OpenSSL 3.0 has no CMS with Ed25519.
        if name != "ed" {
            let digest = digest.trim_start_matches('-');
            let sign = ["cms", "-sign", "-nodetach", "-in", "text", "-signer", &certificate];
            let rest = ["-inkey", &pem, "-md", digest, "-out", "message"];
            site.openssl(&[&sign[..], &rest[..]].concat()).expect(0);
            let verify = ["cms", "-verify", "-in", "message", "-CAfile", &certificate];
            site.stock_openssl(&[&verify[..], &["-purpose", "any"]].concat()).expect(0);
        }
        // A certificate of another key is noticed.
        let other = if name == "ec" { "rsa.crt" } else { "ec.crt" };
        let wrong = ["cms", "-sign", "-in", "text", "-signer", other, "-inkey", &pem];
        assert_ne!(site.openssl(&wrong).code, 0);
    }
    assert!(site.cryptod.stop().success());
}

/// `openssl ca` compares certificate and key, in both directions.
#[test]
fn an_authority_keeps_a_database() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let configuration = "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nnew_certs_dir = .\nserial = serial\n\
                         default_md = sha256\npolicy = any\ndefault_days = 3\nemail_in_dn = no\n[any]\n\
                         commonName = supplied\n";
    for (file, text) in [("ca.cnf", configuration), ("index", ""), ("serial", "01")] {
        fs::write(site.file(file), text).unwrap();
    }
    site.openssl(&["req", "-new", "-key", "ec.pem", "-subj", "/CN=leaf", "-out", "csr"]).expect(0);
    site.openssl(&["genpkey", "-algorithm", "RSA", "-out", "other.pem"]).expect(0);
    let issues = |certificate: &str, key: &str| {
        let issue = ["ca", "-batch", "-config", "ca.cnf", "-in", "csr", "-out", "leaf.crt"];
        site.openssl(&[&issue[..], &["-cert", certificate, "-keyfile", key]].concat()).code == 0
    };
    assert!(issues("rsa.crt", "keyway:rsa"));
    site.stock_openssl(&["verify", "-CAfile", "rsa.crt", "leaf.crt"]).expect(0);
    assert!(!issues("ec.crt", "keyway:rsa") && !issues("rsa.crt", "other.pem"));
    assert!(site.cryptod.stop().success());
}

/// Operations with other keys are stock's, whichever provider is the first and whichever is preferred.
#[test]
fn other_keys_are_left_to_stock() {
    let Some(site) = Site::with_keys(&[]) else { return };
    for order in [["default", "keyway"], ["keyway", "default"]] {
        let usual = site.configured(order);
        let preferred = usual.replace("?keyway", "?provider=keyway,?keyway");
        for configuration in [usual, preferred] {
            fs::write(site.file("openssl.cnf"), configuration).unwrap();
            stock_does(&site);
            site.openssl(&["dgst", "-sha256", "-sign", "rsa.pem", "text"]).expect(0);
        }
    }
    // Without the daemon too.
    site.cryptod.signal(rustix::process::Signal::KILL);
    site.openssl(&VERIFY).expect(0);
    site.openssl(&["verify", "-CAfile", "rsa.crt", "rsa.crt"]).expect(0);
    let gone = site.openssl(&["pkey", "-in", "keyway:rsa", "-pubout"]).expect(1).err;
    assert!(gone.contains(&site.cryptod.socket().display().to_string()), "{gone}");
}

const VERIFY: [&str; 7] =
    ["dgst", "-sha256", "-verify", "other.pub", "-signature", "signature", "text"];

fn stock_does(site: &Site) {
    for algorithm in ["RSA", "ED25519", "X25519"] {
        site.openssl(&["genpkey", "-algorithm", algorithm, "-out", "other.pem"]).expect(0);
        site.openssl(&["pkey", "-in", "other.pem", "-noout"]).expect(0);
    }
    let curve = ["-pkeyopt", "ec_paramgen_curve:P-256", "-out", "other.pem"];
    site.openssl(&[&["genpkey", "-algorithm", "EC"], &curve[..]].concat()).expect(0);
    site.openssl(&["dgst", "-sha256", "-sign", "other.pem", "-out", "signature", "text"]).expect(0);
    site.openssl(&["pkey", "-in", "other.pem", "-pubout", "-out", "other.pub"]).expect(0);
    let derive = ["pkeyutl", "-derive", "-inkey", "other.pem", "-peerkey", "other.pub"];
    site.openssl(&[&derive[..], &["-out", "secret"]].concat()).expect(0);
    site.openssl(&VERIFY).expect(0);
}

/// CMS and `pkeyutl` decrypt with a key of cryptod what stock OpenSSL has encrypted; a key that is only to sign does not.
#[test]
fn messages_are_decrypted() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let purposes = ["--purpose", "sign", "--purpose", "decrypt"];
    let kinds = ["--algorithm", "rsa", "--algorithm", "rsaes-pkcs1"];
    site.key(&[&["generate", "mail", "--for", ALL_CALLERS], &kinds[..], &purposes].concat());
    for (file, with) in [
        ("mail.pem", &["use", "mail", "--with", "pem"][..]),
        ("mail.pub", &["public", "mail", "--pem"]),
    ] {
        fs::write(site.file(file), site.key(with)).unwrap();
    }
    let request =
        ["req", "-x509", "-new", "-key", "mail.pem", "-subj", "/CN=mail", "-out", "mail.crt"];
    site.openssl(&request).expect(0);
    for options in [&[][..], &["-keyopt", "rsa_padding_mode:oaep", "-keyopt", "rsa_oaep_md:sha256"]]
    {
        let encrypt =
            ["cms", "-encrypt", "-aes256", "-in", "text", "-recip", "mail.crt", "-out", "sealed"];
        site.stock_openssl(&[&encrypt[..], options].concat()).expect(0);
        let decrypt =
            ["cms", "-decrypt", "-in", "sealed", "-inkey", "mail.pem", "-recip", "mail.crt"];
        assert_eq!(site.openssl(&decrypt).expect(0).out.trim_end(), "a text");
    }
    let modes = [
        &["rsa_padding_mode:pkcs1"][..],
        &["rsa_padding_mode:oaep"],
        &[
            "rsa_padding_mode:oaep",
            "rsa_oaep_md:sha512",
            "rsa_mgf1_md:sha1",
            "rsa_oaep_label:6c6162656c",
        ],
    ];
    for options in modes {
        let options: Vec<_> = options.iter().flat_map(|option| ["-pkeyopt", *option]).collect();
        let encrypt = [
            "pkeyutl", "-encrypt", "-pubin", "-inkey", "mail.pub", "-in", "text", "-out", "sealed",
        ];
        site.stock_openssl(&[&encrypt[..], &options].concat()).expect(0);
        let decrypt = ["pkeyutl", "-decrypt", "-inkey", "mail.pem", "-in", "sealed"];
        let decrypt = [&decrypt[..], &options].concat();
        assert_eq!(site.openssl(&decrypt).expect(0).out, "a text");
        let encrypt =
            ["pkeyutl", "-encrypt", "-inkey", "mail.pem", "-in", "text", "-out", "sealed"];
        site.openssl(&[&encrypt[..], &options].concat()).expect(0);
        assert_eq!(site.openssl(&decrypt).expect(0).out, "a text");
    }
    let signer = ["pkeyutl", "-decrypt", "-inkey", "rsa.pem", "-in", "sealed"];
    let refused = site.openssl(&signer).expect(1).err;
    assert!(refused.contains("not for this") || refused.contains("refuses"), "{refused}");
    assert!(site.cryptod.stop().success());
}

/// `pkeyutl` agrees on the secret that stock OpenSSL finds with the peer's key, and CMS decrypts what was encrypted to a
/// curve's key; a key that is only to sign agrees on nothing.
#[test]
fn secrets_are_agreed_on() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let purposes = ["--purpose", "sign", "--purpose", "agree"];
    for (kind, curve) in [("ec-p256", "P-256"), ("ec-p384", "P-384"), ("ec-p521", "P-521")] {
        let name = &format!("both-{curve}").to_lowercase();
        let generate = ["generate", name, "--for", ALL_CALLERS, "--algorithm", kind];
        site.key(&[&generate[..], &purposes].concat());
        let (pem, public, certificate) =
            (format!("{name}.pem"), format!("{name}.pub"), format!("{name}.crt"));
        for (file, with) in
            [(&pem, &["use", name, "--with", "pem"][..]), (&public, &["public", name, "--pem"])]
        {
            fs::write(site.file(file), site.key(with)).unwrap();
        }
        let group = format!("ec_paramgen_curve:{curve}");
        let peer = ["genpkey", "-algorithm", "EC", "-pkeyopt", &group, "-out", "peer.pem"];
        site.stock_openssl(&peer).expect(0);
        site.stock_openssl(&["pkey", "-in", "peer.pem", "-pubout", "-out", "peer.pub"]).expect(0);
        let derive = |openssl: &dyn Fn(&[&str]) -> Finished, own: &str, peer: &str, to: &str| {
            openssl(&["pkeyutl", "-derive", "-inkey", own, "-peerkey", peer, "-out", to])
        };
        derive(&|all| site.openssl(all), &pem, "peer.pub", "own").expect(0);
        derive(&|all| site.stock_openssl(all), "peer.pem", &public, "theirs").expect(0);
        assert_eq!(fs::read(site.file("own")).unwrap(), fs::read(site.file("theirs")).unwrap());
        let request =
            ["req", "-x509", "-new", "-key", &pem, "-subj", "/CN=mail", "-out", &certificate];
        site.openssl(&request).expect(0);
        for options in [&[][..], &["-keyopt", "ecdh_kdf_md:sha384"]] {
            let encrypt = ["cms", "-encrypt", "-aes256", "-in", "text", "-recip", &certificate];
            site.stock_openssl(&[&encrypt[..], &["-out", "sealed"], options].concat()).expect(0);
            let decrypt =
                ["cms", "-decrypt", "-in", "sealed", "-inkey", &pem, "-recip", &certificate];
            assert_eq!(site.openssl(&decrypt).expect(0).out.trim_end(), "a text");
        }
        // Another curve's.
        let other = if curve == "P-256" { "P-384" } else { "P-256" };
        let group = format!("ec_paramgen_curve:{other}");
        let peer = ["genpkey", "-algorithm", "EC", "-pkeyopt", &group, "-out", "peer.pem"];
        site.stock_openssl(&peer).expect(0);
        site.stock_openssl(&["pkey", "-in", "peer.pem", "-pubout", "-out", "peer.pub"]).expect(0);
        assert_ne!(derive(&|all| site.openssl(all), &pem, "peer.pub", "own").code, 0);
    }
    let peer =
        ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "peer.pem"];
    site.stock_openssl(&peer).expect(0);
    site.stock_openssl(&["pkey", "-in", "peer.pem", "-pubout", "-out", "peer.pub"]).expect(0);
    let only = ["generate", "only", "--for", ALL_CALLERS, "--algorithm", "ec-p256"];
    site.key(&only);
    fs::write(site.file("only.pem"), site.key(&["use", "only", "--with", "pem"])).unwrap();
    let derive =
        ["pkeyutl", "-derive", "-inkey", "only.pem", "-peerkey", "peer.pub", "-out", "own"];
    let refused = site.openssl(&derive);
    assert_ne!(refused.code, 0);
    assert!(refused.err.contains("only"), "{}", refused.err);
}

/// X25519, with a file and with the URI.
#[test]
fn a_secret_is_agreed_on_with_x25519() {
    let Some(site) = Site::with_keys(&[]) else { return };
    site.generate("x", "x25519", ALL_CALLERS);
    site.stock_openssl(&["genpkey", "-algorithm", "X25519", "-out", "peer.pem"]).expect(0);
    site.stock_openssl(&["pkey", "-in", "peer.pem", "-pubout", "-out", "peer.pub"]).expect(0);
    let theirs =
        ["pkeyutl", "-derive", "-inkey", "peer.pem", "-peerkey", "x.pub", "-out", "theirs"];
    site.stock_openssl(&theirs).expect(0);
    for key in ["x.pem", "keyway:x"] {
        let public = fs::read_to_string(site.file("x.pub")).unwrap();
        assert_eq!(site.openssl(&["pkey", "-in", key, "-pubout"]).expect(0).out, public);
        let own = ["pkeyutl", "-derive", "-inkey", key, "-peerkey", "peer.pub", "-out", "own"];
        site.openssl(&own).expect(0);
        assert_eq!(fs::read(site.file("own")).unwrap(), fs::read(site.file("theirs")).unwrap());
        let wrong = ["pkeyutl", "-derive", "-inkey", key, "-peerkey", "ec.pub", "-out", "own"];
        assert_ne!(site.openssl(&wrong).code, 0);
        let sign = ["pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", "text", "-out", "out"];
        let refused = site.openssl(&sign).expect(1).err;
        assert!(refused.contains("agrees on secrets, and signs nothing"), "{refused}");
    }
    assert!(site.cryptod.stop().success());
}

/// OpenSSL 3.0 has no name for ML-DSA, and lets the provider's keys sign all the same.
#[test]
fn ml_dsa_signs_messages() {
    let Some(site) = Site::with_keys(&[]) else { return };
    for (name, bytes) in [("ml-dsa-44", 2420), ("ml-dsa-65", 3309), ("ml-dsa-87", 4627)] {
        site.generate(name, name, ALL_CALLERS);
        let whole = site.key(&["use", name, "--with", "pem"]);
        fs::write(site.file("whole.pem"), whole).unwrap();
        for key in [&format!("keyway:{name}"), &format!("{name}.pem"), "whole.pem"] {
            let raw = ["-inkey", key, "-rawin", "-in", "text"];
            let sign = [&["pkeyutl", "-sign", "-out", "signature"][..], &raw].concat();
            site.openssl(&sign).expect(0);
            let mut signature = fs::read(site.file("signature")).unwrap();
            assert_eq!(signature.len(), bytes);
            let verify = ["pkeyutl", "-verify", "-sigfile", "signature"];
            let verify = [&verify[..], &raw].concat();
            site.openssl(&verify).expect(0);
            signature[7] ^= 1;
            fs::write(site.file("signature"), signature).unwrap();
            assert_ne!(site.openssl(&verify).code, 0);
            let hashed = ["pkeyutl", "-sign", "-inkey", key, "-in", "text", "-out", "signature"];
            let refused = site.openssl(&hashed).expect(1).err;
            assert!(refused.contains("signs messages, and no digests"), "{refused}");
        }
    }
    assert!(site.cryptod.stop().success());
}
