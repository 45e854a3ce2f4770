//! AES-GCM, digests and random bytes of the provider, where the configuration asks for them: they are libcrypto's.

use super::Site;
use super::tls::Running;
use keyway_tests::{finish, port};
use std::fs;
use std::process::Command;

/// The site's configuration with all that is done in the program, preferred.
fn configure(site: &Site) {
    let text = site.configuration();
    let text = text.replace("?keyway.key!=yes", "?provider=keyway,?keyway.key!=yes");
    let text = text.replace("alg_section", "random = random\nalg_section");
    let text = text.replace("module =", "ciphers = yes\ndigests = yes\nmodule =");
    fs::write(site.file("openssl.cnf"), text + "[random]\nrandom = KEYWAY\n").unwrap();
}

#[test]
fn ciphers_digests_and_random_bytes_are_those_of_libcrypto() {
    let Some(site) = Site::new(&["cc", "/usr/include/openssl/store.h"]) else { return };
    configure(&site);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openssl/ciphers.c");
    let mut compile = Command::new("cc");
    compile.args(["-g", "-O1", "-Wall", "-o"]).arg(site.file("program")).args([source, "-lcrypto"]);
    finish(&mut compile, "").expect(0);
    finish(&mut site.command(site.file("program").to_str().unwrap()), "").expect(0);
    assert!(site.cryptod.stop().success());
}

/// Only those that are asked for are there.
#[test]
fn nothing_is_offered_unasked() {
    let Some(site) = Site::new(&[]) else { return };
    let list = ["list", "-cipher-algorithms", "-digest-algorithms", "-random-instances"];
    assert!(!site.openssl(&list).expect(0).out.contains("@ keyway"));
    configure(&site);
    let all = site.openssl(&list).expect(0).out;
    assert_eq!(all.matches("@ keyway").count(), 3 + 8 + 3, "{all}");
    for (word, is_on) in [("on", true), ("TRUE", true), ("1", true), ("no", false), ("0", false)] {
        let text = fs::read_to_string(site.file("openssl.cnf")).unwrap();
        let text = text.replace("ciphers = yes", &format!("ciphers = {word}"));
        fs::write(site.file("other.cnf"), text).unwrap();
        let mut command = site.command("openssl");
        command.args(["list", "-cipher-algorithms"]).env("OPENSSL_CONF", site.file("other.cnf"));
        assert_eq!(finish(&mut command, "").expect(0).out.contains("@ keyway"), is_on, "{word}");
    }
    let text = fs::read_to_string(site.file("openssl.cnf")).unwrap();
    let text = text.replace("digests = yes", "digests = maybe");
    fs::write(site.file("openssl.cnf"), text).unwrap();
    // It is not there then. OpenSSL keeps the reason to itself.
    let listed = site.openssl(&["list", "-providers"]).expect(0).out;
    assert!(listed.contains("default") && !listed.contains("keyway"), "{listed}");
    assert!(site.cryptod.stop().success());
}

/// A long text between these ciphers and libcrypto's own, to either side.
#[test]
fn records_are_those_of_libcrypto() {
    let Some(site) = Site::with_keys(&["curl"]) else { return };
    configure(&site);
    let text: String = (0..40_000).map(|number| format!("{number}\n")).collect();
    fs::write(site.file("text"), &text).unwrap();
    let serve = ["s_server", "-quiet", "-WWW", "-accept"];
    let own = ["req", "-x509", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key"];
    site.stock_openssl(&[&own[..], &["-subj", "/CN=localhost", "-out", "own.crt"]].concat())
        .expect(0);
    let addresses = [port(), port()];
    let mut ours = site.command("openssl");
    ours.args(serve).args([&addresses[0], "-cert", "ec.crt", "-key", "ec.pem"]);
    let mut stock = site.stock("openssl");
    stock.args(serve).args([&addresses[1], "-cert", "own.crt", "-key", "own.key"]);
    let _running = [(&mut ours, &addresses[0]), (&mut stock, &addresses[1])]
        .map(|(command, address)| Running::start(&site, command, &[address]));
    for (address, client) in addresses.iter().zip([Site::stock, Site::command]) {
        for version in ["--tlsv1.2", "--tlsv1.3"] {
            let most = version.trim_start_matches("--tlsv");
            for (cipher, suite) in [
                ("AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256"),
                ("AES256-GCM-SHA384", "TLS_AES_256_GCM_SHA384"),
            ] {
                let mut curl = client(&site, "curl");
                curl.args(["-skv", version, "--tls-max", most, &format!("https://{address}/text")]);
                let older = format!("ECDHE-ECDSA-{cipher}:ECDHE-RSA-{cipher}");
                curl.args(["--ciphers", &older, "--tls13-ciphers", suite]);
                let got = finish(&mut curl, "").expect(0);
                assert!(got.out.ends_with(&text), "{version} {cipher}: {}", got.err);
                let used = got.err.lines().find(|line| line.contains("SSL connection using"));
                let is_used = |line: &str| line.contains(cipher) || line.contains(suite);
                assert!(used.is_some_and(is_used), "{version} {cipher}: {}", got.err);
            }
        }
    }
    assert!(site.cryptod.stop().success());
}
