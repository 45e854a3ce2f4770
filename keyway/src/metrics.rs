//! `keyway metrics`: the counters of what runs on a data folder, for Prometheus and for OpenTelemetry.

use crate::cli::Metrics;
use crate::provider::provider;
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
use keyway_server::log::{Severity, Value};
use keyway_service::{PushMetrics, Pushing};
use keyway_watch::metrics::{self, Collector, PageSource, Push, PushSettings, Pusher};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Pushes a server's metrics as its configuration says.
pub fn pusher() -> PushMetrics {
    let mut pusher = Pusher::default();
    Box::new(move |pushing| {
        let Pushing { folder, engine, log, metrics: configured } = pushing;
        let settings = configured.map(|it| PushSettings {
            collector: collector_at(&it.otlp),
            every: it.every,
            trust: Trust { ca: it.ca.as_ref().map(|ca| folder.file_at(ca)), ..Trust::default() },
        });
        let log = log.clone();
        pusher.set(settings.as_ref(), || Push {
            sources: metrics::of_server(folder.path()),
            resource: metrics::resource(folder.path()),
            provider: keyway_tls::provider(engine),
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
/// If it cannot listen there, or its output cannot be written.
pub fn run(arguments: &Metrics) -> Result<(), Failure> {
    let folder = &arguments.data.folder;
    data::may_look(folder)?;
    if !folder.exists() {
        output::note(format_args!("warning: there is no folder {}", folder.display()));
    }
    let mut sources = metrics::of_folder(folder);
    sources.extend(arguments.esp.iter().map(|state| metrics::of_gateway(state)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    if let Some(collector) = &arguments.otlp {
        let settings = PushSettings {
            collector: collector_at(collector),
            every: Duration::from_secs(arguments.interval),
            trust: Trust {
                ca: arguments.ca.clone(),
                own_ca: Some(folder.join(name::CA_CERTIFICATE)),
                insecure: arguments.insecure,
                ..Trust::default()
            },
        };
        settings.trust.check().map_err(Failure::from)?;
        trust::warn(arguments.insecure);
        let pushed = runtime.block_on(push_until_told(sources, &settings, folder));
        runtime.shutdown_background();
        return pushed;
    }
    let Some(address) = arguments.listen else {
        return output::text(metrics::render(&sources).trim_end());
    };
    let listener = listeners::listen(address, "--listen")?;
    runtime.block_on(serve(listener, sources))
}

async fn push_until_told(
    sources: Vec<PageSource>,
    settings: &PushSettings,
    folder: &Path,
) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let push = Push {
        sources,
        resource: metrics::resource(folder),
        provider: provider(),
        say: Box::new(|_, text| output::note(format_args!("metrics: {text}"))),
    };
    output::text(&settings.collector)?;
    tokio::select! {
        () = push.run(settings) => {}
        () = signals.end() => {}
    }
    Ok(())
}

async fn serve(listener: TcpListener, sources: Vec<PageSource>) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let cannot = |why| Failure::new(format!("cannot serve: {why}"));
    let address = listeners::address(&listener)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
    let sources = Arc::new(sources);
    let answer = move || {
        let sources = sources.clone();
        let render = move || metrics::render(&sources);
        async move { ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], render()).into_response() }
    };
    let router = Router::new().route("/metrics", get(answer));
    say_where(address)?;
    // Clients with open requests have to ask again.
    tokio::select! {
        served = axum::serve(listener, router) => served.map_err(cannot),
        () = signals.end() => Ok(()),
    }
}

fn say_where(address: SocketAddr) -> Result<(), Failure> {
    output::text(format_args!("http://{address}/metrics"))
}
