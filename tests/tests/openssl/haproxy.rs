//! haproxy loads keys as root, and signs as a user without rights, in an empty root folder, where it may start no
//! thread. Only that user may use the keys.

use super::Site;
use super::servers::{FORMS, is_ours, signs, with_certificates};
use super::tls::Running;
use keyway_tests::port;
use std::fs;

#[test]
fn haproxy_signs_behind_chroot_and_as_its_own_user() {
    let Some(site) = Site::with_keys(&["haproxy"]) else { return };
    let secrets = with_certificates(&site, "nobody");
    let addresses = [port(), port()];
    let addresses = addresses.each_ref().map(String::as_str);
    let servers = [("own-rsa", "RSA-PSS"), ("own-ec", "ECDSA")];
    fs::create_dir(site.file("empty")).unwrap();
    let mut frontends = String::new();
    for ((name, _), address) in servers.iter().zip(&addresses) {
        frontends += &format!("    bind {address} ssl crt {name}.both\n");
    }
    let configuration = format!(
        "global\n    chroot {}\n    user nobody\n    group nogroup\ndefaults\n    mode http\n\
         timeout client 9s\ntimeout server 9s\ntimeout connect 9s\nfrontend web\n{frontends}    http-request return status 200\n",
        site.file("empty").display()
    );
    fs::write(site.file("haproxy.cfg"), &configuration).unwrap();
    let mut server = site.command("haproxy");
    server.args(["-db", "-f", "haproxy.cfg"]);
    for form in FORMS {
        for (name, _) in servers {
            let both = [format!("{name}.crt"), form.named_in(&format!("{name}.pem"))];
            let both = both.map(|file| fs::read(site.file(&file)).unwrap());
            fs::write(site.file(&format!("{name}.both")), both.concat()).unwrap();
        }
        for mode in [None, Some("-W")] {
            let running = Running::start(&site, server.args(mode), &addresses);
            for (address, (_, signature)) in addresses.iter().zip(servers) {
                signs(&site, address, signature);
            }
            form.check(&secrets, &running);
        }
    }
    // Signatures in jobs of OpenSSL's (ASYNC_start_job), which have a small stack.
    let asynchronous = configuration.replace("global\n", "global\n    ssl-mode-async\n");
    fs::write(site.file("haproxy.cfg"), asynchronous).unwrap();
    let _running = Running::start(&site, &mut server, &addresses);
    for (address, (_, signature)) in addresses.iter().zip(servers) {
        signs(&site, address, signature);
    }
    let site = site.survives_the_daemon(|site| is_ours(site, addresses[0]));
    assert!(site.cryptod.stop().success());
}
