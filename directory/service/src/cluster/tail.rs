//! etcd as a member is told to use it: where it is, and how it is known.

use keyway_cluster::message::ClusterId;
use keyway_cluster_etcd::{Endpoint, Etcd, Options};
use keyway_config::Cluster;
use keyway_engine::Engine;
use keyway_folder::data::Folder;
use keyway_folder::folder_keys;
use keyway_folder::pem::certificates;
use keyway_host::failure::Failure;
use keyway_tls::provider;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long one member of etcd may take before the next is asked, and how long all may.
const TRY_LIMIT: Duration = Duration::from_secs(1);
const CALL_LIMIT: Duration = Duration::from_secs(3);

/// The etcd of a configuration.
#[derive(Clone)]
pub struct TailSettings {
    endpoints: Vec<Endpoint>,
    tls: Option<Arc<ClientConfig>>,
    /// How long a writer that says nothing holds its office.
    pub lease: Duration,
}

impl TailSettings {
    /// `None` if the configuration names none.
    ///
    /// # Errors
    /// If a URL or a file of a certificate is wrong.
    pub fn read(
        folder: &Folder,
        cluster: &Cluster,
        engine: &Engine,
    ) -> Result<Option<TailSettings>, Failure> {
        if cluster.etcd.is_empty() {
            return Ok(None);
        }
        let endpoints = cluster.etcd.iter().map(|url| url.parse::<Endpoint>());
        let endpoints = endpoints.collect::<Result<Vec<_>, _>>().map_err(Failure::new)?;
        let tls = match endpoints.iter().any(Endpoint::has_tls) {
            true => Some(Arc::new(tls(folder, cluster, engine)?)),
            false => None,
        };
        Ok(Some(TailSettings { endpoints, tls, lease: cluster.lease }))
    }

    /// The keys of a cluster there. Nothing is connected yet.
    ///
    /// # Errors
    /// If there are too many URLs.
    pub(super) fn open(&self, cluster: ClusterId, runtime: Handle) -> Result<Etcd, Failure> {
        let options = Options {
            tls: self.tls.clone(),
            try_limit: TRY_LIMIT,
            call_limit: CALL_LIMIT,
            lease_s: self.lease.as_secs(),
            ..Options::new(self.endpoints.clone(), cluster)
        };
        Etcd::new(options, runtime).map_err(Failure::new)
    }
}

fn tls(folder: &Folder, cluster: &Cluster, engine: &Engine) -> Result<ClientConfig, Failure> {
    let ca = cluster.etcd_ca.as_ref().ok_or_else(|| {
        Failure::new("[cluster] etcd names https: say in etcd_ca which authority has issued its certificates")
    })?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&folder.file_at(ca))?);
    let config = ClientConfig::builder_with_provider(provider(engine))
        .with_protocol_versions(keyway_tls::VERSIONS)
        .map_err(Failure::new)?
        .with_root_certificates(roots);
    match &cluster.etcd_client {
        Some((certificate, key)) => {
            let chain = certificates(&folder.file_at(certificate))?;
            let key = folder_keys::read(&folder.file_at(key))?;
            config.with_client_auth_cert(chain, key).map_err(Failure::new)
        }
        None => Ok(config.with_no_client_auth()),
    }
}
