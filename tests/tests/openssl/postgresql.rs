//! PostgreSQL, which loads its key as its own user and forks for each connection, and psql, which verifies it.

use super::Site;
use super::servers::{FORMS, Form, with_certificates};
use super::tls::{Running, handshake};
use keyway_tests::cryptod::eventually;
use keyway_tests::{available, finish, port};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The database's user: number and group.
fn user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find_map(|line| line.strip_prefix("postgres:"))?;
    let mut fields = line.split(':').skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The folder of the newest version's programs, which are in no path.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut folders: Vec<_> = versions.flatten().map(|it| it.path().join("bin")).collect();
    folders.retain(|folder| folder.join("postgres").exists());
    folders.sort();
    folders.pop()
}

/// A database in a site's folder.
struct Database {
    folder: PathBuf,
    programs: PathBuf,
    user: (u32, u32),
    address: String,
}

impl Database {
    fn new(site: &Site) -> Option<Database> {
        let (Some(user), Some(programs)) = (user(), programs()) else {
            // In no path, so that it is missing for certain.
            available(&["/usr/lib/postgresql/*/bin/postgres"]);
            return None;
        };
        let folder = site.file("database");
        fs::create_dir(&folder).unwrap();
        chown(&folder, Some(user.0), Some(user.1)).unwrap();
        let database = Database { folder, programs, user, address: port() };
        let mut make = database.command(site, "initdb");
        finish(make.args(["--no-sync", "-A", "trust"]), "").expect(0);
        Some(database)
    }

    fn command(&self, site: &Site, program: &str) -> Command {
        let mut command = site.command(self.programs.join(program).to_str().unwrap());
        command.uid(self.user.0).gid(self.user.1).arg("-D").arg(&self.folder);
        command
    }

    /// Names one of the keys, in a copy that the server takes: its own, and closed to others.
    fn configure(&self, site: &Site, key: &str, form: Form) {
        let file = form.named_in(&format!("{key}.pem"));
        let copy = self.folder.join(&file);
        fs::copy(site.file(&file), &copy).unwrap();
        chown(&copy, Some(self.user.0), Some(self.user.1)).unwrap();
        fs::set_permissions(&copy, Permissions::from_mode(0o600)).unwrap();
        let (host, port) = self.address.split_once(':').unwrap();
        let text = format!(
            "listen_addresses = '{host}'\nport = {port}\nunix_socket_directories = ''\nfsync = off\nssl = on\n\
             ssl_cert_file = '{}'\nssl_key_file = '{file}'\n",
            site.file(&format!("{key}.crt")).display()
        );
        fs::write(self.folder.join("postgresql.conf"), text).unwrap();
    }

    fn psql(&self, site: &Site, version: &str) -> Command {
        let (host, port) = self.address.split_once(':').unwrap();
        let mut client = site.stock("psql");
        client.arg(format!(
            "host=localhost hostaddr={host} port={port} user=postgres dbname=postgres sslmode=verify-full \
             sslrootcert={} ssl_min_protocol_version={version} ssl_max_protocol_version={version}",
            site.file("rsa.crt").display()
        ));
        client.args(["-X", "-A", "-t", "-c"]);
        client.arg("select version, cipher from pg_stat_ssl where pid = pg_backend_pid()");
        client
    }

    /// The type of the signature in TLS 1.3.
    fn signature(&self, site: &Site) -> Option<String> {
        let options = ["-tls1_3", "-starttls", "postgres"];
        let said = handshake(site, &self.address, "rsa.crt", &options);
        let (_, rest) = said.split_once("Peer signature type: ")?;
        rest.lines().next().map(str::to_owned)
    }
}

#[test]
fn postgresql_signs_in_its_children() {
    let Some(site) = Site::with_keys(&["psql"]) else { return };
    let secrets = with_certificates(&site, "postgres");
    let Some(database) = Database::new(&site) else { return };
    let mut server = database.command(&site, "postgres");
    for form in FORMS {
        database.configure(&site, "own-rsa", form);
        let running = Running::start(&site, &mut server, &[&database.address]);
        for (at, (key, cipher)) in [("own-rsa", "RSA"), ("own-ec", "ECDSA")].iter().enumerate() {
            database.configure(&site, key, form);
            kill_process(Pid::from_child(&running.0), Signal::HUP).unwrap();
            eventually("the server has read its key", || {
                database.signature(&site).is_some_and(|it| it.starts_with(cipher))
            });
            for version in ["TLSv1.2", "TLSv1.3"] {
                let said = finish(&mut database.psql(&site, version), "").expect(0).out;
                assert!(said.starts_with(version), "{said}");
                assert!(
                    version == "TLSv1.3" || said.contains(&format!("ECDHE-{cipher}-")),
                    "{said}"
                );
            }
            form.check(&secrets[at..=at], &running);
        }
    }
    let _running = Running::start(&site, &mut server, &[&database.address]);
    let site = site.survives_the_daemon(|site| database.signature(site).is_some());
    assert!(site.cryptod.stop().success());
}
