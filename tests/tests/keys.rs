//! `keyway key` as scripts use it: what a key of cryptod does from a shell, compared with OpenSSL.

use keyway_tests::cryptod::{Cryptod, as_user};
use keyway_tests::{ALL_CALLERS, ALLOW_ALL, Finished, UNPRIVILEGED, available, finish, keyway};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

fn run(cryptod: &Cryptod, arguments: &[&str], input: &str) -> Finished {
    let mut command = Command::new(keyway());
    command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket());
    finish(command.current_dir(cryptod.folder().path()), input)
}

fn key(cryptod: &Cryptod, arguments: &[&str]) -> String {
    run(cryptod, arguments, "").expect(0).out
}

fn make(cryptod: &Cryptod, name: &str, algorithm: &str) {
    key(cryptod, &["generate", name, "--algorithm", algorithm, "--for", ALL_CALLERS]);
}

fn openssl(place: &Path, arguments: &[&str]) -> String {
    finish(Command::new("openssl").args(arguments).current_dir(place), "").expect(0).out
}

#[test]
fn signatures_and_macs_are_those_of_openssl() {
    if !available(&["openssl"]) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    fs::write(place.join("text"), "a text").unwrap();
    make(&cryptod, "web", "ecdsa-p256-sha-256");
    key(&cryptod, &["sign", "web", "text", "-o", "text.sig"]);
    let over = run(&cryptod, &["sign", "web", "text", "-o", "./text"], "").expect(2).err;
    assert!(over.contains("would overwrite text"), "{over}");
    let public = key(&cryptod, &["public", "web", "--pem"]);
    fs::write(place.join("web.pub"), public).unwrap();
    let verify = ["dgst", "-sha256", "-verify", "web.pub", "-signature", "text.sig", "text"];
    assert_eq!(openssl(place, &verify), "Verified OK\n");
    assert_eq!(
        key(&cryptod, &["verify", "web", "text", "--signature", "text.sig"]),
        "web: verified\n"
    );
    fs::write(place.join("other"), "another text").unwrap();
    let wrong = ["verify", "web", "other", "--signature", "text.sig", "--json"];
    let wrong: Value = serde_json::from_str(&run(&cryptod, &wrong, "").expect(1).out).unwrap();
    assert_eq!(wrong["verified"], false);
    fs::write(place.join("secret"), [0x61; 32]).unwrap();
    let import =
        ["import", "shared", "secret", "--algorithm", "hmac-sha-256", "--for", ALL_CALLERS];
    key(&cryptod, &import);
    let code = run(&cryptod, &["mac", "shared", "--format", "hex"], "a text").expect(0).out;
    let theirs = openssl(place, &["dgst", "-sha256", "-hmac", &"a".repeat(32), "-r", "text"]);
    assert_eq!(code.trim(), theirs.split_whitespace().next().unwrap());
    fs::write(place.join("text.mac"), &code).unwrap();
    let verify = ["verify", "shared", "text", "--signature", "text.mac", "--format", "hex"];
    key(&cryptod, &verify);
    assert!(cryptod.stop().success());
}

