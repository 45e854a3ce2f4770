//! TLS with certificates on both sides.

use crate::rows::Feed;
use crate::{A, CLUSTER, runtime, won};
use keyway_cluster_etcd::{Error, Etcd, Options, Point};
use keyway_tests::authority::Authority;
use keyway_tests::cryptod::eventually;
use keyway_tests::{available, etcd};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn etcd_is_spoken_to_over_tls_with_certificates_on_both_sides() {
    if !etcd::available() || !available(&["openssl"]) {
        return;
    }
    let (ours, theirs, runtime) = (Authority::new(), Authority::new(), runtime());
    let extensions = "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth";
    for authority in [&ours, &theirs] {
        authority.issue_own("etcd", "/CN=etcd", extensions);
        authority.issue_own("a", "/CN=a", "extendedKeyUsage=clientAuth");
    }
    let server = etcd::Etcd::with_tls(&etcd::Certificates {
        authority: &ours.path("ca.pem"),
        certificate: &ours.path("etcd.pem"),
        key: &ours.path("etcd.key"),
    });
    let provider = keyway_tls::provider(&keyway_drivers::engine());
    let tls = |trusted: &Authority, own: &Authority, is_known: bool| {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(trusted.path("ca.pem")).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let chain = vec![CertificateDer::from_pem_file(own.path("a.pem")).unwrap()];
        let key = PrivateKeyDer::from_pem_file(own.path("a.key")).unwrap();
        let mut config = match is_known {
            true => config.with_client_auth_cert(chain, key).unwrap(),
            false => config.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    };
    let client = |tls: Option<Arc<ClientConfig>>| {
        let url = format!("https://{}", server.addresses()[0]).parse().unwrap();
        let call_limit = Duration::from_secs(1);
        let options = Options { tls, call_limit, ..Options::new(vec![url], CLUSTER) };
        Etcd::new(options, runtime.handle().clone())
    };
    let etcd = client(Some(tls(&ours, &ours, true))).unwrap();
    eventually("it listens", || etcd.head().is_ok());
    let lease = won(&etcd, A);
    etcd.begin(&lease, Point::START).unwrap();
    let mut feed = Feed::NEW;
    feed.append(&etcd, &lease, 3);
    // Servers of another authority, clients of another one, clients without a certificate, and without TLS.
    for (trusted, own, is_known) in
        [(&theirs, &ours, true), (&ours, &theirs, true), (&ours, &ours, false)]
    {
        let refused = client(Some(tls(trusted, own, is_known))).unwrap().head();
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    }
    assert!(matches!(client(None), Err(Error::Config(_))));
    assert!(etcd.follow(Point::START).next(crate::PATIENCE).is_ok());
}
