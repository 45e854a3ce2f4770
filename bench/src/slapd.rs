//! OpenLDAP's slapd with back-mdb, configured to do what Keyway does: every write synced.

use crate::ldap::{PASSWORD, SLAPD_ADMIN, free_address, wait_for};
use crate::process::Process;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = "/usr/sbin/slapd";
const START_LIMIT: Duration = Duration::from_secs(20);

/// A running slapd.
pub struct Slapd {
    /// The process.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it does so with TLS, if it has a certificate.
    pub tls_address: Option<SocketAddr>,
}

/// Its version; installed first if it is not here and can be.
pub fn version() -> Result<String, String> {
    installed_version().or_else(|_| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // It says itself what went wrong; what counts is whether slapd is here now.
        let _ = Command::new(cargo).args(["xtask", "peers"]).status();
        installed_version()
    })
}

fn installed_version() -> Result<String, String> {
    let output = Command::new(PROGRAM).arg("-VV").output().map_err(|_| {
        format!("{PROGRAM} is not here; install the Debian package slapd and run this again")
    })?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "slapd").unwrap_or(0);
    Ok(format!("OpenLDAP slapd {}", words.get(at + 1).unwrap_or(&"of unknown version")))
}

impl Slapd {
    /// Loads the LDIF into a fresh database below `folder` and serves it. The administrator is
    /// `admin` with `password`; `identity` are the files of a certificate and its key.
    pub fn start(
        folder: &Path,
        ldif: &Path,
        admin: &str,
        password: &str,
        identity: Option<(&Path, &Path)>,
    ) -> Result<Slapd, String> {
        let data = folder.join("slapd");
        let configuration = folder.join("slapd.conf");
        let text = text(&data, admin, password, identity);
        load(&data, &configuration, &text, ldif)?;
        let address = free_address()?;
        let tls_address = identity.map(|_| free_address()).transpose()?;
        let mut urls = format!("ldap://{address}");
        if let Some(address) = tls_address {
            urls += &format!(" ldaps://{address}");
        }
        let mut command = Command::new(PROGRAM);
        command.args(["-d", "0", "-h", &urls, "-f"]).arg(&configuration);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process::start(&mut command)?;
        wait_for(address, START_LIMIT)?;
        Ok(Slapd { process, address, tls_address })
    }

    /// Loads the LDIF into a fresh database below `folder`, and says where that is.
    pub fn load(folder: &Path, ldif: &Path) -> Result<PathBuf, String> {
        let data = folder.join("slapd");
        let text = text(&data, SLAPD_ADMIN, PASSWORD, None);
        load(&data, &folder.join("slapd.conf"), &text, ldif)?;
        Ok(data)
    }
}

/// The indexes are those that Keyway keeps by default for the same attributes.
fn text(data: &Path, admin: &str, password: &str, identity: Option<(&Path, &Path)>) -> String {
    let tls = identity.map(|(certificate, key)| {
        let (certificate, key) = (certificate.display(), key.display());
        format!("TLSCertificateFile {certificate}\nTLSCertificateKeyFile {key}\n")
    });
    let tls = tls.unwrap_or_default();
    let data = data.display();
    format!(
        "modulepath /usr/lib/ldap\n\
         moduleload back_mdb\nmoduleload pw-sha2\nmoduleload argon2\n\
         include /etc/ldap/schema/core.schema\n\
         include /etc/ldap/schema/cosine.schema\n\
         include /etc/ldap/schema/inetorgperson.schema\n\
         include /etc/ldap/schema/nis.schema\n\
         pidfile {data}/slapd.pid\n\
         loglevel 0\n\
         {tls}\
         database mdb\n\
         suffix \"dc=example,dc=com\"\n\
         rootdn \"{admin}\"\nrootpw \"{password}\"\n\
         directory {data}\n\
         maxsize 8589934592\n\
         index objectClass eq\n\
         index uid,cn,sn,givenName,mail pres,eq,sub\n\
         index member,uniqueMember,memberUid,uidNumber,gidNumber,entryUUID,ou eq\n\
         access to attrs=userPassword by anonymous auth by self write by * none\n\
         access to * by users read by anonymous auth\n"
    )
}

fn load(data: &Path, configuration: &Path, text: &str, ldif: &Path) -> Result<(), String> {
    fs::create_dir_all(data).map_err(|why| why.to_string())?;
    fs::write(configuration, text).map_err(|why| why.to_string())?;
    let mut command = Command::new("/usr/sbin/slapadd");
    command.arg("-q").arg("-f").arg(configuration).arg("-l").arg(ldif);
    let output = command.output().map_err(|why| format!("slapadd: {why}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("slapadd failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
