//! A scenario for a load generator: what was asked, how often, with the values that varied as data.
//!
//! Requests that differ in values only are one job, whose weight is how often there was one. A value
//! that is always the same stays where it is; one that varies is a name in braces, whose values are in
//! a file, a line each, or a range of numbers where they are all that. Result codes that there were are
//! expected again. The identity that sent most requests binds on each connection, but for the requests
//! of binds.

use crate::limits::{DISTINCT_MAX, SCENARIO_JOBS_MAX, SCENARIO_VALUES_MAX};
use crate::operation::{Note, Operation};
use crate::query::scope;
use crate::secrets::Secrets;
use crate::view::View;
use keyway_codec::message::{Authentication, ChangeOperation};
use keyway_codec::{Filter, Op};
use keyway_host::text::misleads;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::SocketAddr;

/// A scenario for a load generator, which [`Scenario::files`] gives in the end.
#[derive(Debug, Default)]
pub struct Scenario {
    server: Option<SocketAddr>,
    has_tls: bool,
    has_start_tls: bool,
    jobs: Jobs,
    /// The identities that sent requests other than binds, and how often.
    bound: BTreeMap<String, u64>,
    left_out: BTreeMap<&'static str, u64>,
}

/// Requests that differ in values only.
#[derive(Debug)]
pub(super) struct Job {
    kind: &'static str,
    /// Keys and texts of the step, with a mark at each value.
    texts: Vec<(&'static str, Text)>,
    count: u64,
    /// How its requests were answered.
    codes: BTreeSet<u32>,
    /// The values that stood at each mark, in the order of their first use.
    values: Vec<Values>,
}

#[derive(Debug, Default)]
struct Values {
    known: BTreeSet<String>,
    in_order: Vec<String>,
}

#[derive(Debug, Clone)]
enum Text {
    One(String),
    Number(u32),
    Many(Vec<String>),
    Table(Vec<(String, String)>),
}

/// Stands at a value; no text that came over LDAP has it unescaped.
const MARK: char = '\u{1}';

/// Stands at the second part of the value before it, after a tab: a password goes with its name.
const SECOND_MARK: char = '\u{2}';

/// A request taken apart.
struct Parts {
    kind: &'static str,
    texts: Vec<(&'static str, Text)>,
    values: Vec<String>,
}

impl View for Scenario {
    fn operation(&mut self, operation: &Operation<'_>, _: &mut Vec<u8>) {
        self.server.get_or_insert(operation.connection.server);
        self.has_tls |= operation.connection.tls;
        self.has_start_tls |= operation.name() == "starttls";
        match operation.request.op().and_then(|request| parts(request, operation.secrets)) {
            Some(parts) => self.add(parts, operation),
            None => *self.left_out.entry(operation.name()).or_default() += 1,
        }
    }

    fn note(&mut self, _: &Note<'_>, _: &mut Vec<u8>) {}
}

impl Scenario {
    fn add(&mut self, parts: Parts, operation: &Operation<'_>) {
        let bound = &operation.connection.bound;
        let is_known = self.bound.contains_key(bound);
        if parts.kind != "bind" && (is_known || self.bound.len() < DISTINCT_MAX) {
            *self.bound.entry(bound.clone()).or_default() += 1;
        }
        let key = format!("{} {:?}", parts.kind, parts.texts);
        if !self.jobs.contains_key(&key) && self.jobs.len() >= DISTINCT_MAX {
            *self.left_out.entry("further kinds of request").or_default() += 1;
            return;
        }
        let Parts { kind, texts, values } = parts;
        let job = self.jobs.entry(key).or_insert_with(|| Job {
            kind,
            texts,
            count: 0,
            codes: BTreeSet::new(),
            values: values.iter().map(|_| Values::default()).collect(),
        });
        job.count += 1;
        job.codes.extend(operation.code().map(|code| code.code()));
        job.values.iter_mut().zip(values).for_each(|(known, value)| known.add(value));
    }