/// A key goes to another daemon wrapped under a key that both have: all its versions, and none of its grants.
#[test]
fn a_key_goes_to_another_daemon_wrapped() {
    let (here, there) = (Cryptod::start(&[]), Cryptod::start(&[]));
    let place = here.folder().path();
    let file = |name: &str| place.join(name).display().to_string();
    fs::write(place.join("carrier"), [0x5a; 32]).unwrap();
    let carrier = file("carrier");
    let carry = ["import", "carrier", &carrier, "--algorithm", "aes-256-gcm", "--purpose", "wrap"];
    for cryptod in [&here, &there] {
        key(cryptod, &[&carry[..], &["--for", ALL_CALLERS]].concat());
    }
    make(&here, "web", "ecdsa-p256-sha-256");
    make(&here, "vault", "aes-256-gcm");
    key(&here, &["allow", "web", "--for", "user:4000000"]);
    fs::write(place.join("text"), "a text").unwrap();
    key(&here, &["encrypt", "vault", "text", "-o", "sealed"]);
    key(&here, &["rotate", "vault"]);
    for name in ["web", "vault"] {
        let wrapped = file(&format!("{name}.wrapped"));
        key(&here, &["export", name, &wrapped, "--under", "carrier"]);
        let over = run(&here, &["export", name, &wrapped, "--under", "carrier"], "").expect(1).err;
        assert!(over.contains("exists"), "{over}");
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&wrapped).unwrap());
        assert_eq!(mode & 0o777, 0o600);
        key(
            &there,
            &["import-wrapped", name, &wrapped, "--under", "carrier", "--for", ALL_CALLERS],
        );
    }
    // What was made here is right there, with the versions of before.
    let (text, signature) = (file("text"), file("signature"));
    key(&here, &["sign", "web", &text, "-o", &signature]);
    key(&there, &["verify", "web", &text, "--signature", &signature]);
    assert_eq!(key(&there, &["decrypt", "vault", &file("sealed")]), "a text");
    let listed = key(&there, &["list"]);
    assert!(!listed.contains("4000000"), "{listed}");
    let refused = |cryptod: &Cryptod, arguments: &[&str], why: &str| {
        let said = run(cryptod, arguments, "").expect(1).err;
        assert!(said.contains(why), "{why}: {said}");
    };
    let wrapped = file("web.wrapped");
    refused(&there, &["import-wrapped", "web", &wrapped, "--under", "carrier"], "web");
    let mut spoilt = fs::read(&wrapped).unwrap();
    *spoilt.last_mut().unwrap() ^= 1;
    fs::write(place.join("spoilt"), spoilt).unwrap();
    let spoilt = file("spoilt");
    refused(&there, &["import-wrapped", "other", &spoilt, "--under", "carrier"], "not authentic");
    // A key that decrypts does not wrap.
    refused(&there, &["import-wrapped", "other", &wrapped, "--under", "vault"], "not for this");
    refused(&here, &["export", "web", &file("new"), "--under", "vault"], "not for this");
    refused(&here, &["export", "none", &file("new"), "--under", "carrier"], "none");
    let audit = fs::read_to_string(here.data().join("cryptod/keys/audit.log")).unwrap();
    let exports = audit.lines().filter(|line| line.contains("\"export\"")).count();
    assert!(exports >= 4, "{audit}");
}

/// A key of a kind signs whatever its programs ask for: messages and digests, of each hash, padded in each way.
#[test]
fn a_kind_of_key_signs_as_openssl_is_told_to_verify() {
    if !available(&["openssl"]) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    fs::write(place.join("text"), "a text").unwrap();
    for kind in ["rsa", "ec-p256", "ec-p384", "ec-p521"] {
        make(&cryptod, kind, kind);
        fs::write(place.join(kind), key(&cryptod, &["public", kind, "--pem"])).unwrap();
    }
    key(&cryptod, &["sign", "rsa", "text", "-o", "rsa.sig"]);
    let verified = |kind: &str, hash: &str, options: &[&str]| {
        let digest = format!("-{hash}");
        let mut verify = vec!["dgst", &digest, "-verify", kind, "-signature", "sig"];
        options.iter().for_each(|option| verify.extend(["-sigopt", option]));
        verify.push("text");
        assert_eq!(openssl(place, &verify), "Verified OK\n", "{kind} {hash} {options:?}");
    };
    for (openssl_hash, hash) in [
        ("sha1", "sha-1"),
        ("sha224", "sha-224"),
        ("sha256", "sha-256"),
        ("sha384", "sha-384"),
        ("sha512", "sha-512"),
    ] {
        openssl(place, &["dgst", &format!("-{openssl_hash}"), "-binary", "-out", "digest", "text"]);
        for kind in ["rsa", "ec-p256", "ec-p384", "ec-p521"] {
            key(&cryptod, &["sign", kind, "text", "--hash", hash, "-o", "sig"]);
            verified(kind, openssl_hash, &[]);
            key(&cryptod, &["verify", kind, "text", "--hash", hash, "--signature", "sig"]);
            key(&cryptod, &["sign", kind, "digest", "--digest", "--hash", hash, "-o", "sig"]);
            verified(kind, openssl_hash, &[]);
        }
        for (salt, mgf1) in [("0", "sha256"), ("20", "sha1"), ("max", openssl_hash)] {
            let digest_bytes = fs::read(place.join("digest")).unwrap().len();
            let modulus_bytes = fs::read(place.join("rsa.sig")).unwrap().len();
            // RFC 8017 § 9.1.1: the digest, the salt and two bytes fill the modulus at most.
            let most = (modulus_bytes - digest_bytes - 2).to_string();
            let salt = if salt == "max" { most.as_str() } else { salt };
            let with_dash = mgf1.replace("sha", "sha-");
            let sign = [
                "sign",
                "rsa",
                "digest",
                "--digest",
                "--algorithm",
                "rsa-pss",
                "--hash",
                hash,
                "--salt",
                salt,
                "--mgf1-hash",
                &with_dash,
                "-o",
                "sig",
            ];
            key(&cryptod, &sign);
            let (salt, mgf1) = (format!("rsa_pss_saltlen:{salt}"), format!("rsa_mgf1_md:{mgf1}"));
            verified("rsa", openssl_hash, &["rsa_padding_mode:pss", &salt, &mgf1]);
        }
    }
    // An algorithm that names its hash is one of those of the kind.
    key(&cryptod, &["sign", "rsa", "text", "--algorithm", "rsa-pss-sha-384", "-o", "sig"]);
    verified("rsa", "sha384", &["rsa_padding_mode:pss", "rsa_pss_saltlen:digest"]);
    for (arguments, said) in [
        (&["sign", "rsa", "text", "--digest"][..], "6 bytes"),
        (&["sign", "ec-p256", "text", "--digest"], "6 bytes"),
        (&["sign", "rsa", "text", "--salt", "7"], "only rsa-pss"),
        (&["sign", "rsa", "text", "--algorithm", "rsa-pss", "--salt", "400"], "breaks a limit"),
        (
            &["sign", "rsa", "text", "--algorithm", "rsa-pss-sha-256", "--hash", "sha-384"],
            "another hash",
        ),
        (&["sign", "ec-p521", "text", "--hash", "aes-128-gcm"], "name of none"),
        (&["sign", "rsa", "text", "--algorithm", "ecdsa-p256"], "it is for rsa-pkcs1, rsa-pss"),
        (&["decrypt", "rsa", "text"], "and not to decrypt"),
    ] {
        let refused = run(&cryptod, arguments, "").expect(1).err;
        assert!(refused.contains(said), "{arguments:?}: {refused}");
    }
    assert!(cryptod.stop().success());
}

