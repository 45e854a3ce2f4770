//! A server: the files of a folder, and the other end of a measurement.

use crate::endpoint::{self, HQ, NO_ERROR, PERF};
use crate::error::{BAD_REQUEST, NO_SUCH_FILE, UNREADABLE};
use crate::perf;
use percent_encoding::percent_decode_str;
use quinn::{Connection, Endpoint, RecvStream, SendStream, VarInt};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

/// Longest request, in bytes.
const REQUEST_BYTES_MAX: usize = 4_096;
/// The size of one read of a file, in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Connections at the same time; further ones are refused.
const CONNECTIONS_MAX: usize = 1_024;
/// Files that are being sent at the same time; further ones wait.
const FILES_MAX: usize = 4_096;

/// Hears of a file that is there and cannot be read.
type Unreadable = dyn Fn(&Path, &io::Error) + Send + Sync;

/// Serves the files below one folder (HTTP/0.9 over QUIC, [`HQ`]), and answers measurements
/// ([`PERF`]). A path that leads out of the folder, also through a link, is no file.
pub struct Server {
    /// Canonical: served files lie below it.
    root: PathBuf,
    at_once: Semaphore,
    counters: Counters,
    unreadable: Box<Unreadable>,
}

#[derive(Default)]
struct Counters {
    open: AtomicUsize,
    connections: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
}

/// The files and bytes served so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Connections whose handshake was completed.
    pub connections: u64,
    /// Files that were sent to their end.
    pub files: u64,
    /// Bytes of files.
    pub bytes: u64,
}

impl Server {
    /// The protocols it speaks, for [`Host::server`](crate::Host::server).
    pub const PROTOCOLS: [&[u8]; 2] = [HQ, PERF];

    /// Serves the folder `root`, which is an absolute path without links
    /// ([`Path::canonicalize`]). `unreadable` hears of each file that is there and cannot be read.
    pub fn new(
        root: PathBuf,
        unreadable: impl Fn(&Path, &io::Error) + Send + Sync + 'static,
    ) -> Arc<Server> {
        Arc::new(Server {
            root,
            at_once: Semaphore::new(FILES_MAX),
            counters: Counters::default(),
            unreadable: Box::new(unreadable),
        })
    }

    /// The files and bytes served so far.
    pub fn served(&self) -> Served {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { connections, files, bytes, .. } = &self.counters;
        Served { connections: of(connections), files: of(files), bytes: of(bytes) }
    }

