//! `cn=config`: settings as entries, read and changed over LDAP.

use crate::ldap;
use crate::limits::CONFIG_CHANGES_WAITING_MAX;
use crate::settings::Settings;
use keyway_lock::Unpoisoned;
use keyway_server::{Directory, Modification, Provider, Reply, VirtualTree};
use std::sync::{Arc, RwLock};
use tokio::sync::mpsc::{Receiver, channel};

/// A change whose client waits for its result.
pub type Wanted = (Modification, Reply);

/// The data that the entries show.
#[derive(Clone)]
pub struct ConfigTree(Arc<RwLock<Shown>>);

struct Shown {
    /// Settings as they were read last.
    settings: Settings,
    /// Keys of those that wait for the next start.
    waiting: Vec<String>,
}

/// Publishes the tree; what clients want to be changed comes out of the receiver.
pub fn publish(directory: &Directory, settings: Settings) -> (ConfigTree, Receiver<Wanted>) {
    let tree = ConfigTree(Arc::new(RwLock::new(Shown { settings, waiting: Vec::new() })));
    let (sender, receiver) = channel(CONFIG_CHANGES_WAITING_MAX);
    let shown = tree.clone();
    let provider =
        Provider::new(move |_| shown.entries()).changed_by(move |modification, reply| {
            if let Err(why) = sender.try_send((modification, reply)) {
                let (_, reply) = why.into_inner();
                reply(Err("the server is busy with other changes of its settings".into()));
            }
        });
    directory.publish(VirtualTree::Config, provider);
    (tree, receiver)
}

impl ConfigTree {
    /// Shows these from now on.
    pub fn show(&self, settings: Settings, waiting: Vec<String>) {
        *self.0.write().unpoisoned() = Shown { settings, waiting };
    }

    fn entries(&self) -> Vec<keyway_server::VirtualEntry> {
        let shown = self.0.read().unpoisoned();
        ldap::entries(&shown.settings, &shown.waiting)
    }
}
