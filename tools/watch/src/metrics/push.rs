//! Metrics pushed to a collector, again and again.

use super::collector::{Collector, Refusal};
use super::otlp;
use super::pages::{PageSource, collect};
use crate::limits::OTLP_PUSH_MAX;
use keyway_folder::host_names::host_names;
use keyway_load::Trust;
use rustls::crypto::CryptoProvider;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// `[metrics]` of the configuration, if metrics are pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSettings {
    /// Where they are pushed to.
    pub collector: Collector,
    /// From one time to the next.
    pub every: Duration,
    /// How the right collector at `https://` is known.
    pub trust: Trust,
}

/// Takes a remark on pushing: whether it is well again, and words. Each remark comes once.
pub type Say = Box<dyn Fn(bool, &str) + Send>;

/// The metrics that are pushed, and the means.
pub struct Push {
    /// The pages that they are made of.
    pub sources: Vec<PageSource>,
    /// The attributes of the service that pushes.
    pub resource: Vec<(&'static str, String)>,
    /// The cryptography of TLS.
    pub provider: Arc<CryptoProvider>,
    /// Takes remarks.
    pub say: Say,
}

/// The attributes by which OpenTelemetry tells a data folder's server from others: the service, and the instance.
pub fn resource(folder: &Path) -> Vec<(&'static str, String)> {
    let host = host_names().into_iter().next().unwrap_or_else(|| "localhost".to_owned());
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    vec![
        ("service.name", "keyway".to_owned()),
        ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id", format!("{host}:{}", folder.display())),
        ("host.name", host),
    ]
}

impl Push {
    /// Pushes for ever. A push that does not arrive is not kept: the next one has it too, since all is
    /// counted from the start.
    pub async fn run(&self, settings: &PushSettings) {
        let mut ticks = interval(settings.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_well = true;
        loop {
            ticks.tick().await;
            match (self.once(settings).await, is_well) {
                (Ok(()), true) => {}
                (Ok(()), false) => {
                    is_well = true;
                    (self.say)(true, &format!("they arrive at {} again", settings.collector));
                }
                (Err(Refusal { why, pause }), was_well) => {
                    is_well = false;
                    if was_well {
                        let (place, seconds) = (&settings.collector, settings.every.as_secs_f64());
                        let text = format!(
                            "they do not arrive at {place}: {why}; tried again every {seconds} s, \
                             without another word until they do"
                        );
                        (self.say)(false, &text);
                    }
                    sleep(pause.unwrap_or_default()).await;
                }
            }
        }
    }

    async fn once(&self, settings: &PushSettings) -> Result<(), Refusal> {
        let (metrics, now_unix_ms) = collect(&self.sources);
        let request = otlp::encode(&metrics, &self.resource, now_unix_ms);
        let sent = settings.collector.send(request, &self.provider, &settings.trust);
        timeout(OTLP_PUSH_MAX, sent).await.unwrap_or_else(|_| {
            let seconds = OTLP_PUSH_MAX.as_secs();
            Err(format!("no answer within {seconds} s").into())
        })
    }
}

/// A server's pushing, on a thread of its own for which the server does not wait.
#[derive(Default)]
pub struct Pusher {
    settings: Option<PushSettings>,
    /// Ends the thread when it is dropped.
    stop: Option<oneshot::Sender<()>>,
}

impl Pusher {
    /// Pushes as these settings say from now on; `push` makes what it takes.
    pub fn set(&mut self, settings: Option<&PushSettings>, push: impl FnOnce() -> Push) {
        if self.settings.as_ref() == settings {
            return;
        }
        self.settings = settings.cloned();
        self.stop = None;
        let Some(settings) = settings.cloned() else { return };
        let (stop, stopped) = oneshot::channel();
        let push = push();
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(why) => return (push.say)(false, &format!("they are not pushed: {why}")),
            };
            runtime.block_on(async {
                tokio::select! { () = push.run(&settings) => {}, _ = stopped => {} }
            });
            // A name server that does not answer may hold up a thread of it.
            runtime.shutdown_background();
        };
        // Without a thread there is nothing to push with, and the server serves all the same.
        if thread::Builder::new().name("metrics".to_owned()).spawn(work).is_ok() {
            self.stop = Some(stop);
        }
    }
}
