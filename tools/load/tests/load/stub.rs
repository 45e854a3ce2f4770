//! A small LDAP server for the tests, which does wrong what it is told to do wrong.

use keyway_codec::message::{
    Attribute, BindResponse, ExtendedResponse, LdapResult, Message, ResultCode, SearchResultEntry,
};
use keyway_codec::{Op, ber, extended};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// The stub's answer to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This code; searches give so many entries.
    Code(ResultCode, usize),
    /// Nothing.
    Silence,
    /// The connection is closed.
    Close,
    /// These bytes.
    Bytes(&'static [u8]),
}

pub const FINE: Answer = Answer::Code(ResultCode::Success, 1);

type Decide = dyn Fn(&Op<'_>) -> Answer + Send + Sync;

/// The stub's records and behaviour.
pub struct Stub {
    pub url: String,
    pub state: Arc<State>,
}

pub struct State {
    decide: Box<Decide>,
    pub connections: AtomicUsize,
    pub requests: AtomicUsize,
    /// The most requests that came in one read.
    pub together: AtomicUsize,
    /// Closed: nothing is answered.
    gate: Mutex<bool>,
    opened: Condvar,
    tls: Option<Arc<ServerConfig>>,
    tls_first: bool,
}

impl State {
    pub fn shut(&self) {
        *self.gate.lock().unwrap() = true;
    }

    pub fn open(&self) {
        *self.gate.lock().unwrap() = false;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let shut = self.gate.lock().unwrap();
        drop(self.opened.wait_while(shut, |shut| *shut).unwrap());
    }
}

/// A certificate for localhost, as PEM and as what a server needs.
pub fn certificate() -> (String, Arc<ServerConfig>) {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    (made.cert.pem(), Arc::new(config))
}

impl Stub {
    pub fn new(decide: impl Fn(&Op<'_>) -> Answer + Send + Sync + 'static) -> Stub {
        Stub::with_tls(decide, None, false)
    }

    pub fn with_tls(
        decide: impl Fn(&Op<'_>) -> Answer + Send + Sync + 'static,
        tls: Option<Arc<ServerConfig>>,
        tls_first: bool,
    ) -> Stub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if tls_first { "ldaps" } else { "ldap" };
        let url = format!("{scheme}://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let state = Arc::new(State {
            decide: Box::new(decide),
            connections: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            together: AtomicUsize::new(0),
            gate: Mutex::new(false),
            opened: Condvar::new(),
            tls,
            tls_first,
        });
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                thread::spawn(move || state.serve(stream));
            }
        });
        Stub { url, state }
    }
}

impl State {
    fn serve(&self, stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        match (&self.tls, self.tls_first) {
            (Some(config), true) => self.secure(stream, config),
            _ => {
                let mut plain = stream.try_clone().unwrap();
                if self.talk(&mut plain)
                    && let Some(config) = &self.tls
                {
                    self.secure(stream, config);
                }
            }
        }
    }

    fn secure(&self, stream: TcpStream, config: &Arc<ServerConfig>) {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        self.talk(&mut stream);
        stream.conn.send_close_notify();
        let _ = stream.flush();
    }

    /// Answers until the end; says whether TLS comes next.
    fn talk(&self, stream: &mut (impl Read + Write)) -> bool {
        let (mut input, mut held) = (vec![0; 1 << 16], 0);
        let mut is_counted = false;
        loop {
            let Ok(bytes @ 1..) = stream.read(&mut input[held..]) else { return false };
            held += bytes;
            let (mut out, mut used, mut together) = (Vec::new(), 0, 0);
            while let Ok(Some(length)) = ber::frame(&input[used..held], 1 << 16) {
                let message = Message::decode(&input[used..used + length]).unwrap();
                used += length;
                together += 1;
                // The first connection of a run only checks that a server is there.
                if !std::mem::replace(&mut is_counted, true) {
                    self.connections.fetch_add(1, Ordering::Relaxed);
                }
                if let Op::ExtendedRequest(request) = &message.op
                    && request.oid == extended::START_TLS
                {
                    let op = Op::answer(message.op.tag(), LdapResult::success()).unwrap();
                    Message::new(message.id, op).encode(&mut out);
                    stream.write_all(&out).unwrap();
                    return true;
                }
                self.pass();
                if matches!(message.op, Op::UnbindRequest | Op::AbandonRequest(_)) {
                    continue;
                }
                self.requests.fetch_add(1, Ordering::Relaxed);
                match (self.decide)(&message.op) {
                    Answer::Silence => {}
                    Answer::Close => return false,
                    Answer::Bytes(bytes) => out.extend_from_slice(bytes),
                    Answer::Code(code, entries) => {
                        answer(&message, code, entries, &mut out);
                    }
                }
            }
            self.together.fetch_max(together, Ordering::Relaxed);
            input.copy_within(used..held, 0);
            held -= used;
            if stream.write_all(&out).is_err() || stream.flush().is_err() {
                return false;
            }
        }
    }
}

fn answer(message: &Message<'_>, code: ResultCode, entries: usize, out: &mut Vec<u8>) {
    if let Op::SearchRequest(_) = message.op {
        for _ in 0..entries {
            let value = |text: &'static str| vec![Cow::Borrowed(text.as_bytes())];
            let entry = SearchResultEntry {
                dn: "uid=employee,dc=example,dc=com".into(),
                attributes: vec![Attribute { description: "mail".into(), values: value("a@b") }],
            };
            Message::new(message.id, Op::SearchResultEntry(entry)).encode(out);
        }
    }
    let result = LdapResult::new(code, "");
    let op = match message.op {
        Op::BindRequest(_) => {
            Op::BindResponse(BindResponse { result, server_sasl_credentials: None })
        }
        Op::ExtendedRequest(_) => {
            Op::ExtendedResponse(ExtendedResponse { result, oid: None, value: None })
        }
        _ => Op::answer(message.op.tag(), result).unwrap(),
    };
    Message::new(message.id, op).encode(out);
}
