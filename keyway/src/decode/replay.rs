//! `keyway decode replay`: the requests of a capture sent to a server again, and what comes of them
//! compared.

use super::arguments::Replay;
use super::printing::keys;
use super::reading;
use keyway_decode::io::replay::{
    Destination, DestinationOptions, ReplayAccount, ReplayListener, ReplayTls, Replayed, send,
};
use keyway_decode::limits::{PASSWORD_BYTES_MAX, REPLAY_PASSWORDS_BYTES_MAX};
use keyway_decode::replay::{Difference, List, Passwords, Recorder, Script};
use keyway_decode::view::Printer;
use keyway_decode::{Decoder, Options, Secrets};
use keyway_folder::data::is_secret;
use keyway_folder::trust;
use keyway_host::failure::{Failure, plain};
use keyway_host::limits::raise_open_files;
use keyway_host::output::{self, grouped};
use keyway_host::signals::Signals;
use keyway_load::{Trust, tls_words};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::channel;
use zeroize::Zeroizing;

/// Sends them; whether all came to the same.
///
/// # Errors
/// Whatever keeps it from reading the capture, or from sending anything at all.
pub fn run(arguments: &Replay) -> Result<bool, Failure> {
    let passwords = passwords(arguments)?;
    let server = destination(arguments)?;
    let recorder = Recorder::new(passwords);
    let printer = Printer::new(recorder, arguments.filter.clone(), io::sink());
    // Which requests have passwords is found out where they are; none goes further unasked.
    let options = Options { secrets: Secrets::Shown, keep_answers: false };
    let decoder = Decoder::new(&arguments.ports, options);
    let decoder = decoder.with_keys(keys(arguments.keylog.as_deref())?);
    let (hand_over, recorded) = channel();
    let is_whole = reading::run(&arguments.files, decoder, printer, move |recorder, stopped| {
        // There is no receiver any more only if the program ends.
        let _ = (!stopped).then(|| hand_over.send(recorder.script()));
        Ok(())
    })?;
    let Ok(script) = recorded.recv() else {
        return Err(Failure::new("stopped while the capture was read; nothing was sent"));
    };
    announce(arguments, &script);
    raise_open_files();
    let left_out = script.left_out.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start: {}", plain(&why))))?;
    let replayed = runtime.block_on(async {
        server.probe().await?;
        let mut signals = Signals::catch()?;
        let listener = (Box::new(Teller { json: arguments.json }) as Box<_>, arguments.rows);
        send(script, arguments.speed, server, listener, signals.end()).await
    })?;
    say(&replayed, &left_out, arguments.json)?;
    Ok(replayed.is_same() && replayed.sent_all && is_whole)
}

/// Says what differs as it comes.
struct Teller {
    json: bool,
}

impl ReplayListener for Teller {
    fn difference(&self, difference: &Difference<'_>) -> Result<(), Failure> {
        match self.json {
            true => output::json(&difference.value()),
            false => output::text(difference),
        }
    }

    fn remark(&self, text: &dyn Display) {
        output::note(text);
    }
}

/// Says what all came to.
fn say(
    replayed: &Replayed,
    left_out: &BTreeMap<&'static str, u64>,
    json: bool,
) -> Result<(), Failure> {
    if json {
        return output::json(&replayed.value(left_out));
    }
    output::text(replayed.comparison.table().trim_end())?;
    output::text(format_args!("\n{}", replayed.summary()))
}

/// Where requests are sent, and how.
fn destination(arguments: &Replay) -> Result<Destination, Failure> {
    let to = arguments.to.clone();
    if to.tls && arguments.start_tls {
        return Err(Failure::usage(
            "--start-tls is for ldap:// URLs; ldaps:// has TLS from the start",
        ));
    }
    let tls = (to.tls || arguments.start_tls).then(|| tls(arguments)).transpose()?;
    let (start_tls, timeout) = (arguments.start_tls, arguments.timeout);
    Destination::new(DestinationOptions { to, tls, start_tls, bind: bind(arguments)?, timeout })
}

fn tls(arguments: &Replay) -> Result<ReplayTls, Failure> {
    let wanted = Trust {
        ca: arguments.ca.clone(),
        own_ca: Some(trust::usual_authority()),
        insecure: arguments.insecure,
        resume: false,
        own: None,
    };
    trust::warn(arguments.insecure);
    let config = wanted.config(&keyway_tls::provider(&keyway_drivers::engine()));
    Ok(ReplayTls { config: config.map_err(Failure::new)?, words: tls_words })
}

/// The account of --bind-dn.
fn bind(arguments: &Replay) -> Result<Option<ReplayAccount>, Failure> {
    let (Some(name), Some(file)) = (&arguments.bind_dn, &arguments.password_file) else {
        return Ok(None);
    };
    let text = secret(file, PASSWORD_BYTES_MAX)?;
    let password = text.strip_suffix(b"\n").unwrap_or(&text);
    let password = password.strip_suffix(b"\r").unwrap_or(password);
    let password = Zeroizing::new(password.to_vec());
    Ok(Some(ReplayAccount { name: name.clone(), password }))
}

fn passwords(arguments: &Replay) -> Result<Passwords, Failure> {
    if arguments.captured_passwords {
        return Ok(Passwords::Captured);
    }
    if arguments.bind_dn.is_some() {
        return Ok(Passwords::Ours);
    }
    let Some(path) = &arguments.passwords else { return Ok(Passwords::None) };
    let text = secret(path, REPLAY_PASSWORDS_BYTES_MAX)?;
    let list = List::parse(&text).map_err(|line| {
        let path = path.display();
        Failure::new(format!("{path}, line {line}: it should be a name, a tab and a password"))
    })?;
    Ok(Passwords::Listed(list))
}

/// Reads a file of secrets that has no more than so many bytes.
fn secret(path: &Path, bytes_max: u64) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let wrong = |why: io::Error| Failure::system("read", path, &why);
    let mut text = Zeroizing::new(Vec::new());
    let file = File::open(path).map_err(wrong)?;
    is_secret(path, &file)?;
    file.take(bytes_max + 1).read_to_end(&mut text).map_err(wrong)?;
    if text.len() as u64 > bytes_max {
        let path = path.display();
        return Err(Failure::new(format!("{path} is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

/// Says what is sent, and what is not.
fn announce(arguments: &Replay, script: &Script) {
    let requests: usize = script.conversations.iter().map(|one| one.requests.len()).sum();
    output::note(format_args!(
        "sends {} requests on {} connections to {}",
        grouped(requests as u64),
        grouped(script.conversations.len() as u64),
        arguments.to
    ));
    for (what, count) in &script.left_out {
        output::note(format_args!("left out: {} {what}", grouped(*count)));
    }
    if script.without_passwords() > 0 {
        output::note(
            "passwords are sent with --captured-passwords, or in binds with --passwords FILE; or \
             --bind-dn binds for every connection",
        );
    }
}
