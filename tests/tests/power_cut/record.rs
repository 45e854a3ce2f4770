//! The calls of a program on the files below a folder, in order: strace's account, read.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The calls that change files or their names, and those that say which file is meant.
const CALLS: &str = "trace=openat,close,lseek,write,pwrite64,writev,pwritev,pwritev2,ftruncate,\
                     fallocate,fsync,fdatasync,fcntl,dup,rename,renameat,renameat2,unlink,unlinkat,\
                     mkdir,mkdirat,link,linkat,symlink,symlinkat,truncate,sync_file_range,\
                     copy_file_range,sendfile,io_uring_setup,clone,clone3";

/// One thing done to a file. Paths are below the folder, whose own is empty.
#[derive(Debug)]
pub enum Change {
    /// A file is there from now on, if it was not.
    Create(String),
    /// A folder is made.
    Folder(String),
    /// Bytes are put at a place, or at the end of the file; at once on the disk if so.
    Write { path: String, at: Option<usize>, bytes: Vec<u8>, synced: bool },
    /// The length is changed; or only if it grows.
    Length { path: String, bytes: usize, grow_only: bool },
    /// A thread begins to bring a file or folder to the disk.
    SyncBegins(String, u32),
    /// It has: all that was in it when this thread began is on the disk.
    Sync(String, u32),
    /// Bytes of a file are put into another at the same place.
    Copy { from: String, to: String, at: usize, bytes: usize },
    /// A name is changed.
    Rename(String, String),
    /// Two names change places.
    Exchange(String, String),
    /// A file gets another name beside its own.
    Link(String, String),
    /// A name is gone.
    Remove(String),
}

/// A change, and when it was done: nanoseconds since 1970.
#[derive(Debug)]
pub struct Event {
    pub at: u128,
    pub change: Change,
}

/// strace before a program, with its account in `folder`.
pub fn recorder(folder: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-ff", "--seccomp-bpf", "-xx", "-s", "33554432", "-e", "signal=none"]);
    strace.args(["--absolute-timestamps=format:unix,precision:ns", "--syscall-times=ns"]);
    strace.args(["-e", CALLS, "-o"]);
    strace.arg(folder.join("calls"));
    strace
}

/// The changes below `root` in the account that is in `folder`.
pub fn read(folder: &Path, root: &Path) -> Vec<Event> {
    let mut calls: Vec<(u128, u32, String)> = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        // One file for each thread; a call that did not end has no effect, or none that was seen.
        let path = file.unwrap().path();
        let thread = path.extension().and_then(|id| id.to_str()?.parse().ok()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        let ours = |line: &&str| !line.contains("+++ ") && !line.ends_with("<detached ...>");
        calls.extend(text.lines().filter(ours).filter_map(|line| {
            let (begun, call) = line.split_once(' ')?;
            let begun: u128 = begun.replace('.', "").parse().ok()?;
            Some((begun + lasted(call), thread, call.to_owned()))
        }));
    }
    calls.sort();
    let makers = makers(&calls);
    let root = root.to_str().unwrap().to_owned();
    let mut reader =
        Reader { root, thread: 0, process: 0, open: HashMap::new(), events: Vec::new() };
    for (at, thread, call) in &calls {
        (reader.thread, reader.process) = (*thread, *thread);
        while let Some(maker) = makers.get(&reader.process) {
            reader.process = *maker;
        }
        reader.call(*at, call).unwrap_or_else(|| panic!("not understood: {call:.200}"));
    }
    // The beginning of a sync is found at its end.
    reader.events.sort_by_key(|event| event.at);
    reader.events
}

/// For how long a call goes on before it takes effect, in nanoseconds. A number is free for the next file as
/// soon as a call begins to close it; all else is done for certain only at the end of its call.
fn lasted(call: &str) -> u128 {
    let time = call.rsplit_once(" <").and_then(|(_, time)| time.strip_suffix('>'));
    match time {
        Some(time) if !call.starts_with("close(") => time.replace('.', "").parse().unwrap_or(0),
        _ => 0,
    }
}

/// The thread of the same process that made each one.
fn makers(calls: &[(u128, u32, String)]) -> HashMap<u32, u32> {
    let threads = calls.iter().filter(|(.., call)| call.contains("CLONE_THREAD"));
    let made = threads.filter_map(|(_, maker, call)| {
        let (_, made) = call.rsplit_once(" = ")?;
        Some((made.split_whitespace().next()?.parse().ok()?, *maker))
    });
    made.collect()
}

/// An open file.
#[derive(Clone)]
struct Open {
    path: String,
    offset: usize,
    /// Its writes go to the end of the file.
    appends: bool,
    synced: bool,
}

struct Reader {
    root: String,
    thread: u32,
    /// The process that made the call.
    process: u32,
    /// By process and number. A process does not write to files that it has from its parent.
    open: HashMap<(u32, u32), Open>,
    events: Vec<Event>,
}