#[test]
fn rsa_decrypts_what_openssl_encrypts() {
    if !available(&["openssl"]) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    fs::write(place.join("text"), "a text").unwrap();
    let generate = [
        "generate",
        "mail",
        "--algorithm",
        "rsa",
        "--algorithm",
        "rsaes-pkcs1",
        "--purpose",
        "sign",
        "--purpose",
        "decrypt",
        "--for",
        ALL_CALLERS,
    ];
    key(&cryptod, &generate);
    fs::write(place.join("mail"), key(&cryptod, &["public", "mail", "--pem"])).unwrap();
    let encrypt = |options: &[&str]| {
        let mut encrypt = vec![
            "pkeyutl", "-encrypt", "-pubin", "-inkey", "mail", "-in", "text", "-out", "sealed",
        ];
        options.iter().for_each(|option| encrypt.extend(["-pkeyopt", option]));
        openssl(place, &encrypt);
    };
    for (hash, mgf1) in
        [("sha1", "sha1"), ("sha256", "sha1"), ("sha384", "sha384"), ("sha512", "sha256")]
    {
        let (md, mgf1_md) = (format!("rsa_oaep_md:{hash}"), format!("rsa_mgf1_md:{mgf1}"));
        encrypt(&["rsa_padding_mode:oaep", &md, &mgf1_md, "rsa_oaep_label:6c6162656c"]);
        let (hash, mgf1) = (hash.replace("sha", "sha-"), mgf1.replace("sha", "sha-"));
        let decrypt = ["decrypt", "mail", "sealed", "--hash", &hash, "--mgf1-hash", &mgf1];
        let labelled = [&decrypt[..], &["--label", "label"]].concat();
        assert_eq!(key(&cryptod, &labelled), "a text");
        let unlabelled = run(&cryptod, &decrypt, "").expect(1).err;
        assert!(unlabelled.contains("was not encrypted with the key"), "{unlabelled}");
    }
    encrypt(&["rsa_padding_mode:pkcs1"]);
    let decrypt = ["decrypt", "mail", "sealed", "--algorithm", "rsaes-pkcs1"];
    assert_eq!(key(&cryptod, &decrypt), "a text");
    // A ciphertext that was changed decrypts to another message, always the same one: the padding is told by nothing.
    let mut sealed = fs::read(place.join("sealed")).unwrap();
    *sealed.last_mut().unwrap() ^= 1;
    fs::write(place.join("sealed"), sealed).unwrap();
    let other = |number: &str| {
        key(&cryptod, &[&decrypt[..], &["-o", number]].concat());
        fs::read(place.join(number)).unwrap()
    };
    let first = other("first");
    assert!(first != b"a text" && first == other("second"));
    assert!(cryptod.stop().success());
}

