//! Asks a server where its entries and its users are. A run whose user has not said that takes it
//! from here.

use crate::client::Client;
use crate::error::Error;
use crate::limits::{MONITOR_PATIENCE, USERS_ASKED_BYTES_MAX, USERS_ASKED_MAX};
use crate::samples::{Options, Users};
use crate::scenario::Scenario;
use crate::server::resolve;
use keyway_codec::message::{Deref, Message, Scope, SearchRequest};
use keyway_codec::{Filter, Op};
use rustls::crypto::CryptoProvider;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Matches people and their accounts, in most directories.
const PEOPLE: &str = "(|(objectClass=person)(objectClass=posixAccount)(objectClass=account))";
/// The attributes of their login names; the first that one has counts.
const LOGINS: [&str; 3] = ["uid", "sAMAccountName", "cn"];

/// Asks the first server of the options, as the user that they name, where its entries are and who
/// its users are, if they do not say that, and puts it there. Says in words what was found. A
/// server that shows neither is taken to be one that MakeLDIF's example has filled.
///
/// # Errors
/// If the server cannot be reached, or does not take the account.
pub fn survey(
    options: &mut Options,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<String>, Error> {
    let has_users =
        options.users.is_some() || options.filter.is_some() || options.user_dn.is_some();
    if options.base.is_some() && has_users {
        return Ok(None);
    }
    let mut client = connect(options, provider)?;
    let bases = match &options.base {
        Some(base) => vec![base.clone()],
        None => client.naming_contexts(),
    };
    if has_users {
        options.base = bases.into_iter().next();
        return Ok(None);
    }
    let mut best: Option<(String, Found)> = None;
    for base in bases {
        let found = client.users(&base);
        if best.as_ref().is_none_or(|(_, best)| found.lines.len() > best.lines.len()) {
            best = Some((base, found));
        }
    }
    let Some((base, found)) = best else { return Ok(None) };
    options.base = Some(base.clone());
    if found.lines.is_empty() {
        return Ok(None);
    }
    let (count, login) = (found.lines.len(), found.login);
    let first = if found.is_cut { "the first " } else { "" };
    options.users = Some(Users::Lines { lines: found.lines, login });
    Ok(Some(format!("{first}{count} users below {base}, found by {login} (--users names others)")))
}

/// A server that is asked.
struct Asked(Client);

/// Users that it has shown.
#[derive(Default)]
struct Found {
    /// The name of each at a login, a tab, and its DN.
    lines: Vec<String>,
    login: &'static str,
    /// Whether there may be more.
    is_cut: bool,
}

fn connect(options: &Options, provider: &Arc<CryptoProvider>) -> Result<Asked, Error> {
    // A scenario that does nothing has all that says how to connect, read as any other one is.
    let text = options.target_only();
    let mut scenario = Scenario::parse(&text, "the options", Path::new(""))?;
    scenario.trust.own_ca = options.own_ca.clone();
    let url = scenario.urls.first().ok_or_else(|| Error::Usage("there is no URL".into()))?;
    let cannot = |why: io::Error| Error::Server(format!("{url}: {why}"));
    let server = resolve(url, scenario.start_tls, MONITOR_PATIENCE)?;
    let has_tls = url.tls || scenario.start_tls;
    let tls = has_tls.then(|| scenario.trust.config(provider)).transpose()?;
    let bind = scenario.groups.first().and_then(|group| group.bind.as_ref());
    let bind = bind.map(|(request, _)| request);
    let client = Client::open(&server, tls.as_ref(), scenario.start_tls, bind);
    Ok(Asked(client.map_err(cannot)?))
}

impl Asked {
    /// Where entries are. Its own, of its configuration and the like, are no users'.
    fn naming_contexts(&mut self) -> Vec<String> {
        let mut contexts = Vec::new();
        let mut take = |message: &Message<'_>| {
            let Op::SearchResultEntry(entry) = &message.op else { return };
            let named = |name: &str| name.eq_ignore_ascii_case("namingContexts");
            let values = entry.attributes.iter().filter(|it| named(it.description.as_ref()));
            let values = values.flat_map(|attribute| &attribute.values);
            contexts.extend(values.map(|value| String::from_utf8_lossy(value).into_owned()));
        };
        // Contexts that it does not show are not there.
        let _ = self.search("", Scope::Base, "(objectClass=*)", &["namingContexts"], 0, &mut take);
        let is_own = |context: &str| {
            ["cn=config", "cn=schema", "cn=monitor", "cn=keyway", "cn=changelog"]
                .iter()
                .any(|own| context.eq_ignore_ascii_case(own))
        };
        contexts.retain(|context: &String| !is_own(context));
        contexts.truncate(8);
        contexts
    }

    fn users(&mut self, base: &str) -> Found {
        let mut entries: Vec<(String, [Option<String>; LOGINS.len()])> = Vec::new();
        let mut bytes = 0;
        let mut take = |message: &Message<'_>| {
            let Op::SearchResultEntry(entry) = &message.op else { return };
            let value = |name: &str| {
                let mut all = entry.attributes.iter();
                let it = all.find(|it| it.description.eq_ignore_ascii_case(name))?;
                String::from_utf8(it.values.first()?.to_vec()).ok()
            };
            let logins = LOGINS.map(value);
            bytes += entry.dn.len() + logins.iter().flatten().map(String::len).sum::<usize>();
            if bytes <= USERS_ASKED_BYTES_MAX {
                entries.push((entry.dn.to_string(), logins));
            }
        };
        let ended = self.search(base, Scope::Subtree, PEOPLE, &LOGINS, USERS_ASKED_MAX, &mut take);
        let is_cut = ended.is_err() || bytes > USERS_ASKED_BYTES_MAX;
        // The name that most of them have.
        let count = |at: usize| {
            entries.iter().filter(|(_, logins)| logins.get(at).is_some_and(Option::is_some)).count()
        };
        let at = (0..LOGINS.len()).max_by_key(|at| (count(*at), LOGINS.len() - at)).unwrap_or(0);
        let line = |(dn, logins): &(String, [Option<String>; LOGINS.len()])| {
            let login = logins.get(at)?.as_ref()?;
            let is_plain = |text: &str| !text.contains(['\t', '\n', '\r']) && !text.is_empty();
            (is_plain(login) && is_plain(dn)).then(|| format!("{login}\t{dn}"))
        };
        let lines = entries.iter().filter_map(line).collect();
        Found { lines, login: LOGINS.get(at).copied().unwrap_or("uid"), is_cut }
    }

    fn search(
        &mut self,
        base: &str,
        scope: Scope,
        filter: &str,
        attributes: &[&str],
        size_limit: u32,
        each: &mut dyn FnMut(&Message<'_>),
    ) -> io::Result<()> {
        let filter = Filter::parse(filter).map_err(io::Error::other)?;
        let search = SearchRequest {
            base,
            scope,
            deref: Deref::Never,
            size_limit,
            time_limit_s: 0,
            types_only: false,
            filter,
            attributes: attributes.to_vec(),
        };
        self.0.ask(Op::SearchRequest(search), each)
    }
}
