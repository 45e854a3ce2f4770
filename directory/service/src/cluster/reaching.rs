//! Connections of a running member to others.

use super::limits::{ANSWER_WAIT, CONNECT_WAIT, SEND_WAIT, TOLD_WAIT};
use super::node::Node;
use super::stream::MemberStream;
use keyway_cluster::message::{Answer, Frame, Request, Status};
use keyway_config::MemberUrl;
use keyway_folder::member::{self, MEMBER_PROTOCOL};
use keyway_host::failure::{Failure, plain};
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Members know each other by their certificates, not by their hosts' names.
const NAME: &str = "keyway-cluster";

impl Node {
    /// Connects to the member at this URL.
    ///
    /// # Errors
    /// If it cannot be reached, or is no member of this cluster.
    pub(super) async fn connect(&self, url: &str) -> Result<MemberStream, Failure> {
        let address: MemberUrl = url.parse().map_err(Failure::new)?;
        let own = member::complete(&self.parts.folder)?;
        let config = Arc::new(member::client(&self.parts.engine, own)?);
        let name = ServerName::try_from(NAME).map_err(Failure::new)?;
        let unreached = |why: &str| Failure::new(format!("cannot reach {url}: {why}"));
        let connected = timeout(CONNECT_WAIT, async {
            let tcp = TcpStream::connect((address.host(), address.port())).await?;
            tcp.set_nodelay(true)?;
            TlsConnector::from(config).connect(name, tcp).await
        });
        let tls = match connected.await {
            Ok(Ok(tls)) => tls,
            Ok(Err(why)) => return Err(unreached(&plain(&why))),
            Err(_) => return Err(unreached("it does not answer in time")),
        };
        match tls.get_ref().1.alpn_protocol() == Some(MEMBER_PROTOCOL) {
            true => Ok(MemberStream::new(tls.into())),
            false => Err(unreached("it is no server of a cluster")),
        }
    }

    /// Asks the member at this URL for something, and returns its answer with the connection.
    ///
    /// # Errors
    /// As [`Node::connect`], and if it does not answer.
    pub(super) async fn ask(
        &self,
        url: &str,
        request: Request,
    ) -> Result<(MemberStream, Answer), Failure> {
        let mut stream = self.connect(url).await?;
        let broke = |why| Failure::new(format!("{url}: {why}"));
        stream.send(&Frame::Request(request), SEND_WAIT).await.map_err(broke)?;
        match stream.next(ANSWER_WAIT).await.map_err(broke)? {
            Frame::Answer(answer) => Ok((stream, answer)),
            _ => Err(Failure::new(format!("{url}: it gave no answer"))),
        }
    }

    /// What the members at these URLs say to the question how they are, of those that answer.
    pub(super) async fn answers(self: &Arc<Self>, urls: Vec<String>) -> Vec<Answer> {
        let mut questions = JoinSet::new();
        for url in urls {
            let node = self.clone();
            questions.spawn(async move {
                timeout(TOLD_WAIT, node.ask(&url, Request::Status {})).await.ok()?.ok()
            });
        }
        let mut found = Vec::new();
        // One that does not answer keeps none of the others waiting.
        while let Some(asked) = questions.join_next().await {
            found.extend(asked.ok().flatten().map(|(_, answer)| answer));
        }
        found
    }

    /// How the member at this URL is.
    ///
    /// # Errors
    /// As [`Node::ask`].
    pub(super) async fn status_at(&self, url: &str) -> Result<Status, Failure> {
        match self.ask(url, Request::Status {}).await?.1 {
            Answer::Status(status) => Ok(*status),
            Answer::Refused { text, heard, .. } => Err(Failure::new(match heard {
                Some(reign) => format!("{url}: {text} (it knows of epoch {})", reign.epoch),
                None => format!("{url}: {text}"),
            })),
            _ => Err(Failure::new(format!("{url}: it gave no status"))),
        }
    }
}
