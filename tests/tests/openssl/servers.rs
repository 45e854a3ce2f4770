//! nginx, whose master loads keys as root and whose workers sign as another user, and stunnel, which changes its user
//! and its root by itself. Both load files only.

use super::Site;
use super::memory::{Secret, children};
use super::tls::{Running, handshake};
use keyway_tests::cryptod::eventually;
use keyway_tests::port;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// Two keys that only that user may use, with certificates of `rsa`.
pub fn with_certificates(site: &Site, user: &str) -> [Secret; 2] {
    [("own-rsa", "rsa"), ("own-ec", "ec-p256")].map(|(name, kind)| {
        let secret = site.import(name, kind, &format!("user:{user}"));
        site.certify(name);
        secret
    })
}

/// How a server's configuration names its keys: first in files, to see that the search of its memory finds them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Stock,
    Keyway,
}

pub const FORMS: [Form; 2] = [Form::Stock, Form::Keyway];

impl Form {
    /// A configuration whose keys end in `.pem`.
    pub fn named_in(self, configuration: &str) -> String {
        match self {
            Form::Stock => configuration.replace(".pem", ".key"),
            Form::Keyway => configuration.to_owned(),
        }
    }

    /// Looks into the memory of a server and of its workers.
    pub fn check(self, secrets: &[Secret], running: &Running) {
        for secret in secrets {
            assert_eq!(secret.is_known_to(running.0.id()), self == Form::Stock);
        }
    }
}

/// Whether a server signs at all.
pub fn is_ours(site: &Site, address: &str) -> bool {
    handshake(site, address, "rsa.crt", &[]).contains("Peer signature type: ")
}

/// Asserts that a server signs so, in both versions of TLS.
pub fn signs(site: &Site, address: &str, signature: &str) {
    for version in ["-tls1_2", "-tls1_3"] {
        let sigalgs =
            if signature == "ECDSA" { "ECDSA+SHA256" } else { "RSA-PSS+SHA256:RSA+SHA256" };
        let said = handshake(site, address, "rsa.crt", &[version, "-sigalgs", sigalgs]);
        assert!(said.contains(&format!("Peer signature type: {signature}")), "{said}");
        assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
    }
}

#[test]
fn nginx_signs_in_its_workers() {
    let Some(site) = Site::with_keys(&["nginx"]) else { return };
    let secrets = with_certificates(&site, "nobody");
    let (address, place) = (port(), site.place().display());
    let configuration = format!(
        "user nobody nogroup;\nworker_processes 2;\ndaemon off;\npid {place}/pid;\nerror_log {place}/error.log;\n\
         events {{}}\nhttp {{\naccess_log off;\nssl_protocols TLSv1.2 TLSv1.3;\nclient_body_temp_path {place}/a;\n\
         proxy_temp_path {place}/b;\nfastcgi_temp_path {place}/c;\n\
         uwsgi_temp_path {place}/d;\nscgi_temp_path {place}/e;\n\
         server {{\nlisten {address} ssl;\n\
         ssl_certificate {place}/own-ec.crt;\nssl_certificate_key {place}/own-ec.pem;\n\
         ssl_certificate {place}/own-rsa.crt;\nssl_certificate_key {place}/own-rsa.pem;\n}}\n}}\n"
    );
    let mut server = site.command("nginx");
    server.arg("-c").arg(site.file("nginx.conf")).arg("-p").arg(site.place());
    for form in FORMS {
        fs::write(site.file("nginx.conf"), form.named_in(&configuration)).unwrap();
        let running = Running::start(&site, &mut server, &[&address]);
        for _ in 0..2 {
            signs(&site, &address, "ECDSA");
            signs(&site, &address, "RSA-PSS");
            // New workers, with keys that the master has loaded anew.
            let before = children(running.0.id());
            kill_process(Pid::from_child(&running.0), Signal::HUP).unwrap();
            eventually("new workers", || {
                let now = children(running.0.id());
                !now.is_empty() && before.iter().all(|old| !now.contains(old))
            });
        }
        form.check(&secrets, &running);
    }
    let log = fs::read_to_string(site.file("error.log")).unwrap();
    assert!(!log.contains("keyway"), "{log}");
    let _running = Running::start(&site, &mut server, &[&address]);
    let site = site.survives_the_daemon(|site| is_ours(site, &address));
    assert!(site.cryptod.stop().success());
}

#[test]
fn stunnel_signs_behind_chroot() {
    let Some(site) = Site::with_keys(&["stunnel"]) else { return };
    let secrets = with_certificates(&site, "nobody");
    let (address, place) = (port(), site.place().display());
    fs::create_dir(site.file("empty")).unwrap();
    let configuration = format!(
        "foreground = yes\npid =\nsetuid = nobody\nsetgid = nogroup\nchroot = {place}/empty\n[tunnel]\n\
         accept = {address}\nconnect = {}\ncert = {place}/own-ec.crt\nkey = {place}/own-ec.pem\n",
        port()
    );
    let mut server = site.command("stunnel");
    server.arg(site.file("stunnel.conf"));
    for name in ["own-ec", "own-rsa"] {
        let configuration = configuration.replace("own-ec", name);
        for form in FORMS {
            fs::write(site.file("stunnel.conf"), form.named_in(&configuration)).unwrap();
            let running = Running::start(&site, &mut server, &[&address]);
            signs(&site, &address, if name == "own-ec" { "ECDSA" } else { "RSA-PSS" });
            let secret = &secrets[usize::from(name == "own-ec")];
            form.check(std::slice::from_ref(secret), &running);
        }
    }
    let _running = Running::start(&site, &mut server, &[&address]);
    let site = site.survives_the_daemon(|site| is_ours(site, &address));
    assert!(site.cryptod.stop().success());
}
