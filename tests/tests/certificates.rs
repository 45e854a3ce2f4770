//! Certificates, by OpenSSL's hand and with ldap-utils: which clients' are taken, which one makes
//! an administrator, which are revoked, and the server's own, from any maker.

use keyway_tests::authority::{Authority, configure, openssl};
use keyway_tests::{Finished, Server, available, finish, keyway, sample};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const NEEDS: &[&str] = &["openssl", "ldapwhoami", "ldapsearch"];

/// `ldapwhoami -Y EXTERNAL` with this certificate.
fn whoami(files: &Authority, server: &Server, name: &str) -> Finished {
    let mut command = Command::new("ldapwhoami");
    command.args(["-Y", "EXTERNAL", "-Q", "-H", server.ldaps()]);
    command.env("LDAPTLS_CACERT", server.text("ca_certificate"));
    command.env("LDAPTLS_CERT", files.path(&format!("{name}.pem")));
    command.env("LDAPTLS_KEY", files.path(&format!("{name}.key")));
    finish(&mut command, "")
}

/// Starts it where it cannot, and returns the line that says why.
fn refused(data: &Path) -> String {
    let mut command = Command::new(keyway());
    command.args(["up", "--listen", "127.0.0.1:0", "--listen-tls", "off", "--sample", "0"]);
    let done = finish(command.arg("--data").arg(data), "").expect(1);
    assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    done.err
}

#[test]
fn a_certificate_is_a_clients_if_it_says_so() {
    if !available(NEEDS) {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::ldapd(&data.path().join("data"), &["--sample", "1"]);
    let files = Authority::new();
    let (ca, key) = (server.text("ca_certificate"), server.text("ca_key"));
    let person = "/DC=com/DC=example/OU=People/UID=adabaker";
    files.issue("client", person, "extendedKeyUsage=clientAuth", (ca, key));
    files.issue("server", person, "extendedKeyUsage=serverAuth", (ca, key));
    files.issue("any", person, "keyUsage=digitalSignature", (ca, key));
    // Whether there is such an entry or not: TLS lets the first one through, and no other.
    let code = whoami(&files, &server, "client").code;
    assert!(code == 0 || code == 49, "{code}");
    for bad in ["server", "any"] {
        let done = whoami(&files, &server, bad);
        assert!(done.err.contains("Can't contact LDAP server"), "{bad}: {}", done.err);
    }
    // The server's own is none of a client.
    for name in ["server.pem", "server.key"] {
        let own = data.path().join("data").join(name);
        fs::copy(own, files.path(&name.replace("server", "own"))).unwrap();
    }
    let done = whoami(&files, &server, "own");
    assert!(done.err.contains("Can't contact LDAP server"), "{}", done.err);
}

#[test]
fn an_administrator_is_who_the_configuration_names() {
    if !available(NEEDS) {
        return;
    }
    let files = Authority::new();
    let usage = "extendedKeyUsage=clientAuth";
    files.issue_own("pretender", "/CN=keyway/CN=admin", usage);
    files.issue_own("ada", "/O=Example/CN=Ada", usage);
    files.issue_own("robot", "/CN=robot", usage);
    let out = ["x509", "-in", "robot.pem", "-noout", "-fingerprint", "-sha256"];
    let out = openssl(files.place(), &out).out;
    let fingerprint = out.trim().split('=').nth(1).unwrap();
    let data = files.path("data");
    let client_ca = format!("client_ca = [\"{}\"]", files.path("ca.pem").display());
    configure(&data, &client_ca);
    let server = Server::start(&data, &["--sample", "0"]);
    let done = whoami(&files, &server, "pretender").expect(49);
    assert!(done.err.contains("does not name this certificate"), "{}", done.err);
    for name in ["ada", "robot"] {
        whoami(&files, &server, name).expect(49);
    }
    server.stop();
    let who = format!("administrators = [\"cn=ada, o=EXAMPLE\", \"sha256:{fingerprint}\"]");
    configure(&data, &format!("{client_ca}\n{who}"));
    let server = Server::start(&data, &[]);
    for name in ["ada", "robot"] {
        let done = whoami(&files, &server, name).expect(0);
        assert_eq!(done.out.trim(), "dn:cn=admin,cn=keyway");
    }
    whoami(&files, &server, "pretender").expect(49);
}

#[test]
fn revoked_certificates_and_lists_that_cannot_be_used() {
    if !available(NEEDS) {
        return;
    }
    let files = Authority::new();
    let usage = "extendedKeyUsage=clientAuth";
    files.issue_own("good", "/CN=keyway/CN=admin", usage);
    files.issue_own("bad", "/CN=keyway/CN=admin", usage);
    files.revoke(&["bad"], &["-crldays", "2"]);
    let data = files.path("data");
    let settings = format!(
        "client_certificates = \"required\"\nclient_ca = [\"{}\"]\nclient_crls = [\"{}\"]\n\
         administrators = [\"cn=admin,cn=keyway\"]",
        files.path("ca.pem").display(),
        files.path("crl.pem").display()
    );
    configure(&data, &settings);
    let server = Server::start(&data, &["--sample", "0"]);
    whoami(&files, &server, "good").expect(0);
    let without = finish(&mut server.tool("ldapwhoami", server.ldaps()), "");
    for done in [whoami(&files, &server, "bad"), without] {
        assert!(done.err.contains("Can't contact LDAP server"), "{}", done.err);
    }
    server.stop();
    let pem = fs::read(files.path("crl.pem")).unwrap();
    files
        .revoke(&[], &["-crl_lastupdate", "20200101000000Z", "-crl_nextupdate", "20200102000000Z"]);
    assert!(refused(&data).contains("a newer one was due at 2020-01-02"));
    fs::write(files.path("crl.pem"), "nothing").unwrap();
    assert!(refused(&data).contains("no certificate revocation list in it"));
    fs::remove_file(files.path("crl.pem")).unwrap();
    assert!(refused(&data).contains("cannot read"));
    // In DER it is as good.
    fs::write(files.path("pem"), pem).unwrap();
    openssl(files.place(), &["crl", "-in", "pem", "-outform", "DER", "-out", "crl.pem"]);
    let server = Server::start(&data, &[]);
    whoami(&files, &server, "good").expect(0);
    assert_ne!(whoami(&files, &server, "bad").code, 0);
}

/// A client that is revoked while the server runs is out at the next SIGHUP, also with a session to
/// resume; a list that cannot be used changes nothing.
#[test]
fn a_revocation_is_taken_by_a_running_server() {
    if !available(NEEDS) {
        return;
    }
    let files = Authority::new();
    files.issue_own("good", "/CN=keyway/CN=admin", "extendedKeyUsage=clientAuth");
    files.revoke(&[], &["-crldays", "2"]);
    let data = files.path("data");
    let settings = format!(
        "client_certificates = \"required\"\nclient_ca = [\"{}\"]\nclient_crls = [\"{}\"]\n\
         administrators = [\"cn=admin,cn=keyway\"]",
        files.path("ca.pem").display(),
        files.path("crl.pem").display()
    );
    configure(&data, &settings);
    let mut server = Server::start(&data, &["--sample", "0"]);
    // In TLS 1.2 the ticket is there before the handshake ends.
    let s_client = |server: &Server, arguments: &[&str]| {
        let mut command = Command::new("openssl");
        command.current_dir(files.place()).args(["s_client", "-tls1_2", "-connect"]);
        finish(command.arg(server.tls_address()).args(arguments), "Q\n")
    };
    let shown = ["-cert", "good.pem", "-key", "good.key", "-sess_out", "session"];
    s_client(&server, &shown).expect(0);
    assert!(s_client(&server, &["-sess_in", "session"]).out.contains("Reused, TLSv1.2"));
    let list = fs::read(files.path("crl.pem")).unwrap();
    fs::write(files.path("crl.pem"), "nothing").unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "not-reloaded");
    whoami(&files, &server, "good").expect(0);
    // The same list again: sessions live on.
    fs::write(files.path("crl.pem"), list).unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
    assert!(s_client(&server, &["-sess_in", "session"]).out.contains("Reused, TLSv1.2"));
    files.revoke(&["good"], &["-crldays", "2"]);
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
    assert!(whoami(&files, &server, "good").err.contains("Can't contact LDAP server"));
    let again = s_client(&server, &["-sess_in", "session"]);
    assert!(again.code != 0 && !again.out.contains("Reused, TLSv1.2"), "{}", again.out);
}

