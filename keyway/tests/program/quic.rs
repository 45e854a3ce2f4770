//! `keyway quic serve` and a client that is slow to say that it has said everything.

use crate::support::{KEYWAY, Running};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, Endpoint, ReadToEndError, RecvStream, SendStream, VarInt};
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;

const CONTENT: &str = "what there is";
/// The code that a stream is reset with where there is no such file.
const NO_SUCH_FILE: VarInt = VarInt::from_u32(2);

async fn connect(served: &Running) -> (Endpoint, Connection) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(served.text("ca_certificate")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"hq-interop".to_vec()];
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let address: SocketAddr = served.text("url").trim_start_matches("https://").parse().unwrap();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let connection = endpoint.connect_with(config, address, "localhost").unwrap().await.unwrap();
    (endpoint, connection)
}

/// Asks for a file and leaves the stream open.
async fn ask(connection: &Connection, file: &str) -> (SendStream, Result<Vec<u8>, ReadToEndError>) {
    let (mut send, mut receive): (SendStream, RecvStream) = connection.open_bi().await.unwrap();
    send.write_all(format!("GET /{file}\r\n").as_bytes()).await.unwrap();
    let answer = receive.read_to_end(1 << 20).await;
    (send, answer)
}

#[test]
fn a_client_may_end_its_request_after_the_answer() {
    let place = tempfile::tempdir().unwrap();
    let files = place.path().join("files");
    std::fs::create_dir(&files).unwrap();
    std::fs::write(files.join("file"), CONTENT).unwrap();
    let mut serve = Command::new(KEYWAY);
    serve.args(["quic", "serve", "--json", "--listen", "127.0.0.1:0", "--data"]);
    let served = Running::spawn(serve.arg(place.path().join("data")).arg(&files));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (_endpoint, connection) = connect(&served).await;
        let (mut there, answer) = ask(&connection, "file").await;
        assert_eq!(answer.unwrap(), CONTENT.as_bytes());
        let (mut missing, answer) = ask(&connection, "missing").await;
        let reset = ReadToEndError::Read(quinn::ReadError::Reset(NO_SUCH_FILE));
        assert_eq!(answer, Err(reset));
        let (mut endless, _) = ask(&connection, "file").await;
        // Whatever it would say of the streams before, it has said with this answer.
        let (mut last, answer) = ask(&connection, "file").await;
        assert_eq!(answer.unwrap(), CONTENT.as_bytes());
        last.finish().unwrap();
        for send in [&mut there, &mut missing] {
            send.write_all(b"\r\n").await.expect("the server did not say to stop");
            send.finish().unwrap();
            assert_eq!(send.stopped().await, Ok(None), "it took the end of the stream");
        }
        // But who goes on and on is told to stop.
        let mut stopped = Ok(());
        for _ in 0..10_000 {
            stopped = endless.write_all(&[b'x'; 1_000]).await;
            if stopped.is_err() {
                break;
            }
        }
        assert_eq!(stopped, Err(quinn::WriteError::Stopped(VarInt::from_u32(0))));
    });
    served.stop();
}