#[test]
fn an_ec_key_signs_and_agrees_and_has_a_certificate() {
    if !available(&["openssl"]) {
        return;
    }
    let is_root = rustix::process::getuid().is_root();
    let cryptod = if is_root { Cryptod::for_every_user(&[]) } else { Cryptod::start(&[]) };
    let place = cryptod.folder().path();
    openssl(
        place,
        &[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-384",
            "-nodes",
            "-keyout",
            "pair",
            "-out",
            "certificate",
            "-subj",
            "/CN=both",
            "-days",
            "3",
        ],
    );
    openssl(
        place,
        &[
            "req",
            "-x509",
            "-newkey",
            "ed25519",
            "-nodes",
            "-keyout",
            "other",
            "-out",
            "foreign",
            "-subj",
            "/CN=other",
            "-days",
            "3",
        ],
    );
    key(
        &cryptod,
        &[
            "import",
            "both",
            "pair",
            "--algorithm",
            "ec-p384",
            "--purpose",
            "sign",
            "--purpose",
            "agree",
            "--for",
            ALL_CALLERS,
        ],
    );
    let listed = key(&cryptod, &["list", "--usable", "--json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["keys"][0]["algorithms"], serde_json::json!(["ecdsa-p384", "ecdh-p384"]));
    assert_eq!(listed["keys"][0]["has_certificates"], false);
    let none = run(&cryptod, &["certificate", "both"], "").expect(1).err;
    assert!(none.contains("has no certificates"), "{none}");
    let foreign = run(&cryptod, &["certificate", "both", "foreign"], "").expect(1).err;
    assert!(foreign.contains("of another key"), "{foreign}");
    let empty = run(&cryptod, &["certificate", "both", "-"], "").expect(1).err;
    assert!(empty.contains("no certificate in PEM"), "{empty}");
    let no_certificate = run(&cryptod, &["certificate", "both", "pair"], "").expect(1).err;
    assert!(no_certificate.contains("no certificate in PEM"), "{no_certificate}");
    let chain = ["certificate", "foreign"]
        .map(|file| fs::read_to_string(place.join(file)).unwrap())
        .concat();
    fs::write(place.join("chain"), &chain).unwrap();
    assert_eq!(key(&cryptod, &["certificate", "both", "chain"]), "both: certificates kept\n");
    assert_eq!(key(&cryptod, &["certificate", "both"]), chain);
    if is_root {
        let stranger =
            as_user(UNPRIVILEGED, || run(&cryptod, &["certificate", "both", "-"], &chain));
        let refused = stranger.expect(1).err;
        assert!(refused.contains("only the daemon's own user and root"), "{refused}");
    }
    assert_eq!(key(&cryptod, &["certificate", "both", "--remove"]), "both: certificates removed\n");
    run(&cryptod, &["certificate", "both"], "").expect(1);
    key(&cryptod, &["certificate", "both", "chain"]);
    // They live as long as their version.
    key(&cryptod, &["rotate", "both"]);
    run(&cryptod, &["certificate", "both"], "").expect(1);
    assert!(cryptod.stop().success());
}

/// Other programs write text before a key.
#[test]
fn a_key_is_imported_out_of_other_text() {
    if !available(&["openssl", "ssh-keygen"]) {
        return;
    }
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    openssl(place, &["genpkey", "-algorithm", "ed25519", "-out", "pair"]);
    let pair = fs::read_to_string(place.join("pair")).unwrap();
    fs::write(place.join("bag"), format!("\nBag Attributes\n    friendlyName: x\n{pair}")).unwrap();
    key(&cryptod, &["import", "bag", "bag", "--algorithm", "ed25519"]);
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", "ssh"]);
    finish(keygen.current_dir(place), "").expect(0);
    let refused =
        run(&cryptod, &["import", "ssh", "ssh", "--algorithm", "ed25519"], "").expect(1).err;
    assert!(refused.contains("ssh-keygen -p -m PKCS8"), "{refused}");
    assert!(cryptod.stop().success());
}

#[test]
fn what_was_encrypted_is_decrypted_also_after_a_rotation() {
    let cryptod = Cryptod::start(&[]);
    let place = cryptod.folder().path();
    make(&cryptod, "vault", "aes-256-gcm");
    make(&cryptod, "box", "rsa-oaep-sha-256");
    run(&cryptod, &["encrypt", "vault", "--context", "here", "-o", "first"], "a text").expect(0);
    key(&cryptod, &["rotate", "vault"]);
    run(&cryptod, &["encrypt", "vault", "--context", "here", "-o", "second"], "a text").expect(0);
    for file in ["first", "second"] {
        assert_eq!(key(&cryptod, &["decrypt", "vault", file, "--context", "here"]), "a text");
        let elsewhere = run(&cryptod, &["decrypt", "vault", file], "").expect(1);
        assert!(elsewhere.err.contains("--context"), "{}", elsewhere.err);
    }
    let mut changed = fs::read(place.join("second")).unwrap();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(place.join("changed"), changed).unwrap();
    run(&cryptod, &["decrypt", "vault", "changed", "--context", "here"], "").expect(1);
    run(&cryptod, &["encrypt", "box", "-o", "boxed"], "a text").expect(0);
    let open = run(&cryptod, &["decrypt", "box", "boxed", "--json"], "").expect(0).out;
    let open: Value = serde_json::from_str(&open).unwrap();
    assert_eq!(open["data"], "YSB0ZXh0");
    assert!(cryptod.stop().success());
}

#[test]
fn what_cannot_be_done_is_said() {
    let cryptod = Cryptod::start(&[]);
    make(&cryptod, "web", "ed25519");
    key(
        &cryptod,
        &[
            "generate",
            "opener",
            "--algorithm",
            "aes-256-gcm",
            "--purpose",
            "decrypt",
            "--for",
            ALL_CALLERS,
        ],
    );
    make(&cryptod, "vault", "aes-256-gcm");
    make(&cryptod, "code", "hmac-sha-256");
    for (arguments, code, said) in [
        (&["encrypt", "vault", "--label", "a"][..], 2, "--label says nothing for aes-256-gcm"),
        (&["mac", "code", "--hash", "sha-512"], 2, "--hash says nothing for hmac-sha-256"),
        (&["sign", "web", "--label", "a"], 2, "--label says nothing for ed25519"),
        (&["sign", "web", "--context", "a"], 2, "--context is for AEADs"),
        (
            &["generate", "x", "--algorithm", "rsa", "--purpose", "agree"],
            1,
            "does not serve to agree",
        ),
        (&["sign", "none"][..], 1, "no key of that name that you may use"),
        (&["encrypt", "web"], 1, "it is for ed25519"),
        (&["encrypt", "opener"], 1, "and not to encrypt"),
        (&["sign", "web", "missing"], 1, "missing"),
        (&["sign", "web", "--algorithm", "ed448"], 2, "--algorithm"),
        (&["verify", "web", "--signature", "-"], 2, "only one"),
        (&["public", "opener"], 1, "public half"),
        (
            &["import", "bad", "-", "--algorithm", "ecdsa-p256-sha-256"],
            1,
            "no private key as PEM or DER",
        ),
    ] {
        let err = run(&cryptod, arguments, "text").expect(code).err;
        assert!(err.contains(said), "{arguments:?}: {err}");
    }
    assert!(cryptod.stop().success());
}

/// A user who does not look after the daemon sees the keys that the grants let that user use, and no trace of others.
#[test]
fn a_user_lists_the_keys_that_the_user_may_use() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let cryptod = Cryptod::for_every_user(&[]);
    let generate = |name: &str, algorithm: &str, who: &str| {
        key(&cryptod, &["generate", name, "--algorithm", algorithm, "--for", who]);
    };
    let their = format!("user:{UNPRIVILEGED}");
    generate("secret-plan", "ed25519", "user:0");
    generate("web", "ecdsa-p256-sha-256", &their);
    generate("vault", "aes-256-gcm", ALL_CALLERS);
    generate("old", "ed25519", &their);
    key(&cryptod, &["revoke", "old"]);
    let audit = || fs::read_to_string(cryptod.data().join("cryptod/keys/audit.log")).unwrap();
    let before = audit();
    let theirs = |arguments: &[&str]| {
        as_user(UNPRIVILEGED, || {
            let mut command = Command::new(keyway());
            command.args(["key", "list"]).args(arguments).arg("--socket").arg(cryptod.socket());
            finish(command.current_dir("/"), "").expect(0).out
        })
    };
    let text = theirs(&["--usable"]);
    let lines: Vec<_> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let vault = ["vault", "1", "aes-256-gcm:", "decrypt,", "encrypt"];
    let web = ["web", "1", "ecdsa-p256-sha-256:", "sign"];
    assert_eq!(lines, [&["NAME", "VERSION", "FOR"][..], &vault, &web]);
    let json: Value = serde_json::from_str(&theirs(&["--usable", "--json"])).unwrap();
    let keys = json["keys"].as_array().unwrap();
    assert_eq!(keys.len(), 2, "{json}");
    assert!(keys[0]["public_key"].is_null());
    let pem = key(&cryptod, &["public", "web", "--pem"]);
    let inner: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    assert_eq!(keys[1]["public_key"], inner);
    // The longer list has what was revoked as well.
    let text = theirs(&[]);
    assert!(text.contains("revoked") && !text.contains("secret-plan"), "{text}");
    assert_eq!(audit(), before);
    // Root looks after the keys, and may use those that it was allowed to.
    let roots = key(&cryptod, &["list", "--usable"]);
    assert!(roots.contains("secret-plan") && !roots.contains("web"), "{roots}");
    assert!(cryptod.stop().success());
}

#[test]
fn a_client_makes_and_destroys_keys_in_its_name_space() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let space = format!("app.=user:{UNPRIVILEGED}");
    let cryptod = Cryptod::for_every_user(&["--name-space", &space]);
    key(&cryptod, &["generate", "web", "--algorithm", "ed25519", "--for", "user:0"]);
    let as_client = |user: u32, arguments: &[&str]| {
        as_user(user, || {
            let mut command = Command::new(keyway());
            command.arg("key").args(arguments).arg("--socket").arg(cryptod.socket());
            finish(command.current_dir("/"), "a text")
        })
    };
    let theirs = |arguments: &[&str]| as_client(UNPRIVILEGED, arguments);
    theirs(&["generate", "app.one", "--algorithm", "rsa-2048"]).expect(0);
    theirs(&["generate", "app.one", "--algorithm", "ed25519"]).expect(1);
    let signed = theirs(&["sign", "app.one", "--hash", "sha-256", "--format", "hex"]).expect(0).out;
    assert_eq!(signed.trim().len(), 2 * 256);
    theirs(&["rotate", "app.one"]).expect(0);
    let signed = theirs(&["sign", "app.one", "--hash", "sha-256", "--format", "hex"]).expect(0).out;
    assert_eq!(signed.trim().len(), 2 * 256, "a new version has the size of the one before");
    assert!(theirs(&["list"]).expect(0).out.contains("app.one"));
    // Nothing beyond: other names, other callers, the keys of others, and other clients.
    for refused in [
        &["generate", "other", "--algorithm", "ed25519"][..],
        &["generate", "app.", "--algorithm", "ed25519"],
        &["generate", "app.two", "--algorithm", "ed25519", "--for", ALL_CALLERS],
        &["allow", "app.one", "--for", ALL_CALLERS],
        &["accept", "app.one"],
        &["revoke", "web"],
        &["delete", "app.one"],
    ] {
        let why = theirs(refused).expect(1).err;
        assert!(!why.contains("web "), "{why}");
    }
    let why = theirs(&["generate", "other", "--algorithm", "ed25519"]).expect(1).err;
    assert!(why.contains("begin with app."), "{why}");
    let why = as_client(UNPRIVILEGED + 1, &["generate", "app.x", "--algorithm", "ed25519"]);
    assert!(!why.expect(1).err.contains("app."));
    as_client(UNPRIVILEGED + 1, &["sign", "app.one", "--hash", "sha-256"]).expect(1);
    // As many as there may be, and no more.
    for number in 1..256 {
        let name = format!("app.{number}");
        theirs(&["generate", &name, "--algorithm", "ed25519"]).expect(0);
    }
    let why = theirs(&["generate", "app.more", "--algorithm", "ed25519"]).expect(1).err;
    assert!(why.contains("there are 256 keys"), "{why}");
    theirs(&["revoke", "app.one"]).expect(0);
    theirs(&["delete", "app.one"]).expect(0);
    theirs(&["generate", "app.more", "--algorithm", "ed25519"]).expect(0);
    let audit = fs::read_to_string(cryptod.data().join("cryptod/keys/audit.log")).unwrap();
    let by_client = format!("\"uid\":{UNPRIVILEGED},");
    let made = |line: &&str| line.contains(&by_client) && line.contains("\"generate\"");
    assert!(audit.lines().filter(made).count() >= 257);
    let refused = |line: &str| {
        line.contains(&by_client) && line.contains("\"revoke\"") && line.contains("look after")
    };
    assert!(audit.lines().any(refused), "{audit}");
    assert!(cryptod.stop().success());
}

