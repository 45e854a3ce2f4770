//! A join, as the writer does it: the token is claimed, the certificate issued and the member added; all of it is undone
//! unless the member says that it has its base.

use super::authority::{Authority, new_member};
use super::limits::{JOINS_WAITING_MAX, WRONG_TOKEN_PAUSE};
use super::row::{self, NotChanged};
use super::service::Refused;
use super::token::JoinToken;
use super::tokens::{self, Claim};
use keyway_cluster::message::{Answer, ClusterId, Member, MemberId, Refusal, Token};
use keyway_config::MemberUrl;
use keyway_folder::data::{self, name};
use keyway_folder::member::{self, PublicKey};
use keyway_host::failure::Failure;
use keyway_host::timestamp::Timestamp;
use keyway_store::Store;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// The writer's side of joins.
pub struct Joins {
    store: Store,
    authority: Authority,
    /// Where this server is reached by others.
    own_url: MemberUrl,
    waiting: Semaphore,
    turn: Mutex<()>,
}

/// A server that wants to become a member.
pub struct Joiner {
    /// Its right to.
    pub token: Token,
    /// What it is to be called.
    pub name: String,
    /// Where it listens, if it has said so.
    pub url: Option<String>,
    /// DER of a SubjectPublicKeyInfo.
    pub public_key: Vec<u8>,
    /// Where it comes from.
    pub address: SocketAddr,
}

/// A join that is not done: dropped so, it is undone.
pub struct Joining {
    joins: Arc<Joins>,
    claim: Option<Claim>,
    /// The new member.
    pub member: MemberId,
    /// Its name.
    pub name: String,
}

impl Joins {
    /// Of a data folder that is a member's, or becomes one.
    pub fn new(store: Store, authority: Authority, own_url: MemberUrl) -> Joins {
        let waiting = Semaphore::new(JOINS_WAITING_MAX);
        Joins { store, authority, own_url, waiting, turn: Mutex::default() }
    }

    /// Does one, one after the other. After a wrong token others wait, so that few can be tried.
    ///
    /// # Errors
    /// Why not.
    pub async fn begin(self: &Arc<Self>, joiner: Joiner) -> Result<(Answer, Joining), Refused> {
        let Ok(_place) = self.waiting.try_acquire() else {
            let text = "too many servers try to join at once; try again";
            return Err(Refused { text: Some(text.to_owned()), ..Refusal::Busy.into() });
        };
        let _turn = self.turn.lock().await;
        let joins = self.clone();
        let begun = spawn_blocking(move || joins.begin_now(joiner)).await;
        let begun = begun.unwrap_or_else(|why| Err(Refused::because(why)));
        if begun.as_ref().is_err_and(|why| why.reason == Refusal::BadToken) {
            sleep(WRONG_TOKEN_PAUSE).await;
        }
        begun
    }

    fn begin_now(self: Arc<Self>, joiner: Joiner) -> Result<(Answer, Joining), Refused> {
        let Authority { engine, folder, .. } = &self.authority;
        let bad = || Refused::from(Refusal::BadToken);
        let token = JoinToken::parse(&joiner.token.0).map_err(|_| bad())?;
        let claim = tokens::claim(engine, folder, &token, Timestamp::now());
        let claim = claim.map_err(Refused::because)?.ok_or_else(bad)?;
        let key = PublicKey::read(&joiner.public_key);
        let key = key.ok_or_else(|| Refused::because("the member's key is none on P-256"))?;
        let no_feed =
            || Refused::because("the writer has no feed: set [feed] enabled = true there");
        has_feed(&self.store).map_err(Refused::because)?.then_some(()).ok_or_else(no_feed)?;
        let own = self.own().map_err(Refused::because)?;
        let mut cluster = [0; 16];
        engine.random(&mut cluster).map_err(Refused::because)?;
        let url = joiner.url.map(|url| MemberUrl::from_str(&url)).transpose();
        let url = url.map_err(Refused::because)?;
        let new = Member {
            id: new_member(engine).map_err(Refused::because)?,
            name: claim.name.clone().unwrap_or(joiner.name),
            url: url
                .unwrap_or_else(|| {
                    MemberUrl::at(&joiner.address.ip().to_canonical().to_string(), None)
                })
                .to_string(),
            since: now_s(),
        };
        let certificate = self.authority.issue(&key, new.id).map_err(Refused::because)?;
        let authority = data::read(&folder.join(name::CA_CERTIFICATE)).map_err(Refused::because)?;
        let row =
            row::add(&self.store, &own, &new, ClusterId(cluster)).map_err(|why| match why {
                NotChanged::Refused(reason) => reason.into(),
                NotChanged::Failed(why) => Refused::because(why),
            })?;
        let answer =
            Answer::Joined { member: new.id, cluster: row.cluster, certificate, authority };
        let Member { id: member, name, .. } = new;
        Ok((answer, Joining { joins: self.clone(), claim: Some(claim), member, name }))
    }

    /// This server as a member.
    fn own(&self) -> Result<Member, Failure> {
        let own = member::read(&self.authority.folder)?;
        let own = own.and_then(|own| Some((MemberId(own.number()?), own.name)));
        let (id, name) = own.ok_or_else(|| Failure::new("this server is no member"))?;
        Ok(Member { id, name, url: self.own_url.to_string(), since: now_s() })
    }
}

impl Joining {
    /// The member has its base: it stays, and its token is used up.
    pub fn done(mut self) {
        if let Some(claim) = self.claim.take() {
            claim.spend();
        }
    }
}

impl Drop for Joining {
    fn drop(&mut self) {
        let Some(claim) = self.claim.take() else { return };
        let (joins, member) = (self.joins.clone(), self.member);
        let undo = move || {
            // One that stays in the row by a failure is seen by `keyway cluster members`.
            let _ = row::remove(&joins.store, member);
            drop(claim);
        };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(undo)),
            Err(_) => undo(),
        }
    }
}

fn has_feed(store: &Store) -> Result<bool, keyway_store::Error> {
    Ok(store.read()?.view().feed_head()?.is_some())
}

fn now_s() -> u64 {
    u64::try_from(Timestamp::now().unix_s()).unwrap_or_default()
}
