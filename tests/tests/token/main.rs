//! Keys that live in tokens: SoftHSM's, which a cryptod has behind it, and what becomes of them when a token fails.

mod conformance;
mod failing;
mod making;
mod pins;
mod using;

use keyway_tests::cryptod::Cryptod;
use keyway_tests::{Finished, available, finish, keyway, secret};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

const PIN: &str = "1234";

/// Tokens of SoftHSM in a folder of their own.
struct Tokens {
    folder: Folder,
    module: PathBuf,
}

/// The folder, and who removes it.
enum Folder {
    Own(TempDir),
    OfAnother(PathBuf),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Folder::Own(folder) => folder.path(),
            Folder::OfAnother(folder) => folder,
        }
    }
}

impl Tokens {
    /// With tokens of these labels. `None` if the machine lacks SoftHSM or one of these programs.
    fn new(labels: &[&str], needs: &[&str]) -> Option<Tokens> {
        if !available(&[&["softhsm2-util", "openssl"], needs].concat()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tokens")).unwrap();
        let tokens = folder.path().join("tokens").display().to_string();
        let text = format!("directories.tokendir = {tokens}\nobjectstore.backend = file\n");
        fs::write(folder.path().join("conf"), text).unwrap();
        let tokens = Tokens { folder: Folder::Own(folder), module: module() };
        secret(&tokens.pin(), &format!("{PIN}\n"));
        for label in labels {
            let pins = ["--so-pin", "12345678", "--pin", PIN];
            tokens.util(&[&["--init-token", "--free", "--label", label], &pins[..]].concat());
        }
        Some(tokens)
    }

    /// Those in the folder of another process.
    fn at(folder: PathBuf) -> Tokens {
        Tokens { folder: Folder::OfAnother(folder), module: module() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pin(&self) -> PathBuf {
        self.path("pin")
    }

    /// Runs SoftHSM's own tool.
    fn util(&self, arguments: &[&str]) {
        self.try_util(arguments).expect(0);
    }

    fn try_util(&self, arguments: &[&str]) -> Finished {
        let mut command = Command::new("softhsm2-util");
        command.arg("--module").arg(&self.module).args(arguments);
        finish(command.env("SOFTHSM2_CONF", self.path("conf")), "")
    }

    /// Puts a private key, made elsewhere, into a token.
    fn import(&self, file: &Path, token: &str, label: &str, id: &str) {
        assert!(self.try_import(file, token, label, id));
    }

    fn try_import(&self, file: &Path, token: &str, label: &str, id: &str) -> bool {
        let file = file.display().to_string();
        let where_to = ["--token", token, "--label", label, "--id", id, "--pin", PIN];
        self.try_util(&[&["--import", &file], &where_to[..]].concat()).code == 0
    }

    /// OpenSC's tool with a token's own user.
    fn tool(&self, token: &str, arguments: &[&str]) -> String {
        let mut tool = Command::new("pkcs11-tool");
        tool.arg("--module").arg(&self.module).args(["--token-label", token]);
        tool.args(["--login", "--pin", PIN]).args(arguments);
        finish(tool.env("SOFTHSM2_CONF", self.path("conf")), "").expect(0).out
    }

    /// Takes a key out of a token, both halves.
    fn delete(&self, token: &str, id: &str) {
        for half in ["privkey", "pubkey"] {
            self.tool(token, &["--delete-object", "--type", half, "--id", id]);
        }
    }

    /// A new private key in a file.
    fn private_key(&self, name: &str, options: &[&str]) -> PathBuf {
        let path = self.path(name);
        let mut make = Command::new("openssl");
        make.arg("genpkey").args(options).arg("-out").arg(&path);
        finish(&mut make, "").expect(0);
        path
    }

    /// The folder that SoftHSM has for a token.
    fn folder_of(&self, label: &str) -> PathBuf {
        let folders = fs::read_dir(self.path("tokens")).unwrap();
        let mut its = folders.map(|folder| folder.unwrap().path()).filter(|folder| {
            let token = fs::read(folder.join("token.object")).unwrap();
            let padded = format!("{label:<32}").into_bytes();
            token.windows(32).any(|window| window == padded)
        });
        its.next().expect("the token's folder")
    }

    /// The flags that a daemon needs for these tokens.
    fn flags(&self, tokens: &[(&str, &Path)]) -> Vec<String> {
        let mut flags = Vec::new();
        for (label, module) in tokens {
            flags.extend(["--token".to_owned(), format!("{label}={}", module.display())]);
            flags.extend(["--token-pin".to_owned(), format!("{label}={}", self.pin().display())]);
        }
        let files = ["conf", "tokens", "shim"].map(|name| self.path(name));
        for files in files.into_iter().filter(|path| path.exists()) {
            flags.extend(["--token-files".to_owned(), files.display().to_string()]);
        }
        flags
    }

    /// A daemon with all these tokens, on a fresh folder.
    fn site(self, labels: &[&str]) -> Site {
        let flags = self.flags(&labels.iter().map(|it| (*it, &*self.module)).collect::<Vec<_>>());
        Site::start(self, flags)
    }
}

/// SoftHSM's library: beside its tool, or where distributions have it.
fn module() -> PathBuf {
    let mut which = Command::new("sh");
    let tool = finish(which.args(["-c", "command -v softhsm2-util"]), "").expect(0).out;
    let usr = Path::new(tool.trim()).parent().and_then(Path::parent).unwrap().to_owned();
    let libraries = ["lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"];
    let places = libraries.map(|folder| usr.join(folder).join("softhsm/libsofthsm2.so"));
    places.into_iter().find(|path| path.exists()).expect("SoftHSM's library")
}

/// A cryptod with tokens behind it.
struct Site {
    tokens: Tokens,
    folder: Arc<TempDir>,
    flags: Vec<String>,
    cryptod: Cryptod,
}

impl Site {
    fn start(tokens: Tokens, flags: Vec<String>) -> Site {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let cryptod = start(&tokens, &folder, &flags);
        Site { tokens, folder, flags, cryptod }
    }

    /// Stops the daemon, and starts it again.
    fn restart(self) -> Site {
        let Site { tokens, folder, flags, cryptod } = self;
        assert!(cryptod.stop().success());
        let cryptod = start(&tokens, &folder, &flags);
        Site { tokens, folder, flags, cryptod }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `keyway key`.
    fn try_key(&self, arguments: &[&str]) -> Finished {
        let mut command = Command::new(keyway());
        command.arg("key").args(arguments).arg("--data").arg(self.cryptod.data());
        finish(command.current_dir(self.folder.path()), "")
    }

    #[track_caller]
    fn key(&self, arguments: &[&str]) -> String {
        self.try_key(arguments).expect(0).out
    }

    /// That it is refused, and what is said of it.
    #[track_caller]
    fn refused(&self, arguments: &[&str], why: &str) {
        let refused = self.try_key(arguments);
        assert!(refused.code != 0 && refused.err.contains(why), "{why:?} in {}", refused.err);
    }

    /// OpenSSL's tool, in the folder.
    #[track_caller]
    fn openssl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("openssl");
        finish(command.args(arguments).current_dir(self.folder.path()), "").expect(0).out
    }

    /// The labels of a token's private keys.
    fn keys_of(&self, token: &str) -> Vec<String> {
        let listed = self.tokens.tool(token, &["--list-objects", "--type", "privkey"]);
        let labels = listed.lines().filter_map(|line| line.trim().strip_prefix("label:"));
        labels.map(|label| label.trim().to_owned()).collect()
    }

    /// The `CKA_ID` of a token's private key.
    fn id_of(&self, token: &str, label: &str) -> String {
        let listed = self.tokens.tool(token, &["--list-objects", "--type", "privkey"]);
        let mut lines = listed.lines().map(str::trim);
        let its = format!("label:      {label}");
        lines.find(|line| *line == its).unwrap_or_else(|| panic!("{listed}"));
        lines.find_map(|line| line.strip_prefix("ID:")).unwrap().trim().to_owned()
    }

    /// The daemon's standard error until now.
    fn said(&self) -> String {
        said(&self.folder)
    }
}

fn said(folder: &TempDir) -> String {
    fs::read_to_string(folder.path().join("said")).unwrap_or_default()
}

fn start(tokens: &Tokens, folder: &Arc<TempDir>, flags: &[String]) -> Cryptod {
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let conf = tokens.path("conf").into_os_string();
    let log = File::options().append(true).create(true).open(folder.path().join("said")).unwrap();
    Cryptod::start_in(folder, &flags, &[("SOFTHSM2_CONF", &conf)], Some(log))
}
