//! The arguments of `keyway key`.

use clap::{Args, Subcommand, ValueEnum};
use keyway_client::Program;
use keyway_engine::Algorithm;
use keyway_service::key_files;
use std::path::PathBuf;

/// Manage the keys that a running cryptod holds, and use them: its clients name them and never see them
#[derive(Debug, Subcommand)]
#[command(after_help = "\
The clients that a key is for, with --for (repeatable), are 'everybody' on this host, vm:NAME for a virtual machine, or \
conditions that must all hold, joined by '+': user:NAME, group:NAME, program:/PATH. At first none may use a key, root included.

A program is the file at its path, links followed. The daemon sees programs of other users only if root has \
started it, or with CAP_SYS_PTRACE, and says so if no client could match a grant. Name the user too: users \
can load their own code into any program that they run (LD_PRELOAD, a debugger), and a program can hand its \
connection to another process or run another program in its place. keyway cryptod --help has more.

Only the daemon's own user and root manage its keys. Their actions, and refused uses of a key, are in \
its audit log (DIR/cryptod/keys/audit.log).")]
pub enum Key {
    Generate(Generate),
    Import(Import),
    List(List),
    /// Show the public half of a key
    #[command(after_help = "\
Examples:
  keyway key public web
      as the algorithm has it (a point, 32 bytes, or an RSAPublicKey), in base64
  keyway key public web --pem > web.pub
      as other programs take it: openssl dgst -sha256 -verify web.pub -signature FILE.sig FILE

Who may use the key may see its public half, and so may those who look after the daemon's keys.")]
    Public(Public),
    /// Print the lines with which a program uses a key
    #[command(after_help = "\
Examples:
  keyway key use web --with nginx
      what goes into which file, with the commands that write them
  keyway key use web --with pem > /etc/keyway/web.pem
      a file that names the key, for programs that load key files: it has nothing secret in it
  keyway key use web --with openssl > /etc/keyway/openssl.cnf

Programs: pem, openssl, nginx, haproxy, httpd, stunnel, curl, python, ssh. All but ssh need the provider for OpenSSL 3 \
(docs/guide/openssl.md).")]
    Use(ProgramUse),
    /// Sign a file under a key
    #[command(after_help = "\
Examples:
  keyway key sign web release.tar.gz -o release.tar.gz.sig
  tar c . | keyway key sign web --format base64
  keyway key sign web FILE --algorithm rsa-pss --hash sha-512 --salt 20 --json
  sha384sum FILE | cut -d' ' -f1 | xxd -r -p | keyway key sign web --digest --hash sha-384

The message is signed as it is: the algorithm hashes it, with the hash that its name has, or --hash. ECDSA signatures \
are DER, as openssl has them.")]
    Sign(Use),
    /// See whether a signature or a MAC is right; exits with 1 if it is not
    #[command(after_help = "\
Examples:
  keyway key verify web release.tar.gz --signature release.tar.gz.sig
  keyway key verify shared FILE --signature FILE.mac --format hex
      a MAC, with a key that makes them")]
    Verify(Verify),
    /// Encrypt a file under a key
    #[command(after_help = "\
Examples:
  keyway key encrypt vault secret.txt -o secret.enc
  pg_dump app | keyway key encrypt vault --context backup-of-app > app.enc
      --context has to be the same to decrypt, and is not secret

Keys are for an AEAD (aes-256-gcm ...) or rsa-oaep, which takes a message of some bytes. What comes \
of an AEAD is the number of the key's version (4 bytes, little-endian), a nonce (12), the encrypted text, and \
the tag (16). It can be decrypted after the key was rotated, too. At most 16 MiB at a time.")]
    Encrypt(Use),
    /// Decrypt what keyway key encrypt has encrypted
    #[command(after_help = "\
Examples:
  keyway key decrypt vault secret.enc
  keyway key decrypt vault app.enc --context backup-of-app | psql app")]
    Decrypt(Use),
    /// Make a message authentication code of a file
    #[command(after_help = "\
Examples:
  keyway key mac shared FILE --format hex
  keyway key mac shared FILE -o FILE.mac

keyway key verify compares it.")]
    Mac(Use),
    /// Write a key into a file, wrapped under another key, for another host's daemon that has that one too
    #[command(after_help = "\
Examples:
  keyway key import carrier carrier.bin --algorithm aes-256-gcm --purpose wrap --for user:root
      on both hosts, the same 32 bytes: the key that wraps
  keyway key export web web.wrapped --under carrier
  keyway key import-wrapped web web.wrapped --under carrier --for vm:web
      on the other host: all versions and certificates; who may use it is said anew")]
    Export(Wrapped),
    /// Take in a key that keyway key export has written
    #[command(
        after_help = "Examples:\n  keyway key import-wrapped web web.wrapped --under carrier --for vm:web"
    )]
    ImportWrapped(ImportWrapped),
    /// Give a key a new version; older ones still decrypt what they encrypted
    #[command(after_help = "\
