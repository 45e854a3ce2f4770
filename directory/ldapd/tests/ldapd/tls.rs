//! TLS from the start, StartTLS, and client certificates.

use crate::client::{Client, bind, extended, sasl, search, who_am_i};
use crate::directory::{CERTIFIED, FAST, PASSWORD, SLOW};
use crate::extended::PASSWORD_MODIFY;
use crate::support::{Running, start, start_gated};
use keyway_codec::message::{Op, ResultCode, Scope};
use keyway_ldapd::{ConnectionSettings, CurrentTls, Limits, MEMBER_PROTOCOL, Mode};
use rcgen::{CertificateParams, CertifiedIssuer, DistinguishedName, DnType, KeyPair};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

const START_TLS: &str = "1.3.6.1.4.1.1466.20037";

/// An authority, the server it vouches for, and clients with and without a certificate.
struct Pki {
    authority: CertifiedIssuer<'static, KeyPair>,
    roots: Arc<RootCertStore>,
}

impl Pki {
    fn new() -> Pki {
        let mut params = CertificateParams::default();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        Pki { authority, roots: Arc::new(roots) }
    }

    fn issue(&self, params: &CertificateParams) -> (rcgen::Certificate, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        (certificate, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
    }

    fn server(&self) -> CurrentTls {
        CurrentTls::new(self.server_config())
    }

    fn server_config(&self) -> ServerConfig {
        let provider = keyway_tls::provider(&keyway_drivers::engine());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider.clone())
                .allow_unauthenticated()
                .build()
                .unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        let (certificate, key) = self.issue(&params);
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }

    fn client(&self) -> Arc<ClientConfig> {
        let provider = keyway_tls::provider(&keyway_drivers::engine());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone());
        Arc::new(config.with_no_client_auth())
    }

    /// A client that shows a certificate with this subject, given from the root downwards.
    fn client_named(&self, subject: &[(DnType, &str)]) -> Arc<ClientConfig> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in subject {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let (certificate, key) = self.issue(&params);
        let provider = keyway_tls::provider(&keyway_drivers::engine());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone())
            .with_client_auth_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

/// Loopback is as good as the open network here.
fn strict() -> ConnectionSettings {
    ConnectionSettings { trust_loopback: false, ..ConnectionSettings::default() }
}

async fn start_tls_server(pki: &Pki) -> Running {
    start(Mode::StartTls(pki.server()), strict()).await
}

/// A server's way to begin, and a client's configuration that trusts it.
pub fn over_tls() -> (Mode, Arc<ClientConfig>) {
    let pki = Pki::new();
    (Mode::Tls(pki.server()), pki.client())
}