    /// The scenario, and the files of values beside it: each with its name.
    #[must_use]
    pub fn files(&self) -> Vec<(String, String)> {
        let mut files = Vec::new();
        let (mut data, mut jobs) = (String::new(), String::new());
        let mut all: Vec<_> = self.jobs.values().collect();
        all.sort_by_key(|job| std::cmp::Reverse(job.count));
        let rare = all.split_off(all.len().min(SCENARIO_JOBS_MAX));
        let who = self.bound.iter().max_by_key(|(_, count)| **count).map(|(who, _)| who.as_str());
        let who = who.filter(|who| !who.is_empty());
        for (index, job) in all.into_iter().enumerate() {
            job.write(index + 1, who.is_some(), &mut data, &mut jobs, &mut files);
        }
        let mut text =
            "# From a capture, by keyway decode. Check the target and the passwords: where \
                        they are hidden, those of binds are \"password\".\nname = \"captured\"\n\n"
                .to_owned();
        self.target(&mut text);
        let rare: u64 = rare.iter().map(|job| job.count).sum();
        if rare > 0 {
            let _ = writeln!(text, "# left out: {rare} of kinds that are rarer than those below");
        }
        for (what, count) in &self.left_out {
            let _ = writeln!(text, "# left out: {count} of {what}");
        }
        if let Some(who) = who {
            let _ = write!(
                text,
                "\n# Put the password into that file, beside this one.\n[connections]\n\
                 bind = {{ dn = {}, password_file = \"bind.password\" }}\n",
                quoted(&braces(who))
            );
        }
        let _ = write!(text, "\n[data]\n{data}{jobs}");
        files.insert(0, ("scenario.toml".to_owned(), text));
        files
    }
}

impl Scenario {
    /// `[target]`: the server that was captured.
    fn target(&self, text: &mut String) {
        let scheme = if self.has_tls && !self.has_start_tls { "ldaps" } else { "ldap" };
        let url = self.server.map_or_else(String::new, |server| format!("{scheme}://{server}"));
        let _ = writeln!(text, "[target]\nurls = [{}]", quoted(&url));
        if self.has_start_tls {
            text.push_str("start_tls = true\n");
        }
        if self.has_tls {
            text.push_str("# ca = \"ca.pem\", if the system does not trust its certificate\n");
        }
    }
}

impl Values {
    fn add(&mut self, value: String) {
        if self.in_order.len() < SCENARIO_VALUES_MAX && self.known.insert(value.clone()) {
            self.in_order.push(value);
        }
    }

