//! etcd with TLS, and certificates on both sides.

use crate::site::{Site, add_in_time, until};
use keyway_tests::authority::Authority;
use keyway_tests::cryptod::eventually;
use keyway_tests::etcd::{Certificates, Etcd};
use keyway_tests::{available, etcd, secret};
use std::fs;

#[test]
fn etcd_with_certificates_is_used_and_a_wrong_authority_is_said() {
    if !etcd::available() || !available(&["openssl"]) {
        return;
    }
    let (ours, theirs) = (Authority::new(), Authority::new());
    let both = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth";
    ours.issue_own("etcd", "/CN=etcd", both);
    ours.issue_own("member", "/CN=member", "extendedKeyUsage=clientAuth");
    secret(&ours.path("own.key"), &fs::read_to_string(ours.path("member.key")).unwrap());
    let server = Etcd::with_tls(&Certificates {
        authority: &ours.path("ca.pem"),
        certificate: &ours.path("etcd.pem"),
        key: &ours.path("etcd.key"),
    });
    let address = server.addresses()[0].clone();
    eventually("it listens", || std::net::TcpStream::connect(&address).is_ok());
    let file = |name: &str| ours.path(name).display().to_string();
    let settings = |ca: &str, client: bool| {
        let client = match client {
            true => format!(
                "etcd_certificate = \"{}\"\netcd_key = \"{}\"\n",
                file("member.pem"),
                file("own.key")
            ),
            false => String::new(),
        };
        format!("etcd = [\"https://{address}\"]\netcd_ca = \"{ca}\"\n{client}lease_s = 3\n")
    };
    let good = settings(&file("ca.pem"), true);
    let mut site = Site::with(2, server, &good);
    let writer = site.writer();
    add_in_time("over-tls", || site.client(1 - writer));
    site.settle();
    let wrong = [
        (settings(&theirs.path("ca.pem").display().to_string(), true), "invalid peer certificate"),
        (settings(&file("ca.pem"), false), "CertificateRequired"),
    ];
    for (wrong, why) in wrong {
        let place = &mut site.places[1 - writer];
        place.set(&good, &wrong);
        place.start(&[]);
        // One that is slow is said to be that first.
        until(&format!("its status says {why}"), || {
            let said = place.trouble();
            (said.contains(&address) && said.contains(why)).then_some(())
        });
        place.set(&wrong, &good);
        place.start(&[]);
    }
    assert!(site.end().contains("uid=over-tls,"));
}