Examples:
  keyway key rotate vault

Sessions that are open with the key end; their clients open new ones by themselves. The next version of a key that \
lives in a token is made in that token.")]
    Rotate(Named),
    /// Keep certificates with a key, or show them
    #[command(after_help = "\
Examples:
  keyway key certificate web fullchain.pem
      the certificate of the key, and behind it those of the authorities that issued it
  keyway key certificate web > fullchain.pem
      those that are there, for who may use the key
  keyway key certificate web --remove

Programs that find keys by their certificates (Java, NSS) need them. A new version of the key has none until they are \
given again.")]
    Certificate(Certificate),
    /// Let others use a key, too
    #[command(after_help = "\
Examples:
  keyway key allow web --for user:haproxy+program:/usr/sbin/haproxy")]
    Allow(Callers),
    /// Remove a grant: the right to use a key
    #[command(after_help = "\
Examples:
  keyway key forbid web --for user:haproxy

Each of them is written as when it was allowed.")]
    Forbid(Callers),
    /// End the use of a key, at once and by all clients
    #[command(after_help = "\
Examples:
  keyway key revoke web

It cannot be undone. A revoked key can be deleted.")]
    Revoke(Named),
    /// Delete a key that was revoked, or is disabled
    #[command(after_help = "\
Examples:
  keyway key delete web

Data that was encrypted under it is lost. A key that was made in a token is destroyed there, too; one that was imported \
from a token stays there.")]
    Delete(Named),
    /// Use a key that is disabled with the file that is there
    #[command(after_help = "\
Examples:
  keyway key accept web
      after a backup was restored
  keyway key list --json | jq -r '.keys[] | select(.state == \"disabled\") | .name' | \\
      xargs keyway key accept

A key is disabled if its file is damaged, missing, exposed to other users, or older than the one that was \
written last, and if the index that says which is the newest is gone or older than the audit log. Other keys stay \
in use. Rather than accept an older file, restore the newest one and start the daemon again: \
an older file does not know that the key was revoked or rotated, or a grant removed.")]
    Accept(Several),
}

/// Where the daemon is.
#[derive(Debug, Args)]
pub struct At {
    /// The daemon's data folder
    #[arg(long = "data", value_name = "DIR", default_value = "keyway-data")]
    pub folder: PathBuf,
    /// Where the daemon listens [default: DIR/cryptod/socket]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Answer with one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// How bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// As they are
    Raw,
    /// In base64, on a line
    Base64,
    /// In hexadecimal digits, on a line
    Hex,
}

impl From<Format> for key_files::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Raw => key_files::Format::Raw,
            Format::Base64 => key_files::Format::Base64,
            Format::Hex => key_files::Format::Hex,
        }
    }
}

