//! `keyway web`: the page of `keyway-web`, with servers to look at, authentication and a socket.

mod advice;
mod arguments;

pub use arguments::Web;

use crate::provider::provider;
use crate::top::server_folder;
use keyway_config::Running;
use keyway_engine::Engine;
use keyway_folder::data::{self, name};
use keyway_folder::trust;
use keyway_host::failure::{Failure, plain};
use keyway_host::listeners;
use keyway_host::output;
use keyway_host::signals::Signals;
use keyway_load::{Options, Trust, Users};
use keyway_service::limits::CERTIFICATES_LOOK_EVERY;
use keyway_watch::MonitorClient;
use keyway_watch::ldap::{ConnectOptions, Login, ServerUrl, logins};
use keyway_web::limits::HOSTS_MAX;
use keyway_web::{
    App, Auth, AuthMethod, MonitorTarget, PageTls, Races, ServerSource, Target, TlsOptions, hosts,
};
use serde_json::json;
use std::fs::File;
use std::future::pending;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long a server that is monitored may take to be connected to, and to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// See [`CONNECT_WAIT`].
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// Shows the page until it is told to stop.
///
/// # Errors
/// Whatever keeps it from listening, or from watching.
pub fn run(arguments: &Web) -> Result<(), Failure> {
    let engine = keyway_drivers::engine();
    let has_tls = arguments.tls || !arguments.listen.ip().is_loopback();
    let mut tls = has_tls.then(|| PageTls::open(tls_options(arguments), &engine)).transpose()?;
    let method = match has_tls {
        true => AuthMethod::Login(Arc::new(login(arguments)?)),
        false => AuthMethod::Token(Box::new(say(arguments.json))),
    };
    let monitored = monitored(arguments)?;
    let races = Races::new(targets(arguments)?, files(arguments)?, keyway_tls::provider(&engine));
    let listener = listeners::listen(arguments.listen, "--listen")?;
    let names = tls.as_ref().map(|tls| tls.names.clone()).unwrap_or_default();
    let hosts = hosts(listeners::address(&listener)?, [arguments.names.clone(), names].concat());
    let url = hosts.first().map(|host| format!("https://{host}/")).unwrap_or_default();
    let page = number(&engine)?;
    let random = move |bytes: &mut [u8]| engine.random(bytes).map_err(|why| why.to_string());
    let auth = Auth::new(method, hosts, has_tls, Box::new(random)).map_err(Failure::new)?;
    if has_tls {
        say(arguments.json)(&url);
    }
    let app = Arc::new(App { auth, monitored, races, page });
    let cannot = |why: std::io::Error| Failure::new(format!("cannot serve: {}", plain(&why)));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(cannot)?;
    let served = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        listener.set_nonblocking(true).map_err(cannot)?;
        let listener = tokio::net::TcpListener::from_std(listener).map_err(cannot)?;
        let end = async {
            signals.end().await;
            tokio::spawn(signals.end_at_next());
        };
        let acceptor = tls.as_ref().map(PageTls::acceptor);
        tokio::select! {
            served = keyway_web::serve(listener, acceptor, app, end) => served.map_err(cannot),
            never = look_at(tls.as_mut()) => never,
        }
    });
    // A server that does not answer does not delay the end.
    runtime.shutdown_background();
    served
}

/// Takes a certificate that changes, for ever.
async fn look_at(tls: Option<&mut PageTls>) -> Result<(), Failure> {
    let Some(tls) = tls else { return pending().await };
    let mut look = tokio::time::interval(CERTIFICATES_LOOK_EVERY);
    loop {
        look.tick().await;
        // It reads files, and may ask cryptod.
        if let Some(said) = tokio::task::block_in_place(|| tls.look()) {
            output::note(said);
        }
    }
}

/// Says where the page is. Without a reader there is nothing to be done.
fn say(is_json: bool) -> impl Fn(&str) + Send + Sync {
    move |url| {
        let _ = match is_json {
            true => output::write_json(&json!({ "event": "ready", "url": url })),
            false => output::write(url),
        };
    }
}

fn number(engine: &Engine) -> Result<u64, Failure> {
    let mut bytes = [0; 8];
    engine.random(&mut bytes).map_err(Failure::new)?;
    Ok(u64::from_ne_bytes(bytes))
}

fn tls_options(arguments: &Web) -> TlsOptions {
    let files = arguments.certificate.clone().zip(arguments.key.clone());
    TlsOptions { files, folder: arguments.data.folder.clone() }
}

fn connect_options(arguments: &Web) -> ConnectOptions {
    ConnectOptions {
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
    }
}