/// A client that has keys made which take seconds holds up no administrator, and no daemon that takes over.
#[test]
fn keys_in_a_name_space_that_take_long_hold_up_no_administrator() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root becomes other users");
        return;
    }
    let space = format!("app.=user:{UNPRIVILEGED}");
    let old = Cryptod::for_every_user(&["--name-space", &space]);
    key(&old, &["generate", "web", "--algorithm", "ed25519", "--for", "user:0"]);
    let generate = |name: &str| {
        as_user(UNPRIVILEGED, || {
            let mut command = Command::new(keyway());
            command.args(["key", "generate", name, "--algorithm", "rsa-8192", "--socket"]);
            command.arg(old.socket()).current_dir("/");
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
        })
    };
    // A user may have two of them. One is being made, the other waits.
    let mut made = ["app.a", "app.b"].map(|name| (name, generate(name)));
    key(&old, &["generate", "other", "--algorithm", "ed25519"]);
    key(&old, &["revoke", "web"]);
    key(&old, &["delete", "web"]);
    assert!(made.iter_mut().any(|(_, child)| child.try_wait().unwrap().is_none()));
    let (folder, socket) = (old.folder().clone(), old.socket().display().to_string());
    let take_over = ["--socket", &socket, "--name-space", &space, "--take-over"];
    let new = Cryptod::start_on(&folder, &[&[ALLOW_ALL], &take_over[..]].concat());
    let listed = key(&new, &["list"]);
    assert!(listed.contains("other"), "{listed}");
    for (name, mut child) in made {
        let is_made = child.wait().unwrap().success();
        assert_eq!(is_made, listed.contains(name), "{listed}");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(is_made || said.contains("another daemon has taken over"), "{said}");
    }
    assert!(new.stop().success());
}