/// How a key is used.
#[derive(Debug, Args)]
pub struct Manner {
    /// With which of the key's algorithms, or of those that one leaves open [default: its first that fits]
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Algorithm>)]
    pub algorithm: Option<Algorithm>,
    /// With which hash, if the algorithm names none [default: sha-256; for a digest under ECDSA, any]
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Algorithm>)]
    pub hash: Option<Algorithm>,
    /// With which hash in MGF1, for rsa-pss and rsa-oaep [default: that of --hash]
    #[arg(long, value_name = "NAME", value_parser = str::parse::<Algorithm>)]
    pub mgf1_hash: Option<Algorithm>,
    /// Bytes of the salt, for rsa-pss [default: as many as the hash has]
    #[arg(long, value_name = "BYTES")]
    pub salt: Option<u16>,
    /// The input is a digest, made elsewhere; of which hash, --hash says
    #[arg(long)]
    pub digest: bool,
    /// The label, for rsa-oaep
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub label: String,
}

/// A key, and what it is to be used on.
#[derive(Debug, Args)]
pub struct Use {
    /// Which key
    pub name: String,
    /// The file, or '-' for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// Where the result goes [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub manner: Manner,
    /// How the result is written [default: raw; signatures and MACs on a terminal in base64]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// The text that is authenticated beside an encrypted one
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub context: String,
    #[command(flatten)]
    pub at: At,
}

/// A key, a file, and what is to be right for both.
#[derive(Debug, Args)]
pub struct Verify {
    /// Which key
    pub name: String,
    /// The file, or '-' for standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// The file with the signature or MAC
    #[arg(long, value_name = "FILE")]
    pub signature: PathBuf,
    #[command(flatten)]
    pub manner: Manner,
    /// How the signature or MAC is written
    #[arg(long, value_enum, default_value = "raw")]
    pub format: Format,
    #[command(flatten)]
    pub at: At,
}

/// A key whose public half is asked for.
#[derive(Debug, Args)]
pub struct Public {
    #[command(flatten)]
    pub key: Named,
    /// As a SubjectPublicKeyInfo in PEM (all kinds but Diffie-Hellman in finite fields)
    #[arg(long, conflicts_with = "json")]
    pub pem: bool,
}

/// A key and a program that is to use it.
#[derive(Debug, Args)]
pub struct ProgramUse {
    #[command(flatten)]
    pub key: Named,
    /// Which program, or which file
    #[arg(long, value_name = "PROGRAM", value_parser = str::parse::<Program>)]
    pub with: Program,
}

/// A key and its certificates.
#[derive(Debug, Args)]
pub struct Certificate {
    /// Which key
    pub name: String,
    /// A file with certificates in PEM, or '-' for standard input
    #[arg(conflicts_with = "remove")]
    pub file: Option<PathBuf>,
    /// Take them away
    #[arg(long)]
    pub remove: bool,
    #[command(flatten)]
    pub at: At,
}

/// The use of a key: with which algorithms, for which purposes, by which clients.
#[derive(Debug, Args)]
pub struct Policy {
    /// A kind of key (rsa, ec-p256, ec-p384, ec-p521; of one that is made also rsa-2048, -3072, -4096, -8192, where rsa is
    /// rsa-3072) for all of its algorithms, or an algorithm that it is for (keyway crypto list); repeatable for RSA keys, and for keys of one curve
    #[arg(long = "algorithm", value_name = "NAME", required = true)]
    pub algorithms: Vec<String>,
    /// A purpose: sign, decrypt, encrypt, mac, derive, agree, wrap or esp (repeatable)
    /// [default: all that the algorithm has, but to wrap; of a kind of key, to sign]
    #[arg(long = "purpose", value_name = "PURPOSE")]
    pub purposes: Vec<String>,
    /// Who may use it (repeatable)
    #[arg(long = "for", value_name = "WHO")]
    pub callers: Vec<String>,
}

/// Make a new key
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway key generate web --algorithm ec-p256 --for user:www-data
  keyway key generate vault --algorithm aes-256-gcm --purpose decrypt \\
      --for user:backup+program:/usr/bin/reader
  keyway key generate pepper --algorithm argon2id --for everybody
  keyway key generate tls --algorithm ec-p256 --for user:www-data --in office
      in a token (keyway cryptod --token), which it never leaves; public half, grants, limits
      and log are the daemon's as ever")]
