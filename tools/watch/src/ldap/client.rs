//! Searches on an LDAP server, of any make, and changes.

use super::connect::{ConnectOptions, LdapStream};
use super::login::Login;
use super::url::ServerUrl;
use crate::limits::{ANSWER_BYTES_MAX, MESSAGE_BYTES_MAX, READ_BYTES};
use keyway_codec::Filter;
use keyway_codec::ber;
use keyway_codec::controls::{ASSERTION, Assertion, MANAGE_DSA_IT, RELAX_RULES};
use keyway_codec::ldif::{Record, RecordKind};
use keyway_codec::message::{
    Authentication, BindRequest, Control, Deref, LdapResult, Message, Op, ResultCode, Scope,
    SearchRequest,
};
use keyway_host::failure::{Failure, plain};
use keyway_load::is_of_tls;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use zeroize::Zeroizing;

/// A connection to a server that is asked.
pub struct SearchClient {
    stream: Box<dyn LdapStream>,
    read: Vec<u8>,
    id: u32,
}

/// An entry: its name, and its values by the names of attributes in small letters.
pub struct FoundEntry {
    /// The name.
    pub dn: String,
    /// The values of each attribute.
    pub values: HashMap<String, Vec<String>>,
}

/// The answer to a search.
pub struct SearchResult {
    /// The entries that were found.
    pub entries: Vec<FoundEntry>,
    /// Why there may be more, or why there are none.
    pub end: Result<(), RefusedRequest>,
}

/// A result other than *success*.
pub struct RefusedRequest {
    /// The result's code.
    pub code: ResultCode,
    /// The result's name, with the server's own words.
    pub words: String,
}

impl SearchClient {
    /// Connects and binds.
    ///
    /// # Errors
    /// If no server is there, or it does not let us in.
    pub fn open(
        url: &ServerUrl,
        options: &ConnectOptions,
        login: &Login,
    ) -> Result<SearchClient, Failure> {
        let stream = options.connect(url)?;
        let mut session = SearchClient { stream, read: Vec::new(), id: 0 };
        if let Some((name, password)) = login {
            let authentication = Authentication::Simple(password);
            session.send(Op::BindRequest(BindRequest { version: 3, name, authentication }))?;
            session
                .receive(&mut |op| match op {
                    Op::BindResponse(response) => Some(success(&response.result)),
                    _ => None,
                })?
                .map_err(|why| match why.code {
                    ResultCode::InvalidCredentials => Failure::refused(format!(
                        "the server does not let us in: {}; the name (--bind-dn) or the password is \
                         wrong, and it is not tried again",
                        why.words
                    )),
                    _ => Failure::new(format!("the server does not let us in: {}", why.words)),
                })?;
        }
        Ok(session)
    }

    /// Asks for entries.
    ///
    /// # Errors
    /// If the filter is none, or the connection breaks.
    pub fn search(
        &mut self,
        base: &str,
        scope: Scope,
        filter: &str,
        attributes: &[&str],
    ) -> Result<SearchResult, Failure> {
        self.send(Op::SearchRequest(SearchRequest {
            base,
            scope,
            deref: Deref::Never,
            size_limit: 0,
            time_limit_s: 0,
            types_only: false,
            filter: Filter::parse(filter).map_err(Failure::new)?,
            attributes: attributes.to_vec(),
        }))?;
        let mut entries = Vec::new();
        let end = self.receive(&mut |op| match op {
            Op::SearchResultEntry(entry) => {
                let text = |value: &Cow<'_, [u8]>| String::from_utf8_lossy(value).into_owned();
                let values = entry.attributes.iter().map(|attribute| {
                    let values = attribute.values.iter().map(text).collect();
                    (attribute.description.to_ascii_lowercase(), values)
                });
                entries.push(FoundEntry { dn: entry.dn.to_string(), values: values.collect() });
                None
            }
            Op::SearchResultDone(result) => Some(success(result)),
            _ => None,
        })?;
        Ok(SearchResult { entries, end })
    }

