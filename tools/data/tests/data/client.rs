//! Adds to a server that is played here: order, answers, refusals.

use super::compile;
use keyway_codec::ber;
use keyway_codec::message::{BindResponse, LdapResult, Message, Op, ResultCode};
use keyway_data::{Client, ClientError, CompileOptions, Maker, TEMPLATES};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// A server that answers the requests that it has, the last first.
#[derive(Default)]
struct Server {
    received: Vec<u8>,
    waiting: Vec<(u32, LdapResult<'static>, bool)>,
    answers: Vec<u8>,
    names: BTreeSet<String>,
    most_waiting: usize,
    password: &'static str,
}

impl Server {
    fn serve(&mut self, bytes: &[u8]) {
        let message = Message::decode(bytes).unwrap();
        match message.op {
            Op::BindRequest(request) => {
                let given = format!("{:?}", request.authentication);
                assert!(!given.contains(self.password));
                let code = match request.name {
                    "cn=admin" => ResultCode::Success,
                    _ => ResultCode::InvalidCredentials,
                };
                self.waiting.push((message.id, LdapResult::new(code, ""), true));
            }
            Op::AddRequest(request) => {
                let parent = request.dn.split_once(',').unwrap().1;
                let result = if request.dn.contains("user.5,") {
                    LdapResult::new(ResultCode::UnwillingToPerform, "not this one")
                } else if request.dn.contains("user.6,") {
                    LdapResult::new(ResultCode::EntryAlreadyExists, "")
                } else if request.dn.starts_with("dc=") || self.names.contains(parent) {
                    self.names.insert(request.dn.to_owned());
                    LdapResult::success()
                } else {
                    LdapResult::new(ResultCode::NoSuchObject, "no parent")
                };
                self.waiting.push((message.id, result, false));
            }
            Op::UnbindRequest => {}
            other => panic!("{other:?}"),
        }
        self.most_waiting = self.most_waiting.max(self.waiting.len());
    }
}

impl Write for &mut Server {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.received.extend_from_slice(bytes);
        while let Some(length) = ber::frame(&self.received, 1 << 20).unwrap() {
            let message: Vec<u8> = self.received.drain(..length).collect();
            self.serve(&message);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for &mut Server {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.answers.is_empty() {
            for (id, result, is_bind) in self.waiting.drain(..).rev() {
                let op = match is_bind {
                    true => {
                        Op::BindResponse(BindResponse { result, server_sasl_credentials: None })
                    }
                    false => Op::AddResponse(result),
                };
                Message::new(id, op).encode(&mut self.answers);
            }
        }
        // In small pieces, as a network has them.
        let length = self.answers.len().min(out.len()).min(9);
        out[..length].copy_from_slice(&self.answers[..length]);
        self.answers.drain(..length);
        Ok(length)
    }
}

#[test]
fn everything_is_added_and_counted() {
    let mut server = Server { password: "secret", ..Server::default() };
    let plan = Arc::new(compile(TEMPLATES[1].1, &CompileOptions::default()));
    let entries = plan.entries();
    let mut maker = Maker::new(plan, 0).unwrap();
    let mut client = Client::new(&mut server, 20);
    client.bind("cn=admin", b"secret").unwrap();
    client.add(&mut maker, u64::MAX, &mut |_| true).unwrap();
    let done = client.done.clone();
    client.unbind();
    assert_eq!((done.refused, done.present), (1, 1), "{:?}", done.reasons);
    assert_eq!(done.added, entries - 2);
    let [(dn, why)] = done.reasons.as_slice() else { panic!("{:?}", done.reasons) };
    assert!(dn.starts_with("uid=user.5,") && why.contains("not this one"), "{dn}: {why}");
    assert_eq!(server.names.len() as u64, entries - 2);
    assert!(server.most_waiting > 5 && server.most_waiting <= 20, "{}", server.most_waiting);
}

#[test]
fn what_cannot_go_on_says_so() {
    let mut server = Server { password: "secret", ..Server::default() };
    let mut client = Client::new(&mut server, 20);
    let why = client.bind("cn=other", b"secret").unwrap_err();
    assert!(matches!(why, ClientError::Bind(_)), "{why}");
    let plan = Arc::new(compile(TEMPLATES[0].1, &CompileOptions::default()));
    let mut maker = Maker::new(plan, 0).unwrap();
    let mut client = Client::new(&mut server, 20);
    let mut looks = 0;
    let stopped = client.add(&mut maker, u64::MAX, &mut |_| {
        looks += 1;
        looks < 3
    });
    assert!(matches!(stopped, Err(ClientError::Stopped)));
    assert!(client.done.added > 20 && client.done.added < 100);
}