pub struct Generate {
    /// Its name: lower-case letters, digits and underscores, and behind the first dashes and dots
    pub name: String,
    #[command(flatten)]
    pub policy: Policy,
    /// Make it in this token, of those that the daemon was started with
    #[arg(long = "in", value_name = "LABEL")]
    pub token: Option<String>,
    #[command(flatten)]
    pub at: At,
}

/// Take in a key that was made elsewhere
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway key import web server.key --algorithm rsa
      a private key as PEM or DER (PKCS#8, PKCS#1, SEC 1), for whatever RSA signs
  keyway key import mail smime.key --algorithm rsa --purpose sign --purpose decrypt
  keyway key import old tls.key --algorithm rsa --algorithm rsaes-pkcs1 \\
      --purpose sign --purpose decrypt
      old peers decrypt by PKCS#1 v1.5, too, which a policy has to name
  openssl genpkey -algorithm ed25519 | keyway key import signer - --algorithm ed25519
  keyway key import shared secret.bin --algorithm hmac-sha-256 --for group:app
      a secret: the bytes of the file
  keyway key import ca --in office --label root-2024 --algorithm rsa
      a key that is in a token already, and stays there
  keyway key import tls --in office,cellar --id 0a1b --algorithm ec-p256
      a key that two tokens have: they share the work, and if one fails the other does it all

Delete the file afterwards; the daemon keeps its own copy, sealed. For a key in a token it keeps only where that is and \
its public half; keyway key delete leaves such a key in its token.")]
pub struct Import {
    /// Its name
    pub name: String,
    /// The file, or '-' for standard input
    #[arg(required_unless_present = "tokens", conflicts_with = "tokens")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub policy: Policy,
    /// Use a key that is in this token already, or in all of several ones (commas between)
    #[arg(long = "in", value_name = "LABEL", value_delimiter = ',', requires = "object")]
    pub tokens: Vec<String>,
    /// The key's CKA_ID in the token, in hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = key_files::cka_id, group = "object", requires = "tokens")]
    pub id: Option<Bytes>,
    /// The key's CKA_LABEL in the token
    #[arg(long, value_name = "TEXT", group = "object", requires = "tokens")]
    pub label: Option<String>,
    #[command(flatten)]
    pub at: At,
}

/// Bytes that are one argument.
pub type Bytes = Vec<u8>;

/// Show the keys that there are, what they are for, and how often they were used
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  keyway key list
  keyway key list --json
  keyway key list --usable
      the keys that you may use, for what, and their public halves

A line `in LABEL` is below each key that lives in a token.

Without --usable those who look after the daemon's keys see all of them, and other users those that are, or were \
until they were revoked, for them. With --usable all users see exactly the keys that the grants let them use now.
In the JSON, public_key is a SubjectPublicKeyInfo (DER, base64); it is null for a secret.")]
pub struct List {
    /// Only the keys that this user and program may use
    #[arg(long)]
    pub usable: bool,
    #[command(flatten)]
    pub at: At,
}

/// A key.
#[derive(Debug, Args)]
pub struct Named {
    /// Which
    pub name: String,
    #[command(flatten)]
    pub at: At,
}

/// A key, and a file with it wrapped.
#[derive(Debug, Args)]
pub struct Wrapped {
    #[command(flatten)]
    pub key: Named,
    /// The file
    pub file: PathBuf,
    /// The key that wraps it: for aes-256-gcm, to wrap
    #[arg(long, value_name = "KEY")]
    pub under: String,
}

/// A wrapped key, and who may use it here.
#[derive(Debug, Args)]
pub struct ImportWrapped {
    #[command(flatten)]
    pub wrapped: Wrapped,
    /// Who may use it (repeatable)
    #[arg(long = "for", value_name = "WHO")]
    pub callers: Vec<String>,
}

/// Some keys.
#[derive(Debug, Args)]
pub struct Several {
    /// Which
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub at: At,
}

/// A key, and who may use it or may not.
#[derive(Debug, Args)]
pub struct Callers {
    #[command(flatten)]
    pub key: Named,
    /// Who (repeatable)
    #[arg(long = "for", value_name = "WHO", required = true)]
    pub callers: Vec<String>,
}
