//! Where a test takes place: a server with users and groups, and a machine of its own for the
//! programs.

pub use keyway_tests::debian::{BASE, CA, HOST, OTHER_HOST, SECRET, skipped};

use keyway_tests::debian::{self, Machine, TREE, port_of};
use keyway_tests::{Server, finish};
use std::fs;
use std::net::TcpListener;
use std::ops::Deref;
use std::path::Path;
use std::process::Command;

const SETTINGS: &str = "\
[password]
memory_kib = 64
policy = \"cn=default,ou=Policies,dc=example,dc=com\"

[log]
access = \"everything\"
";

/// The server, whose files are in the machine's folder.
pub struct Site {
    server: Option<Server>,
    machine: Machine,
}

impl Deref for Site {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.machine
    }
}

impl Site {
    /// None where it cannot be, which is said, and in what is not a nightly test.
    pub fn new() -> Option<Site> {
        let machine = Machine::new()?;
        let (data, tree) = (machine.folder().join("data"), machine.folder().join("tree.ldif"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("keyway.toml"), SETTINGS).unwrap();
        fs::write(&tree, TREE).unwrap();
        let server = Server::start(&data, &["--name", HOST, "--import", tree.to_str().unwrap()]);
        machine.trust(Path::new(server.text("ca_certificate")));
        Some(Site { server: Some(server), machine })
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Stops the server and starts it again where it was.
    pub fn restart(&mut self) {
        let server = self.server.take().expect("it runs");
        let (ldap, ldaps) = (server.address().to_owned(), server.tls_address().to_owned());
        assert!(server.stop().success());
        let mut command = Command::new(keyway_tests::keyway());
        command.args(["up", "--json", "--listen", &ldap, "--listen-tls", &ldaps, "--data"]);
        self.server = Some(Server::spawn(command.arg(self.folder().join("data"))));
    }

    pub fn port(&self) -> &str {
        port_of(self.server().address())
    }

    pub fn tls_port(&self) -> &str {
        port_of(self.server().tls_address())
    }

    /// The text that the guide has under this comment, with the server's ports.
    pub fn configuration(&self, name: &str) -> String {
        debian::configuration(name, self.server().address(), self.server().tls_address())
    }

    /// Changes entries as the administrator.
    #[track_caller]
    pub fn modify(&self, ldif: &str) {
        finish(&mut self.server().admin_tool("ldapmodify"), ldif).expect(0);
    }

    /// Lines of the access log with all of these words.
    pub fn logged(&self, words: &[&str]) -> usize {
        let log = self.folder().join("data/log/access.log");
        let log = fs::read_to_string(log).unwrap();
        log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }
}

/// A port of loopback that was free a moment ago.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
