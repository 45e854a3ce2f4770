//! A request that is under way, as the log and `cn=monitor` will show it.

use crate::peer::Peer;
use crate::slow::{Operation, Searched};
use keyway_codec::extended::{CANCEL, PASSWORD_MODIFY, PasswordModifyRequest, START_TLS, WHO_AM_I};
use keyway_codec::message::{Authentication, Op, Scope};
use keyway_server::SearchProgress;
use keyway_server::limits::LOGGED_TEXT_BYTES_MAX;
use keyway_server::log::stages::{SharedTimer, Stage, Timer};
use keyway_server::log::{Capped, hidden};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

/// A request as the log will show it.
#[derive(Default)]
pub(crate) struct RequestRecord {
    pub id: u32,
    pub timer: Option<Timer>,
    /// Its timer, if it goes on with others.
    pub shared_timer: Option<Arc<SharedTimer>>,
    pub operation: &'static str,
    /// If it goes well, others stand for it.
    pub is_left_out: bool,
    pub dn: String,
    pub detail: String,
    /// How far it is, if it is a search.
    pub progress: Option<SearchProgress>,
    /// It is a search between two steps, which goes on when the client has taken the answers of the last one.
    pub is_paused: bool,
}

/// A search as others may see it.
pub(crate) fn searched(progress: SearchProgress) -> Searched {
    let SearchProgress { candidates, returned, shape, .. } = progress;
    let (filter, access_path) = (shape.text.clone(), shape.access_path());
    Searched { scope: shape.scope, filter, candidates, returned, access_path }
}

impl RequestRecord {
    /// When it came in.
    pub fn began(&self) -> Option<Instant> {
        Some(self.timer?.started())
    }

    /// The request as others may see it, at a moment by the monotonic and the wall clock.
    pub fn seen(
        &self,
        connection: u64,
        peer: &Peer,
        who: Option<String>,
        (now, at): (Instant, SystemTime),
    ) -> Operation {
        let timer = self.timer_at(now);
        Operation {
            at,
            connection,
            id: self.id,
            from: peer.to_string(),
            who,
            operation: self.operation,
            dn: self.dn.clone(),
            result: None,
            total_us: timer.as_ref().and_then(Timer::total_us).unwrap_or_default(),
            stages_us: timer.as_ref().map(Timer::stages_us).unwrap_or_default(),
            search: self.progress.map(searched),
        }
    }

    /// Its timer, when its answer is there.
    pub fn timer_at(&self, now: Instant) -> Option<Timer> {
        let mut timer = match &self.shared_timer {
            Some(shared_timer) => shared_timer.timer(),
            None => self.timer?,
        };
        let stage = match self.operation {
            // It was done elsewhere, and the connection has had to notice.
            _ if self.shared_timer.is_some() => Stage::Write,
            "bind" => Stage::Crypto,
            _ if self.is_paused => Stage::Write,
            _ => Stage::Store,
        };
        timer.lap(stage, now);
        Some(timer)
    }

    /// Notes what an operation asks for; with `in_full`, its filter as well.
    pub fn note(&mut self, op: &Op<'_>, in_full: bool) {
        let dn = &mut self.dn;
        let mut set = |text: &str| cap(dn).write_str(text).unwrap_or_default();
        self.operation = match op {
            Op::BindRequest(bind) => {
                match bind.authentication {
                    Authentication::Sasl { mechanism, credentials } => {
                        set(plain_identity(mechanism, credentials).unwrap_or(bind.name));
                        cap(&mut self.detail).write_str(mechanism).unwrap_or_default();
                    }
                    _ => set(bind.name),
                }
                "bind"
            }
            Op::SearchRequest(search) => {
                set(search.base);
                if in_full {
                    let scope = match search.scope {
                        Scope::Base => "base",
                        Scope::One => "one",
                        Scope::Subtree => "sub",
                        Scope::Subordinate => "children",
                    };
                    let mut detail = cap(&mut self.detail);
                    // Text that does not fit is left out.
                    let _ = match hidden(&search.filter) {
                        true => write!(detail, "{scope} (filter with a password, not shown)"),
                        false => write!(detail, "{scope} {}", search.filter),
                    };
                }
                "search"
            }
            Op::CompareRequest(compare) => {
                set(compare.dn);
                cap(&mut self.detail).write_str(compare.attribute).unwrap_or_default();
                "compare"
            }
            Op::AddRequest(add) => {
                set(add.dn);
                "add"
            }
            Op::ModifyRequest(modify) => {
                set(modify.dn);
                "modify"
            }
            Op::DeleteRequest(dn) => {
                set(dn);
                "delete"
            }
            Op::ModifyDnRequest(rename) => {
                set(rename.dn);
                "rename"
            }
            Op::ExtendedRequest(request) => {
                let user = || PasswordModifyRequest::decode(request.value).ok()?.user;
                match request.oid {
                    START_TLS => "start-tls",
                    WHO_AM_I => "who-am-i",
                    CANCEL => "cancel",
                    PASSWORD_MODIFY => {
                        set(user().unwrap_or_default());
                        "password"
                    }
                    oid => {
                        cap(&mut self.detail).write_str(oid).unwrap_or_default();
                        "extended"
                    }
                }
            }
            Op::AbandonRequest(_) => "abandon",
            Op::UnbindRequest => "unbind",
            _ => "response",
        };
    }
}

fn cap(out: &mut String) -> Capped<'_> {
    Capped { out, bytes_max: LOGGED_TEXT_BYTES_MAX }
}

/// The authentication identity of RFC 4616, of credentials that have all three parts: in others
/// anything may be the password.
fn plain_identity<'a>(mechanism: &str, credentials: Option<&'a [u8]>) -> Option<&'a str> {
    if !mechanism.eq_ignore_ascii_case("PLAIN") {
        return None;
    }
    let mut parts = credentials?.split(|byte| *byte == 0);
    let (_, identity, _) = (parts.next()?, parts.next()?, parts.next()?);
    std::str::from_utf8(identity).ok()
}
