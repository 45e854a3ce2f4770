//! A rustls server and client on one engine: `cargo run -p keyway-tls --example handshake`.

use keyway_tls::{ServerOptions, client_config, provider, server_config};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConnection, RootCertStore, ServerConnection, Stream};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::{error::Error, thread};

fn main() -> Result<(), Box<dyn Error>> {
    let engine = keyway_drivers::engine();
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(identity.signing_key.serialize_der())?;
    let certificate = identity.cert.der().clone();

    let options = ServerOptions::new(&engine)?;
    let server = Arc::new(server_config(&options, vec![certificate.clone()], key)?);
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = Arc::new(client_config(&provider(&engine), roots)?);

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let serve = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client connects");
        let mut server = ServerConnection::new(server).expect("the configuration is complete");
        Stream::new(&mut server, &mut socket).write_all(b"hello").expect("the client reads");
    });
    let mut client = ClientConnection::new(client, "localhost".try_into()?)?;
    let (mut socket, mut text) = (TcpStream::connect(address)?, [0; 5]);
    Stream::new(&mut client, &mut socket).read_exact(&mut text)?;
    serve.join().expect("the server does not panic");

    let suite = client.negotiated_cipher_suite().ok_or("no cipher suite")?.suite();
    println!("{} under {suite:?}", String::from_utf8_lossy(&text));
    Ok(())
}
