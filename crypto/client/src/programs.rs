//! The lines with which programs use a key of cryptod: what goes into which of their files.

use crate::public_key::{Curve, PublicKey};
use crate::reference::KeyReference;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

macro_rules! programs {
    ($($(#[$doc:meta])* $id:ident $name:literal,)*) => {
        /// A program, or a file that programs share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Program { $($(#[$doc])* $id,)* }

        impl Program {
            /// All of them.
            pub const ALL: &'static [Program] = &[$(Program::$id,)*];

            /// Its name in flags.
            pub const fn name(self) -> &'static str {
                match self { $(Program::$id => $name,)* }
            }
        }
    };
}

programs! {
    /// The PEM file that names the key, for programs that load files.
    Pem "pem",
    /// OpenSSL's configuration, with the provider.
    Openssl "openssl",
    /// nginx.
    Nginx "nginx",
    /// HAProxy.
    Haproxy "haproxy",
    /// Apache's HTTP server.
    Httpd "httpd",
    /// stunnel.
    Stunnel "stunnel",
    /// curl, for a client's certificate.
    Curl "curl",
    /// Python's `ssl`.
    Python "python",
    /// OpenSSH, by `keyway ssh-agent`.
    Ssh "ssh",
}

impl FromStr for Program {
    type Err = UnknownProgram;

    fn from_str(name: &str) -> Result<Self, UnknownProgram> {
        Program::ALL.iter().copied().find(|it| it.name() == name).ok_or(UnknownProgram)
    }
}

/// No program of that name is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownProgram;

impl fmt::Display for UnknownProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("programs are")?;
        Program::ALL.iter().try_for_each(|it| write!(f, " {}", it.name()))
    }
}

impl std::error::Error for UnknownProgram {}

/// A daemon, and what it has beside a key.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The daemon's socket.
    pub socket: &'a Path,
    /// The socket as a shell reads it.
    pub quoted: &'a str,
    /// Whether there are certificates beside the key.
    pub has_certificates: bool,
}

