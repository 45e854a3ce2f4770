//! The users who may see the page.
//!
//! Loopback is shared by all users of a machine: there a token in the URL that the program prints lets one
//! browser in, once. Elsewhere there is TLS, and an administrator's login. A request that names another
//! host (DNS rebinding) or comes from another site's page is refused before anything else.

use crate::limits::LOGINS_MAX;
use crate::sessions::{Secret, Sessions};
use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HOST, ORIGIN};
use keyway_lock::Unpoisoned;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// Fills in unpredictable bytes, or says why it cannot.
pub type Random = dyn Fn(&mut [u8]) -> Result<(), String> + Send + Sync;
/// Asks the directory whether a name and a password are an administrator's; says why not. May take its time.
pub type Login = dyn Fn(&str, &[u8]) -> Result<(), String> + Send + Sync;
/// Prints the page's URL for the user that started the program.
pub type Say = dyn Fn(&str) + Send + Sync;

/// The header with the page's key.
pub(crate) const KEY_HEADER: &str = "x-keyway-page";
const SECRET_BYTES: usize = 32;

/// How a browser gets in.
pub enum AuthMethod {
    /// With a token in the URL: each is good once, and the next one is said when it was used.
    Token(Box<Say>),
    /// With an administrator's name and password.
    Login(Arc<Login>),
}

/// The check of the users who get in.
pub struct Auth {
    method: AuthMethod,
    /// `http://` or `https://`, and what may follow.
    scheme: &'static str,
    hosts: Vec<String>,
    cookie: String,
    random: Box<Random>,
    token: Mutex<Option<Secret>>,
    sessions: Mutex<Sessions>,
    pub(crate) logins: Semaphore,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It asks for a host that we are not.
    Host,
    /// It comes from a page of another site.
    Origin,
}

impl Auth {
    /// For a page that is reached as one of these hosts (`127.0.0.1:8389`), over TLS or not.
    ///
    /// # Errors
    /// If there are no unpredictable bytes.
    pub fn new(
        method: AuthMethod,
        hosts: Vec<String>,
        has_tls: bool,
        random: Box<Random>,
    ) -> Result<Auth, String> {
        let port = hosts.first().and_then(|host| host.rsplit(':').next()).unwrap_or_default();
        // Browsers tell hosts apart by their ports in everything but cookies.
        let cookie = match has_tls {
            true => format!("__Host-keyway-{port}"),
            false => format!("keyway-{port}"),
        };
        let auth = Auth {
            method,
            scheme: if has_tls { "https://" } else { "http://" },
            hosts: hosts.into_iter().map(|host| host.to_ascii_lowercase()).collect(),
            cookie,
            random,
            token: Mutex::new(None),
            sessions: Mutex::default(),
            logins: Semaphore::new(LOGINS_MAX),
        };
        auth.next_token()?;
        Ok(auth)
    }

    /// Makes another token and says it, where tokens let in.
    fn next_token(&self) -> Result<(), String> {
        let AuthMethod::Token(say) = &self.method else { return Ok(()) };
        let token = self.secret()?;
        let host = self.hosts.first().map(String::as_str).unwrap_or_default();
        say(&format!("{}{host}/?token={}", self.scheme, token.text()));
        *self.token.lock().unpoisoned() = Some(token);
        Ok(())
    }

    fn secret(&self) -> Result<Secret, String> {
        let mut bytes = Zeroizing::new([0; SECRET_BYTES]);
        (self.random)(&mut *bytes)?;
        Ok(Secret::of(&*bytes))
    }

    /// Whether a request may be ours at all.
    pub(crate) fn admits(&self, headers: &HeaderMap, changes: bool) -> Result<(), Refused> {
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let one_host = headers.get_all(HOST).iter().count() == 1;
        let host = text(HOST.as_str()).unwrap_or_default().to_ascii_lowercase();
        if !one_host || !self.hosts.contains(&host) {
            return Err(Refused::Host);
        }
        // Browsers say where a request comes from; a client that says nothing is none, and has no cookie
        // to abuse.
        let is_ours = |origin: &str| origin.strip_prefix(self.scheme) == Some(host.as_str());
        match text(ORIGIN.as_str()) {
            Some(origin) if !is_ours(origin) => return Err(Refused::Origin),
            None if changes => return Err(Refused::Origin),
            _ => {}
        }
        Ok(())
    }

    /// Whether a request comes from a page of another site, and is more than a way to us.
    pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
        let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
        matches!(site, Some("cross-site" | "same-site"))
    }

    /// Lets in who has the token: the header of a cookie, or nothing.
    ///
    /// # Errors
    /// If there are no unpredictable bytes.
    pub(crate) fn enter(&self, token: &str, now: Instant) -> Result<Option<String>, String> {
        {
            let mut held = self.token.lock().unpoisoned();
            // The right token is used up here, within the lock; after a wrong one it is put back.
            match held.take() {
                Some(held) if held.is(token) => {}
                other => {
                    *held = other;
                    return Ok(None);
                }
            }
        }
        let cookie = self.let_in(now)?;
        self.next_token()?;
        Ok(Some(cookie))
    }

    /// Starts a session for a browser that has proved its right.
    pub(crate) fn let_in(&self, now: Instant) -> Result<String, String> {
        let (cookie, key) = (self.secret()?, self.secret()?);
        let header = self.cookie_header(cookie.text());
        self.sessions().add(cookie, key, now);
        Ok(header)
    }

    /// The header that has a browser forget its cookie.
    pub(crate) fn forget(&self, headers: &HeaderMap) -> String {
        if let Some(cookie) = self.cookie_of(headers) {
            self.sessions().end(&cookie);
        }
        self.cookie_header("") + "; Max-Age=0"
    }

    fn cookie_header(&self, value: &str) -> String {
        let secure = if self.scheme == "https://" { "; Secure" } else { "" };
        format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", self.cookie)
    }

    /// Whether it has been let in, as far as a cookie says so.
    pub(crate) fn knows(&self, headers: &HeaderMap, now: Instant) -> bool {
        let cookie = self.cookie_of(headers);
        cookie.is_some_and(|cookie| self.sessions().has(&cookie, now))
    }

    /// Whether it has been let in, and is a page of ours.
    pub(crate) fn trusts(&self, headers: &HeaderMap, now: Instant) -> bool {
        let key = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
        match (self.cookie_of(headers), key) {
            (Some(cookie), Some(key)) => self.sessions().has_both(&cookie, key, now),
            _ => false,
        }
    }

    /// The key for the page, if it has not had it.
    pub(crate) fn key(&self, headers: &HeaderMap, now: Instant) -> Option<String> {
        self.sessions().key(&self.cookie_of(headers)?, now)
    }

    pub(crate) fn login(&self) -> Option<Arc<Login>> {
        match &self.method {
            AuthMethod::Login(login) => Some(login.clone()),
            AuthMethod::Token(_) => None,
        }
    }

    fn cookie_of(&self, headers: &HeaderMap) -> Option<String> {
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = all.flat_map(|line| line.split(';'));
        pairs.find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.cookie).then(|| value.to_owned())
        })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unpoisoned()
    }
}