/// `crypto test` by way of a daemon, as the paper measured /dev/crypto.
#[test]
fn a_daemon_is_tested_like_any_driver() {
    let cryptod = Cryptod::start(&[]);
    let with = format!("remote:{}", cryptod.socket().display());
    let mut command = Command::new(keyway());
    command.args(["crypto", "test", "--with", &with, "--driver", "remote", "--json"]);
    command.args(["--algorithm", "aes-128-cbc", "--size", "1k", "--count", "500"]);
    let said = finish(&mut command, "").expect(0).out;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["runs"][0]["drivers"]["remote"], 500, "{said}");
    assert_eq!(said["runs"][0]["operations"], 500);
    let mut command = Command::new(keyway());
    command.args(["crypto", "test", "--with", "remote:/nowhere", "--driver", "remote"]);
    assert!(finish(&mut command, "").expect(1).err.contains("cryptod at /nowhere"));
    assert!(cryptod.stop().success());
}

/// A daemon of a user who is not root sees what that user runs, and says at once that it sees no others.
#[test]
fn a_grant_that_fits_no_process_is_refused_at_once() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(place.path(), Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    let folder = std::sync::Arc::new(place);
    // As if that user had started it: the user owns the folder, and it has none of root's rights.
    let cryptod = as_user(UNPRIVILEGED, || Cryptod::start_on(&folder, &[]));
    let generate = |name: &str, who: &str| {
        run(&cryptod, &["generate", name, "--algorithm", "ed25519", "--for", who], "")
    };
    let program = format!("program:{}", fs::canonicalize("/bin/sh").unwrap().display());
    let refused = generate("a", &program).expect(1).err;
    assert!(refused.contains("sees only which programs that user runs"), "{refused}");
    generate("b", &format!("user:0+{program}")).expect(1);
    generate("c", &format!("user:{UNPRIVILEGED}+{program}")).expect(0);
    generate("d", "group:7").expect(0);
    assert!(cryptod.stop().success());
}
