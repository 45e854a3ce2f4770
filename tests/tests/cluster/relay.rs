//! What lies between servers, and between these and their clients: links that can be cut, delayed, or made a hole.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// One end of a link: a server by its number, or all clients.
pub const CLIENTS: usize = usize::MAX;

/// What becomes of what is sent over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Open,
    /// It comes so much later.
    Slow(Duration),
    /// It does not come as long as this lasts, and no end is told so.
    Hole,
    /// Connections end, and new ones too.
    Cut,
}

/// All links.
#[derive(Clone, Default)]
pub struct Network(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    ways: HashMap<(usize, usize), Way>,
    open: Vec<((usize, usize), TcpStream)>,
    hidden: HashSet<usize>,
    /// The folder of each server, which its command line names.
    folders: HashMap<usize, PathBuf>,
}

fn pair(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

impl Network {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a link this from now on.
    pub fn set(&self, one: usize, other: usize, way: Way) {
        let link = pair(one, other);
        let mut state = self.state();
        state.ways.insert(link, way);
        if way == Way::Cut {
            state.open.retain(|(of, stream)| {
                if *of == link {
                    let _ = stream.shutdown(Shutdown::Both);
                }
                *of != link
            });
        }
        self.0.1.notify_all();
    }

    /// From now on nothing connects to a server, as where its URL is wrong; it connects to others.
    pub fn hide(&self, server: usize) {
        self.state().hidden.insert(server);
    }

    /// Opens all links.
    pub fn heal(&self) {
        self.state().ways.clear();
        self.0.1.notify_all();
    }

    /// A server's folder. It is told before the server starts, since a server connects before it is ready.
    pub fn runs(&self, server: usize, folder: PathBuf) {
        self.state().folders.insert(server, folder);
    }

    /// Waits until something passes; whether it may.
    fn passes(&self, link: (usize, usize)) -> bool {
        let mut state = self.state();
        loop {
            match state.ways.get(&link).copied().unwrap_or(Way::Open) {
                Way::Open => return true,
                Way::Cut => return false,
                Way::Slow(time) => {
                    drop(state);
                    thread::sleep(time);
                    return true;
                }
                Way::Hole => state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Takes connections for servers: `pick` says for which one, and where it listens. Of `from`, or, if that is not known,
    /// of the server whose process has the other end.
    pub fn listen(
        &self,
        from: Option<usize>,
        mut pick: impl FnMut() -> (usize, String) + Send + 'static,
    ) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let network = self.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (to, address) = pick();
                if network.state().hidden.contains(&to) {
                    continue;
                }
                let from = from.or_else(|| network.owner(&stream));
                // A command's own connections are on no link.
                let link = pair(from.unwrap_or(to), to);
                let network = network.clone();
                thread::spawn(move || network.carry(link, stream, &address));
            }
        });
        address
    }

    /// The server that has the other end.
    fn owner(&self, stream: &TcpStream) -> Option<usize> {
        let inode = inode(stream.peer_addr().ok()?.port(), stream.local_addr().ok()?.port())?;
        let folders = self.state().folders.clone();
        holders(&inode).into_iter().find_map(|mut process| {
            // It is the server's, or that of a process which the server has started.
            loop {
                let words = command_line(process);
                let names = |folder: &Path| words.iter().any(|word| Path::new(word) == folder);
                let is_up = words.iter().any(|word| word == "up");
                if let Some((server, _)) = folders.iter().find(|(_, it)| is_up && names(it)) {
                    return Some(*server);
                }
                process = parent(process).filter(|it| *it > 1)?;
            }
        })
    }

    fn carry(&self, link: (usize, usize), one: TcpStream, address: &str) {
        if !self.passes(link) {
            return;
        }
        let Ok(other) = TcpStream::connect(address) else { return };
        let ends = [(&one, &other), (&other, &one)];
        for (from, to) in ends {
            let _ = from.set_nodelay(true);
            let (Ok(kept), Ok(from), Ok(to)) = (from.try_clone(), from.try_clone(), to.try_clone())
            else {
                return;
            };
            let mut state = self.state();
            if state.ways.get(&link) == Some(&Way::Cut) {
                let _ = kept.shutdown(Shutdown::Both);
            }
            state.open.push((link, kept));
            drop(state);
            let network = self.clone();
            thread::spawn(move || network.pump(link, from, to));
        }
    }

    fn pump(&self, link: (usize, usize), mut from: TcpStream, mut to: TcpStream) {
        let mut piece = [0; 1 << 14];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            if !self.passes(link) || to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        // An end that has gone is in a hole as well.
        self.passes(link);
        for stream in [&from, &to] {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let gone = [from.peer_addr(), to.peer_addr()].map(Result::ok);
        self.state().open.retain(|(_, stream)| match stream.peer_addr() {
            Ok(address) => !gone.contains(&Some(address)),
            Err(_) => false,
        });
    }
}

/// The number of a socket of this machine, by its port and the other's.
fn inode(port: u16, other: u16) -> Option<String> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let (port, other) = (format!(":{port:04X}"), format!(":{other:04X}"));
    let line = table.lines().find(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|it| it.ends_with(&port))
            && words.next().is_some_and(|it| it.ends_with(&other))
    })?;
    line.split_whitespace().nth(9).map(str::to_owned)
}

/// The processes that have this socket open.
fn holders(inode: &str) -> Vec<u32> {
    let socket = format!("socket:[{inode}]");
    let has = |process: &u32| {
        let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        files
            .filter_map(|file| fs::read_link(file.path()).ok())
            .any(|it| it.as_os_str() == &*socket)
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|it| it.file_name().to_str()?.parse().ok());
    all.filter(has).collect()
}

fn command_line(process: u32) -> Vec<String> {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    words.split(|it| *it == 0).map(|it| String::from_utf8_lossy(it).into_owned()).collect()
}

fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}
