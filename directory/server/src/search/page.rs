//! Cookies of paged results (RFC 2696): where the next page begins, and nothing else.
//!
//! No state is kept for a client between pages. A cookie is bound by a MAC to the query and to the
//! subject it was made for: a forged one, one of another query and one of another subject are
//! refused alike. The key is the process's own, so a cookie ends with it.

use crate::access::Subject;
use crate::failure::{Failure, Result};
use keyway_codec::message::{Message, Op, ResultCode, SearchRequest};
use keyway_engine::{Algorithm, Engine, Key, Parameters, Request, Session};
use keyway_store::EntryId;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

const MAC_BYTES: usize = 32;
const POSITION_BYTES: usize = 8 + 4;

/// How far a paged search has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// All entries up to this one have been looked at.
    pub after: EntryId,
    /// Entries that have been returned.
    pub sent: u32,
}

/// Makes and checks cookies.
pub struct Cookies {
    session: Session,
}

impl Cookies {
    /// Draws a fresh key.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(engine: &Engine) -> std::result::Result<Cookies, keyway_engine::Error> {
        let mut key = Zeroizing::new([0; MAC_BYTES]);
        engine.random(&mut *key)?;
        let parameters = Parameters::new(Algorithm::HmacSha256, Key::Secret(&*key));
        Ok(Cookies { session: engine.session(parameters)? })
    }

    /// The cookie that goes on from here.
    pub fn seal(&self, query: &[u8], position: Position) -> Result<Vec<u8>> {
        let mut cookie = Vec::with_capacity(POSITION_BYTES + MAC_BYTES);
        cookie.extend_from_slice(&position.after.0.to_be_bytes());
        cookie.extend_from_slice(&position.sent.to_be_bytes());
        let mac = self.mac(query, &cookie)?;
        cookie.extend_from_slice(&mac);
        Ok(cookie)
    }

    /// Where a cookie goes on.
    ///
    /// # Errors
    /// `unwillingToPerform` unless it was made here for this query.
    pub fn open(&self, query: &[u8], cookie: &[u8]) -> Result<Position> {
        let refused = || {
            let text = "the paging cookie is not of this query; start again without one";
            Failure::new(ResultCode::UnwillingToPerform, text)
        };
        let (position, mac) = cookie.split_at_checked(POSITION_BYTES).ok_or_else(refused)?;
        if !bool::from(self.mac(query, position)?.ct_eq(mac)) {
            return Err(refused());
        }
        let (after, sent) = position.split_at_checked(8).ok_or_else(refused)?;
        let after = EntryId(u64::from_be_bytes(after.try_into().map_err(|_| refused())?));
        let sent = u32::from_be_bytes(sent.try_into().map_err(|_| refused())?);
        Ok(Position { after, sent })
    }

    fn mac(&self, query: &[u8], position: &[u8]) -> Result<[u8; MAC_BYTES]> {
        let mut mac = [0; MAC_BYTES];
        self.session.run(&mut Request::Mac { data: &[position, query], out: &mut mac })?;
        Ok(mac)
    }
}

/// The bytes that a cookie is bound to: who asks for what.
pub fn query(subject: &Subject, request: &SearchRequest<'_>) -> Vec<u8> {
    let mut bytes = subject.authz_id().into_bytes();
    bytes.push(0);
    Message::new(0, Op::SearchRequest(request.clone())).encode(&mut bytes);
    bytes
}
