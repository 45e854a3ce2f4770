//! The states that a disk may have after a cut, by what POSIX promises and no more: the bytes of a
//! file are there after the file was synced, and a name is there after its folder was.

use crate::record::Change;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

const BLOCK_BYTES: usize = 4096;

/// How unlucky a cut is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The system had written all of it.
    Nothing,
    /// Every second block of what was not synced is lost; there are zeros, or what was there
    /// before.
    HalfOfTheData,
    /// Names are there, and nothing of what was not synced.
    Data,
    /// Only what was synced is there.
    NamesAndData,
}

impl Loss {
    pub const ALL: [Loss; 4] = [Loss::Nothing, Loss::HalfOfTheData, Loss::Data, Loss::NamesAndData];
}

/// The state that is seen now, and the one that is on the disk for certain.
#[derive(Clone, Default)]
struct Both<T> {
    now: T,
    kept: T,
    /// What it was when a thread began to bring it to the disk.
    begun: BTreeMap<u32, T>,
}

impl<T: Clone> Both<T> {
    fn begin(&mut self, thread: u32) {
        self.begun.insert(thread, self.now.clone());
    }

    fn end(&mut self, thread: u32) {
        self.kept = self.begun.remove(&thread).expect("a beginning");
    }
}

#[derive(Clone)]
enum Node {
    File(Both<Vec<u8>>),
    Folder(Both<BTreeMap<String, usize>>),
}

/// A file system.
#[derive(Clone)]
pub struct Disk {
    /// The first is the root.
    nodes: Vec<Node>,
}

impl Disk {
    /// All that is below a folder, taken as on the disk.
    pub fn of(folder: &Path) -> Disk {
        let mut disk = Disk { nodes: vec![Node::Folder(Both::default())] };
        disk.load(0, folder);
        disk
    }

