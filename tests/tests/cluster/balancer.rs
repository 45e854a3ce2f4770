//! HAProxy in front of the three servers, with one address for all clients.

use crate::three::{NAMES, SERVERS, Three};
use keyway_tests::cryptod::eventually;
use keyway_tests::{keyway, port};
use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Where it is.
pub const HAPROXY: &str = "/usr/sbin/haproxy";

/// Which server a connection goes to, and which of them may have some.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each of them in turn, if it answers an anonymous bind.
    InTurn,
    /// All of a client's address to one, for as long as `keyway health --ready` says that it may have clients.
    ByAddress,
}

/// A HAProxy that takes connections for all servers.
pub struct Balancer {
    child: Child,
    /// Host and port, for clients without TLS or with StartTLS, and another port for those who try one after the other.
    address: String,
    second_address: String,
    /// For clients with TLS.
    tls_address: String,
}

impl Balancer {
    /// Starts one, with its files in this folder.
    pub fn start(three: &Three, folder: &Path, way: Way) -> Balancer {
        let [address, second_address, tls_address] = [(); 3].map(|()| port());
        let (global, stick, check, inter) = match way {
            Way::InTurn => ("", "", "option ldap-check".to_owned(), "200ms"),
            Way::ByAddress => {
                let global = "global\n  external-check\n  insecure-fork-wanted\n";
                let check = format!(
                    "option external-check\n  external-check command {}",
                    check(three, folder)
                );
                (global, "stick-table type ip size 100k expire 1h\n  stick on src", check, "10s")
            }
        };
        let [mut plain, mut tls] = [const { String::new() }; 2];
        for (at, name) in NAMES.iter().enumerate().take(SERVERS) {
            let (ldap, ldaps) = (three.ldap(at), three.ldaps(at));
            let down = "on-marked-down shutdown-sessions";
            plain += &format!("  server {name} {ldap} check inter {inter} fall 2 rise 1 {down}\n");
            tls += &format!("  server {name} {ldaps} track ldap/{name} {down}\n");
        }
        let text = format!(
            "{global}\
             defaults\n  mode tcp\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n  \
             retries 3\n  option redispatch 1\n  balance roundrobin\n\
             listen ldap\n  bind {address}\n  bind {second_address}\n  {stick}\n  {check}\n{plain}\
             listen ldaps\n  bind {tls_address}\n  {stick}\n{tls}"
        );
        let file = folder.join("haproxy.cfg");
        fs::write(&file, text).unwrap();
        let mut command = Command::new(HAPROXY);
        command.arg("-db").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap();
        eventually("HAProxy listens", || TcpStream::connect(&address).is_ok());
        Balancer { child, address, second_address, tls_address }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn second_address(&self) -> &str {
        &self.second_address
    }

    pub fn tls_address(&self) -> &str {
        &self.tls_address
    }

    /// One of the ldap-utils, as the administrator.
    pub fn tool(&self, password: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["-x", "-H", &format!("ldap://{}", self.address)]);
        command.args(["-D", "cn=admin,cn=keyway", "-w", password, "-o", "nettimeout=5"]);
        command.env("LDAPCONF", "/dev/null");
        command
    }
}

/// A program that says whether the server of a name may have clients.
fn check(three: &Three, folder: &Path) -> String {
    let check = folder.join("check");
    let place = three.at(0).parent().unwrap().display().to_string();
    let text = format!(
        "#!/bin/sh\nexec {} health --ready --data {place}/$HAPROXY_SERVER_NAME >/dev/null 2>&1\n",
        keyway().display()
    );
    fs::write(&check, text).unwrap();
    fs::set_permissions(&check, Permissions::from_mode(0o755)).unwrap();
    check.display().to_string()
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
