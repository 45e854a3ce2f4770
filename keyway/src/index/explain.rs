//! `keyway directory explain`.

use super::Explain;
use crate::acl::look;
use keyway_codec::Filter;
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_server::{Explained, Lack, Part, Use};
use keyway_service::instance::describe;
use serde_json::{Value, json};

/// Shows how a search would be done.
///
/// # Errors
/// If the filter makes no sense, there is no directory or no such entry, or it cannot be read.
pub fn run(arguments: &Explain) -> Result<(), Failure> {
    let filter = Filter::parse(&arguments.filter)
        .map_err(|why| Failure::usage(format!("{}: {why}", arguments.filter)))?;
    let look = look::open_folder(&arguments.data.folder, None)?;
    let base = &arguments.base;
    let explained = look.directory.explain_search(base, arguments.scope.into(), &filter);
    let explained = explained.map_err(|why| match base.is_empty() {
        true => Failure::new(describe(&why)),
        false => Failure::new(format!("{base}: {}", describe(&why))),
    })?;
    if arguments.data.json {
        return output::json(&json!({
            "event": "explained",
            "base": base,
            "scope_entries": explained.scope,
            "read_entries": explained.read,
            "walks_scope": explained.walks_scope,
            "indexed": explained.lack.is_none(),
            "missing": explained.lack.as_ref().map(missing),
            "filter": shown(&explained.filter),
        }));
    }
    say(&explained)
}

fn say(explained: &Explained) -> Result<(), Failure> {
    tree(&explained.filter, "", "")?;
    let scope = match (explained.walks_scope, explained.narrows_scope) {
        (true, _) => "walked",
        (_, true) => "narrows",
        _ => "tested",
    };
    output::text(line("(the scope)", "the tree", &grouped(explained.scope), scope))?;
    output::text("")?;
    let (read, scope) = (grouped(explained.read), grouped(explained.scope));
    output::text(format_args!("{read} of {scope} entries would be read and put to the filter"))?;
    match &explained.lack {
        None => Ok(()),
        Some(lack) => output::text(format_args!("no index helps: {}", advice(lack))),
    }
}

/// Writes a part and those below it.
fn tree(part: &Part, before: &str, below: &str) -> Result<(), Failure> {
    let kinds = match &part.lack {
        Some(lack) => advice(lack),
        None => part.kinds.join(", "),
    };
    let count = part.count.map(grouped).unwrap_or_default();
    let used = match part.used {
        Use::Walked => "walked",
        Use::Narrows => "narrows",
        Use::Tested => "tested",
    };
    output::text(line(&format!("{before}{}", part.text), &kinds, &count, used))?;
    let last = part.terms.len().saturating_sub(1);
    for (at, term) in part.terms.iter().enumerate() {
        let (own, next) = if at == last { ("└ ", "  ") } else { ("├ ", "│ ") };
        tree(term, &format!("{below}{own}"), &format!("{below}{next}"))?;
    }
    Ok(())
}

/// A line: the part of the filter, how many entries it leads to, what is done with it, and by which index.
fn line(what: &str, kinds: &str, count: &str, used: &str) -> String {
    format!("{what:<40} {count:>12}  {used:<8} {kinds}").trim_end().to_owned()
}

/// Advice on what could be done about it.
fn advice(lack: &Lack) -> String {
    match lack {
        Lack::Index { attribute, kind } => format!("no index; add \"{kind}\" to {attribute}"),
        Lack::Cannot(why) => format!("no index can lead to it: {why}"),
    }
}

fn missing(lack: &Lack) -> Value {
    match lack {
        Lack::Index { attribute, kind } => json!({ "attribute": attribute, "kind": kind.name() }),
        Lack::Cannot(why) => json!({ "why": why }),
    }
}

fn shown(part: &Part) -> Value {
    let terms: Vec<Value> = part.terms.iter().map(shown).collect();
    json!({
        "text": part.text,
        "kinds": part.kinds,
        "entries": part.count,
        "used": match part.used {
            Use::Walked => "walked",
            Use::Narrows => "narrows",
            Use::Tested => "tested",
        },
        "missing": part.lack.as_ref().map(missing),
        "terms": terms,
    })
}
