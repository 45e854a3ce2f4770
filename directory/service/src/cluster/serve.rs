//! Connections of members, as the server takes them: who is at the other end, and what it may ask for.

use super::authority::Authority;
use super::base::Base;
use super::joining::{Joiner, Joining, Joins};
use super::limits::{BASE_PIECE_WAIT, BASES_MAX, KEPT_WAIT, REQUEST_WAIT, REQUESTS_MAX, SEND_WAIT};
use super::row;
use super::service::{Follow, MemberService, Refused};
use super::stream::{MemberStream, StreamError};
use keyway_cluster::message::{Answer, BaseFile, Digest, Frame, MemberId, Refusal, Request};
use keyway_config::MemberUrl;
use keyway_folder::member::{self, peer};
use keyway_host::failure::Failure;
use keyway_ldapd::{Members, Served};
use keyway_server::log::{Log, Severity, Value};
use keyway_store::Store;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::spawn_blocking;
use tokio_rustls::TlsStream;

/// The server of members' connections.
pub struct MemberServer {
    store: Store,
    folder: PathBuf,
    joins: Arc<Joins>,
    service: Arc<dyn MemberService>,
    log: Log,
    bases: Semaphore,
}

/// A part of a base on its way.
enum Part {
    Files(Vec<BaseFile>),
    Octets(Vec<u8>),
    End(Digest),
}

/// The next step of a connection.
enum Next {
    /// Another request may come.
    Go,
    /// It is over, or handed on.
    Over,
}

impl MemberServer {
    /// Of a data folder that is a member's, or becomes one. Others reach it by that URL.
    pub fn new(
        store: Store,
        authority: Authority,
        own_url: MemberUrl,
        service: Arc<dyn MemberService>,
        log: Log,
    ) -> MemberServer {
        let folder = authority.folder.clone();
        let joins = Arc::new(Joins::new(store.clone(), authority, own_url));
        MemberServer { store, folder, joins, service, log, bases: Semaphore::new(BASES_MAX) }
    }

    /// What the listener of LDAPS needs to hand connections over.
    ///
    /// # Errors
    /// If the engine cannot do TLS 1.3.
    pub fn members(self: Arc<Self>, engine: &keyway_engine::Engine) -> Result<Members, Failure> {
        let tls = Arc::new(member::server(engine, &self.folder)?);
        let serve = move |tls: tokio_rustls::server::TlsStream<TcpStream>, address| {
            let server = self.clone();
            Box::pin(async move { server.serve(tls.into(), address).await }) as Served
        };
        Ok(Members { tls, serve: Arc::new(serve) })
    }

    async fn serve(&self, tls: TlsStream<TcpStream>, address: SocketAddr) {
        let certificates = tls.get_ref().1.peer_certificates();
        let member = peer(certificates).map(MemberId);
        let served = match member {
            Some(member) => self.member(MemberStream::new(tls), member).await,
            None => self.joiner(MemberStream::new(tls), address).await,
        };
        // Strangers could fill the log.
        if let (Err(why), Some(_)) = (served, member) {
            self.say(Severity::Info, &format!("a connection of {address}: {why}"));
        }
    }

    /// A server without a certificate may join, and then have a base.
    async fn joiner(
        &self,
        mut stream: MemberStream,
        address: SocketAddr,
    ) -> Result<(), StreamError> {
        let Frame::Request(Request::Join { token, name, url, public_key }) =
            stream.next(REQUEST_WAIT).await?
        else {
            return stream.answer(Refused::from(Refusal::OnlyJoin).answer(), SEND_WAIT).await;
        };
        let joiner = Joiner { token, name, url, public_key, address };
        let begun = match self.service.may_add() {
            Ok(()) => self.joins.begin(joiner).await,
            Err(why) => Err(why),
        };
        let (answer, joining) = match begun {
            Ok(begun) => begun,
            Err(why) => {
                let text = format!("a join of {address} is refused: {why}");
                self.say(Severity::Warning, &text);
                return stream.answer(why.answer(), SEND_WAIT).await;
            }
        };
        stream.answer(answer, SEND_WAIT).await?;
        let Frame::Request(Request::Base {}) = stream.next(REQUEST_WAIT).await? else {
            return stream.answer(Refused::from(Refusal::OnlyJoin).answer(), SEND_WAIT).await;
        };
        match self.base(&mut stream, true).await? {
            Next::Go => self.keeps(stream, joining, address).await,
            Next::Over => Ok(()),
        }
    }

