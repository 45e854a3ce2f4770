//! OpenSSH: logins, and `ssh-keygen` as a certificate authority, with keys of a token.

use super::Site;
use keyway_tests::cryptod::eventually;
use keyway_tests::{finish, pkcs11_module, port};
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Stdio};

#[test]
fn ssh_keygen_lists_keys_and_certifies() {
    let Some(site) = Site::new(&["ssh-keygen"]) else { return };
    let listed = site.with_module("ssh-keygen", "-D", &[]).expect(0).out;
    // It knows no Ed25519 in a token.
    assert_eq!(listed.lines().count(), 6, "{listed}");
    site.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "user"]).expect(0);
    let module = pkcs11_module().to_str().unwrap();
    for key in ["ec", "ec384", "ec521", "rsa"] {
        let line = listed.lines().find(|line| line.ends_with(&format!(" {key}"))).unwrap();
        let public = format!("{key}.ssh");
        fs::write(site.file(&public), format!("{line}\n")).unwrap();
        let certify = ["-D", module, "-s", &public, "-I", "it", "-n", "user", "user.pub"];
        site.run("ssh-keygen", &certify).expect(0);
        // It verifies the signature when it reads the certificate.
        let shown = site.run("ssh-keygen", &["-L", "-f", "user-cert.pub"]).expect(0).out;
        assert!(shown.contains("Key ID: \"it\""), "{shown}");
    }
    assert!(site.cryptod.stop().success());
}

const SSHD: &str = "/usr/sbin/sshd";
/// sshd wants this folder, and makes it nowhere.
const SEPARATION: &str = "/run/sshd";

/// An sshd on loopback. Killed when it is dropped.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn ssh_logs_in() {
    let Some(site) = Site::new(&["ssh", "ssh-keygen", SSHD]) else { return };
    // sshd of a user who is not root has no folder to keep its unprivileged half in.
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: only root starts sshd");
        return;
    }
    fs::create_dir_all(SEPARATION).unwrap();
    let listed = site.with_module("ssh-keygen", "-D", &[]).expect(0).out;
    fs::write(site.file("authorized"), listed).unwrap();
    site.run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", "host"]).expect(0);
    let address = port();
    let (host, number) = address.split_once(':').unwrap();
    let at = |name| site.file(name).display().to_string();
    let configuration = format!(
        "ListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n",
        at("host"),
        at("authorized")
    );
    fs::write(site.file("sshd_config"), configuration).unwrap();
    let mut command = site.command(SSHD);
    command.args(["-D", "-q", "-f", "sshd_config"]).stdin(Stdio::null());
    let _sshd = Sshd(command.spawn().unwrap());
    eventually("sshd listens", || TcpStream::connect(&address).is_ok());
    let known = fs::read_to_string(site.file("host.pub")).unwrap();
    fs::write(site.file("known"), format!("[{host}]:{number} {known}")).unwrap();
    for key in ["ec", "ec384", "ec521", "rsa"] {
        let mut ssh = site.command("ssh");
        ssh.args(["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]);
        ssh.args(["-o", "UserKnownHostsFile=known", "-I"]).arg(pkcs11_module());
        ssh.args(["-p", number, host, "echo", "logged", "in"]).env("KEYWAY_KEYS", key);
        let logged = finish(ssh.env_remove("SSH_AUTH_SOCK"), "").expect(0);
        assert_eq!(logged.out, "logged in\n", "{key}");
    }
    assert!(site.cryptod.stop().success());
}
