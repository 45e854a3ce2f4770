//! A client: files, each whole or not at all.

use crate::endpoint::{self, NO_ERROR};
use crate::error::Error;
use crate::target::Target;
use quinn::Connection;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Files at the same time.
const FILES_AT_ONCE: usize = 16;

/// A file that is wanted, and its place.
pub struct Wanted {
    from: Target,
    place: Place,
}

enum Place {
    Stream(Box<dyn Write + Send>),
    File(Part),
}

impl Wanted {
    /// Into a file: written beside its place under a name that ends in `.part`, and moved there
    /// when it is whole. Into something else than a file (a device, a pipe) it is written at once.
    ///
    /// # Errors
    /// [`Error::File`], if it cannot be made.
    pub fn file(from: Target, place: PathBuf) -> Result<Wanted, Error> {
        Ok(Wanted { from, place: Place::File(Part::create(place)?) })
    }

    /// Into a stream, as it comes.
    pub fn stream(from: Target, stream: impl Write + Send + 'static) -> Wanted {
        Wanted { from, place: Place::Stream(Box::new(stream)) }
    }
}

/// The file that is written until the one at this place is whole.
pub fn part_of(place: &Path) -> PathBuf {
    let mut name = place.file_name().map(OsString::from).unwrap_or_default();
    name.push(".part");
    place.with_file_name(name)
}

/// A file that is being written: beside its place, and gone unless it becomes whole. Where there is
/// something else than a file (a device, a pipe), right into that.
struct Part {
    file: File,
    path: PathBuf,
    place: PathBuf,
}

impl Part {
    fn create(place: PathBuf) -> Result<Part, Error> {
        let mut path = place.clone();
        if place.metadata().map_or(true, |place| place.is_file()) {
            path = part_of(&place);
        }
        let file = File::create(&path).map_err(|why| unwritable_file(&path, why))?;
        Ok(Part { file, path, place })
    }

    fn finish(self) -> io::Result<()> {
        if self.path == self.place { Ok(()) } else { fs::rename(&self.path, &self.place) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After it was finished there is none.
        if self.path != self.place {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file that was asked for.
#[derive(Debug)]
pub struct Fetched {
    /// The target that the file is of.
    pub from: Target,
    /// The file it went to; `None` for a stream, and where its server could not be reached.
    pub place: Option<PathBuf>,
    /// Its length in bytes and how many seconds it took.
    pub result: Result<(u64, f64), Error>,
}

/// Fetches files, those of one server over one connection and at the same time. `progress` hears
/// how many bytes have come so far, and which file the last of them belong to.
///
/// A file that could not be had says so in its [`Fetched::result`]. If the future is dropped, what
/// is not whole is removed.
pub async fn fetch(
    endpoint: &quinn::Endpoint,
    config: &quinn::ClientConfig,
    mut wanted: Vec<Wanted>,
    progress: impl Fn(u64, &Target) + Send + Sync + 'static,
) -> Vec<Fetched> {
    let fetching = Arc::new(Fetching {
        progress,
        bytes: AtomicU64::new(0),
        at_once: Semaphore::new(FILES_AT_ONCE),
    });
    let (mut tasks, mut done) = (JoinSet::new(), Vec::new());
    while let Some(first) = wanted.first() {
        let server = first.from.clone();
        let is_there = |one: &Target| one.host == server.host && one.port == server.port;
        let (these, others): (Vec<_>, _) = wanted.into_iter().partition(|one| is_there(&one.from));
        wanted = others;
        match endpoint::connect(endpoint, config, &server).await {
            Ok(connection) => {
                for one in these {
                    let (fetching, connection) = (fetching.clone(), connection.clone());
                    tasks.spawn(async move { fetching.one(&connection, one).await });
                }
            }
            Err(why) => done.extend(these.into_iter().map(|one| Fetched {
                from: one.from,
                place: None,
                result: Err(why.clone()),
            })),
        }
    }
    done.extend(tasks.join_all().await);
    done
}

struct Fetching<P> {
    progress: P,
    bytes: AtomicU64,
    at_once: Semaphore,
}

impl<P: Fn(u64, &Target)> Fetching<P> {
    async fn one(&self, connection: &Connection, wanted: Wanted) -> Fetched {
        let begun = Instant::now();
        // The semaphore is never closed.
        let _turn = self.at_once.acquire().await;
        let place = match &wanted.place {
            Place::Stream(_) => None,
            Place::File(part) => Some(part.place.clone()),
        };
        let result = self.body(connection, &wanted.from, wanted.place).await;
        let result = result.map(|bytes| (bytes, begun.elapsed().as_secs_f64()));
        Fetched { from: wanted.from, place, result }
    }

    async fn body(
        &self,
        connection: &Connection,
        from: &Target,
        mut place: Place,
    ) -> Result<u64, Error> {
        let lost = |why| Error::Connection { peer: from.authority(), why };
        let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
        let request = format!("GET {}\r\n", from.path);
        // A server that refuses may stop reading; its answer says why.
        let _ = send.write_all(request.as_bytes()).await;
        let _ = send.finish();
        let mut bytes = 0;
        loop {
            let chunk = receive.read_chunk(usize::MAX, true).await;
            let refused = |why| Error::Refused { from: from.clone(), why };
            let Some(chunk) = chunk.map_err(refused)? else { break };
            let written = match &mut place {
                Place::Stream(stream) => stream.write_all(&chunk.bytes),
                Place::File(part) => part.file.write_all(&chunk.bytes),
            };
            if let Err(why) = written {
                let _ = receive.stop(NO_ERROR);
                return Err(unwritable(&place, why));
            }
            bytes += chunk.bytes.len() as u64;
            let all = self.bytes.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
            (self.progress)(all, from);
        }
        match place {
            Place::Stream(mut stream) => {
                stream.flush().map_err(|why| Error::Output(Arc::new(why)))?;
            }
            Place::File(part) => {
                let path = part.place.clone();
                part.finish().map_err(|why| unwritable_file(&path, why))?;
            }
        }
        Ok(bytes)
    }
}

fn unwritable(place: &Place, why: io::Error) -> Error {
    match place {
        Place::Stream(_) => Error::Output(Arc::new(why)),
        Place::File(part) => unwritable_file(&part.path, why),
    }
}

fn unwritable_file(path: &Path, why: io::Error) -> Error {
    Error::File { path: path.to_owned(), why: Arc::new(why) }
}