impl Reader {
    /// `None` if the call has a form that is not expected here.
    fn call(&mut self, at: u128, call: &str) -> Option<()> {
        let (name, rest) = call.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(" = ")?;
        let Ok(result) = result.split_whitespace().next()?.parse::<usize>() else {
            return Some(()); // refused, or cut off by the end
        };
        let arguments = arguments.trim_end().strip_suffix(')')?;
        let number: Option<u32> = arguments.split([',', ' ']).next()?.parse().ok();
        let paths = self.paths(arguments);
        let last = || arguments.rsplit_once(", ").and_then(|(_, last)| last.parse::<usize>().ok());
        match (name, number) {
            ("openat", _) => self.opened(at, &paths, arguments, result as u32),
            ("mkdir" | "mkdirat", _) => {
                for path in paths.into_iter().flatten() {
                    self.push(at, Change::Folder(path));
                }
            }
            ("rename" | "renameat" | "renameat2", _) => match <[_; 2]>::try_from(paths).ok()? {
                [Some(from), Some(to)] if arguments.ends_with("RENAME_EXCHANGE") => {
                    self.push(at, Change::Exchange(from, to));
                }
                [Some(from), Some(to)] => {
                    for open in self.open.values_mut().filter(|open| open.path == from) {
                        open.path.clone_from(&to);
                    }
                    self.push(at, Change::Rename(from, to));
                }
                [None, None] => {}
                _ => return None,
            },
            ("copy_file_range", Some(from)) => {
                let (place, into) = copied_range(arguments)?;
                let path = |number| Some(self.open.get(&(self.process, number))?.path.clone());
                let (from, to) = (path(from)?, path(into)?);
                self.push(at, Change::Copy { from, to, at: place, bytes: result });
            }
            ("link" | "linkat", _) => match <[_; 2]>::try_from(paths).ok()? {
                [Some(from), Some(to)] => self.push(at, Change::Link(from, to)),
                [None, None] => {}
                _ => return None,
            },
            ("clone" | "clone3", _) => {}
            ("unlink" | "unlinkat", _) => {
                for path in paths.into_iter().flatten() {
                    self.push(at, Change::Remove(path));
                }
            }
            ("close", Some(number)) => drop(self.open.remove(&(self.process, number))),
            ("dup", Some(number)) => self.copied(number, result),
            ("fcntl", Some(number)) if arguments.contains("F_DUPFD") => self.copied(number, result),
            ("fcntl", _) => {}
            (_, Some(number)) => {
                let Some(open) = self.open.get_mut(&(self.process, number)) else {
                    return Some(());
                };
                let path = open.path.clone();
                let change = match name {
                    "lseek" => {
                        open.offset = result;
                        return Some(());
                    }
                    "write" | "writev" => {
                        let at = (!open.appends).then_some(open.offset);
                        let synced = open.synced;
                        open.offset += result;
                        Change::Write { path, at, bytes: bytes(arguments, result)?, synced }
                    }
                    "pwrite64" | "pwritev" => {
                        let bytes = bytes(arguments, result)?;
                        Change::Write { path, at: Some(last()?), bytes, synced: open.synced }
                    }
                    "ftruncate" => Change::Length { path, bytes: last()?, grow_only: false },
                    "fallocate" => {
                        let mut numbers = arguments.rsplitn(3, ", ");
                        let length: usize = numbers.next()?.parse().ok()?;
                        let offset: usize = numbers.next()?.parse().ok()?;
                        Change::Length { path, bytes: offset + length, grow_only: true }
                    }
                    "fsync" | "fdatasync" => {
                        let begun = at - lasted(call);
                        self.push(begun, Change::SyncBegins(path.clone(), self.thread));
                        Change::Sync(path, self.thread)
                    }
                    _ => return None,
                };
                self.push(at, change);
            }
            // Something else than what this knows, to a file of ours.
            _ if paths.iter().any(Option::is_some) => return None,
            _ => {}
        }
        Some(())
    }

    fn push(&mut self, at: u128, change: Change) {
        self.events.push(Event { at, change });
    }

    /// The paths in a call's arguments, those below the root without it.
    fn paths(&self, arguments: &str) -> Vec<Option<String>> {
        let quoted = arguments.split('"').skip(1).step_by(2);
        let own = |text: &str| {
            let path = String::from_utf8(unescaped(text)?).ok()?;
            let below = path.strip_prefix(&self.root)?;
            (below.is_empty() || below.starts_with('/'))
                .then(|| below.trim_start_matches('/').to_owned())
        };
        // Written bytes are quoted as well, and never begin with the root.
        quoted.map(own).collect()
    }

    fn opened(&mut self, at: u128, paths: &[Option<String>], arguments: &str, number: u32) {
        self.open.remove(&(self.process, number));
        let [Some(path)] = paths else { return };
        if arguments.contains("O_CREAT") {
            self.push(at, Change::Create(path.clone()));
        }
        if arguments.contains("O_TRUNC") {
            self.push(at, Change::Length { path: path.clone(), bytes: 0, grow_only: false });
        }
        let synced = arguments.contains("SYNC");
        let appends = arguments.contains("O_APPEND");
        let open = Open { path: path.clone(), offset: 0, appends, synced };
        self.open.insert((self.process, number), open);
    }

    fn copied(&mut self, number: u32, copy: usize) {
        if let Some(open) = self.open.get(&(self.process, number)).cloned() {
            self.open.insert((self.process, copy as u32), open);
        }
    }
}

/// The place that is copied, in both files, and the number of the one that is written: `3, [4096], 4, [4096], 20, 0`.
fn copied_range(arguments: &str) -> Option<(usize, u32)> {
    let parts: Vec<&str> = arguments.split(", ").collect();
    let [_, from, number, to, _, _] = parts[..] else { return None };
    let place = |text: &str| text.strip_prefix('[')?.strip_suffix(']')?.parse::<usize>().ok();
    (from == to).then_some(())?;
    Some((place(from)?, number.parse().ok()?))
}

/// The first `length` bytes of what a call writes, in one piece or in several.
fn bytes(arguments: &str, length: usize) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for text in arguments.split('"').skip(1).step_by(2) {
        all.extend(unescaped(text)?);
    }
    all.truncate(length);
    (all.len() == length).then_some(all)
}

/// `\x41\x42` as bytes.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut pairs = text.split("\\x");
    if !pairs.next()?.is_empty() {
        return None;
    }
    pairs.map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}