/// Two files before the first start, as help says; and what is printed can be pasted.
#[test]
fn a_certificate_of_ones_own() {
    if !available(NEEDS) {
        return;
    }
    let files = Authority::new();
    files.issue_own("server", "/CN=ldap", "subjectAltName=IP:127.0.0.1");
    let data = files.path("data");
    fs::create_dir(&data).unwrap();
    for name in ["server.pem", "server.key"] {
        fs::copy(files.path(name), data.join(name)).unwrap();
    }
    let server = Server::start(&data, &["--sample", "3"]);
    assert!(server.ready["ca_certificate"].is_null() && server.ready["ca_key"].is_null());
    assert!(!data.join("ca.pem").exists());
    pasted(&server, Some(&files.path("ca.pem")));
    server.stop();
    // With its authority behind it a client can trust that.
    let [pem, ca] = ["server.pem", "ca.pem"].map(|name| fs::read(files.path(name)).unwrap());
    fs::write(data.join("server.pem"), [pem, ca].concat()).unwrap();
    let server = Server::start(&data, &[]);
    pasted(&server, None);
    server.stop();
    // The files may be elsewhere, and one may be of another pair.
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(data.join("server.pem"), elsewhere.path().join("server.pem")).unwrap();
    // cryptod has taken the other one.
    assert!(!data.join("server.key").exists());
    fs::copy(files.path("server.key"), elsewhere.path().join("server.key")).unwrap();
    let at = |name: &str| elsewhere.path().join(name).display().to_string();
    let (pem, key) = (at("server.pem"), at("server.key"));
    configure(&data, &format!("certificate = \"{pem}\"\nkey = \"{key}\""));
    let server = Server::start(&data, &[]);
    pasted(&server, None);
    assert!(!data.join("server.pem").exists() && !data.join("ca.pem").exists());
    server.stop();
    fs::copy(files.path("ca.key"), &key).unwrap();
    let mut command = Command::new(keyway());
    command
        .args([
            "up",
            "--listen",
            "127.0.0.1:0",
            "--listen-tls",
            "off",
            "--name",
            "ldap.example.com",
            "--data",
        ])
        .arg(&data);
    let done = finish(&mut command, "").expect(1);
    assert!(done.err.contains(&format!("{pem} does not name ldap.example.com")), "{}", done.err);
    assert!(refused(&data).contains(&format!("{key} cannot be used: it is not the key of {pem}")));
    openssl(files.place(), &["ec", "-aes128", "-passout", "pass:x", "-in", "ca.key", "-out", &key]);
    assert!(refused(&data).contains("is encrypted"));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&data).contains("chmod 600"));
}

