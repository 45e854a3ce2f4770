//! The cluster's row and the directory are brought to what this server's configuration says of them: where others reach
//! it, and which naming contexts there are. Only the writer can change them, so that a follower asks it to.

use super::node::Node;
use super::row;
use crate::instance::describe;
use keyway_cluster::message::{Answer, MemberId, Refusal, Request};
use keyway_codec::message::ResultCode;
use keyway_host::failure::Failure;
use keyway_lock::Unpoisoned;
use keyway_server::log::Severity;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

/// How often it is looked whether they are as the configuration says.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Node {
    /// Works until it is dropped. A reason why something stays as it is, is said once.
    pub(super) async fn stay_as_configured(self: Arc<Self>) {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = None;
        loop {
            ticks.tick().await;
            let why = self.as_configured().await.err().map(|why| why.to_string());
            if let Some(why) = why.as_ref().filter(|_| said != why) {
                self.say(Severity::Warning, why);
            }
            said.clone_from(&why);
            *self.not_as_configured.lock().unpoisoned() = why;
        }
    }

    async fn as_configured(self: &Arc<Self>) -> Result<(), Failure> {
        let settings = self.settings();
        let (own, other_url, writer) = {
            let standing = self.standing();
            let Some(member) = standing.row().and_then(|row| row.member(standing.own())) else {
                return Ok(());
            };
            let url = settings.url.filter(|url| *url != member.url);
            (standing.own(), url, standing.writer_url().map(str::to_owned))
        };
        if self.may_write().is_ok() {
            let (node, contexts) = (self.clone(), settings.naming_contexts);
            let done = spawn_blocking(move || node.write_as_configured(own, other_url, &contexts));
            return done.await.map_err(Failure::new)?;
        }
        let Some((url, writer)) = other_url.zip(writer) else { return Ok(()) };
        // A writer that is not reached is looked for elsewhere.
        let Ok((_, answer)) = self.ask(&writer, Request::Move { url }).await else { return Ok(()) };
        match answer {
            // One that does not write, or not yet, is asked again.
            Answer::Refused { reason: Refusal::Other, text, .. } => {
                Err(Failure::new(format!("cluster.url is not taken: {text}")))
            }
            _ => Ok(()),
        }
    }

    fn write_as_configured(
        self: &Arc<Self>,
        own: MemberId,
        url: Option<String>,
        contexts: &[String],
    ) -> Result<(), Failure> {
        if let Some(url) = url {
            row::move_to(&self.parts.store, own, own, &url)
                .map_err(|why| Failure::new(format!("cluster.url is not taken: {why}")))?;
            self.look();
        }
        for dn in contexts {
            match self.parts.directory.add_naming_context(dn) {
                Err(why) if why.code != ResultCode::EntryAlreadyExists => {
                    return Err(Failure::new(format!("naming_contexts: {dn}: {}", describe(&why))));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