    /// Waits until a joiner has its base on the disk.
    async fn keeps(
        &self,
        mut stream: MemberStream,
        joining: Joining,
        address: SocketAddr,
    ) -> Result<(), StreamError> {
        let kept = stream.next(KEPT_WAIT).await?;
        if !matches!(kept, Frame::Acknowledge { .. }) {
            return Ok(());
        }
        let text =
            format!("member {} ({}) has joined from {address}", joining.name, joining.member);
        joining.done();
        self.service.clone().members_changed();
        self.say(Severity::Info, &text);
        stream.send(&kept, SEND_WAIT).await?;
        stream.close(SEND_WAIT).await
    }

    async fn member(&self, mut stream: MemberStream, member: MemberId) -> Result<(), StreamError> {
        for _ in 0..REQUESTS_MAX {
            let frame = match stream.next(REQUEST_WAIT).await {
                Ok(frame) => frame,
                Err(StreamError::Ended | StreamError::Silent(_)) => return Ok(()),
                Err(why) => return Err(why),
            };
            let Frame::Request(request) = frame else { return Ok(()) };
            let (own, is_known) = match self.is_known(member).await {
                Ok(known) => known,
                Err(why) => return stream.answer(Refused::because(why).answer(), SEND_WAIT).await,
            };
            if !is_known {
                let why = Refused::from(Refusal::UnknownMember);
                return stream.answer(why.answer(), SEND_WAIT).await;
            }
            let said = match &request {
                Request::Follow { member: said, .. } | Request::Forward { member: said } => *said,
                Request::Prepare { reign } => reign.writer,
                _ => member,
            };
            if said != member {
                let why = Refused::from(Refusal::UnknownMember);
                return stream.answer(why.answer(), SEND_WAIT).await;
            }
            let answer = match request {
                Request::Follow { place, heard, .. } => {
                    self.service.clone().follow(stream, Follow { member, place, heard }).await;
                    return Ok(());
                }
                Request::Forward { .. } => {
                    self.service.clone().forward(stream, member).await;
                    return Ok(());
                }
                Request::Prepare { reign } => {
                    self.service.clone().prepare(stream, reign).await;
                    return Ok(());
                }
                Request::Base {} => match self.base(&mut stream, false).await? {
                    Next::Go => continue,
                    Next::Over => return Ok(()),
                },
                Request::Status {} => {
                    self.service.status().await.map(|status| Answer::Status(Box::new(status)))
                }
                Request::Promote { force } if Some(member) == own => self
                    .service
                    .clone()
                    .promote(force)
                    .await
                    .map(|epoch| Answer::Promoted { epoch }),
                Request::Promote { .. } => Err(Refused::because(
                    "a member is promoted by keyway cluster promote on its own host",
                )),
                Request::Remove { name } if Some(member) == own => self.remove(name).await,
                Request::Remove { .. } => Err(Refused::because(
                    "a member is removed by keyway cluster remove on the writer's own host",
                )),
                Request::Move { url } => self.moved(own, member, url).await,
                Request::Join { .. } => Err(Refused::because("it is a member already")),
                Request::Unknown => {
                    Err(Refused::because("this version does not know the request; upgrade it"))
                }
            };
            stream.answer(answer.unwrap_or_else(Refused::answer), SEND_WAIT).await?;
        }
        Ok(())
    }

    /// This server's own number, and whether the cluster has a member: its certificate alone does not say so.
    async fn is_known(&self, member: MemberId) -> Result<(Option<MemberId>, bool), String> {
        let (store, folder) = (self.store.clone(), self.folder.clone());
        let looked = spawn_blocking(move || -> Result<_, Failure> {
            let own = member::read(&folder)?.and_then(|own| own.number()).map(MemberId);
            let row = row::read(&store)?;
            let is_known =
                Some(member) == own || row.is_some_and(|row| row.member(member).is_some());
            Ok((own, is_known))
        });
        looked.await.map_err(|why| why.to_string())?.map_err(|why| why.to_string())
    }

