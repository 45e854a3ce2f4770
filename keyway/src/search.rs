//! Searches on an LDAP server, anybody's.

use crate::ldap::{Connection, Manner, Url};
use keyway_codec::Filter;
use keyway_codec::ber;
use keyway_codec::message::{
    Authentication, BindRequest, Deref, LdapResult, Message, Op, ResultCode, Scope, SearchRequest,
};
use keyway_folder::data::read_secret;
use keyway_host::failure::{Failure, plain};
use keyway_load::is_of_tls;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;
use zeroize::Zeroizing;

/// Bytes of one answer, and of all answers to one question.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
const ANSWER_BYTES_MAX: usize = 256 << 20;
const READ_BYTES: usize = 64 << 10;

/// Who asks: a name and its password.
pub type Login = Option<(String, Zeroizing<Vec<u8>>)>;

/// Who asks each of so many servers: one login for all of them, or one for each, in their order.
///
/// # Errors
/// If there are too few or too many, or a password cannot be read.
pub fn logins(dns: &[String], files: &[PathBuf], servers: usize) -> Result<Vec<Login>, Failure> {
    if dns.len() != files.len() {
        return Err(Failure::usage("each --bind-dn has a --password-file"));
    }
    if dns.len() > 1 && dns.len() != servers {
        return Err(Failure::usage(format!(
            "give one --bind-dn and --password-file for all servers, or one for each URL, in their \
             order: there are {} for {servers}",
            dns.len()
        )));
    }
    let login =
        |(dn, file): (&String, &PathBuf)| Ok(Some((dn.clone(), first_line(&read_secret(file)?))));
    let each: Vec<Login> = dns.iter().zip(files).map(login).collect::<Result<_, Failure>>()?;
    Ok(match each.len() {
        0 => vec![None; servers],
        1 => each.iter().cycle().take(servers).cloned().collect(),
        _ => each,
    })
}

/// A password without the line's end.
pub fn first_line(password: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(password.trim_end_matches(['\n', '\r']).as_bytes().to_vec())
}

/// A connection to a server that is asked.
pub struct Session {
    stream: Box<dyn Connection>,
    read: Vec<u8>,
    id: u32,
}

/// An entry: its name, and its values by the names of attributes in small letters.
pub struct Entry {
    pub dn: String,
    pub values: HashMap<String, Vec<String>>,
}

/// What a search gave.
pub struct Found {
    pub entries: Vec<Entry>,
    /// Why there may be more, or why there are none.
    pub end: Result<(), Refused>,
}

/// What the server said instead of *success*.
pub struct Refused {
    pub code: ResultCode,
    pub words: String,
}

impl Session {
    /// Connects and binds.
    ///
    /// # Errors
    /// If nobody is there, or he does not let us in.
    pub fn open(url: &Url, manner: &Manner, login: &Login) -> Result<Session, Failure> {
        let stream = url.connect(manner)?;
        let mut session = Session { stream, read: Vec::new(), id: 0 };
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
    ) -> Result<Found, Failure> {
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
                entries.push(Entry { dn: entry.dn.to_string(), values: values.collect() });
                None
            }
            Op::SearchResultDone(result) => Some(success(result)),
            _ => None,
        })?;
        Ok(Found { entries, end })
    }

    fn send(&mut self, op: Op<'_>) -> Result<(), Failure> {
        self.id += 1;
        let mut out = Zeroizing::new(Vec::new());
        Message::new(self.id, op).encode(&mut out);
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

fn success(result: &LdapResult<'_>) -> Result<(), Refused> {
    let (code, text) = (result.code, &result.diagnostic);
    let words = match text.is_empty() {
        _ if code == ResultCode::Success => return Ok(()),
        true => code.name().to_owned(),
        false => format!("{}: {text}", code.name()),
    };
    Err(Refused { code, words })
}

impl Entry {
    /// The first value of an attribute, which is named in small letters.
    pub fn value(&self, attribute: &str) -> Option<&str> {
        self.values.get(attribute)?.first().map(String::as_str)
    }
}
