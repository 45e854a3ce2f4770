//! A small blocking LDAP client over plain TCP or another stream: for streams of operations, for
//! what no proper client would send, and for the benchmarks, where it is the same for every server.

use keyway_codec::ber;
use keyway_codec::filter::Filter;
use keyway_codec::message::{
    AddRequest, Attribute, Authentication, BindRequest, Change, ChangeOperation, CompareRequest,
    Deref, Message, ModifyDnRequest, ModifyRequest, Op, ResultCode, Scope, SearchRequest,
};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// A connection.
pub struct Client<S = TcpStream> {
    stream: S,
    next_id: u32,
    out: Vec<u8>,
    input: Vec<u8>,
    held: usize,
    /// Bytes of the last request.
    pub request_bytes: usize,
    /// Bytes of all the messages that answered it.
    pub answer_bytes: usize,
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Result<Client, String> {
        let stream = TcpStream::connect(address).map_err(|why| format!("{address}: {why}"))?;
        stream.set_nodelay(true).map_err(|why| why.to_string())?;
        Ok(Client::over(stream))
    }

    /// Makes it an error if the server says nothing for so long, where it could hang for ever.
    pub fn give_up_after(&mut self, silence: Duration) -> Result<(), String> {
        self.stream.set_read_timeout(Some(silence)).map_err(|why| why.to_string())
    }
}

impl<S: Read + Write> Client<S> {
    /// Talks over a stream that is connected.
    pub fn over(stream: S) -> Client<S> {
        Client {
            stream,
            next_id: 1,
            out: Vec::new(),
            input: vec![0; 1 << 16],
            held: 0,
            request_bytes: 0,
            answer_bytes: 0,
        }
    }

    /// Simple bind.
    pub fn bind(&mut self, name: &str, password: &str) -> Result<(), String> {
        let authentication = Authentication::Simple(password.as_bytes());
        self.send(Op::BindRequest(BindRequest { version: 3, name, authentication }))?;
        self.receive(|op| match op {
            Op::BindResponse(response) => Some(response.result.code),
            _ => None,
        })
    }

