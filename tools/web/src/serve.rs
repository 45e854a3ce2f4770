//! Connections of browsers.

use crate::limits::{
    CLOSE_MAX, CONNECTION_MAX, CONNECTIONS_MAX, HANDSHAKE_MAX, HEADER_BYTES_MAX, HEADER_WAIT,
};
use crate::router::{App, router};
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use keyway_lock::Unpoisoned;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::{self, AbortHandle};
use tokio_rustls::TlsAcceptor;

/// From a refusal of the system to the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers browsers until the end is asked for, which then has a moment for what is under way. Each is accepted
/// with what `tls` holds when it comes.
///
/// # Errors
/// If the system accepts no more connections.
pub async fn serve(
    listener: TcpListener,
    tls: Option<watch::Receiver<TlsAcceptor>>,
    app: Arc<App>,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let router = router(app.clone());
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let strangers = Arc::new(Strangers::default());
    let (closing, closed) = watch::channel(false);
    tokio::pin!(end);
    loop {
        let next = async {
            let accepted = listener.accept().await;
            if places.available_permits() == 0 {
                strangers.turn_one_out();
            }
            // Where all are known, the next one waits.
            (accepted, places.clone().acquire_owned().await)
        };
        let (accepted, place) = tokio::select! {
            next = next => next,
            () = &mut end => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let tls = tls.as_ref().map(|tls| tls.borrow().clone());
        let (router, closed) = (router.clone(), closed.clone());
        let talk = Talk { app: app.clone(), router, strangers: strangers.clone(), closed };
        // Held until it is listed, so that it cannot be known before.
        let mut listed = strangers.lock();
        let connection = tokio::spawn(async move {
            let _place = place;
            match tls {
                None => talk.over(stream).await,
                Some(tls) => {
                    let shaken = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await;
                    if let Ok(Ok(stream)) = shaken {
                        talk.over(stream).await;
                    }
                }
            }
            talk.strangers.forget(task::id());
        });
        listed.push_back(connection.abort_handle());
    }
    let _ = closing.send(true);
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(CLOSE_MAX, places.acquire_many(all)).await;
    Ok(())
}

/// Connections without a session yet, the oldest first. When there is no place left they make room, so
/// that many silent connections keep no user out.
#[derive(Default)]
struct Strangers(Mutex<VecDeque<AbortHandle>>);

impl Strangers {
    fn lock(&self) -> MutexGuard<'_, VecDeque<AbortHandle>> {
        self.0.lock().unpoisoned()
    }

    fn turn_one_out(&self) {
        if let Some(oldest) = self.lock().pop_front() {
            oldest.abort();
        }
    }

    fn forget(&self, connection: task::Id) {
        self.lock().retain(|one| one.id() != connection);
    }
}

/// The state that a connection is answered with.
struct Talk {
    app: Arc<App>,
    router: Router,
    strangers: Arc<Strangers>,
    closed: watch::Receiver<bool>,
}

impl Talk {
    /// Answers one connection's requests, as long as it may be used.
    async fn over<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEADER_WAIT);
        http.max_buf_size(HEADER_BYTES_MAX);
        let service = TowerToHyperService::new(self.router.clone());
        let service = service_fn(|request: Request<Incoming>| {
            if self.app.auth.knows(request.headers(), Instant::now()) {
                self.strangers.forget(task::id());
            }
            service.call(request)
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let mut closed = self.closed.clone();
        let is_over = tokio::select! {
            // A browser sees its own errors.
            _ = connection.as_mut() => true,
            _ = closed.changed() => false,
            () = tokio::time::sleep(CONNECTION_MAX) => false,
        };
        if !is_over {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(CLOSE_MAX, connection).await;
        }
    }
}
