//! haproxy loads keys as root, and signs as a user without rights, in an empty root folder, where it may start no
//! thread. Only that user may use the keys.

use super::Site;
use super::tls::{Running, handshake};
use keyway_tests::port;
use std::fs;

#[test]
fn haproxy_signs_behind_chroot_and_as_its_own_user() {
    let Some(site) = Site::with_keys(&["haproxy"]) else { return };
    let addresses = [port(), port()];
    fs::create_dir(site.file("empty")).unwrap();
    let mut frontends = String::new();
    for ((name, algorithms), address) in
        [("hap-rsa", "rsa"), ("hap-ec", "ec-p256")].iter().zip(&addresses)
    {
        site.generate(name, algorithms, "user:nobody");
        site.certify(name);
        let both = ["crt", "pem"].map(|end| fs::read(site.file(&format!("{name}.{end}"))).unwrap());
        let file = site.file(&format!("{name}.both"));
        fs::write(&file, both.concat()).unwrap();
        frontends += &format!("    bind {address} ssl crt {}\n", file.display());
    }
    let configuration = format!(
        "global\n    chroot {}\n    user nobody\n    group nogroup\ndefaults\n    mode http\n\
         timeout client 9s\ntimeout server 9s\ntimeout connect 9s\nfrontend web\n{frontends}    http-request return status 200\n",
        site.file("empty").display()
    );
    fs::write(site.file("haproxy.cfg"), configuration).unwrap();
    let addresses = addresses.each_ref().map(String::as_str);
    for mode in [&["-db"][..], &["-W", "-db"]] {
        let mut server = site.command("haproxy");
        server.args(mode).args(["-f", "haproxy.cfg"]);
        let running = Running::start(&site, &mut server, &addresses);
        for (address, signature) in addresses.iter().zip(["RSA-PSS", "ECDSA"]) {
            for version in ["-tls1_2", "-tls1_3"] {
                let said = handshake(&site, address, "rsa.crt", &[version]);
                assert!(said.contains(&format!("Peer signature type: {signature}")), "{said}");
                assert!(said.contains("Verify return code: 0 (ok)"), "{said}");
            }
        }
        drop(running);
    }
    assert!(site.cryptod.stop().success());
}
