//! `keyway metrics`: the counters of what runs on a data folder, for Prometheus.

mod text;

use crate::cli::Metrics;
use crate::cryptod;
use crate::data::name;
use crate::failure::Failure;
use crate::listeners;
use crate::output;
use crate::signals::Signals;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use keyway_meter::{Reader, Snapshot};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a page is of, and where it lies.
struct Source {
    process: &'static str,
    page: PathBuf,
}

/// Prints them, or answers who asks until it is told to stop.
///
/// # Errors
/// If it cannot listen there, or what it says reaches nobody.
pub fn run(arguments: &Metrics) -> Result<(), Failure> {
    let sources = Arc::new(sources(&arguments.data.folder));
    let Some(address) = arguments.listen else {
        return output::text(render(sources.as_slice()).trim_end());
    };
    let listener = listeners::listen(address, "--listen")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {why}")))?;
    runtime.block_on(serve(listener, sources))
}

fn sources(folder: &Path) -> [Source; 2] {
    [
        Source { process: "directory", page: folder.join(name::METER) },
        Source { process: "cryptod", page: cryptod::meter_at(folder) },
    ]
}

async fn serve(listener: TcpListener, sources: Arc<[Source; 2]>) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let cannot = |why| Failure::new(format!("cannot serve: {why}"));
    let address = listeners::address(&listener)?;
    listener.set_nonblocking(true).map_err(cannot)?;
    let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
    let answer = move || {
        let sources = sources.clone();
        async move { ([(CONTENT_TYPE, text::CONTENT_TYPE)], render(sources.as_slice())).into_response() }
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

/// All that can be seen now. A page that is not there, or is nobody's, is no error: it may come.
fn render(sources: &[Source]) -> String {
    let pages: Vec<(&str, Option<Snapshot>)> =
        sources.iter().map(|source| (source.process, look(&source.page))).collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    text::render(&pages, now.as_secs())
}

fn look(page: &Path) -> Option<Snapshot> {
    let reader = Reader::open(page).ok().filter(Reader::alive)?;
    reader.snapshot().ok()
}
