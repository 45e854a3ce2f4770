//! 389 Directory Server (ns-slapd), made from the template of its own installer in a folder of ours, so
//! that nothing is left on the machine.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The suffix it serves.
const SUFFIX: &str = "dc=example,dc=com";
const PROGRAM: &str = "/usr/sbin/ns-slapd";
const SHARED: &str = "/usr/share/dirsrv";
/// It opens its database first.
const START_LIMIT: Duration = Duration::from_secs(60);
/// Version 2.3.1 has been seen to wait for itself for ever with 250,000 entries.
const LOAD_LIMIT: Duration = Duration::from_secs(240);
/// Its administrator, who has the password of all entries.
pub const ADMIN: &str = "cn=Directory Manager";
/// "secret", as it keeps it.
pub const SECRET_STORED: &str = "{SSHA512}OKrX9aR0J3KnqWmXOyIykOyB7ZeyAd+Ckn2ThaLXalAutVQo4s4\
     hdhfKwVcBGhfApSf+P1OFBGvWkjaQIB8zemVpZ2h0LWJ5";
/// The `uid` index as it is by default, and as it becomes: slapd and Keyway have the same.
const UID_INDEX: (&str, &str) =
    ("cn: uid\nnssystemindex: false\nnsindextype: eq\n", "nsindextype: pres\nnsindextype: sub\n");
/// Users read; Keyway's and slapd's settings say the same.
const ACI: &str = "aci: (targetattr!=\"userPassword\")(version 3.0; acl \"users read\"; \
                   allow (read,search,compare) userdn=\"ldap:///all\";)\n";

/// A running ns-slapd, ended when dropped.
pub struct Dirsrv {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

/// Its version; `None` if it is not here.
pub fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("-v").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("389-Directory"))?;
    Some(line.replace('/', " "))
}

impl Dirsrv {
    /// Loads the LDIF into a fresh instance below `folder` and serves it. `password` is stored for
    /// every user.
    ///
    /// # Errors
    /// A text that says which step failed.
    pub fn start(folder: &Path, ldif: &Path, password: &str) -> Result<Dirsrv, String> {
        let home = folder.join("dirsrv");
        let address = free_address()?;
        configure(&home, address, password).map_err(|why| format!("{}: {why}", home.display()))?;
        let people = with_aci(&home, ldif).map_err(|why| format!("{}: {why}", ldif.display()))?;
        let mut load = Command::new(PROGRAM);
        load.args(["ldif2db", "-n", "userRoot", "-D"]).arg(&home).arg("-i").arg(people);
        load.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut loading = load.spawn().map_err(|why| format!("{PROGRAM}: {why}"))?;
        let begun = Instant::now();
        let status = loop {
            match loading.try_wait().map_err(|why| why.to_string())? {
                Some(status) => break status,
                None if begun.elapsed() < LOAD_LIMIT => thread::sleep(Duration::from_millis(100)),
                None => {
                    let _ = loading.kill().and_then(|()| loading.wait());
                    return Err(format!("ns-slapd ldif2db had not ended after {LOAD_LIMIT:?}"));
                }
            }
        };
        if !status.success() {
            let log = fs::read_to_string(home.join("log/errors")).unwrap_or_default();
            let last = log.lines().rev().take(3).collect::<Vec<_>>().join(" / ");
            return Err(format!("ns-slapd ldif2db failed ({status}): {last}"));
        }
        let mut command = Command::new(PROGRAM);
        command.arg("-D").arg(&home).args(["-d", "0", "-i"]).arg(home.join("run/pid"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|why| format!("{PROGRAM}: {why}"))?;
        let server = Dirsrv { child, address };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > START_LIMIT {
                return Err(format!(
                    "no server answers at {address}; {}/log/errors",
                    home.display()
                ));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Dirsrv {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

/// An address that no program listens at.
fn free_address() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|why| why.to_string())?;
    listener.local_addr().map_err(|why| why.to_string())
}

/// Its folders, its schema and `dse.ldif`: what `dscreate` would make, with the access log off as
/// Keyway's and slapd's are, and without new hashes at a bind.
fn configure(home: &Path, address: SocketAddr, password: &str) -> std::io::Result<()> {
    const FOLDERS: [&str; 10] =
        ["cert", "schema", "db", "lock", "tmp", "ldif", "bak", "run", "log", "inst"];
    for folder in FOLDERS {
        fs::create_dir_all(home.join(folder))?;
    }
    for schema in ["/etc/dirsrv/schema", "/usr/share/dirsrv/schema"] {
        for file in fs::read_dir(schema).into_iter().flatten().flatten() {
            fs::copy(file.path(), home.join("schema").join(file.file_name()))?;
        }
    }
    fs::copy("/etc/dirsrv/config/slapd-collations.conf", home.join("slapd-collations.conf"))?;
    let user = Command::new("id").arg("-un").output()?;
    let user = String::from_utf8_lossy(&user.stdout).trim().to_owned();
    let template = |name: &str| fs::read_to_string(format!("{SHARED}/data/{name}"));
    let mut text = template("template-dse.ldif")?;
    text = text.trim_end().to_owned() + "\n\n" + &template("template-suffix-db.ldif")?;
    let path = |folder: &str| home.join(folder).display().to_string();
    let values = [
        ("ds_passwd", password.to_owned()),
        ("ds_port", address.port().to_string()),
        ("ds_user", user),
        ("ds_suffix", SUFFIX.to_owned()),
        ("ds_bename", "userRoot".to_owned()),
        ("rootdn", ADMIN.to_owned()),
        ("fqdn", "localhost".to_owned()),
        ("db_lib", "bdb".to_owned()),
        ("ldapi_enabled", "off".to_owned()),
        ("ldapi_autobind", "off".to_owned()),
        ("ldapi", path("run/socket")),
        ("config_dir", home.display().to_string()),
        ("db_home_dir", path("db")),
        ("bak_dir", path("bak")),
    ];
    for (name, value) in values {
        text = text.replace(&format!("%{name}%"), &value);
    }
    for folder in FOLDERS {
        text = text.replace(&format!("%{folder}_dir%"), &path(folder));
    }
    text = text.replacen(
        "nsslapd-localhost:",
        "nsslapd-listenhost: 127.0.0.1\nnsslapd-accesslog-logging-enabled: off\n\
         nsslapd-enable-upgrade-hash: off\nnsslapd-localhost:",
        1,
    );
    let (uid, more) = UID_INDEX;
    text = text.replacen(uid, &format!("{uid}{more}"), 1);
    fs::write(home.join("dse.ldif"), text)
}

/// The LDIF with who may read in its first entry.
fn with_aci(home: &Path, ldif: &Path) -> std::io::Result<PathBuf> {
    let text = fs::read_to_string(ldif)?;
    let with = home.join("ldif/people.ldif");
    fs::write(&with, text.replacen("dc: example\n", &format!("dc: example\n{ACI}"), 1))?;
    Ok(with)
}
