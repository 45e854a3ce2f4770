//! `keyway top`: what a running server is doing, read out of its page of counters and histograms, or over
//! LDAP.

mod screen;

use crate::cli::Top;
use crate::provider::provider;
use keyway_config::Running;
use keyway_folder::data::name;
use keyway_folder::trust;
use keyway_host::failure::Failure;
use keyway_load::Trust;
use keyway_server::ADMINISTRATOR_DN;
use keyway_watch::ldap::{ConnectOptions, Login, ServerUrl, logins};
use keyway_watch::lines::{Form, Lines, of_page, of_servers};
use keyway_watch::{PageOwner, ServerFolder, SnapshotSource};
use std::path::Path;
use std::time::Duration;

/// How long a server that is looked at over LDAP may take to let us in, and to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Shows it on the terminal, or as lines.
///
/// # Errors
/// If no server can be looked at.
pub fn run(arguments: &Top) -> Result<(), Failure> {
    let form = match (arguments.json, arguments.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    };
    let interval = Duration::from_secs_f64(arguments.interval);
    let wanted = Lines { form, interval, count: arguments.count };
    if let Some(state) = &arguments.esp {
        return of_page(PageOwner::Esp, state, &wanted);
    }
    let is_lines = form != Form::Text || arguments.lines || arguments.count.is_some();
    if !is_lines && screen::is_there() {
        return screen::run(sources(arguments)?, interval, arguments.cryptod);
    }
    match arguments.urls.is_empty() {
        true => {
            let owner = if arguments.cryptod { PageOwner::Cryptod } else { PageOwner::Directory };
            of_page(owner, &arguments.data.folder, &wanted)
        }
        false => of_servers(sources(arguments)?, &wanted),
    }
}

/// The servers that are asked for, by their names.
fn sources(arguments: &Top) -> Result<Vec<(String, SnapshotSource)>, Failure> {
    let servers = arguments.urls.len().max(1);
    let logins = logins(&arguments.bind_dn, &arguments.password_file, servers)?;
    trust::warn(arguments.insecure);
    let options = ConnectOptions {
        trust: Trust {
            ca: arguments.ca.clone(),
            own_ca: Some(arguments.data.folder.join(name::CA_CERTIFICATE)),
            insecure: arguments.insecure,
            ..Trust::default()
        },
        start_tls: arguments.start_tls,
        connect_wait: CONNECT_WAIT,
        answer_wait: ANSWER_WAIT,
        provider,
    };
    options.trust.check()?;
    if arguments.urls.is_empty() {
        let folder = &arguments.data.folder;
        let source = SnapshotSource::folder(
            server_folder(folder),
            options,
            logins.into_iter().next().flatten(),
        );
        return Ok(vec![(folder.display().to_string(), source)]);
    }
    let source = |(text, login): (&String, Login)| {
        let url = ServerUrl::parse("keyway top", text)?;
        if login.is_some() {
            url.may_carry_password(arguments.start_tls)?;
        }
        let name = format!("{}:{}", url.host, url.port);
        Ok((name, SnapshotSource::server(url, options.clone(), login)))
    };
    arguments.urls.iter().zip(logins).map(source).collect()
}

/// A data folder, and how its server is found.
pub fn server_folder(path: &Path) -> ServerFolder {
    ServerFolder {
        path: path.to_owned(),
        ldaps: |folder| Running::look(folder)?.ldaps,
        administrator: ADMINISTRATOR_DN,
    }
}
