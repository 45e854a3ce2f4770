//! A server joins: it becomes a member, takes a base, and has a data folder then that a start opens as any other.

use super::authority::host;
use super::copied::{make_own, name_of};
use super::link::{Link, LinkError};
use super::placing::Placing;
use super::receive::receive;
use super::token::JoinToken;
use keyway_cluster::message::{Answer, Frame, MemberId, Refusal, Request, Token};
use keyway_config::MemberUrl;
use keyway_engine::{Algorithm, Engine};
use keyway_folder::data::{Folder, name};
use keyway_folder::member::{self, Member, member_of};
use keyway_folder::pem::certificates;
use keyway_folder::user::{self, Account, Half};
use keyway_host::failure::Failure;
use keyway_host::output::{self, shell};
use keyway_host::progress::Progress;
use keyway_host::timestamp::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};

/// Names that are tried where none is given.
const NAMES_TRIED: usize = 9;

/// The options of a join.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// The data folder.
    pub folder: PathBuf,
    /// Where the writer is.
    pub follow: MemberUrl,
    /// The right to join it.
    pub token: JoinToken,
    /// What this member is to be called; the host's name, if there is none.
    pub name: Option<String>,
    /// Where others reach it.
    pub url: Option<MemberUrl>,
    /// The user to run as, if root starts it.
    pub user: Option<Account>,
    /// The user that cryptod is to be.
    pub cryptod_user: Option<Account>,
}

/// Joins. The process becomes the folder's user for good. What it does goes to standard error.
///
/// # Errors
/// If it cannot join, or the data folder is a member's already ([`has_joined`](super::has_joined)), which stays as it is. A
/// folder that did not join holds nothing that a start would take for a directory.
pub fn join(options: &JoinOptions) -> Result<(), Failure> {
    let folder = std::path::absolute(&options.folder)
        .map_err(|why| Failure::system("find the data folder", &options.folder, &why))?;
    let half = Half::Up(options.cryptod_user.as_ref());
    user::enter(options.user.as_ref(), &folder, half)?.keep_nothing()?;
    let Some(placing) = Placing::begin(&folder)? else {
        return Err(Failure::new(format!(
            "{} is a member of a cluster already, and nothing was done; to join another cluster, or again after a \
             removal, take an empty folder (--data DIR)",
            folder.display()
        )));
    };
    let engine = keyway_drivers::engine();
    let (public_key, key) = member::make_key(&engine)?;
    let (mut link, joined) = asked(&engine, options, &public_key)?;
    joined.check(&engine, options.token.authority)?;
    let made = Folder::open(placing.path(), Timestamp::now())?;
    let progress = Progress::bytes("taking the directory", None);
    receive(&mut link, made.path(), &mut |done, total| {
        progress.of(total);
        progress.step(done, "");
    })?;
    drop(progress);
    is_pinned(&engine, &made.file(name::CA_CERTIFICATE), options.token.authority)?;
    let own = options.url.as_ref().map(ToString::to_string);
    make_own(&made, &folder, own.as_deref())?;
    // The token may have said another one.
    let name = name_of(&made, joined.member)?;
    let own = Member {
        id: joined.member.to_string(),
        name: name.clone(),
        follow: vec![options.follow.to_string()],
    };
    member::keep(made.path(), &own, &joined.certificate, &key)?;
    drop(made);
    // It stays a member from here on, and the token is used up.
    link.wait_long()?;
    link.send(&Frame::Acknowledge { position: 0 })?;
    if !matches!(link.next_frame()?, Frame::Acknowledge { .. }) {
        return Err(link.unexpected());
    }
    placing.place()?;
    output::note(format_args!(
        "{name} (member {}) has joined: its directory is in {}",
        joined.member,
        shell(&folder.to_string_lossy())
    ));
    Ok(())
}

/// Joins under the name that was given, or else the host's: that with a number, if another member has it.
fn asked(
    engine: &Engine,
    options: &JoinOptions,
    public_key: &[u8],
) -> Result<(Link, Joined), Failure> {
    let mut names = match &options.name {
        Some(name) => vec![name.clone()],
        None => (2..=NAMES_TRIED).map(|number| format!("{}-{number}", host())).rev().collect(),
    };
    if options.name.is_none() {
        names.push(host());
    }
    loop {
        let name = names.pop().unwrap_or_else(host);
        let config = member::joiner(engine, options.token.authority)?;
        let mut link = Link::connect(&options.follow, config)?;
        match Joined::ask(&mut link, options, name, public_key) {
            Err(LinkError::Refused(Refusal::NoRoom, _)) if !names.is_empty() => {}
            asked => return Ok((link, asked?)),
        }
    }
}

/// The answer to a join.
struct Joined {
    member: MemberId,
    certificate: String,
    authority: String,
}

impl Joined {
    fn ask(
        link: &mut Link,
        options: &JoinOptions,
        name: String,
        public_key: &[u8],
    ) -> Result<Joined, LinkError> {
        let request = Request::Join {
            token: Token(options.token.text().to_string()),
            name,
            url: options.url.as_ref().map(ToString::to_string),
            public_key: public_key.to_vec(),
        };
        match link.ask(request)? {
            Answer::Joined { member, certificate, authority, .. } => {
                Ok(Joined { member, certificate, authority })
            }
            _ => Err(LinkError::Broken(link.unexpected())),
        }
    }

    /// That the certificate is the new member's, and the authority the token's.
    fn check(&self, engine: &Engine, pin: [u8; 32]) -> Result<(), Failure> {
        let first = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).ok();
        let is_own =
            first(&self.certificate).and_then(|der| member_of(&der)) == Some(self.member.0);
        let authority = first(&self.authority);
        let is_pins = authority.is_some_and(|der| has_digest(engine, &der, pin));
        match is_own && is_pins {
            true => Ok(()),
            false => Err(Failure::new(
                "the writer gave a certificate that is not this member's; try again",
            )),
        }
    }
}

/// That a base has the authority whose digest is in the token.
fn is_pinned(engine: &Engine, file: &Path, pin: [u8; 32]) -> Result<(), Failure> {
    let found = certificates(file)?;
    match found.iter().any(|der| has_digest(engine, der, pin)) {
        true => Ok(()),
        false => Err(Failure::new(
            "the base has another authority than the one that the token is of; make another token and try again",
        )),
    }
}

fn has_digest(engine: &Engine, der: &CertificateDer<'_>, wanted: [u8; 32]) -> bool {
    let mut digest = [0; 32];
    engine.digest(Algorithm::Sha256, &[der.as_ref()], &mut digest).is_ok() && digest == wanted
}
