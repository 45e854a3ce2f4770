//! Connections of other servers, beside those of clients.

use crate::client::{Client, bind};
use crate::directory::{FAST, PASSWORD};
use crate::support::start;
use crate::tls::beside_members;
use keyway_codec::message::ResultCode;
use keyway_ldapd::{ConnectionSettings, Members};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;

async fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> TlsStream<TcpStream> {
    let tcp = TcpStream::connect(address).await.unwrap();
    let name = "localhost".try_into().unwrap();
    TlsConnector::from(config.clone()).connect(name, tcp).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_the_members_protocol_is_handed_over_and_others_are_clients() {
    let (mode, tls, client, member) = beside_members();
    let running = start(mode, ConnectionSettings::default()).await;
    // Without such a service the wish is not looked at.
    let unheard = connect(running.address, &member).await;
    assert_eq!(unheard.get_ref().1.alpn_protocol(), None);
    let serve = |mut stream: tokio_rustls::server::TlsStream<TcpStream>, from: SocketAddr| {
        let served = async move {
            let mut word = [0; 4];
            stream.read_exact(&mut word).await.unwrap();
            stream.write_all(format!("{from} said ").as_bytes()).await.unwrap();
            stream.write_all(&word).await.unwrap();
            stream.shutdown().await.unwrap();
        };
        Box::pin(served) as keyway_ldapd::Served
    };
    running.server.take_members(Some(Members { tls, serve: Arc::new(serve) }));
    let mut handed = connect(running.address, &member).await;
    let from = handed.get_ref().0.local_addr().unwrap();
    handed.write_all(b"word").await.unwrap();
    let mut said = String::new();
    handed.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, format!("{from} said word"));
    let mut other = Client::connect_tls(running.address, client).await;
    assert_eq!(other.ask(bind(FAST, PASSWORD)).await.code(), ResultCode::Success);
    // A connection that is served is asked to go with the others.
    let mut open = connect(running.address, &member).await;
    running.server.shutdown(std::future::ready(())).await;
    assert_eq!(open.read(&mut [0]).await.unwrap_or(0), 0);
}
