//! Apache httpd with a process for each connection: its master loads keys as root, its workers sign as another user.

use super::Site;
use super::servers::{FORMS, is_ours, signs, with_certificates};
use super::tls::Running;
use keyway_tests::cryptod::eventually;
use keyway_tests::port;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::process::CommandExt;

const SSL: &str = "/usr/lib/apache2/modules/mod_ssl.so";

fn configuration(site: &Site, address: &str) -> String {
    let place = site.place().display();
    let mut text = format!(
        "ServerRoot {place}\nServerName localhost\nPidFile {place}/httpd.pid\nDefaultRuntimeDir {place}\n\
         Mutex file:{place}\nErrorLog {place}/error.log\nUser nobody\nGroup nogroup\nListen {address}\n"
    );
    for module in ["mpm_prefork", "authz_core", "ssl"] {
        text += &format!(
            "LoadModule {module}_module {}\n",
            SSL.replace("mod_ssl", &format!("mod_{module}"))
        );
    }
    text += "StartServers 4\nMinSpareServers 4\nMaxRequestWorkers 16\nSSLSessionCache none\n";
    text += &format!("<VirtualHost {address}>\nSSLEngine on\nSSLProtocol -all +TLSv1.2 +TLSv1.3\n");
    for name in ["own-rsa", "own-ec"] {
        text += &format!(
            "SSLCertificateFile {place}/{name}.crt\nSSLCertificateKeyFile {place}/{name}.pem\n"
        );
    }
    text + "</VirtualHost>\n"
}

#[test]
fn httpd_signs_in_its_workers() {
    let Some(site) = Site::with_keys(&["apache2", SSL]) else { return };
    let secrets = with_certificates(&site, "nobody");
    let address = port();
    let text = configuration(&site, &address);
    let mut server = site.command("apache2");
    server.args(["-D", "FOREGROUND", "-f"]).arg(site.file("httpd.conf"));
    // At its end it signals its group, in which this process need not be.
    server.process_group(0);
    for form in FORMS {
        fs::write(site.file("httpd.conf"), form.named_in(&text)).unwrap();
        let running = Running::start(&site, &mut server, &[&address]);
        for signal in [Signal::USR1, Signal::HUP] {
            signs(&site, &address, "ECDSA");
            signs(&site, &address, "RSA-PSS");
            restart(&site, &running, signal);
        }
        signs(&site, &address, "RSA-PSS");
        form.check(&secrets, &running);
    }
    let log = fs::read_to_string(site.file("error.log")).unwrap();
    assert!(!log.contains("keyway") && !log.contains("cryptod"), "{log}");
    let _running = Running::start(&site, &mut server, &[&address]);
    let site = site.survives_the_daemon(|site| is_ours(site, &address));
    assert!(site.cryptod.stop().success());
}

/// New workers, with keys that the master has loaded anew.
fn restart(site: &Site, running: &Running, signal: Signal) {
    let begun = || {
        let log = fs::read_to_string(site.file("error.log")).unwrap_or_default();
        log.matches("resuming normal operations").count()
    };
    eventually("httpd has begun", || begun() > 0);
    let before = begun();
    kill_process(Pid::from_child(&running.0), signal).unwrap();
    eventually("httpd begins again", || begun() > before);
}
