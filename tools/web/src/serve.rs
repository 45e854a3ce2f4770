//! Connections of browsers.

use crate::limits::{
    CLOSE_MAX, CONNECTION_MAX, CONNECTIONS_MAX, HANDSHAKE_MAX, HEADER_BYTES_MAX, HEADER_WAIT,
};
use crate::router::{App, router};
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// From a refusal of the system to the next try.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers browsers until the end is asked for, which then has a moment for what is under way. Each is accepted
/// with what `tls` holds when it comes.
///
/// # Errors
/// If the system lets nobody in any more.
pub async fn serve(
    listener: TcpListener,
    tls: Option<watch::Receiver<TlsAcceptor>>,
    app: Arc<App>,
    end: impl Future<Output = ()>,
) -> io::Result<()> {
    let router = router(app);
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (closing, closed) = watch::channel(false);
    tokio::pin!(end);
    loop {
        // Who finds no place waits where the system keeps who has not been let in.
        let next = async {
            let place = places.clone().acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
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
        tokio::spawn(async move {
            let _place = place;
            match tls {
                None => talk(stream, router, closed).await,
                Some(tls) => {
                    let shaken = tokio::time::timeout(HANDSHAKE_MAX, tls.accept(stream)).await;
                    if let Ok(Ok(stream)) = shaken {
                        talk(stream, router, closed).await;
                    }
                }
            }
        });
    }
    let _ = closing.send(true);
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(CLOSE_MAX, places.acquire_many(all)).await;
    Ok(())
}

/// Answers one connection's requests, as long as it may be used.
async fn talk<S>(stream: S, router: Router, mut closed: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEADER_WAIT).max_buf_size(HEADER_BYTES_MAX);
    let service = TowerToHyperService::new(router);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let is_over = tokio::select! {
        // What a browser does wrong, it knows itself.
        _ = connection.as_mut() => true,
        _ = closed.changed() => false,
        () = tokio::time::sleep(CONNECTION_MAX) => false,
    };
    if !is_over {
        connection.as_mut().graceful_shutdown();
        let _ = tokio::time::timeout(CLOSE_MAX, connection).await;
    }
}
