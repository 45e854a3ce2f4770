//! OpenLDAP's slapd with nothing but its `cn=monitor`.

use crate::port;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program it needs, for [`available`](crate::available).
pub const NEEDS: &str = "/usr/sbin/slapd";

/// A running slapd, killed when dropped.
pub struct Slapd {
    child: Child,
    /// `ldap://127.0.0.1:PORT`
    pub url: String,
}

impl Slapd {
    /// Starts one that every client may ask. It may not listen yet.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(folder: &Path) -> Slapd {
        let config = folder.join("slapd.conf");
        let text =
            "include /etc/ldap/schema/core.schema\naccess to * by * read\ndatabase monitor\n";
        std::fs::write(&config, text).expect("written");
        let url = format!("ldap://{}", port());
        let mut command = Command::new(NEEDS);
        command.args(["-d", "0", "-h", &url, "-f"]).arg(&config);
        Slapd { child: command.stderr(Stdio::null()).spawn().expect("slapd starts"), url }
    }
}

impl Drop for Slapd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