    /// Makes a change with relaxed rules, which only an administrator may, if the entry has all of these values.
    /// Returns when the server has answered.
    ///
    /// # Errors
    /// If the connection breaks: it is not known then whether the change was made. The inner one is the server's
    /// refusal.
    pub fn change(
        &mut self,
        record: &Record,
        only_if: &[(String, Vec<u8>)],
    ) -> Result<Result<(), RefusedRequest>, Failure> {
        let control = |oid, value| Control { oid, critical: true, value };
        let mut controls = vec![control(MANAGE_DSA_IT, None)];
        if matches!(record.kind, RecordKind::Add(_) | RecordKind::Modify(_)) {
            controls.push(control(RELAX_RULES, None));
        }
        if !only_if.is_empty() {
            let term = |(attribute, value): &(String, Vec<u8>)| Filter::Equality {
                attribute: attribute.clone().into(),
                value: value.clone().into(),
            };
            let mut value = Vec::new();
            Assertion(Filter::And(only_if.iter().map(term).collect())).encode(&mut value);
            controls.push(control(ASSERTION, Some(value.into())));
        }
        self.send_with(record.request(), controls)?;
        self.receive(&mut |op| match op {
            Op::AddResponse(result)
            | Op::DeleteResponse(result)
            | Op::ModifyResponse(result)
            | Op::ModifyDnResponse(result) => Some(success(result)),
            _ => None,
        })
    }

    fn send(&mut self, op: Op<'_>) -> Result<(), Failure> {
        self.send_with(op, Vec::new())
    }

    fn send_with(&mut self, op: Op<'_>, controls: Vec<Control<'_>>) -> Result<(), Failure> {
        self.id += 1;
        let mut out = Zeroizing::new(Vec::new());
        Message { id: self.id, op, controls }.encode(&mut out);
        self.stream.write_all(&out).and_then(|()| self.stream.flush()).map_err(|why| broken(&why))
    }

    /// Takes answers until one is the last.
    fn receive<T>(&mut self, take: &mut dyn FnMut(&Op<'_>) -> Option<T>) -> Result<T, Failure> {
        let mut all_bytes = 0;
        loop {
            if is_of_tls(&self.read) {
                return Err(Failure::new(
                    "the server speaks TLS on this port; write ldaps:// instead of ldap://",
                ));
            }
            let nonsense = |why: &dyn std::fmt::Display| {
                Failure::new(format!("the server's answer makes no sense: {why}"))
            };
            let frame = ber::frame(&self.read, MESSAGE_BYTES_MAX).map_err(|why| nonsense(&why))?;
            if let Some(length) = frame {
                let bytes = self.read.get(..length).unwrap_or_default();
                let message = Message::decode(bytes).map_err(|why| nonsense(&why))?;
                if message.id == 0 {
                    return Err(Failure::new("the server ends the connection"));
                }
                let end = if message.id == self.id { take(&message.op) } else { None };
                self.read.drain(..length);
                all_bytes += length;
                match end {
                    Some(end) => return Ok(end),
                    None if all_bytes > ANSWER_BYTES_MAX => {
                        return Err(nonsense(&"it has no end"));
                    }
                    None => continue,
                }
            }
            let mut piece = vec![0; READ_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) if self.id == 1 && self.read.is_empty() => {
                    return Err(Failure::new(
                        "the server has closed the connection before it had answered anything; if its \
                         port speaks TLS, write ldaps:// instead of ldap://",
                    ));
                }
                Ok(0) => return Err(broken(&ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.read.extend_from_slice(piece.get(..length).unwrap_or_default()),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return Err(broken(&why)),
            }
        }
    }
}

fn broken(why: &std::io::Error) -> Failure {
    Failure::new(match why.kind() {
        ErrorKind::UnexpectedEof => "the server has closed the connection".to_owned(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => "the server does not answer".to_owned(),
        _ => format!("the connection broke: {}", plain(why)),
    })
}

fn success(result: &LdapResult<'_>) -> Result<(), RefusedRequest> {
    let (code, text) = (result.code, &result.diagnostic);
    let words = match text.is_empty() {
        _ if code == ResultCode::Success => return Ok(()),
        true => code.name().to_owned(),
        false => format!("{}: {text}", code.name()),
    };
    Err(RefusedRequest { code, words })
}

impl From<RefusedRequest> for Failure {
    fn from(why: RefusedRequest) -> Failure {
        Failure::new(format!("the server refuses it: {}", why.words))
    }
}

impl FoundEntry {
    /// The first value of an attribute, which is named in small letters.
    pub fn value(&self, attribute: &str) -> Option<&str> {
        self.values.get(attribute)?.first().map(String::as_str)
    }
}
