//! nginx, whose master loads keys as root and whose workers sign as another user, and stunnel, which changes its user
//! and its root by itself. Both load files only.

use super::Site;
use super::tls::{Running, handshake};
use keyway_tests::port;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// Two keys that only the user `nobody` may use, with certificates of `rsa`.
fn with_certificates(site: &Site) {
    for (name, algorithms) in [("own-rsa", "rsa"), ("own-ec", "ec-p256")] {
        site.generate(name, algorithms, "user:nobody");
        site.certify(name);
    }
}

fn signs(site: &Site, address: &str, signature: &str) {
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
    with_certificates(&site);
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
    fs::write(site.file("nginx.conf"), configuration).unwrap();
    let mut server = site.command("nginx");
    server.arg("-c").arg(site.file("nginx.conf")).arg("-p").arg(site.place());
    let running = Running::start(&site, &mut server, &[&address]);
    for _ in 0..2 {
        signs(&site, &address, "ECDSA");
        signs(&site, &address, "RSA-PSS");
        // New workers, with keys that the master has loaded anew.
        kill_process(Pid::from_child(&running.0), Signal::HUP).unwrap();
    }
    drop(running);
    let log = fs::read_to_string(site.file("error.log")).unwrap();
    assert!(!log.contains("keyway"), "{log}");
    assert!(site.cryptod.stop().success());
}

#[test]
fn stunnel_signs_behind_chroot() {
    let Some(site) = Site::with_keys(&["stunnel"]) else { return };
    with_certificates(&site);
    let (address, place) = (port(), site.place().display());
    fs::create_dir(site.file("empty")).unwrap();
    let configuration = format!(
        "foreground = yes\npid =\nsetuid = nobody\nsetgid = nogroup\nchroot = {place}/empty\n[tunnel]\n\
         accept = {address}\nconnect = {}\ncert = {place}/own-ec.crt\nkey = {place}/own-ec.pem\n",
        port()
    );
    fs::write(site.file("stunnel.conf"), configuration).unwrap();
    let mut server = site.command("stunnel");
    let _running = Running::start(&site, server.arg(site.file("stunnel.conf")), &[&address]);
    signs(&site, &address, "ECDSA");
    assert!(site.cryptod.stop().success());
}
