//! `keyway quic get`: files, each whole or not at all.

use super::arguments::Get;
use super::endpoint::{self, HQ, Host, NO_ERROR};
use super::runtime;
use super::serve::{BAD_REQUEST, NO_SUCH_FILE, UNREADABLE};
use super::target::Target;
use crate::failure::Failure;
use crate::output::{self, grouped};
use crate::progress::Progress;
use crate::signals::Signals;
use quinn::{Connection, ReadError};
use serde_json::{Value, json};
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

/// Fetches them all. Says whether all could be had.
///
/// # Errors
/// If it could not be begun.
pub fn run(arguments: &Get) -> Result<bool, Failure> {
    let wanted = wanted(arguments)?;
    let authorities = endpoint::authorities(&arguments.trust)?;
    runtime(&arguments.transport)?.block_on(async {
        let mut signals = Signals::catch()?;
        let host = Host::new(&arguments.transport, None, None)?;
        let endpoint = host.client()?;
        let config = host.client_config(authorities, HQ)?;
        let fetching = Fetching {
            progress: Progress::bytes("fetching", None),
            bytes: AtomicU64::new(0),
            at_once: Semaphore::new(FILES_AT_ONCE),
        };
        let begun = Instant::now();
        let results = tokio::select! {
            results = Arc::new(fetching).all(&endpoint, &config, wanted) => results,
            _ = signals.next() => {
                endpoint::close(&endpoint).await;
                return Err(Failure::new("interrupted; what was not whole is removed"));
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        endpoint::close(&endpoint).await;
        report(arguments, &results, seconds)?;
        Ok(results.iter().all(|file| file.result.is_ok()))
    })
}

/// A file that is wanted, and its place.
struct Wanted {
    from: Target,
    place: Place,
}

enum Place {
    Output,
    File(Part),
}

/// A file that is being written: beside its place, and gone unless it becomes whole. Where there is
/// something else than a file (a device, a pipe), right into that.
struct Part {
    file: File,
    path: PathBuf,
    place: PathBuf,
}

impl Part {
    fn create(place: PathBuf) -> Result<Part, Failure> {
        let mut path = place.clone();
        if place.metadata().map_or(true, |place| place.is_file()) {
            let mut name = place.file_name().map(OsString::from).unwrap_or_default();
            name.push(".part");
            path.set_file_name(name);
        }
        let file = File::create(&path).map_err(|why| Failure::system("write", &path, &why))?;
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

/// Finds each file's place before anybody is asked for it.
fn wanted(arguments: &Get) -> Result<Vec<Wanted>, Failure> {
    let (urls, output) = (&arguments.urls, arguments.output.as_deref());
    let is_output = output == Some(Path::new("-"));
    if arguments.json && is_output {
        return Err(Failure::usage("the file and --json cannot both go to standard output"));
    }
    let into = output.filter(|path| path.is_dir());
    if urls.len() > 1 && output.is_some() && into.is_none() {
        return Err(Failure::usage(
            "several files do not go into one; make a folder, and name it with -o",
        ));
    }
    let mut places = Vec::new();
    let mut all = Vec::with_capacity(urls.len());
    for from in urls {
        let place = match output {
            Some(path) if into.is_none() => path.to_owned(),
            _ => into.unwrap_or(Path::new("")).join(from.file_name()),
        };
        if is_output {
            all.push(Wanted { from: from.clone(), place: Place::Output });
            continue;
        }
        if place.is_dir() {
            let place = place.display();
            return Err(Failure::usage(format!("{place} is a folder; name a file with -o FILE")));
        }
        if places.contains(&place) {
            return Err(Failure::usage(format!(
                "two files would both be called {}; fetch them one after the other, with -o",
                place.display()
            )));
        }
        all.push(Wanted { from: from.clone(), place: Place::File(Part::create(place.clone())?) });
        places.push(place);
    }
    Ok(all)
}

/// A file that was asked for.
struct Fetched {
    from: Target,
    place: Option<PathBuf>,
    /// Its length in bytes and how many seconds it took.
    result: Result<(u64, f64), Failure>,
}

struct Fetching {
    progress: Progress,
    bytes: AtomicU64,
    at_once: Semaphore,
}

impl Fetching {
    /// All of them, over one connection for each server.
    async fn all(
        self: Arc<Self>,
        endpoint: &quinn::Endpoint,
        config: &quinn::ClientConfig,
        mut wanted: Vec<Wanted>,
    ) -> Vec<Fetched> {
        let (mut tasks, mut done) = (JoinSet::new(), Vec::new());
        while let Some(first) = wanted.first() {
            let server = first.from.clone();
            let is_there = |one: &Target| one.host == server.host && one.port == server.port;
            let (these, others) = wanted.into_iter().partition(|one| is_there(&one.from));
            wanted = others;
            match endpoint::connect(endpoint, config, &server).await {
                Ok(connection) => {
                    for one in these {
                        let (this, connection) = (self.clone(), connection.clone());
                        tasks.spawn(async move { this.one(&connection, one).await });
                    }
                }
                Err(why) => {
                    let these: Vec<Wanted> = these;
                    done.extend(these.into_iter().map(|one| Fetched {
                        from: one.from,
                        place: None,
                        result: Err(Failure::new(&why)),
                    }));
                }
            }
        }
        done.extend(tasks.join_all().await);
        done
    }

    async fn one(&self, connection: &Connection, wanted: Wanted) -> Fetched {
        let begun = Instant::now();
        // The semaphore is never closed.
        let _turn = self.at_once.acquire().await;
        let place = match &wanted.place {
            Place::Output => None,
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
    ) -> Result<u64, Failure> {
        let lost = |why| endpoint::describe(&from.authority(), &why);
        let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
        let request = format!("GET {}\r\n", from.path);
        // A server that refuses may stop reading; its answer says why.
        let _ = send.write_all(request.as_bytes()).await;
        let _ = send.finish();
        let mut bytes = 0;
        loop {
            let chunk = receive.read_chunk(usize::MAX, true).await;
            let Some(chunk) = chunk.map_err(|why| refused(from, &why))? else { break };
            let written = match &mut place {
                Place::Output => io::stdout().lock().write_all(&chunk.bytes),
                Place::File(part) => part.file.write_all(&chunk.bytes),
            };
            if let Err(why) = written {
                let _ = receive.stop(NO_ERROR);
                return Err(unwritable(&place, &why));
            }
            bytes += chunk.bytes.len() as u64;
            let all = self.bytes.fetch_add(chunk.bytes.len() as u64, Ordering::Relaxed);
            self.progress.step(all, from);
        }
        match place {
            Place::Output => io::stdout().lock().flush().map_err(|why| Failure::output(&why))?,
            Place::File(part) => {
                let path = part.place.clone();
                part.finish().map_err(|why| Failure::system("write", &path, &why))?;
            }
        }
        Ok(bytes)
    }
}

fn unwritable(place: &Place, why: &io::Error) -> Failure {
    match place {
        Place::Output => Failure::output(why),
        Place::File(part) => Failure::system("write", &part.path, why),
    }
}

fn refused(from: &Target, why: &ReadError) -> Failure {
    let (authority, path) = (from.authority(), &from.path);
    Failure::new(match why {
        ReadError::Reset(NO_SUCH_FILE) => format!("{authority} has no file {path}"),
        ReadError::Reset(BAD_REQUEST) => format!("{authority} does not understand GET {path}"),
        ReadError::Reset(UNREADABLE) => format!("{authority} cannot read its file {path}"),
        ReadError::Reset(code) => format!("{authority} refuses {path} with its code {code}"),
        ReadError::ConnectionLost(why) => return endpoint::describe(&authority, why),
        other => format!("{from} cannot be read: {other}"),
    })
}

fn report(arguments: &Get, all: &[Fetched], seconds: f64) -> Result<(), Failure> {
    for file in all {
        if let Err(why) = &file.result {
            output::note(why);
        }
    }
    let bytes: u64 = all.iter().filter_map(|file| Some(file.result.as_ref().ok()?.0)).sum();
    let mbit_per_second = bytes as f64 * 8.0 / 1e6 / seconds.max(1e-9);
    if arguments.json {
        let files: Vec<Value> = all.iter().map(Fetched::json).collect();
        return output::json(&json!({
            "files": files,
            "bytes": bytes,
            "seconds": seconds,
            "mbit_per_second": mbit_per_second,
        }));
    }
    let whole = all.iter().filter(|file| file.result.is_ok() && file.place.is_some());
    for file in whole {
        if let (Some(place), Ok((bytes, _))) = (&file.place, &file.result) {
            let place = place.display();
            output::text(format_args!("{place}: {} bytes", grouped(*bytes)))?;
        }
    }
    if arguments.output.as_deref() != Some(Path::new("-")) && bytes > 0 {
        output::text(format_args!(
            "{} bytes in {seconds:.3} s, {mbit_per_second:.1} Mbit/s",
            grouped(bytes)
        ))?;
    }
    Ok(())
}

impl Fetched {
    fn json(&self) -> Value {
        let place = self.place.as_ref().map(|place| place.display().to_string());
        match &self.result {
            Ok((bytes, seconds)) => json!({
                "url": self.from.to_string(), "file": place, "bytes": bytes, "seconds": seconds,
            }),
            Err(why) => json!({ "url": self.from.to_string(), "error": why.to_string() }),
        }
    }
}
