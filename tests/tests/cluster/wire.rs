//! LDAP with controls, in which a test sees all that an answer says.

use keyway_codec::ber;
use keyway_codec::filter::Filter;
use keyway_codec::message::{
    AddRequest, Attribute, Authentication, BindRequest, Change, ChangeOperation, Control, Deref,
    Message, ModifyDnRequest, ModifyRequest, Op, ResultCode, Scope, SearchRequest,
};
use rustix::net::{AddressFamily, SocketType};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// An entry that came, or was read before or after a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub dn: String,
    pub attributes: Vec<(String, Vec<String>)>,
}

impl Entry {
    /// The values of an attribute, by its own name.
    pub fn values(&self, name: &str) -> Vec<&str> {
        let named = self.attributes.iter().filter(|(it, _)| it.eq_ignore_ascii_case(name));
        named.flat_map(|(_, values)| values.iter().map(String::as_str)).collect()
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub code: ResultCode,
    pub text: String,
    pub referrals: Vec<String>,
    pub entries: Vec<Entry>,
    pub controls: Vec<(String, Vec<u8>)>,
}

impl Answer {
    /// The value of a control, as text.
    pub fn control(&self, oid: &str) -> Option<String> {
        let found = self.controls.iter().find(|(it, _)| it == oid)?;
        Some(String::from_utf8_lossy(&found.1).into_owned())
    }

    /// Asserts its code.
    #[track_caller]
    pub fn expect(self, code: ResultCode) -> Answer {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    #[track_caller]
    pub fn ok(self) -> Answer {
        self.expect(ResultCode::Success)
    }
}

/// A connection.
pub struct Wire {
    stream: TcpStream,
    last: u32,
    input: Vec<u8>,
}

impl Wire {
    /// Connects; a silence of more than `patience` is an error.
    pub fn connect(address: &str, patience: Duration) -> Result<Wire, String> {
        let broke = |why: std::io::Error| why.to_string();
        let stream = TcpStream::connect(address).map_err(broke)?;
        stream.set_nodelay(true).map_err(broke)?;
        stream.set_read_timeout(Some(patience)).map_err(broke)?;
        Ok(Wire { stream, last: 0, input: Vec::new() })
    }