/// A server's way to begin, another TLS for members of a cluster, and the configurations of a client and a member.
pub fn beside_members() -> (Mode, Arc<ServerConfig>, Arc<ClientConfig>, Arc<ClientConfig>) {
    let pki = Pki::new();
    let mut members = ServerConfig::clone(&pki.server_config());
    members.alpn_protocols = vec![MEMBER_PROTOCOL.to_vec()];
    let mut member = ClientConfig::clone(&pki.client());
    member.alpn_protocols = vec![MEMBER_PROTOCOL.to_vec()];
    (Mode::Tls(pki.server()), Arc::new(members), pki.client(), Arc::new(member))
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_may_cross_tls() {
    let pki = Pki::new();
    let server = start(Mode::Tls(pki.server()), strict()).await;
    let mut client = Client::connect_tls(server.address, pki.client()).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    assert_eq!(client.ask(sasl("PLAIN", Some("\0slow\0secret"))).await.code(), ResultCode::Success);
    assert_eq!(client.ask(extended(START_TLS, None)).await.code(), ResultCode::OperationsError);
    client.request(Op::UnbindRequest).await;
    assert!(client.receive_or_end().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn start_tls_makes_a_clear_connection_private() {
    use ResultCode::*;
    let pki = Pki::new();
    let server = start_tls_server(&pki).await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ConfidentialityRequired);
    assert_eq!(client.ask(extended(START_TLS, None)).await.code(), Success);
    let mut client = client.into_tls(pki.client()).await.unwrap();
    assert_eq!(client.ask(extended(START_TLS, None)).await.code(), OperationsError);
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), Success);
    assert_eq!(client.ask(who_am_i()).await.value().unwrap(), format!("dn:{FAST}").into_bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_start_tls_in_the_clear_is_not_taken_into_tls() {
    let pki = Pki::new();
    let server = start_tls_server(&pki).await;
    let mut client = Client::connect(server.address).await;
    let ops = vec![extended(START_TLS, None), who_am_i()];
    let first = client.request_all(ops).await;
    // Whatever the client hears, it is no answer to what was slipped in, and no session goes on.
    let answer = client.receive().await;
    assert_eq!((answer.id(), answer.code()), (first, ResultCode::Success));
    assert!(client.receive_or_end().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn start_tls_while_a_request_is_under_way_is_an_operations_error() {
    let pki = Pki::new();
    let settings = ConnectionSettings::default();
    let server = start_gated(Mode::StartTls(pki.server()), settings, false).await;
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    let first =
        client.request_all(vec![extended(PASSWORD_MODIFY, None), extended(START_TLS, None)]).await;
    let answer = client.receive().await;
    assert_eq!((answer.id(), answer.code()), (first + 1, ResultCode::OperationsError));
    server.gate.open();
    assert_eq!(client.receive().await.id(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_handshake_no_connection() {
    let pki = Pki::new();
    let limits = Limits { handshake_max: Duration::from_millis(20), ..Limits::default() };
    let server = start(Mode::Tls(pki.server()), ConnectionSettings { limits, ..strict() }).await;
    let mut silent = Client::connect(server.address).await;
    assert!(silent.receive_or_end().await.is_none());

    let server = start_tls_server(&pki).await;
    let mut garbled = Client::connect(server.address).await;
    assert_eq!(garbled.ask(extended(START_TLS, None)).await.code(), ResultCode::Success);
    garbled.send(b"this is no handshake").await;
    assert!(garbled.into_tls(pki.client()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_proves_who_its_subject_is() {
    use ResultCode::*;
    let pki = Pki::new();
    let server = start(Mode::Tls(pki.server()), strict()).await;
    let ada = [(DnType::OrganizationName, "Certified"), (DnType::CommonName, "Ada")];
    let mut client = Client::connect_tls(server.address, pki.client_named(&ada)).await;
    // The certificate alone gives the connection no identity.
    assert_eq!(client.ask(who_am_i()).await.value(), Some(Vec::new()));
    assert_eq!(client.ask(sasl("EXTERNAL", None)).await.code(), Success);
    let identity = format!("dn:{CERTIFIED}");
    assert_eq!(client.ask(who_am_i()).await.value().unwrap(), identity.clone().into_bytes());
    for authorization in ["", &identity, CERTIFIED, "dn:CN=ada,O=certified"] {
        assert_eq!(client.ask(sasl("EXTERNAL", Some(authorization))).await.code(), Success);
    }
    for authorization in [SLOW, "u:slow", "absent"] {
        let answer = client.ask(sasl("EXTERNAL", Some(authorization))).await;
        assert_eq!(answer.code(), InvalidCredentials);
    }
}

/// `supportedSASLMechanisms` of the root DSE, as this client is told.
async fn mechanisms(client: &mut Client) -> Vec<String> {
    let Op::SearchRequest(mut request) = search("", Scope::Base) else { unreachable!() };
    request.attributes = vec!["supportedSASLMechanisms"];
    client.request(Op::SearchRequest(request)).await;
    let answer = client.receive().await;
    let Op::SearchResultEntry(entry) = answer.message().op else { panic!("no root DSE") };
    let values = entry.attributes.iter().flat_map(|attribute| &attribute.values);
    let text = values.map(|value| String::from_utf8_lossy(value).into_owned()).collect();
    assert_eq!(client.receive().await.code(), ResultCode::Success);
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn mechanisms_are_offered_where_they_can_work() {
    let pki = Pki::new();
    let ada = [(DnType::OrganizationName, "Certified"), (DnType::CommonName, "Ada")];
    let server = start_tls_server(&pki).await;
    for (config, offered) in [
        (pki.client(), &["PLAIN"][..]),
        (pki.client_named(&ada), &["EXTERNAL", "PLAIN"]),
        (pki.client_named(&[]), &["PLAIN"]),
    ] {
        let mut client = Client::connect(server.address).await;
        assert!(mechanisms(&mut client).await.is_empty());
        assert_eq!(client.ask(extended(START_TLS, None)).await.code(), ResultCode::Success);
        let mut client = client.into_tls(config).await.unwrap();
        assert_eq!(mechanisms(&mut client).await, offered);
        let external = client.ask(sasl("EXTERNAL", None)).await.code();
        assert_eq!(external == ResultCode::Success, offered.contains(&"EXTERNAL"));
    }
    // Loopback that is trusted with passwords.
    let server = start(Mode::Plain, ConnectionSettings::default()).await;
    assert_eq!(mechanisms(&mut Client::connect(server.address).await).await, ["PLAIN"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_no_user_here_proves_nothing() {
    use ResultCode::*;
    let pki = Pki::new();
    let server = start_tls_server(&pki).await;
    for (subject, code) in [
        (
            vec![(DnType::OrganizationName, "Certified"), (DnType::CommonName, "Bob")],
            InvalidCredentials,
        ),
        (vec![], InappropriateAuthentication),
    ] {
        let mut client = Client::connect(server.address).await;
        assert_eq!(client.ask(extended(START_TLS, None)).await.code(), Success);
        let mut client = client.into_tls(pki.client_named(&subject)).await.unwrap();
        assert_eq!(client.ask(sasl("EXTERNAL", None)).await.code(), code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_authority_ends_the_connection() {
    let pki = Pki::new();
    let server = start_tls_server(&pki).await;
    let stranger = Pki { roots: pki.roots.clone(), ..Pki::new() };
    let ada = [(DnType::OrganizationName, "Certified"), (DnType::CommonName, "Ada")];
    let config = stranger.client_named(&ada);
    let mut client = Client::connect(server.address).await;
    assert_eq!(client.ask(extended(START_TLS, None)).await.code(), ResultCode::Success);
    // In TLS 1.3 a client is through before the server has seen its certificate.
    if let Ok(mut client) = client.into_tls(config).await {
        assert!(client.receive_or_end().await.is_none());
    }
}