    async fn remove(&self, name: String) -> Result<Answer, Refused> {
        self.service.may_add()?;
        let store = self.store.clone();
        let text = format!("member {name} is removed");
        let removed = spawn_blocking(move || {
            let row = row::read(&store).map_err(Refused::because)?;
            let found =
                row.as_ref().and_then(|row| row.members.iter().find(|one| one.name == name));
            let (Some(row), Some(found)) = (&row, found) else {
                return Err(Refused::because(format!("the cluster has no member {name}")));
            };
            if found.id == row.writer {
                let why = "it writes, and stays a member: promote another one first";
                return Err(Refused::because(why));
            }
            row::remove(&store, found.id).map_err(Refused::because)
        });
        removed.await.map_err(Refused::because)??;
        self.service.clone().members_changed();
        self.say(Severity::Info, &text);
        Ok(Answer::Removed {})
    }

    async fn moved(
        &self,
        own: Option<MemberId>,
        member: MemberId,
        url: String,
    ) -> Result<Answer, Refused> {
        self.service.may_add()?;
        let own = own.ok_or(Refusal::UnknownMember)?;
        let url = url.parse::<MemberUrl>().map_err(Refused::because)?.to_string();
        let store = self.store.clone();
        let text = format!("member {member} is reached at {url} from now on");
        let moved = spawn_blocking(move || {
            row::move_to(&store, own, member, &url).map_err(Refused::because)
        });
        moved.await.map_err(Refused::because)??;
        self.service.clone().members_changed();
        self.say(Severity::Info, &text);
        Ok(Answer::Moved {})
    }

    /// Sends a base; `beside` the store the files that go with it.
    async fn base(&self, stream: &mut MemberStream, beside: bool) -> Result<Next, StreamError> {
        let Ok(_place) = self.bases.try_acquire() else {
            let text = format!("{BASES_MAX} bases are being sent already; try again later");
            let why = Refused { text: Some(text), ..Refusal::Busy.into() };
            stream.answer(why.answer(), SEND_WAIT).await?;
            return Ok(Next::Over);
        };
        let (sender, mut parts) = mpsc::channel(2);
        let (folder, store) = (self.folder.clone(), self.store.clone());
        let reading = spawn_blocking(move || -> Result<(), Failure> {
            let mut base = Base::begin(&folder, &store, beside)?;
            // Where it goes nowhere any more, the state of the store is given up.
            let mut is_taken = sender.blocking_send(Part::Files(base.files())).is_ok();
            while is_taken {
                let piece = base.next().map_err(Failure::new)?;
                if piece.is_empty() {
                    let _ = sender.blocking_send(Part::End(base.digest()));
                    break;
                }
                is_taken = sender.blocking_send(Part::Octets(piece)).is_ok();
            }
            Ok(())
        });
        let mut has_begun = false;
        while let Some(part) = parts.recv().await {
            let frame = match part {
                Part::Files(files) => Frame::Answer(Answer::Base { files }),
                Part::Octets(octets) => Frame::Data(octets),
                Part::End(sha256) => Frame::End { sha256 },
            };
            match stream.send(&frame, BASE_PIECE_WAIT).await {
                Err(StreamError::Frame(_)) if !has_begun => {
                    let text = "the data folder has too many files for a base; move away what is none of Keyway's";
                    stream.answer(Refused::because(text).answer(), SEND_WAIT).await?;
                    return Ok(Next::Over);
                }
                sent => sent?,
            }
            has_begun = true;
            if matches!(frame, Frame::End { .. }) {
                return Ok(Next::Go);
            }
        }
        let why = match reading.await {
            Ok(Ok(())) => "the base ended early".to_owned(),
            Ok(Err(why)) => why.to_string(),
            Err(why) => why.to_string(),
        };
        self.say(Severity::Error, &format!("a base was not sent: {why}"));
        if !has_begun {
            stream.answer(Refused::because(why).answer(), SEND_WAIT).await?;
        }
        Ok(Next::Over)
    }

    fn say(&self, severity: Severity, text: &str) {
        self.log.say(SystemTime::now(), severity, "cluster", &[("text", Value::Text(text))]);
    }
}
