//! TLS 1.2 and 1.3 by `openssl s_server`, with a client that has no provider; and a daemon that ends meanwhile.

use super::{KEYS, Site};
use keyway_tests::cryptod::{PATIENCE, eventually};
use keyway_tests::{ALL_CALLERS, finish, port};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server. Ended when it is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A master ends its workers then.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.0.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a server, and waits until it listens there.
    pub fn start(site: &Site, command: &mut Command, addresses: &[&str]) -> Running {
        let log = File::create(site.file("server.log")).unwrap();
        let output = (log.try_clone().unwrap(), log);
        let command = command.stdin(Stdio::null()).stdout(output.0).stderr(output.1);
        let mut running = Running(command.spawn().unwrap());
        for address in addresses {
            eventually("the server listens", || {
                let ended = running.0.try_wait().unwrap();
                assert!(
                    ended.is_none(),
                    "{}",
                    fs::read_to_string(site.file("server.log")).unwrap()
                );
                TcpStream::connect(address).is_ok()
            });
        }
        running
    }
}

/// The output of `openssl s_client` after a handshake with that server.
pub fn handshake(site: &Site, address: &str, certificate: &str, options: &[&str]) -> String {
    let mut client = site.stock("openssl");
    client.args(["s_client", "-connect", address, "-CAfile", certificate]).args(options);
    finish(client.args(["-servername", "localhost", "-verify_return_error"]), "").out
}

#[test]
fn servers_have_keys_of_every_kind() {
    let Some(site) = Site::with_keys(&[]) else { return };
    fs::write(site.file("openssl.cnf"), site.configured(["keyway", "default"])).unwrap();
    for (name, _, _, signature) in KEYS {
        let (address, certificate) = (port(), format!("{name}.crt"));
        let mut server = site.command("openssl");
        server.args(["s_server", "-quiet", "-www", "-accept", &address, "-cert", &certificate]);
        let _running =
            Running::start(&site, server.args(["-key", &format!("{name}.pem")]), &[&address]);
        for version in ["-tls1_2", "-tls1_3"] {
            let said = handshake(&site, &address, &certificate, &[version]);
            assert!(said.contains(&format!("Peer signature type: {signature}")), "{name}: {said}");
            assert!(said.contains("Verify return code: 0 (ok)"), "{name} {version}: {said}");
        }
    }
    assert!(site.cryptod.stop().success());
}

/// The old key exchange: the client encrypts the premaster secret to the server's RSA key.
#[test]
fn premaster_secrets_are_decrypted() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let purposes = ["--purpose", "sign", "--purpose", "decrypt", "--for", ALL_CALLERS];
    let kinds = ["--algorithm", "rsa", "--algorithm", "rsaes-pkcs1"];
    site.key(&[&["generate", "old"], &kinds[..], &purposes].concat());
    fs::write(site.file("old.pem"), site.key(&["use", "old", "--with", "pem"])).unwrap();
    fs::write(site.file("old.pub"), site.key(&["public", "old", "--pem"])).unwrap();
    site.certify("old");
    let address = port();
    let mut server = site.command("openssl");
    server.args(["s_server", "-quiet", "-www", "-accept", &address, "-cipher", "kRSA:@SECLEVEL=0"]);
    let _running =
        Running::start(&site, server.args(["-cert", "old.crt", "-key", "old.pem"]), &[&address]);
    let options = ["-tls1_2", "-cipher", "AES128-GCM-SHA256:@SECLEVEL=0"];
    let said = handshake(&site, &address, "rsa.crt", &options);
    assert!(said.contains("Cipher is AES128-GCM-SHA256"), "{said}");
    assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
    assert!(site.cryptod.stop().success());
}

#[test]
fn a_server_goes_on_when_the_daemon_is_back() {
    let Some(site) = Site::with_keys(&[]) else { return };
    let address = port();
    let mut server = site.command("openssl");
    server.args(["s_server", "-quiet", "-www", "-accept", &address, "-cert", "ec.crt"]);
    let _running = Running::start(&site, server.args(["-key", "keyway:ec"]), &[&address]);
    let works = |site: &Site| {
        handshake(site, &address, "ec.crt", &["-tls1_3"]).contains("Peer signature type: ECDSA")
    };
    // A second time with a connection that is lost.
    let site = site.survives_the_daemon(works).survives_the_daemon(works);
    assert!(site.cryptod.stop().success());
}

/// curl shows a certificate whose key is in cryptod to a server without the provider.
#[test]
fn a_client_shows_its_certificate() {
    let Some(site) = Site::with_keys(&["curl"]) else { return };
    let own = ["req", "-x509", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "own.key"];
    let rest = ["-subj", "/CN=localhost", "-out", "own.crt"];
    site.stock_openssl(&[&own[..], &rest[..]].concat()).expect(0);
    for (name, ..) in KEYS {
        let (address, certificate) = (port(), format!("{name}.crt"));
        let mut server = site.stock("openssl");
        server
            .args(["s_server", "-www", "-accept", &address, "-cert", "own.crt", "-key", "own.key"]);
        server.args(["-Verify", "2", "-verify_return_error", "-CAfile", &certificate]);
        let _running = Running::start(&site, &mut server, &[&address]);
        for most in ["1.2", "1.3"] {
            if name == "ec384" && most == "1.2" {
                continue;
            }
            let mut client = site.command("curl");
            client.args(["-sk", "--tls-max", most, "--cert", &certificate, "--key"]);
            client.args([&format!("{name}.pem"), &format!("https://{address}/")]);
            let said = finish(&mut client, "").expect(0).out;
            assert!(said.contains("Client certificate"), "{name} {most}: {said}");
        }
    }
    assert!(site.cryptod.stop().success());
}