    /// Sends these bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.stream.write_all(bytes).map_err(|why| why.to_string())
    }

    /// Reads until the server closes, and returns what came.
    pub fn read_to_end(&mut self) -> Result<Vec<u8>, String> {
        let mut all = self.input[..self.held].to_vec();
        self.held = 0;
        self.stream.read_to_end(&mut all).map_err(|why| why.to_string())?;
        Ok(all)
    }

    /// Equality search below `base`, all user attributes; returns how many entries came.
    pub fn search(&mut self, base: &str, attribute: &str, value: &str) -> Result<usize, String> {
        self.send_search(base, attribute, value)?;
        self.entries()
    }

    /// Sends the request of [`Client::search`] and does not wait for the answer.
    pub fn send_search(&mut self, base: &str, attribute: &str, value: &str) -> Result<(), String> {
        self.send(find(base, Scope::Subtree, equality(attribute, value)))
    }

    /// Makes these equality searches below `base` all at once, and returns how many entries came.
    pub fn searches(
        &mut self,
        base: &str,
        attribute: &str,
        values: &[String],
    ) -> Result<usize, String> {
        self.out.clear();
        for value in values {
            self.append(find(base, Scope::Subtree, equality(attribute, value)));
        }
        self.send_appended()?;
        values.iter().map(|_| self.entries()).sum()
    }

    /// Reads an entry, all user attributes; returns how many came.
    pub fn read(&mut self, dn: &str) -> Result<usize, String> {
        self.send(find(dn, Scope::Base, Filter::Present("objectClass".into())))?;
        self.entries()
    }

    /// Searches below `base` for values that begin so; returns how many entries came.
    pub fn search_prefix(
        &mut self,
        base: &str,
        attribute: &str,
        prefix: &str,
    ) -> Result<usize, String> {
        let initial = Some(Cow::Borrowed(prefix.as_bytes()));
        let attribute = attribute.into();
        let filter = Filter::Substrings { attribute, initial, any: Vec::new(), last: None };
        self.send(find(base, Scope::Subtree, filter))?;
        self.entries()
    }

    /// Asks for everything below `base`; returns how many entries came.
    pub fn search_all(&mut self, base: &str) -> Result<usize, String> {
        self.send(find(base, Scope::Subtree, Filter::Present("objectClass".into())))?;
        self.entries()
    }

    /// Waits for the answer of a search, and returns how many entries came.
    pub fn entries(&mut self) -> Result<usize, String> {
        let mut entries = 0;
        self.receive(|op| match op {
            Op::SearchResultDone(result) => Some(result.code),
            Op::SearchResultEntry(_) => {
                entries += 1;
                None
            }
            _ => None,
        })?;
        Ok(entries)
    }

    /// Whether an entry has a value.
    pub fn compare(&mut self, dn: &str, attribute: &str, value: &str) -> Result<bool, String> {
        self.send(Op::CompareRequest(CompareRequest { dn, attribute, value: value.as_bytes() }))?;
        let mut is_true = false;
        self.receive(|op| match op {
            Op::CompareResponse(result) if result.code == ResultCode::CompareTrue => {
                is_true = true;
                Some(ResultCode::Success)
            }
            Op::CompareResponse(result) if result.code == ResultCode::CompareFalse => {
                Some(ResultCode::Success)
            }
            Op::CompareResponse(result) => Some(result.code),
            _ => None,
        })?;
        Ok(is_true)
    }

    /// Adds an entry.
    pub fn add(&mut self, dn: &str, attributes: &[(&str, &[&str])]) -> Result<(), String> {
        let attribute = |(description, values): &(&'_ str, &'_ [&'_ str])| Attribute {
            description: Cow::Owned((*description).to_owned()),
            values: values.iter().map(|v| Cow::Owned(v.as_bytes().to_vec())).collect(),
        };
        let attributes = attributes.iter().map(attribute).collect();
        self.send(Op::AddRequest(AddRequest { dn, attributes }))?;
        self.receive(|op| match op {
            Op::AddResponse(result) => Some(result.code),
            _ => None,
        })
    }

    /// Adds a value of an attribute.
    pub fn add_value(&mut self, dn: &str, attribute: &str, value: &str) -> Result<(), String> {
        self.change(dn, ChangeOperation::Add, attribute, &[value])
    }

    /// Deletes a value of an attribute.
    pub fn delete_value(&mut self, dn: &str, attribute: &str, value: &str) -> Result<(), String> {
        self.change(dn, ChangeOperation::Delete, attribute, &[value])
    }

    /// Puts values in the place of all that an attribute has.
    pub fn replace_values(
        &mut self,
        dn: &str,
        attribute: &str,
        values: &[&str],
    ) -> Result<(), String> {
        self.change(dn, ChangeOperation::Replace, attribute, values)
    }

    /// Gives an entry another RDN, and another parent if one is named.
    pub fn rename(
        &mut self,
        dn: &str,
        new_rdn: &str,
        delete_old_rdn: bool,
        new_superior: Option<&str>,
    ) -> Result<(), String> {
        self.send(Op::ModifyDnRequest(ModifyDnRequest {
            dn,
            new_rdn,
            delete_old_rdn,
            new_superior,
        }))?;
        self.receive(|op| match op {
            Op::ModifyDnResponse(result) => Some(result.code),
            _ => None,
        })
    }

    /// Deletes an entry.
    pub fn delete(&mut self, dn: &str) -> Result<(), String> {
        self.send(Op::DeleteRequest(dn))?;
        self.receive(|op| match op {
            Op::DeleteResponse(result) => Some(result.code),
            _ => None,
        })
    }

    fn change(
        &mut self,
        dn: &str,
        operation: ChangeOperation,
        attribute: &str,
        values: &[&str],
    ) -> Result<(), String> {
        let values = values.iter().map(|value| Cow::Borrowed(value.as_bytes())).collect();
        let attribute = Attribute { description: Cow::Borrowed(attribute), values };
        let changes = vec![Change { operation, attribute }];
        self.send(Op::ModifyRequest(ModifyRequest { dn, changes }))?;
        self.receive(|op| match op {
            Op::ModifyResponse(result) => Some(result.code),
            _ => None,
        })
    }

    fn send(&mut self, op: Op<'_>) -> Result<(), String> {
        self.out.clear();
        self.append(op);
        self.send_appended()
    }

    fn append(&mut self, op: Op<'_>) {
        Message { id: self.next_id, op, controls: Vec::new() }.encode(&mut self.out);
        self.next_id += 1;
    }

    fn send_appended(&mut self) -> Result<(), String> {
        self.request_bytes = self.out.len();
        self.answer_bytes = 0;
        self.stream.write_all(&self.out).map_err(|why| why.to_string())
    }

    /// Reads messages until `last` recognises the one that ends the operation.
    fn receive(
        &mut self,
        mut last: impl FnMut(&Op<'_>) -> Option<ResultCode>,
    ) -> Result<(), String> {
        loop {
            let frame = ber::frame(&self.input[..self.held], MESSAGE_BYTES_MAX);
            let Some(length) = frame.map_err(|why| why.to_string())? else {
                self.fill()?;
                continue;
            };
            let message = Message::decode(&self.input[..length]).map_err(|why| why.to_string())?;
            let end = last(&message.op);
            self.answer_bytes += length;
            self.input.copy_within(length..self.held, 0);
            self.held -= length;
            match end {
                Some(ResultCode::Success) => return Ok(()),
                Some(code) => return Err(format!("the server answered {}", code.name())),
                None => {}
            }
        }
    }

    fn fill(&mut self) -> Result<(), String> {
        if self.held == self.input.len() {
            self.input.resize(2 * self.held, 0);
        }
        match self.stream.read(&mut self.input[self.held..]).map_err(|why| why.to_string())? {
            0 => Err("the server closed the connection".into()),
            n => {
                self.held += n;
                Ok(())
            }
        }
    }
}

fn find<'a>(base: &'a str, scope: Scope, filter: Filter<'a>) -> Op<'a> {
    Op::SearchRequest(SearchRequest {
        base,
        scope,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter,
        attributes: Vec::new(),
    })
}

fn equality<'a>(attribute: &'a str, value: &'a str) -> Filter<'a> {
    Filter::Equality { attribute: attribute.into(), value: Cow::Borrowed(value.as_bytes()) }
}