    /// Serves until the endpoint is closed.
    pub async fn serve(self: &Arc<Self>, endpoint: &Endpoint) {
        while let Some(incoming) = endpoint.accept().await {
            if self.counters.open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                incoming.refuse();
                continue;
            }
            self.counters.open.fetch_add(1, Ordering::Relaxed);
            let server = self.clone();
            tokio::spawn(async move {
                // A client whose handshake fails knows why; there is no other party to tell.
                if let Ok(connection) = incoming.await {
                    server.counters.connections.fetch_add(1, Ordering::Relaxed);
                    match &endpoint::protocol(&connection)[..] {
                        PERF => perf::answer(&connection).await,
                        _ => server.files(&connection).await,
                    }
                }
                server.counters.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    /// A file a stream, for as long as the connection lasts.
    async fn files(self: &Arc<Self>, connection: &Connection) {
        while let Ok((mut send, mut receive)) = connection.accept_bi().await {
            let server = self.clone();
            tokio::spawn(async move {
                if let Err(code) = server.file(&mut send, &mut receive).await {
                    let _ = send.reset(code);
                }
                take_rest(&mut receive).await;
            });
        }
    }

    /// Answers one request; an error is what the stream is reset with.
    async fn file(&self, send: &mut SendStream, receive: &mut RecvStream) -> Result<(), VarInt> {
        let mut request = Vec::new();
        while !request.contains(&b'\n') {
            let mut piece = [0; 512];
            match receive.read(&mut piece).await.map_err(|_| BAD_REQUEST)? {
                Some(bytes) => request.extend_from_slice(&piece[..bytes]),
                None => break,
            }
            if request.len() > REQUEST_BYTES_MAX {
                return Err(BAD_REQUEST);
            }
        }
        let path = path(&request).ok_or(BAD_REQUEST)?;
        let code = |why: io::Error| match why.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => NO_SUCH_FILE,
            _ => UNREADABLE,
        };
        let whole = tokio::fs::canonicalize(self.root.join(&path)).await.map_err(code)?;
        if !whole.starts_with(&self.root) {
            return Err(NO_SUCH_FILE);
        }
        let mut file = tokio::fs::File::open(&whole).await.map_err(code)?;
        if !file.metadata().await.map_err(code)?.is_file() {
            return Err(NO_SUCH_FILE);
        }
        // The semaphore is never closed.
        let _turn = self.at_once.acquire().await;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let bytes = file.read(&mut piece).await.map_err(|why| {
                (self.unreadable)(&whole, &why);
                UNREADABLE
            })?;
            if bytes == 0 {
                break;
            }
            // A client that hangs up wants no more of it.
            send.write_all(&piece[..bytes]).await.map_err(|_| NO_ERROR)?;
            self.counters.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        self.counters.files.fetch_add(1, Ordering::Relaxed);
        send.finish().map_err(|_| NO_ERROR)
    }
}

/// Takes what follows a request, to the client's FIN or the connection's end. A stream that is
/// dropped before tells the client to stop sending, which some take for a failure: only who sends
/// far too much hears it.
async fn take_rest(receive: &mut RecvStream) {
    let mut left = REQUEST_BYTES_MAX;
    let mut piece = [0; 512];
    while let Ok(Some(bytes)) = receive.read(&mut piece).await {
        left = left.saturating_sub(bytes);
        if left == 0 {
            let _ = receive.stop(NO_ERROR);
        }
    }
}

/// The path of `GET /path`, below the folder that is served: no part of it leads up.
fn path(request: &[u8]) -> Option<PathBuf> {
    let line = request.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?.trim_end();
    let path = line.strip_prefix("GET /")?;
    // HTTP/1's version may follow, and a query.
    let path = path.split(' ').next()?.split('?').next()?;
    let path = percent_decode_str(path).decode_utf8().ok()?;
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if path.is_empty() || path.ends_with('/') {
        let parts = path.trim_end_matches('/');
        let up = !parts.is_empty() && !parts.split('/').all(is_plain);
        return (!up).then(|| Path::new(parts).join("index.html"));
    }
    path.split('/').all(is_plain).then(|| PathBuf::from(&*path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_down() {
        let of = |request: &str| path(request.as_bytes()).map(|path| path.display().to_string());
        assert_eq!(of("GET /a/b.txt\r\n").unwrap(), "a/b.txt");
        assert_eq!(of("GET /a%20b").unwrap(), "a b");
        assert_eq!(of("GET /a?b HTTP/1.1\r\nHost: c\r\n").unwrap(), "a");
        assert_eq!(of("GET /\r\n").unwrap(), "index.html");
        assert_eq!(of("GET /a/\r\n").unwrap(), "a/index.html");
        for bad in [
            "",
            "GET",
            "GET a",
            "POST /a",
            "GET /../a",
            "GET /a/../../b",
            "GET /%2e%2e/a",
            "GET //etc/passwd",
            "GET /a%00",
            "GET /..",
            "GET /../",
            "GET /%ff",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    /// Every request of up to so many pieces of which paths that lead elsewhere are made.
    #[test]
    fn no_path_leads_out_of_the_folder() {
        const PIECES: [&str; 11] =
            ["/", ".", "..", "%2e", "%2F", "%5c%00", "\\", "a", "?", " ", "\r\n"];
        const PIECES_MAX: u32 = 5;
        let mut led = 0;
        for pieces in 0..=PIECES_MAX {
            for number in 0..PIECES.len().pow(pieces) {
                let digit = |place| PIECES[number / PIECES.len().pow(place) % PIECES.len()];
                let request: String = (0..pieces).map(digit).collect();
                let Some(path) = path(format!("GET /{request}\r\n").as_bytes()) else { continue };
                let is_name = |part| matches!(part, std::path::Component::Normal(_));
                assert!(path.components().all(is_name), "{request:?} leads to {path:?}");
                assert!(!path.as_os_str().is_empty() && !path.to_string_lossy().contains('\0'));
                led += 1;
            }
        }
        assert!(led > 1_000, "{led}");
    }
}
