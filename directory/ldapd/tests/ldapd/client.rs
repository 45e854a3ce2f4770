//! A raw client: it sends whatever bytes it is told to, and shows the answers as they come.

use keyway_codec::ber::frame;
use keyway_codec::filter::Filter;
use keyway_codec::message::{
    Authentication, BindRequest, CompareRequest, Control, Deref, ExtendedRequest, Message, Op,
    ResultCode, Scope, SearchRequest,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;

/// A test that waits longer for an answer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server that takes nothing for so long does not read.
const ROOM_WAIT: Duration = Duration::from_secs(2);

trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Bytes for T {}

pub struct Client {
    stream: Box<dyn Bytes>,
    received: Vec<u8>,
    last_id: u32,
}

/// One message from the server.
pub struct Answer(Vec<u8>);

impl Answer {
    pub fn message(&self) -> Message<'_> {
        Message::decode(&self.0).expect("the server's messages decode")
    }

    pub fn id(&self) -> u32 {
        self.message().id
    }

    /// The result code; panics if it is an entry.
    pub fn code(&self) -> ResultCode {
        let message = self.message();
        message.op.result().unwrap_or_else(|| panic!("no result: {:?}", message.op)).code
    }

    /// The value of an extended response.
    pub fn value(&self) -> Option<Vec<u8>> {
        match self.message().op {
            Op::ExtendedResponse(response) => response.value.map(|value| value.into_owned()),
            other => panic!("no extended response: {other:?}"),
        }
    }

    pub fn is_notice(&self) -> bool {
        let message = self.message();
        let Op::ExtendedResponse(response) = message.op else { return false };
        message.id == 0 && response.oid.as_deref() == Some("1.3.6.1.4.1.1466.20036")
    }

    pub fn is_entry(&self) -> bool {
        matches!(self.message().op, Op::SearchResultEntry(_))
    }
}

impl Client {
    pub async fn connect(address: SocketAddr) -> Client {
        Client::over(TcpStream::connect(address).await.unwrap())
    }

    /// From another of this machine's own addresses.
    pub async fn connect_from(source: [u8; 4], address: SocketAddr) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        Client::over(socket.connect(address).await.unwrap())
    }

    /// With a small receive buffer, so that little fits between here and the server.
    pub async fn connect_with_small_buffer(address: SocketAddr) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        Client::over(socket.connect(address).await.unwrap())
    }

    pub async fn connect_tls(address: SocketAddr, config: Arc<ClientConfig>) -> Client {
        let tcp = TcpStream::connect(address).await.unwrap();
        let name = "localhost".try_into().unwrap();
        Client::over(TlsConnector::from(config).connect(name, tcp).await.unwrap())
    }

    fn over(stream: impl Bytes + 'static) -> Client {
        Client { stream: Box::new(stream), received: Vec::new(), last_id: 0 }
    }

    /// A handshake on this connection, after StartTLS.
    pub async fn into_tls(self, config: Arc<ClientConfig>) -> std::io::Result<Client> {
        assert!(self.received.is_empty());
        let name = "localhost".try_into().unwrap();
        let tls = TlsConnector::from(config).connect(name, self.stream).await?;
        Ok(Client { stream: Box::new(tls), received: Vec::new(), last_id: self.last_id })
    }

    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// Sends what the server may already not want.
    pub async fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Sends for as long as there is room for more now and then; returns how many bytes that were.
    pub async fn send_while_there_is_room(&mut self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match tokio::time::timeout(ROOM_WAIT, self.stream.write(rest)).await {
                Ok(written) => sent += written.unwrap(),
                Err(_) => break,
            }
        }
        sent
    }

    pub async fn finish_sending(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    /// Sends the requests in one piece, with ids that follow each other; returns the first.
    pub async fn request_all(&mut self, ops: Vec<Op<'_>>) -> u32 {
        let first = self.last_id + 1;
        let mut bytes = Vec::new();
        for op in ops {
            self.last_id += 1;
            Message::new(self.last_id, op).encode(&mut bytes);
        }
        self.send(&bytes).await;
        first
    }

    pub async fn request(&mut self, op: Op<'_>) -> u32 {
        self.request_all(vec![op]).await
    }

    pub async fn ask(&mut self, op: Op<'_>) -> Answer {
        let id = self.request(op).await;
        let answer = self.receive().await;
        assert_eq!(answer.id(), id);
        answer
    }

    pub async fn ask_with(&mut self, op: Op<'_>, controls: Vec<Control<'_>>) -> Answer {
        self.last_id += 1;
        let mut bytes = Vec::new();
        Message { id: self.last_id, op, controls }.encode(&mut bytes);
        self.send(&bytes).await;
        self.receive().await
    }

    pub async fn receive(&mut self) -> Answer {
        self.receive_or_end().await.expect("an answer, not the end")
    }

    /// The next message, or `None` when the server has closed the connection.
    pub async fn receive_or_end(&mut self) -> Option<Answer> {
        loop {
            if let Some(length) = frame(&self.received, usize::MAX).unwrap() {
                return Some(Answer(self.received.drain(..length).collect()));
            }
            let read = self.stream.read_buf(&mut self.received);
            match tokio::time::timeout(PATIENCE, read).await.expect("an answer in time") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Expects a Notice of Disconnection of this code, and the end of the connection.
    pub async fn expect_disconnection(&mut self, code: ResultCode) {
        let notice = self.receive().await;
        assert!(notice.is_notice(), "{:?}", notice.message());
        assert_eq!(notice.code(), code);
        assert!(self.receive_or_end().await.is_none());
    }
}

pub fn bind<'a>(name: &'a str, password: &'a str) -> Op<'a> {
    let authentication = Authentication::Simple(password.as_bytes());
    Op::BindRequest(BindRequest { version: 3, name, authentication })
}

pub fn sasl<'a>(mechanism: &'a str, credentials: Option<&'a str>) -> Op<'a> {
    let credentials = credentials.map(str::as_bytes);
    let authentication = Authentication::Sasl { mechanism, credentials };
    Op::BindRequest(BindRequest { version: 3, name: "", authentication })
}

pub fn search(base: &str, scope: Scope) -> Op<'_> {
    Op::SearchRequest(SearchRequest {
        base,
        scope,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter: Filter::Present("objectClass".into()),
        attributes: Vec::new(),
    })
}

pub fn compare<'a>(dn: &'a str, attribute: &'a str, value: &'a str) -> Op<'a> {
    Op::CompareRequest(CompareRequest { dn, attribute, value: value.as_bytes() })
}

pub fn extended<'a>(oid: &'a str, value: Option<&'a [u8]>) -> Op<'a> {
    Op::ExtendedRequest(ExtendedRequest { oid, value })
}

pub fn who_am_i() -> Op<'static> {
    extended("1.3.6.1.4.1.4203.1.11.3", None)
}