/// The text for a program that is to use this key of a daemon.
///
/// # Errors
/// In a sentence, if the program cannot use such a key, or its configuration cannot name the socket.
pub fn instructions(
    program: Program,
    key: &KeyReference,
    site: Site<'_>,
) -> Result<String, String> {
    let (name, at) = (&key.name, site.quoted);
    let public = key.public_key.as_deref().map(PublicKey::read);
    let fits = match (program, &public) {
        (_, None) => true,
        (Program::Ssh, Some(Some(PublicKey::Ec { curve, .. }))) => *curve != Curve::P521,
        // These need OpenSSL 3.5, or an own program, which load it by a file.
        (_, Some(Some(PublicKey::X25519(_) | PublicKey::MlDsa { .. }))) => {
            matches!(program, Program::Pem | Program::Openssl)
        }
        (_, Some(public)) => public.is_some(),
    };
    if !fits {
        return Err(format!("{} does nothing with a key of that kind", program.name()));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    let is_file = program == Program::Pem || program == Program::Ssh;
    if !is_file && !site.socket.to_str().is_some_and(|path| path.chars().all(is_plain)) {
        return Err(format!(
            "a configuration of OpenSSL cannot name {}: let cryptod listen at a path of letters, digits and /._-",
            site.socket.display()
        ));
    }
    Ok(text(program, key, site, name, at))
}

fn text(program: Program, key: &KeyReference, site: Site<'_>, name: &str, at: &str) -> String {
    let own = |lines: String| format!("{}\n{lines}", files(name, site));
    let service = |unit: &str, lines: String| {
        own(format!(
            "\
# in the unit's settings (systemctl edit {unit}), then systemctl restart {unit}:
[Service]
Environment=OPENSSL_CONF=/etc/keyway/openssl.cnf
{lines}"
        ))
    };
    match program {
        Program::Pem => key.to_pem(),
        Program::Openssl => configuration(site.socket),
        Program::Nginx => service("nginx", format!(
            "\
# in nginx.conf, at its top, so that nginx keeps the variable:
env OPENSSL_CONF;
# in the server:
    ssl_certificate /etc/keyway/{name}.crt;
    ssl_certificate_key /etc/keyway/{name}.pem;
"
        )),
        Program::Haproxy => service("haproxy", format!(
            "\
# once more after each new certificate:
#   cat /etc/keyway/{name}.crt /etc/keyway/{name}.pem > /etc/keyway/{name}-both.pem
# in haproxy.cfg:
frontend web
    bind :443 ssl crt /etc/keyway/{name}-both.pem
"
        )),
        Program::Httpd => service("apache2", format!(
            "\
# in the virtual host:
SSLEngine on
SSLCertificateFile /etc/keyway/{name}.crt
SSLCertificateKeyFile /etc/keyway/{name}.pem
"
        )),
        Program::Stunnel => service("stunnel4", format!(
            "\
# in stunnel.conf:
cert = /etc/keyway/{name}.crt
key = /etc/keyway/{name}.pem
"
        )),
        Program::Curl => own(format!(
            "\
OPENSSL_CONF=/etc/keyway/openssl.cnf curl --cert /etc/keyway/{name}.crt --key /etc/keyway/{name}.pem https://HOST/
"
        )),
        Program::Python => own(format!(
            "\
# OPENSSL_CONF=/etc/keyway/openssl.cnf has to be in the environment when Python starts
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(\"/etc/keyway/{name}.crt\", \"/etc/keyway/{name}.pem\")
"
        )),
        Program::Ssh => format!(
            "\
# the public key, for ~/.ssh/authorized_keys on the other host:
keyway ssh-agent --cryptod {at} --key {name} -- ssh-add -L > {name}.pub
# a login:
keyway ssh-agent --cryptod {at} --key {name} -- ssh -i {name}.pub HOST
"
        ),
    }
}

/// The files that all programs with OpenSSL need.
fn files(name: &str, site: Site<'_>) -> String {
    let at = site.quoted;
    let certificate = match site.has_certificates {
        true => format!("keyway key certificate {name} --socket {at} > /etc/keyway/{name}.crt"),
        false => format!(
            "cp CERTIFICATE /etc/keyway/{name}.crt       # with those of its issuers, in PEM"
        ),
    };
    format!(
        "\
# once for the key, as a user who may use it or looks after it:
#   mkdir -p /etc/keyway
#   keyway key use {name} --socket {at} --with openssl > /etc/keyway/openssl.cnf
#   keyway key use {name} --socket {at} --with pem > /etc/keyway/{name}.pem
#   {certificate}
# the program's user has to be let in: keyway cryptod --allow-user, keyway key allow {name} --for user:NAME
"
    )
}

/// A whole configuration of OpenSSL: as soon as one names a provider, OpenSSL loads no other by itself.
fn configuration(socket: &Path) -> String {
    format!(
        "\
openssl_conf = init

[init]
providers = providers
alg_section = algorithms

[algorithms]
# All but keys of cryptod is done by other providers.
default_properties = ?keyway.key!=yes

[providers]
default = default_provider
keyway = keyway_provider

[default_provider]
activate = 1

[keyway_provider]
activate = 1
socket = {}

[req]
distinguished_name = name

[name]
",
        socket.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_engine::Algorithm;

    #[test]
    fn each_program_is_told_which_key_and_where() {
        let key = KeyReference { name: "web".to_owned(), public_key: None };
        for program in Program::ALL {
            assert_eq!(program.name().parse(), Ok(*program));
            let site =
                Site { socket: Path::new("/run/x"), quoted: "/run/x", has_certificates: false };
            let text = instructions(*program, &key, site).unwrap();
            let is_file = matches!(program, Program::Pem | Program::Openssl);
            assert!(is_file || text.contains("web"), "{text}");
            assert!(*program == Program::Pem || text.contains("/run/x"), "{text}");
        }
        let socket = Path::new("/run/a b");
        let site = Site { socket, quoted: "'/run/a b'", has_certificates: true };
        assert!(instructions(Program::Nginx, &key, site).unwrap_err().contains("/run/a b"));
        assert!(instructions(Program::Ssh, &key, site).unwrap().contains("--cryptod '/run/a b'"));
        let x25519 = keyway_wire::subject_public_key_info(Algorithm::X25519, &[9; 32]);
        let key = KeyReference { public_key: Some(x25519.unwrap()), ..key };
        assert!(instructions(Program::Nginx, &key, site).is_err());
        assert!(instructions(Program::Pem, &key, site).is_ok());
        let kem = keyway_wire::subject_public_key_info(Algorithm::MlKem512, &[9; 800]);
        let key = KeyReference { public_key: Some(kem.unwrap()), ..key };
        assert!(instructions(Program::Pem, &key, site).is_err());
        assert!("iis".parse::<Program>().unwrap_err().to_string().contains("nginx"));
    }
}