    /// Numbers between the same text before and after, most of a range of which there are.
    fn range(&self) -> Option<(&str, u64, u64, &str)> {
        let first = self.in_order.first()?;
        let start = first.find(|c: char| c.is_ascii_digit())?;
        let (before, rest) = first.split_at_checked(start)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (_, after) = rest.split_at_checked(end)?;
        let number = |value: &String| {
            let digits = value.strip_prefix(before)?.strip_suffix(after)?;
            let number: u64 = digits.parse().ok()?;
            (number.to_string() == digits).then_some(number)
        };
        let numbers: Option<BTreeSet<u64>> = self.in_order.iter().map(number).collect();
        let numbers = numbers?;
        let (low, high) = (*numbers.first()?, *numbers.last()?);
        let dense = high - low < 2 * numbers.len() as u64;
        (numbers.len() > 2 && dense).then_some((before, low, high, after))
    }
}

impl Job {
    fn write(
        &self,
        number: usize,
        has_bind: bool,
        data: &mut String,
        jobs: &mut String,
        files: &mut Vec<(String, String)>,
    ) {
        let name = format!("{}{number}", self.kind);
        let mut fillings = Vec::new();
        for (index, values) in self.values.iter().enumerate() {
            let variable = format!("{name}_{}", index + 1);
            let has_two = values.in_order.iter().any(|value| value.contains('\t'));
            if let [only] = values.in_order.as_slice()
                && !has_two
            {
                fillings.push(braces(only));
            } else if let Some((before, low, high, after)) = values.range() {
                let _ = writeln!(data, "{variable} = {{ range = [{low}, {high}] }}");
                fillings.push(format!("{before}{{{variable}}}{after}"));
            } else {
                let file = format!("{variable}.txt");
                let _ = writeln!(data, "{variable} = {{ file = {} }}", quoted(&file));
                files.push((file, values.in_order.join("\n") + "\n"));
                fillings.push(match has_two {
                    true => format!("{{{variable}.1}}\t{{{variable}.2}}"),
                    false => format!("{{{variable}}}"),
                });
            }
        }
        let mut fillings = Filler(fillings.into_iter(), String::new());
        let mut body = Vec::new();
        for (key, text) in &self.texts {
            let text = match text {
                Text::One(text) => quoted(&fillings.filled(text)),
                Text::Number(number) => number.to_string(),
                Text::Many(texts) => {
                    let all: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
                    format!("[{}]", all.join(", "))
                }
                Text::Table(rows) => {
                    let row = |(name, value): &(String, String)| {
                        format!("{} = {}", quoted(name), quoted(&fillings.filled(value)))
                    };
                    let all: Vec<_> = rows.iter().map(row).collect();
                    format!("{{ {} }}", all.join(", "))
                }
            };
            body.push(format!("{key} = {text}"));
        }
        let usual: &[u32] = if self.kind == "compare" { &[5, 6] } else { &[0] };
        if self.codes.iter().any(|code| !usual.contains(code)) {
            let codes: BTreeSet<u32> = self.codes.iter().chain(usual).copied().collect();
            let codes: Vec<String> = codes.iter().map(u32::to_string).collect();
            body.push(format!("expect = {{ code = [{}] }}", codes.join(", ")));
        }
        let (kind, count, body) = (self.kind, self.count, body.join(", "));
        let _ = write!(jobs, "\n[[job]]\nname = \"{name}\"\nweight = {count}\n");
        if kind == "bind" && has_bind {
            // The identity that binds here is not the one of other requests.
            jobs.push_str("connections = { bind = \"none\" }\n");
        }
        let _ = writeln!(jobs, "steps = [{{ {kind} = {{ {body} }} }}]");
    }
}

/// A text that is no name of data.
fn braces(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

/// Fills marks, one after another.
struct Filler(std::vec::IntoIter<String>, String);

impl Filler {
    fn filled(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                MARK => {
                    let next = self.0.next().unwrap_or_default();
                    let (first, second) = next.split_once('\t').unwrap_or((&next, ""));
                    out.push_str(first);
                    self.1 = second.to_owned();
                }
                SECOND_MARK => out.push_str(&self.1),
                c => out.push(c),
            }
        }
        out
    }
}

/// A text of TOML; what JSON escapes TOML does the same way.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A value, and the mark that stands for it. One of several lines, or of no text, is no value of a list.
fn marked(value: &[u8], values: &mut Vec<String>) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    if text.contains(misleads) {
        return None;
    }
    values.push(text.to_owned());
    Some(MARK.to_string())
}

/// A request taken apart; `None` if a scenario has no step for it.
fn parts(request: &Op<'_>, secrets: Secrets) -> Option<Parts> {
    let mut values = Vec::new();
    let one = |key, text: &str, values: &mut Vec<String>| {
        Some((key, Text::One(marked(text.as_bytes(), values)?)))
    };
    let (kind, texts) = match request {
        Op::SearchRequest(search) => {
            let scope = match scope(search.scope) {
                "subordinate" => "children",
                scope => scope,
            };
            let mut texts = vec![
                one("base", search.base, &mut values)?,
                ("scope", Text::One(scope.to_owned())),
                ("filter", Text::One(filter(&search.filter, &mut values)?)),
            ];
            if search.size_limit > 0 {
                texts.push(("size_limit", Text::Number(search.size_limit)));
            }
            if !search.attributes.is_empty() {
                let names = search.attributes.iter().map(|name| (*name).to_owned()).collect();
                texts.push(("attributes", Text::Many(names)));
            }
            ("search", texts)
        }
        Op::BindRequest(bind) => {
            let Authentication::Simple(password) = bind.authentication else { return None };
            let password = std::str::from_utf8(password).ok()?;
            if secrets == Secrets::Hidden || password.contains(misleads) {
                let password = ("password", Text::One("password".to_owned()));
                ("bind", vec![one("dn", bind.name, &mut values)?, password])
            } else {
                marked(bind.name.as_bytes(), &mut values)?;
                values.iter_mut().for_each(|name| *name = format!("{name}\t{password}"));
                let password = ("password", Text::One(SECOND_MARK.to_string()));
                ("bind", vec![("dn", Text::One(MARK.to_string())), password])
            }
        }
        Op::CompareRequest(compare) => {
            let dn = one("dn", compare.dn, &mut values)?;
            let attribute = ("attribute", Text::One(compare.attribute.to_owned()));
            let value = ("value", Text::One(marked(compare.value, &mut values)?));
            ("compare", vec![dn, attribute, value])
        }
        Op::ModifyRequest(modify) => {
            let dn = one("dn", modify.dn, &mut values)?;
            let mut rows = Vec::new();
            for change in &modify.changes {
                let [value] = change.attribute.values.as_slice() else { return None };
                if change.operation != ChangeOperation::Replace {
                    return None;
                }
                let name = change.attribute.description.to_string();
                rows.push((name, marked(value, &mut values)?));
            }
            ("modify", vec![dn, ("replace", Text::Table(rows))])
        }
        _ => return None,
    };
    Some(Parts { kind, texts, values })
}

/// The filter's text with a mark at each value.
fn filter(filter: &Filter<'_>, values: &mut Vec<String>) -> Option<String> {
    let mark = |value: &Cow<'_, [u8]>, values: &mut Vec<String>| {
        // In a filter it is written with its escapes.
        let whole = Filter::Equality { attribute: "a".into(), value: value.clone() }.to_string();
        let text = whole.strip_prefix("(a=")?.strip_suffix(')')?;
        marked(text.as_bytes(), values)
    };
    let mut all = |terms: &[Filter<'_>]| -> Option<String> {
        terms.iter().map(|term| self::filter(term, values)).collect()
    };
    Some(match filter {
        Filter::And(terms) => format!("(&{})", all(terms)?),
        Filter::Or(terms) => format!("(|{})", all(terms)?),
        Filter::Not(term) => format!("(!{})", self::filter(term, values)?),
        Filter::Equality { attribute, .. } if attribute.eq_ignore_ascii_case("objectClass") => {
            filter.to_string()
        }
        Filter::Equality { attribute, value } => format!("({attribute}={})", mark(value, values)?),
        Filter::GreaterOrEqual { attribute, value } => {
            format!("({attribute}>={})", mark(value, values)?)
        }
        Filter::LessOrEqual { attribute, value } => {
            format!("({attribute}<={})", mark(value, values)?)
        }
        Filter::Approx { attribute, value } => format!("({attribute}~={})", mark(value, values)?),
        Filter::Present(attribute) => format!("({attribute}=*)"),
        Filter::Substrings { attribute, initial, any, last } => {
            let mut text = format!("({attribute}=");
            if let Some(piece) = initial {
                text.push_str(&mark(piece, values)?);
            }
            text.push('*');
            for piece in any {
                text.push_str(&mark(piece, values)?);
                text.push('*');
            }
            if let Some(piece) = last {
                text.push_str(&mark(piece, values)?);
            }
            text + ")"
        }
        Filter::Extensible { .. } => return None,
    })
}

/// Jobs by what they have in common, and how much of what was left out.
pub(super) type Jobs = BTreeMap<String, Job>;
