//! `keyway metrics`: the counters of what runs on a data folder, for Prometheus and for OpenTelemetry.

mod collector;
mod model;
mod otlp;
mod push;
mod text;

pub use collector::Collector;
pub use push::{Push, Pusher, Settings, resource};

use crate::cli::Metrics;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use keyway_config::CollectorUrl;
use keyway_folder::data::{self, name};
use keyway_folder::trust;
use keyway_host::failure::Failure;
use keyway_host::listeners;
use keyway_host::output;
use keyway_host::signals::Signals;
use keyway_load::Trust;
use keyway_meter::{Reader, Snapshot};
use keyway_server::log::{Severity, Value};
use keyway_service::{PushMetrics, Pushing};
use model::{Metric, metrics};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a page is of, and where it lies; without a place it is this process's own.
pub struct Source {
    process: &'static str,
    page: Option<PathBuf>,
}

/// Pushes a server's metrics as its configuration says.
pub fn pusher() -> PushMetrics {
    let mut pusher = Pusher::default();
    Box::new(move |pushing| {
        let Pushing { folder, engine, log, metrics } = pushing;
        let settings = metrics.map(|it| Settings {
            collector: collector_at(&it.otlp),
            every: it.every,
            trust: Trust { ca: it.ca.as_ref().map(|ca| folder.file_at(ca)), ..Trust::default() },
        });
        let log = log.clone();
        pusher.set(settings.as_ref(), || Push {
            sources: of_server(folder.path()),
            resource: resource(folder.path()),
            engine: engine.clone(),
            say: Box::new(move |is_well, text| {
                let severity = if is_well { Severity::Info } else { Severity::Warning };
                log.say(SystemTime::now(), severity, "metrics", &[("text", Value::Text(text))]);
            }),
        });
    })
}

/// The collector at a URL.
pub fn collector_at(url: &CollectorUrl) -> Collector {
    Collector::new(url.has_tls, url.authority.clone(), url.path.clone())
}

/// Prints them, answers who asks, or pushes them until it is told to stop.
///
/// # Errors
/// If it cannot listen there, or what it says reaches nobody.
pub fn run(arguments: &Metrics) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    data::may_look(folder)?;
    if !folder.exists() {
        output::note(format_args!("warning: there is no folder {}", folder.display()));
    }
    let directory = Source { process: "directory", page: Some(folder.join(name::METER)) };
    let sources = vec![directory, of_cryptod(folder)];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    if let Some(collector) = &arguments.otlp {
        let settings = Settings {
            collector: collector_at(collector),
            every: Duration::from_secs(arguments.interval),
            trust: Trust {
                ca: arguments.ca.clone(),
                own_ca: Some(folder.join(name::CA_CERTIFICATE)),
                insecure: arguments.insecure,
                ..Trust::default()
            },
        };
        trust::warn(arguments.insecure);
        let pushed = runtime.block_on(push_until_told(sources, &settings, folder));
        runtime.shutdown_background();
        return pushed;
    }
    let Some(address) = arguments.listen else {
        return output::text(text::render(&collect(&sources).0).trim_end());
    };
    let listener = listeners::listen(address, "--listen")?;
    runtime.block_on(serve(listener, sources))
}

/// The pages of a server that is this process, and of the cryptod beside it.
pub fn of_server(folder: &Path) -> Vec<Source> {
    vec![Source { process: "directory", page: None }, of_cryptod(folder)]
}

fn of_cryptod(folder: &Path) -> Source {
    Source { process: "cryptod", page: Some(name::meter_at(folder)) }
}

async fn push_until_told(
    sources: Vec<Source>,
    settings: &Settings,
    folder: &Path,
) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let push = Push {
        sources,
        resource: resource(folder),
        engine: keyway_drivers::engine(),
        say: Box::new(|_, text| output::note(format_args!("metrics: {text}"))),
    };
    output::text(&settings.collector)?;
    tokio::select! {
        () = push.run(settings) => {}
        () = signals.end() => {}
    }
    Ok(())
}

async fn serve(listener: TcpListener, sources: Vec<Source>) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let cannot = |why| Failure::new(format!("cannot serve: {why}"));
    let address = listeners::address(&listener)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
    let sources = Arc::new(sources);
    let answer = move || {
        let sources = sources.clone();
        let render = move || text::render(&collect(&sources).0);
        async move { ([(CONTENT_TYPE, text::CONTENT_TYPE)], render()).into_response() }
    };
    let router = Router::new().route("/metrics", get(answer));
    say_where(address)?;
    // Whoever still asks asks again elsewhere.
    tokio::select! {
        served = axum::serve(listener, router) => served.map_err(cannot),
        () = signals.end() => Ok(()),
    }
}

fn say_where(address: SocketAddr) -> Result<(), Failure> {
    output::text(format_args!("http://{address}/metrics"))
}

/// All that can be seen now, and when that is, in milliseconds since 1970. A page that is not there, or is
/// nobody's, is no error: it may come.
fn collect(sources: &[Source]) -> (Vec<Metric>, u64) {
    let pages: Vec<_> = sources.iter().map(|source| (source.process, source.look())).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_unix_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    (metrics(&pages, now.as_secs()), now_unix_ms)
}

impl Source {
    fn look(&self) -> Option<Snapshot> {
        let Some(page) = &self.page else { return Snapshot::own() };
        let reader = Reader::open(page).ok().filter(Reader::alive)?;
        reader.snapshot().ok()
    }
}