/// Runs what the server says to try, the way a shell does.
#[track_caller]
fn pasted(server: &Server, trust: Option<&Path>) {
    for line in server.ready["try"].as_array().unwrap().iter().take(2) {
        let mut shell = Command::new("sh");
        if let Some(trust) = trust {
            shell.env("LDAPTLS_CACERT", trust);
        }
        let done = finish(shell.args(["-c", line.as_str().unwrap()]), "").expect(0);
        assert!(done.out.contains("dc=example,dc=com"), "{line}\n{}", done.out);
    }
}

#[test]
fn what_was_lost_is_not_replaced_by_what_does_not_fit() {
    if !available(NEEDS) {
        return;
    }
    let (folder, server) = sample(1);
    let data = folder.path().join("data");
    pasted(&server, None);
    server.stop();
    let ca = fs::read(data.join("ca.pem")).unwrap();
    fs::remove_file(data.join("ca.pem")).unwrap();
    let server = Server::start(&data, &[]);
    pasted(&server, None);
    server.stop();
    // The key is kept elsewhere: nothing is missed until something has to be issued.
    let sealed = data.join("cryptod/keys/tls-ca.key");
    fs::rename(&sealed, folder.path().join("tls-ca.key")).unwrap();
    fs::write(data.join("ca.pem"), ca).unwrap();
    let server = Server::start(&data, &[]);
    pasted(&server, None);
    server.stop();
    fs::remove_file(data.join("ca.pem")).unwrap();
    let server = Server::start(&data, &[]);
    assert!(server.ready["ca_certificate"].is_null());
    assert!(!data.join("ca.pem").exists() && !sealed.exists());
    server.stop();
    // For one start it is there again.
    fs::rename(folder.path().join("tls-ca.key"), &sealed).unwrap();
    let server = Server::start(&data, &["--name", "new.example.com"]);
    assert_eq!(server.text("ca_key"), "cryptod:tls-ca");
    pasted(&server, None);
}

#[test]
fn a_server_on_all_addresses_is_found_under_its_names() {
    if !available(NEEDS) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let arguments = ["--listen-tls", "0.0.0.0:0", "--sample", "0", "--name", "ldap.example.com"];
    let start = |more: &[&str]| {
        let mut command = Command::new(keyway());
        command.args(["up", "--json", "--listen", "off"]).args(arguments).args(more);
        Server::spawn(command.arg("--data").arg(&data))
    };
    let server = start(&["--name", "192.0.2.77"]);
    let urls: Vec<_> =
        server.ready["ldaps_urls"].as_array().unwrap().iter().filter_map(|u| u.as_str()).collect();
    assert_eq!(urls.last(), Some(&server.ldaps()));
    assert!(urls.len() > 1, "{urls:?}");
    let mut wanted = vec![("-verify_ip", "192.0.2.77"), ("-verify_hostname", "ldap.example.com")];
    for url in &urls {
        let host = url.trim_start_matches("ldaps://").rsplit_once(':').unwrap().0;
        let is_address = host.parse::<std::net::IpAddr>().is_ok();
        wanted.push((if is_address { "-verify_ip" } else { "-verify_hostname" }, host));
    }
    for (flag, host) in wanted {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", server.tls_address(), "-verify_return_error"]);
        command.args(["-CAfile", server.text("ca_certificate"), flag, host]);
        let done = finish(&mut command, "Q\n").expect(0);
        assert!(done.out.contains("Verify return code: 0 (ok)"), "{host}\n{}", done.out);
    }
    let before = fs::read(data.join("server.pem")).unwrap();
    server.stop();
    // The names in it are enough; missing ones are added by our own authority.
    start(&[]).stop();
    assert_eq!(fs::read(data.join("server.pem")).unwrap(), before);
    start(&["--name", "new.example.com"]).stop();
    assert_ne!(fs::read(data.join("server.pem")).unwrap(), before);
}
