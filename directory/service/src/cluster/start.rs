//! The cluster's part of a running server, started and ended with it.

use super::authority::Authority;
use super::holding::hold;
use super::node::{Node, NodeSettings, Parts};
use super::row;
use super::serve::MemberServer;
use super::tail::TailSettings;
use keyway_cluster::message::{Digest, MemberId};
use keyway_config::{Configuration, MemberUrl, OwnWrites};
use keyway_engine::Engine;
use keyway_folder::member;
use keyway_host::failure::Failure;
use keyway_ldapd::LdapServer;
use keyway_server::Directory;
use keyway_server::log::Log;
use keyway_store::Store;
use sha2::{Digest as _, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A server's part in a cluster, or what is ready for one. It ends when it is dropped.
pub struct Running {
    /// What it is there.
    pub node: Arc<Node>,
    task: JoinHandle<()>,
    holding: Option<(Arc<AtomicBool>, thread::JoinHandle<()>)>,
}

/// The server that is to be a member.
pub struct Serving<'a> {
    /// Its data folder.
    pub folder: &'a Path,
    /// Its directory, and the store below it.
    pub directory: &'a Arc<Directory>,
    /// See there.
    pub store: &'a Store,
    /// Its engine.
    pub engine: &'a Engine,
    /// Its log.
    pub log: &'a Log,
    /// Its server of clients.
    pub server: &'a LdapServer,
    /// The socket of the cryptod that holds the key of its authority; without one it is in a file.
    pub cryptod: Option<PathBuf>,
    /// Where others reach it.
    pub url: MemberUrl,
}

/// What a member is told by the configuration.
pub fn node_settings(configuration: &Configuration) -> NodeSettings {
    let cluster = &configuration.cluster;
    let rules = configuration.settings.get("access").map(|rules| rules.value.to_string());
    NodeSettings {
        forward: cluster.forward,
        own_writes_wait: cluster.own_writes_wait,
        by_address: cluster.own_writes == OwnWrites::Address,
        member_age_max: cluster.member_age_max,
        rules: Digest(Sha256::digest(rules.unwrap_or_default()).into()),
        url: cluster.url.as_ref().map(ToString::to_string),
        naming_contexts: configuration.naming_contexts.clone(),
    }
}

/// Whether the store of a data folder is another member's to change: then it is to follow from its opening on.
///
/// # Errors
/// If the folder or the store cannot be read.
pub fn follows(folder: &Path, store: &Store, has_etcd: bool) -> Result<bool, Failure> {
    let own = member::read(folder)?.and_then(|own| own.number()).map(MemberId);
    let row = row::read(store)?;
    // By a lease it writes from when it has one.
    Ok(own.is_some_and(|own| row.is_some_and(|row| has_etcd || row.writer != own)))
}

/// Takes connections of other members from now on, and does what the cluster's row says.
///
/// # Errors
/// If the folder cannot be read, or the engine cannot do TLS 1.3.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn start(
    serving: Serving<'_>,
    settings: NodeSettings,
    tail: Option<TailSettings>,
) -> Result<Running, Failure> {
    let Serving { folder, directory, store, engine, log, server, cryptod, url } = serving;
    let parts = Parts {
        folder: folder.to_owned(),
        directory: directory.clone(),
        store: store.clone(),
        engine: engine.clone(),
        log: log.clone(),
        server: server.handle(),
    };
    let node = Node::new(parts, settings, tail.is_some())?;
    let authority = Authority { engine: engine.clone(), folder: folder.to_owned(), cryptod };
    let members = MemberServer::new(store.clone(), authority, url, node.clone(), log.clone());
    server.take_members(Some(Arc::new(members).members(engine)?));
    let task = tokio::spawn(node.clone().run());
    let holding = tail.map(|tail| {
        let (ends, runtime) = (Arc::new(AtomicBool::new(false)), Handle::current());
        let (node, end) = (node.clone(), ends.clone());
        let work = move || hold(node, &tail, &runtime, &end);
        let started = thread::Builder::new().name("cluster-etcd".into()).spawn(work);
        started.map(|thread| (ends, thread))
    });
    let holding = holding.transpose();
    let holding = holding.map_err(|why| Failure::new(format!("cannot start a thread: {why}")))?;
    Ok(Running { node, task, holding })
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
        if let Some((ends, thread)) = self.holding.take() {
            ends.store(true, Ordering::Release);
            // A panic of its own was said by it.
            let _ = thread.join();
        }
    }
}
