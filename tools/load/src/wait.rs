//! A server waited for, until it answers a search of its root: SLAMD's WaitForDirectoryServer.

use crate::control::Interrupt;
use crate::error::Error;
use crate::limits::WAIT_PAUSE;
use crate::run::run;
use crate::samples::{Options, Sample};
use crate::scenario::Scenario;
use rustls::crypto::CryptoProvider;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A server that is waited for.
#[derive(Clone, Debug)]
pub struct Awaited {
    /// The server.
    pub url: String,
    /// Which certificates of it are taken; nothing else of them counts.
    pub options: Options,
    /// Without an authority there, the one of a data folder that is trusted beside those of the system.
    pub own_ca: PathBuf,
    /// How long it is waited for.
    pub until: Instant,
}

/// Waits until the server answers; why it does not, if the time has passed or it was interrupted.
///
/// # Errors
/// An error that no other look would change: a URL, or a file that cannot be read.
pub fn until_it_answers(
    awaited: Awaited,
    provider: &Arc<CryptoProvider>,
    interrupt: &Interrupt,
) -> Result<Option<String>, Error> {
    let scenario = scenario(&awaited)?;
    loop {
        let why = match run(&scenario, provider, interrupt, &mut |_| ()) {
            Ok(outcome) if outcome.recorded.done() > 0 => return Ok(None),
            Ok(_) => "it takes connections, and does not answer".to_owned(),
            Err(error @ (Error::Usage(_) | Error::File { .. } | Error::Content(..))) => {
                return Err(error);
            }
            Err(error) => error.to_string(),
        };
        if interrupt.came() || Instant::now() > awaited.until {
            return Ok(Some(why));
        }
        thread::sleep(WAIT_PAUSE);
    }
}

/// A few searches of the server's root entry, which every client may read.
fn scenario(awaited: &Awaited) -> Result<Scenario, Error> {
    let Awaited { url, options, own_ca, .. } = awaited;
    let options = Options {
        urls: vec![url.clone()],
        length: Duration::from_millis(100),
        connections: Some(1),
        rate: Some(20.0),
        timeout: Duration::from_secs(2),
        base: Some(String::new()),
        filter: Some("(objectClass=*)".into()),
        ..options.clone()
    };
    let none = || Error::Usage("there is no scenario 'search'".to_owned());
    let text = Sample::named("search").ok_or_else(none)?.text(&options);
    let text = text.replace("{ search = {", "{ search = { scope = \"base\",");
    let mut scenario = Scenario::parse(&text, "wait", Path::new(""))?;
    scenario.trust.own_ca = Some(own_ca.clone());
    Ok(scenario)
}
