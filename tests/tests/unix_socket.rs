//! LDAP over a Unix socket, with SASL EXTERNAL by whose process it is.

use keyway_tests::{Finished, Server, available, finish};
use rustix::process::{getgid, getuid};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const NEEDS: &[&str] = &["ldapwhoami", "ldapadd", "ldapsearch"];

fn configure(data: &Path, unix: &str) {
    fs::create_dir_all(data).unwrap();
    let text =
        format!("listen_unix = \"ldapi\"\n[password]\ntrust_loopback = false\n[unix]\n{unix}\n");
    fs::write(data.join("keyway.toml"), text).unwrap();
}

fn start(data: &Path) -> Server {
    Server::start(data, &["--sample", "2"])
}

/// One of the ldap-utils over the socket.
fn tool(data: &Path, program: &str, arguments: &[&str]) -> Finished {
    let path = data.join("ldapi").to_str().unwrap().replace('/', "%2F");
    let mut command = Command::new(program);
    command.args(["-H", &format!("ldapi://{path}")]).args(arguments);
    finish(command.env("LDAPCONF", "/dev/null"), "")
}

fn external(data: &Path) -> Finished {
    tool(data, "ldapwhoami", &["-Q", "-Y", "EXTERNAL"])
}

#[test]
fn the_system_says_who_it_is() {
    if !available(NEEDS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    configure(&data, "");
    let mut server = start(&data);
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    let peer = format!("dn:gidNumber={gid}+uidNumber={uid},cn=peercred,cn=external,cn=auth");
    assert_eq!(external(&data).expect(0).out.trim(), peer);
    let root = ["-x", "-LLL", "-b", "", "-s", "base", "supportedSASLMechanisms"];
    assert!(tool(&data, "ldapsearch", &root).expect(0).out.contains("EXTERNAL"));
    // A password needs no TLS there, and does over loopback as this server is told.
    let password = server.password();
    let admin = ["-x", "-D", "cn=admin,cn=keyway", "-w", &password];
    tool(&data, "ldapwhoami", &admin).expect(0);
    finish(server.tool("ldapwhoami", server.ldap()).args(&admin[1..]), "").expect(13);
    // No user acts for another.
    let other = ["-Q", "-Y", "EXTERNAL", "-X", "dn:cn=admin,cn=keyway"];
    tool(&data, "ldapwhoami", &other).expect(49);
    let mode = fs::metadata(data.join("ldapi")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The socket that a killed server left behind does not prevent a start.
    server.kill();
    drop(server);
    let person = format!(
        "dn: uid=me,dc=example,dc=com\nobjectClass: inetOrgPerson\nobjectClass: posixAccount\n\
         cn: me\nsn: me\nuid: me\nuidNumber: {uid}\ngidNumber: {gid}\nhomeDirectory: /\n"
    );
    configure(&data, "administrators = [\"self\"]\nmode = \"0660\"");
    let server = start(&data);
    assert_eq!(external(&data).expect(0).out.trim(), "dn:cn=admin,cn=keyway");
    let file = folder.path().join("me.ldif");
    fs::write(&file, person).unwrap();
    let add = ["-Q", "-Y", "EXTERNAL", "-f", file.to_str().unwrap()];
    tool(&data, "ldapadd", &add).expect(0);
    assert!(server.stop().success());
    configure(&data, "by_uid_number = true");
    let server = start(&data);
    assert_eq!(external(&data).expect(0).out.trim(), "dn:uid=me,dc=example,dc=com");
    let log = fs::read_to_string(data.join("log/audit.log")).unwrap();
    assert!(log.contains(&format!("unix:uid={uid},gid={gid}")), "{log}");
    drop(server);
}

#[test]
fn a_socket_that_cannot_be_is_said_to_be_that() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |data: &Path| {
        let mut command = Command::new(keyway_tests::keyway());
        command.args(["up", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--sample", "0"]);
        finish(command.arg("--data").arg(data), "").err
    };
    let (data, socket) = (folder.path().join("data"), folder.path().join("socket"));
    let listen = |path: &Path| {
        let line = format!("listen_unix = {path:?}\n");
        fs::write(data.join("keyway.toml"), line).unwrap();
    };
    fs::create_dir(&data).unwrap();
    listen(&socket);
    fs::write(&socket, "mine").unwrap();
    let err = refused(&data);
    assert!(err.contains("listen_unix") && err.contains("is no socket"), "{err}");
    assert_eq!(fs::read_to_string(&socket).unwrap(), "mine");
    fs::remove_file(&socket).unwrap();
    let _other = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let err = refused(&data);
    assert!(err.contains("another program listens there"), "{err}");
    listen(Path::new(&"x".repeat(108)));
    let err = refused(&data);
    assert!(err.contains("107 bytes at most"), "{err}");
}
