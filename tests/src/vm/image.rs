//! The file system that a guest has in its memory: busybox, modules of its kernel, and what a test puts there.

use crate::{available, is_root};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

/// Where `cargo xtask test` unpacks Debian's kernel.
const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/packages/linux");
/// Debian's kernel that is a program, and its modules.
const USER_MODE_KERNEL: &str = "/usr/bin/linux.uml";
const USER_MODE_MODULES: &str = "/usr/lib/uml/modules";
const INIT: &[u8] = include_bytes!("init.sh");
/// The guest's folders that are links, as on every Debian.
const LINKS: [(&str, &str); 4] =
    [("bin", "usr/bin"), ("sbin", "usr/sbin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];
const FOLDERS: [&str; 10] =
    ["dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/lib64", "usr/sbin", "var/lib"];

/// Types of files, and their rights.
const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const FILE: u32 = 0o100_000;

/// A kernel and a file system to boot. Cheap to clone; its files go with the last one.
#[derive(Clone)]
pub struct Image {
    folder: Arc<TempDir>,
    kernel: PathBuf,
}

/// A file system that is being put together.
pub struct Builder {
    /// By their paths from the root, without the slash: type and rights, and the content.
    files: BTreeMap<String, (u32, Vec<u8>)>,
    kernel: PathBuf,
    /// `lib/modules/VERSION`
    modules: PathBuf,
}

impl Image {
    /// Begins one with busybox, the modules that a console needs, and users `root` and `nobody`; `None`, which is
    /// said, where virtual machines cannot be tested.
    ///
    /// # Panics
    /// In CI, if something is missing, where nothing may be skipped.
    #[must_use]
    pub fn build() -> Option<Builder> {
        let kernel = format!("{KERNEL}/vmlinux");
        if !available(&["qemu-system-x86_64", "busybox", &kernel]) {
            return None;
        }
        let modules = Path::new(KERNEL).join("lib/modules");
        let builder = Builder::new(kernel.into(), &modules);
        Some(builder.module("virtio_pci").module("virtio_console"))
    }

    /// Like it for a [`UserModeLinux`](super::UserModeLinux).
    ///
    /// # Panics
    /// In CI, if something is missing, where nothing may be skipped.
    #[must_use]
    pub fn build_for_user_mode() -> Option<Builder> {
        (available(&["busybox", "unshare", USER_MODE_KERNEL]) && is_root())
            .then(|| Builder::new(USER_MODE_KERNEL.into(), Path::new(USER_MODE_MODULES)))
    }

    /// The kernel: one that QEMU boots (PVH), or one that is a program.
    #[must_use]
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// The file system, as a kernel takes it.
    #[must_use]
    pub fn initramfs(&self) -> PathBuf {
        self.folder.path().join("initramfs")
    }
}

impl Builder {
    fn new(kernel: PathBuf, modules: &Path) -> Builder {
        let versions = fs::read_dir(modules).expect("the kernel's modules");
        let version = versions.flatten().next().expect("a version of the kernel");
        let mut builder = Builder { files: BTreeMap::new(), kernel, modules: version.path() };
        for (link, target) in LINKS {
            builder.files.insert(link.to_owned(), (LINK, target.into()));
        }
        for folder in FOLDERS {
            builder.put(folder, FOLDER, Vec::new());
        }
        let root = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n";
        let builder = builder
            .file("/init", INIT, 0o755)
            .file("/etc/passwd", root.as_bytes(), 0o644)
            .file("/etc/group", b"root:x:0:\nnogroup:x:65534:\n", 0o644);
        let busybox = Command::new("sh").args(["-c", "command -v busybox"]).output();
        let busybox = String::from_utf8(busybox.expect("a shell").stdout).expect("a path");
        let mut builder = builder.program_at(Path::new(busybox.trim()), "/usr/bin/busybox");
        for list in ["modules.dep", "modules.alias", "modules.softdep", "modules.builtin"] {
            builder.put_module_file(list);
        }
        builder
    }

    /// Puts a module and those that it needs where `modprobe` and the kernel find them. Nothing loads it. That it is
    /// built into the kernel is fine.
    ///
    /// # Panics
    /// If Debian's package has no such module, or `cargo xtask test` does not unpack it.
    #[must_use]
    pub fn module(mut self, name: &str) -> Builder {
        let stem = |path: &str| {
            let file = path.rsplit('/').next().unwrap_or(path);
            file.split('.').next().unwrap_or(file).replace('-', "_")
        };
        let dependencies = self.list("modules.dep");
        let found = dependencies.lines().find_map(|line| {
            let (path, needs) = line.split_once(':')?;
            (stem(path) == name).then(|| format!("{path} {needs}"))
        });
        if let Some(found) = found {
            for path in found.split_whitespace() {
                self.put_module_file(path);
            }
        } else {
            let builtin = self.list("modules.builtin");
            assert!(builtin.lines().any(|path| stem(path) == name), "the kernel has no {name}");
        }
        self
    }

    /// Puts a program or a library of this machine where it is here, and the libraries that it is linked with.
    ///
    /// # Panics
    /// If one of these files cannot be read.
    #[must_use]
    pub fn program(self, path: &Path) -> Builder {
        let guest = path.to_str().expect("a plain path").to_owned();
        self.program_at(path, &guest)
    }

    /// Like it, at another path.
    ///
    /// # Panics
    /// If one of these files cannot be read.
    #[must_use]
    pub fn program_at(mut self, path: &Path, guest: &str) -> Builder {
        // It fails for programs without libraries.
        let libraries = Command::new("ldd").arg(path).output().expect("ldd runs").stdout;
        let libraries = String::from_utf8_lossy(&libraries).into_owned();
        assert!(!libraries.contains("not found"), "{}: {libraries}", path.display());
        for library in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
            self.copy(Path::new(library), library);
        }
        self.copy(path, guest);
        self
    }

    /// Puts a file there, root's, with rights such as `0o644`.
    #[must_use]
    pub fn file(mut self, guest: &str, content: &[u8], rights: u32) -> Builder {
        self.put(guest, FILE | rights, content.to_vec());
        self
    }

    /// The image.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn image(mut self) -> Image {
        let mut archive = Vec::new();
        // The end of every archive.
        let trailer = ("TRAILER!!!".to_owned(), (0, Vec::new()));
        let mut inode = 0;
        for (name, (mode, content)) in std::mem::take(&mut self.files).into_iter().chain([trailer])
        {
            inode += 1;
            member(&mut archive, inode, &name, mode, &content);
        }
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        let image = Image { folder, kernel: self.kernel };
        fs::write(image.initramfs(), archive).expect("written");
        image
    }

    fn list(&self, name: &str) -> String {
        let path = self.modules.join(name);
        fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    fn put_module_file(&mut self, path: &str) {
        let version = self.modules.file_name().and_then(OsStr::to_str).expect("a version");
        let guest = format!("lib/modules/{version}/{path}");
        self.copy(&self.modules.join(path), &guest);
    }

    fn copy(&mut self, path: &Path, guest: &str) {
        let content = fs::metadata(path).and_then(|it| Ok((it, fs::read(path)?)));
        let (metadata, content) = content.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        self.put(guest, FILE | (metadata.permissions().mode() & 0o7777), content);
    }

    /// Puts something there, and the folders above it.
    fn put(&mut self, guest: &str, mode: u32, content: Vec<u8>) {
        let guest = guest.trim_start_matches('/');
        let first = guest.split('/').next().unwrap_or_default();
        let link = LINKS.iter().find(|(link, _)| *link == first);
        let guest = match link {
            Some((link, target)) => format!("{target}{}", &guest[link.len()..]),
            None => guest.to_owned(),
        };
        for (at, _) in guest.match_indices('/') {
            self.files.entry(guest[..at].to_owned()).or_insert((FOLDER, Vec::new()));
        }
        self.files.insert(guest, (mode, content));
    }
}

/// Appends a member of a cpio archive in the "new ASCII" format (Linux, `buffer-format.rst`).
fn member(archive: &mut Vec<u8>, inode: usize, name: &str, mode: u32, content: &[u8]) {
    let pad = |archive: &mut Vec<u8>| archive.resize(archive.len().next_multiple_of(4), 0);
    let (bytes, name_bytes) = (content.len(), name.len() + 1);
    // Inode, mode, user, group, links, time, length, four numbers of devices, the name's length, no checksum.
    let fields = [inode, mode as usize, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0];
    archive.extend(b"070701");
    for field in fields {
        archive.extend(format!("{field:08x}").bytes());
    }
    archive.extend(name.bytes().chain([0]));
    pad(archive);
    archive.extend(content);
    pad(archive);
}