    /// Connects from another address of loopback, as the client of another machine.
    pub fn connect_from(from: [u8; 4], address: &str, patience: Duration) -> Result<Wire, String> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((from, 0))).unwrap();
        let connected = rustix::net::connect(&socket, &address.parse::<SocketAddr>().unwrap());
        connected.map_err(|why| why.to_string())?;
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(patience)).unwrap();
        Ok(Wire { stream, last: 0, input: Vec::new() })
    }

    /// Sends a request so many times at once, waits for the first octets of an answer, and is gone.
    pub fn ask_and_leave(mut self, op: &Op<'_>, times: u32) {
        let mut out = Vec::new();
        for id in 1..=times {
            Message { id, op: op.clone(), controls: Vec::new() }.encode(&mut out);
        }
        // The server may end the connection meanwhile.
        let _ = self.stream.write_all(&out);
        let _ = self.stream.read(&mut [0; 64]);
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// If there is none, or the server takes its leave: it is not known what was done.
    pub fn ask(&mut self, op: Op<'_>, controls: &[Control<'_>]) -> Result<Answer, String> {
        self.last += 1;
        let mut out = Vec::new();
        Message { id: self.last, op, controls: controls.to_vec() }.encode(&mut out);
        self.stream.write_all(&out).map_err(|why| why.to_string())?;
        let mut entries = Vec::new();
        loop {
            let frame = ber::frame(&self.input, MESSAGE_BYTES_MAX);
            let Some(length) = frame.map_err(|why| why.to_string())? else {
                let mut piece = [0; 1 << 14];
                match self.stream.read(&mut piece).map_err(|why| why.to_string())? {
                    0 => return Err("the server closed the connection".into()),
                    n => self.input.extend_from_slice(&piece[..n]),
                }
                continue;
            };
            let bytes: Vec<u8> = self.input.drain(..length).collect();
            let message = Message::decode(&bytes).map_err(|why| why.to_string())?;
            match message.op {
                Op::SearchResultEntry(entry) => entries.push(owned(&entry.dn, &entry.attributes)),
                Op::SearchResultReference(_) | Op::IntermediateResponse(_) => {}
                op => {
                    let result = op.result().ok_or("it is no answer")?;
                    if message.id == 0 {
                        return Err(format!("the server takes its leave: {}", result.diagnostic));
                    }
                    let controls = message.controls.iter().map(|control| {
                        let value = control.value.as_deref().unwrap_or_default();
                        (control.oid.to_owned(), value.to_vec())
                    });
                    return Ok(Answer {
                        code: result.code,
                        text: result.diagnostic.to_string(),
                        referrals: result.referrals.iter().map(|it| it.to_string()).collect(),
                        entries,
                        controls: controls.collect(),
                    });
                }
            }
        }
    }

    pub fn bind(&mut self, name: &str, password: &str) -> Result<Answer, String> {
        let authentication = Authentication::Simple(password.as_bytes());
        self.ask(Op::BindRequest(BindRequest { version: 3, name, authentication }), &[])
    }

    pub fn add(
        &mut self,
        dn: &str,
        all: &[(&str, &[&str])],
        controls: &[Control<'_>],
    ) -> Result<Answer, String> {
        let attributes = all.iter().map(|(name, values)| attribute(name, values)).collect();
        self.ask(Op::AddRequest(AddRequest { dn, attributes }), controls)
    }

    pub fn modify(
        &mut self,
        dn: &str,
        changes: &[(ChangeOperation, &str, &[&str])],
        controls: &[Control<'_>],
    ) -> Result<Answer, String> {
        let changes = changes.iter().map(|(operation, name, values)| Change {
            operation: *operation,
            attribute: attribute(name, values),
        });
        self.ask(Op::ModifyRequest(ModifyRequest { dn, changes: changes.collect() }), controls)
    }

    /// Gives an entry one more name in its RDN's attribute, or another RDN.
    pub fn rename(
        &mut self,
        dn: &str,
        new_rdn: &str,
        delete_old_rdn: bool,
        controls: &[Control<'_>],
    ) -> Result<Answer, String> {
        let new_superior = None;
        let request = ModifyDnRequest { dn, new_rdn, delete_old_rdn, new_superior };
        self.ask(Op::ModifyDnRequest(request), controls)
    }

    pub fn delete(&mut self, dn: &str, controls: &[Control<'_>]) -> Result<Answer, String> {
        self.ask(Op::DeleteRequest(dn), controls)
    }

    /// Reads one entry.
    pub fn read(
        &mut self,
        dn: &str,
        attributes: &[&str],
        controls: &[Control<'_>],
    ) -> Result<Answer, String> {
        let filter = Filter::Present("objectClass".into());
        self.search(dn, Scope::Base, filter, attributes, controls)
    }

    fn search(
        &mut self,
        base: &str,
        scope: Scope,
        filter: Filter<'_>,
        attributes: &[&str],
        controls: &[Control<'_>],
    ) -> Result<Answer, String> {
        let request = SearchRequest {
            base,
            scope,
            deref: Deref::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: false,
            filter,
            attributes: attributes.to_vec(),
        };
        self.ask(Op::SearchRequest(request), controls)
    }
}

/// A control by its number.
pub fn control<'a>(oid: &'a str, value: Option<&str>) -> Control<'a> {
    let value = value.map(|value| Cow::Owned(value.as_bytes().to_vec()));
    Control { oid, critical: true, value }
}

fn attribute<'a>(name: &'a str, values: &[&'a str]) -> Attribute<'a> {
    let values = values.iter().map(|value| Cow::Borrowed(value.as_bytes())).collect();
    Attribute { description: Cow::Borrowed(name), values }
}

/// An entry as it came.
pub fn owned(dn: &str, attributes: &[Attribute<'_>]) -> Entry {
    let attributes = attributes.iter().map(|attribute| {
        let values = attribute.values.iter().map(|it| String::from_utf8_lossy(it).into_owned());
        (attribute.description.to_string(), values.collect())
    });
    Entry { dn: dn.to_owned(), attributes: attributes.collect() }
}