fn monitored(arguments: &Web) -> Result<Vec<MonitorTarget>, Failure> {
    if arguments.urls.len() > HOSTS_MAX {
        return Err(Failure::usage(format!("a page shows {HOSTS_MAX} servers at most")));
    }
    let options = connect_options(arguments);
    options.trust.check()?;
    let logins = logins(&arguments.bind_dn, &arguments.password_file, arguments.urls.len().max(1))?;
    trust::warn(arguments.insecure);
    if arguments.urls.is_empty() {
        let folder = &arguments.data.folder;
        data::may_look(folder)?;
        if !folder.exists() {
            output::note(format_args!("warning: there is no folder {}", folder.display()));
        }
        let login = logins.into_iter().next().flatten();
        let advisor = advice::advisor(folder);
        let source = ServerSource::folder(server_folder(folder), options, login, advisor);
        let name = folder.display().to_string();
        return Ok(vec![MonitorTarget::new(name, Box::new(source)).map_err(Failure::new)?]);
    }
    let watch = |(text, login): (&String, Login)| {
        let url = ServerUrl::parse("URL", text)?;
        if login.is_some() {
            url.may_carry_password(arguments.start_tls)?;
        }
        let source = ServerSource::server(url, options.clone(), login);
        MonitorTarget::new(text.clone(), Box::new(source)).map_err(Failure::new)
    };
    arguments.urls.iter().zip(logins).map(watch).collect()
}

/// Asks a directory whether a user is an administrator of it: whether the user may read its configuration.
fn login(arguments: &Web) -> Result<impl Fn(&str, &[u8]) -> Result<(), String> + use<>, Failure> {
    let options = connect_options(arguments);
    let named = arguments.login.as_ref().or(arguments.urls.first());
    let url = named.map(|url| ServerUrl::parse("--login", url)).transpose()?;
    if let Some(url) = &url {
        url.may_carry_password(arguments.start_tls)?;
    }
    let folder = server_folder(&arguments.data.folder);
    Ok(move |name: &str, password: &[u8]| {
        let url = url.clone().or_else(|| folder.ldaps_url());
        let url =
            url.ok_or("The directory does not run, or not with TLS, so logins are not possible.")?;
        let login = Some((name.to_owned(), Zeroizing::new(password.to_vec())));
        let is_one =
            MonitorClient::connect(&url, &options, &login).and_then(|mut it| it.is_administrator());
        match is_one {
            Ok(true) => Ok(()),
            Ok(false) => Err("That is no administrator's name.".to_owned()),
            Err(why) => Err(format!("No: {why}.")),
        }
    })
}

/// The servers that may be put under load: those that are shown, and those that are named.
fn targets(arguments: &Web) -> Result<Vec<Target>, Failure> {
    let place = |path: &Path| absolute(path).map_err(|why| Failure::system("find", path, &why));
    let folder = place(&arguments.data.folder)?;
    let account = arguments.load_bind_dn.clone().zip(arguments.load_password_file.clone());
    let account = account.map(|(dn, file)| Ok::<_, Failure>((dn, place(&file)?))).transpose()?;
    // Files that only a run reads are better known now, too.
    if let Some((_, file)) = &account {
        data::read_password(file)?;
    }
    if let Some(Users::File(file)) = &arguments.users {
        File::open(file).map_err(|why| Failure::system("read", file, &why))?;
    }
    let options = Options {
        ca: arguments.ca.as_deref().map(place).transpose()?,
        own_ca: Some(folder.join(name::CA_CERTIFICATE)),
        insecure: arguments.insecure,
        start_tls: arguments.start_tls,
        base: arguments.base.clone(),
        admin: account.clone(),
        users: arguments.users.as_ref().map(Users::absolute).transpose()?,
        ..Options::default()
    };
    let mut targets = Vec::new();
    if arguments.urls.is_empty() {
        targets.push(own_target(folder, account, options.clone()));
    }
    for text in arguments.urls.iter().chain(&arguments.targets) {
        keyway_load::Url::parse(text).map_err(Failure::usage)?;
        let options = Options { urls: vec![text.clone()], ..options.clone() };
        targets.push(Target { name: text.clone(), options: Box::new(move || Ok(options.clone())) });
    }
    Ok(targets)
}

/// The server on the data folder, as its administrator unless another account is named.
fn own_target(folder: PathBuf, account: Option<(String, PathBuf)>, options: Options) -> Target {
    let name = folder.display().to_string();
    let options = move || {
        let running = Running::look(&folder)
            .ok_or_else(|| format!("no server runs on {}", folder.display()))?;
        let url = crate::load::own_urls(&running).into_iter().next();
        let url = url.ok_or_else(|| {
            format!("the server on {} listens on a Unix socket only", folder.display())
        })?;
        let mut options = Options {
            urls: vec![url],
            admin: account.clone(),
            start_tls: false,
            ..options.clone()
        };
        crate::load::as_at_home(&folder, &mut options, false);
        Ok(options)
    };
    Target { name, options: Box::new(options) }
}

/// Scenarios of files, by the files' names.
fn files(arguments: &Web) -> Result<Vec<(String, PathBuf)>, Failure> {
    let named = |path: &PathBuf| {
        // A file that makes no sense is better known now.
        keyway_load::Scenario::read(path)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let path = absolute(path).map_err(|why| Failure::system("find", path, &why))?;
        Ok((name.unwrap_or_default(), path))
    };
    arguments.scenarios.iter().map(named).collect()
}
