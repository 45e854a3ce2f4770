//! One cluster of Keyway in an etcd: what every call needs.

use crate::client::Client;
use crate::connection::Failed;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::keys::Keys;
use crate::limits::LEASE_S;
use crate::row::Point;
use crate::wire::{KeyValue, Transacted, range, reads, transaction};
use keyway_cluster::message::ClusterId;
use rustls::ClientConfig;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// Where etcd is, and how long calls may take.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its members, tried in turn; 1 to 16.
    pub endpoints: Vec<Endpoint>,
    /// For `https`: roots that are trusted, and the client's certificate.
    pub tls: Option<Arc<ClientConfig>>,
    /// The identifier of Keyway's cluster: the name of its keys.
    pub cluster: ClusterId,
    /// How long one endpoint may take before the next is tried.
    pub try_limit: Duration,
    /// How long a call may take with all its tries.
    pub call_limit: Duration,
    /// Seconds after which a writer or a member that says nothing is gone; 2 to 600.
    pub lease_s: u64,
}

impl Options {
    /// Those of a cluster at some endpoints: 2 s a try, 5 s a call, leases of 5 s.
    pub fn new(endpoints: Vec<Endpoint>, cluster: ClusterId) -> Options {
        let (try_limit, call_limit) = (Duration::from_secs(2), Duration::from_secs(5));
        Options { endpoints, tls: None, cluster, try_limit, call_limit, lease_s: 5 }
    }
}

/// A cluster in an etcd. Its calls block the calling thread, each at most for the time of [`Options`]; clones share
/// connections.
///
/// # Panics
/// All calls do on a thread that runs tasks of tokio: they are for threads of their own. The runtime of the handle has to
/// have threads that run its tasks.
#[derive(Clone)]
pub struct Etcd {
    pub(crate) client: Arc<Client>,
    pub(crate) keys: Keys,
    pub(crate) runtime: Handle,
    pub(crate) call_limit: Duration,
    pub(crate) lease_s: u64,
}

impl Etcd {
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn new(options: Options, runtime: Handle) -> Result<Etcd, Error> {
        let Options { endpoints, tls, cluster, try_limit, call_limit, lease_s } = options;
        if !LEASE_S.contains(&lease_s) {
            let (least, most) = LEASE_S.into_inner();
            let why = format!("a lease of {lease_s} s, and it may be {least} to {most} s");
            return Err(Error::Config(why));
        }
        let client = Arc::new(Client::new(endpoints, tls, try_limit)?);
        Ok(Etcd { client, keys: Keys::new(cluster), runtime, call_limit, lease_s })
    }

    /// The end of the feed; `None` if there is no feed yet, or its end is lost.
    ///
    /// # Errors
    /// Those of a call.
    pub fn head(&self) -> Result<Option<Point>, Error> {
        self.runtime.block_on(self.read_head())
    }

    pub(crate) async fn read_head(&self) -> Result<Option<Point>, Error> {
        let found = self.one(&self.keys.head()).await?;
        Ok(found.and_then(|found| Point::from_bytes(&found.value)))
    }

    /// A key, as a majority has it.
    pub(crate) async fn one(&self, key: &str) -> Result<Option<KeyValue>, Error> {
        let mut answer = self.transact(vec![], vec![reads(range(key))], vec![]).await?;
        Ok(answer.one(0))
    }

    pub(crate) async fn transact(
        &self,
        compare: Vec<Value>,
        success: Vec<Value>,
        failure: Vec<Value>,
    ) -> Result<Transacted, Failed> {
        let request = transaction(compare, success, failure);
        self.client.call("/v3/kv/txn", &request, self.call_limit).await
    }
}