    fn load(&mut self, into: usize, folder: &Path) {
        for found in fs::read_dir(folder).unwrap() {
            let path = found.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let number = self.nodes.len();
            if path.is_dir() {
                self.nodes.push(Node::Folder(Both::default()));
                self.load(number, &path);
            } else {
                let bytes = fs::read(&path).unwrap();
                let (now, begun) = (bytes.clone(), BTreeMap::new());
                self.nodes.push(Node::File(Both { now, kept: bytes, begun }));
            }
            let Node::Folder(names) = &mut self.nodes[into] else { unreachable!() };
            names.now.insert(name.clone(), number);
            names.kept.insert(name, number);
        }
    }

    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Create(path) => {
                if self.find(path).is_none() {
                    self.add(path, Node::File(Both::default()));
                }
            }
            Change::Folder(path) => self.add(path, Node::Folder(Both::default())),
            Change::Write { path, at, bytes, synced } => {
                let file = self.file(path);
                let at = at.unwrap_or(file.now.len());
                put(&mut file.now, at, bytes);
                if *synced {
                    put(&mut file.kept, at, bytes);
                }
            }
            Change::Length { path, bytes, grow_only } => {
                let file = self.file(path);
                if !grow_only || *bytes > file.now.len() {
                    file.now.resize(*bytes, 0);
                }
            }
            Change::SyncBegins(path, thread) => {
                match self.find(path).map(|number| &mut self.nodes[number]) {
                    Some(Node::File(bytes)) => bytes.begin(*thread),
                    Some(Node::Folder(names)) => names.begin(*thread),
                    None => panic!("{path} is synced and was never seen"),
                }
            }
            Change::Sync(path, thread) => {
                match self.find(path).map(|number| &mut self.nodes[number]) {
                    Some(Node::File(bytes)) => bytes.end(*thread),
                    Some(Node::Folder(names)) => names.end(*thread),
                    None => panic!("{path} is synced and was never seen"),
                }
            }
            Change::Rename(from, to) => {
                let number = self.take(from);
                let (folder, name) = self.place(to);
                folder.now.insert(name, number);
            }
            Change::Copy { from, to, at, bytes } => {
                let bytes = self.file(from).now[*at..at + bytes].to_vec();
                put(&mut self.file(to).now, *at, &bytes);
            }
            Change::Exchange(one, other) => {
                let (first, second) = (self.take(one), self.take(other));
                for (path, number) in [(one, second), (other, first)] {
                    let (folder, name) = self.place(path);
                    folder.now.insert(name, number);
                }
            }
            Change::Link(from, to) => {
                let number = self.find(from).unwrap_or_else(|| panic!("{from} is not there"));
                let (folder, name) = self.place(to);
                folder.now.insert(name, number);
            }
            // A path that it never saw is a socket: how one is made is not recorded.
            Change::Remove(path) if self.find(path).is_none() => {}
            Change::Remove(path) => drop(self.take(path)),
        }
    }

    /// The node at a path; the root's is empty.
    fn find(&self, path: &str) -> Option<usize> {
        path.split('/').filter(|name| !name.is_empty()).try_fold(0, |number, name| {
            match &self.nodes[number] {
                Node::Folder(names) => names.now.get(name).copied(),
                Node::File(_) => None,
            }
        })
    }

    fn file(&mut self, path: &str) -> &mut Both<Vec<u8>> {
        match self.find(path).map(|number| &mut self.nodes[number]) {
            Some(Node::File(bytes)) => bytes,
            _ => panic!("{path} is no file"),
        }
    }

    /// The folder that a path is in, and its name there.
    fn place(&mut self, path: &str) -> (&mut Both<BTreeMap<String, usize>>, String) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.find(folder).map(|number| &mut self.nodes[number]) {
            Some(Node::Folder(names)) => (names, name.to_owned()),
            _ => panic!("{folder} is no folder"),
        }
    }

    fn add(&mut self, path: &str, node: Node) {
        let number = self.nodes.len();
        self.nodes.push(node);
        let (folder, name) = self.place(path);
        folder.now.insert(name, number);
    }

    fn take(&mut self, path: &str) -> usize {
        let (folder, name) = self.place(path);
        folder.now.remove(&name).unwrap_or_else(|| panic!("{path} is not there"))
    }

    /// The paths that are left, with their bytes; a folder has none.
    pub fn after(&self, loss: Loss) -> Left {
        let mut left = Left(BTreeMap::new());
        self.collect(0, "", loss, &mut left);
        left
    }

    fn collect(&self, number: usize, path: &str, loss: Loss, left: &mut Left) {
        match &self.nodes[number] {
            Node::File(bytes) => {
                left.0.insert(path.to_owned(), Some(after(bytes, loss)));
            }
            Node::Folder(names) => {
                if !path.is_empty() {
                    left.0.insert(path.to_owned(), None);
                }
                let names = if loss == Loss::NamesAndData { &names.kept } else { &names.now };
                for (name, number) in names {
                    self.collect(*number, &format!("{path}/{name}"), loss, left);
                }
            }
        }
    }
}

fn put(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if file.len() < at + bytes.len() {
        file.resize(at + bytes.len(), 0);
    }
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

fn after(file: &Both<Vec<u8>>, loss: Loss) -> Vec<u8> {
    match loss {
        Loss::Nothing => file.now.clone(),
        Loss::Data | Loss::NamesAndData => file.kept.clone(),
        Loss::HalfOfTheData => {
            let mut mixed = file.now.clone();
            for (number, block) in mixed.chunks_mut(BLOCK_BYTES).enumerate().step_by(2) {
                for (byte, at) in block.iter_mut().zip(number * BLOCK_BYTES..) {
                    *byte = file.kept.get(at).copied().unwrap_or(0);
                }
            }
            mixed
        }
    }
}

/// Paths, and what is in them if they are files.
pub struct Left(BTreeMap<String, Option<Vec<u8>>>);

impl Left {
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    /// Makes it, for its owner alone.
    pub fn make(&self, folder: &Path) {
        for (path, bytes) in &self.0 {
            let path = folder.join(path.trim_start_matches('/'));
            let Some(bytes) = bytes else {
                DirBuilder::new().mode(0o700).create(path).unwrap();
                continue;
            };
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(path).unwrap();
            // A block of nothing but zeros takes no room.
            match bytes.iter().all(|byte| *byte == 0) {
                true => file.set_len(bytes.len() as u64).unwrap(),
                false => file.write_all(bytes).unwrap(),
            }
        }
    }
}
