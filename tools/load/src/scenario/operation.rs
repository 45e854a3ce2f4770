//! One operation of a step: its request, and what is expected of the answer.

use super::account::{self, Account};
use super::context::Context;
use super::section::{Section, Value, members, short, whole};
use super::{Operation, Take};
use crate::error::Error;
use crate::request::Request;
use crate::text::Names;
use keyway_codec::extended::{PASSWORD_MODIFY, PasswordModifyRequest, WHO_AM_I};
use keyway_codec::limits::INTEGER_MAX;
use keyway_codec::message::{
    AddRequest, Attribute, Change, ChangeOperation, CompareRequest, Control, Deref,
    ExtendedRequest, ModifyDnRequest, ModifyRequest, Scope, SearchRequest, tag,
};
use keyway_codec::{Filter, Op};
use std::borrow::Cow;
use zeroize::Zeroizing;

/// The kinds of operations.
pub(crate) const KINDS: [&str; 10] = [
    "search", "bind", "compare", "add", "modify", "rename", "delete", "whoami", "passmod",
    "extended",
];

/// Reads the one of a step. `entry` is the name that the sequence's own entry has by then.
pub(crate) fn read(
    step: &mut Section<'_>,
    names: &mut Names<'_>,
    entry: &mut Option<String>,
    context: &Context<'_>,
) -> Result<Operation, Error> {
    let mut found = None;
    for kind in KINDS {
        if let Some(body) = step.section(kind)?
            && found.replace((kind, body)).is_some()
        {
            return Err(step.error("a step has one operation"));
        }
    }
    let Some((kind, mut body)) = found else {
        let kinds = KINDS.join(", ");
        let why = format!("a step is one of {kinds} and wait: {{ search = {{ ... }} }}");
        return Err(step.error(why));
    };
    body.keys(&[keys(kind), &["controls", "expect"]].concat())?;
    let controls = controls(&mut body)?;
    let mut reading = Reading { body: &mut body, names, entry, context };
    let (request, answer) = match kind {
        "search" => (reading.search(controls)?, tag::SEARCH_RESULT_DONE),
        "bind" => (reading.bind(controls)?, tag::BIND_RESPONSE),
        "compare" => (reading.compare(controls)?, tag::COMPARE_RESPONSE),
        "add" => (reading.add(controls)?, tag::ADD_RESPONSE),
        "modify" => (reading.modify(controls)?, tag::MODIFY_RESPONSE),
        "rename" => (reading.rename(controls)?, tag::MODIFY_DN_RESPONSE),
        "delete" => (reading.delete(controls)?, tag::DELETE_RESPONSE),
        "whoami" => (reading.whoami(controls), tag::EXTENDED_RESPONSE),
        "passmod" => (reading.passmod(controls)?, tag::EXTENDED_RESPONSE),
        _ => (reading.extended(controls)?, tag::EXTENDED_RESPONSE),
    };
    let codes = if kind == "compare" { vec![5, 6] } else { vec![0] };
    let mut operation = Operation {
        kind,
        request,
        answer,
        is_bind: kind == "bind",
        on_second: false,
        codes,
        entries: None,
        values: Vec::new(),
        takes: Vec::new(),
    };
    if let Some(expect) = body.section("expect")? {
        expectation(expect, &mut operation, names)?;
    }
    if kind == "search" {
        takes(&mut body, &mut operation, names)?;
    }
    body.finish()?;
    Ok(operation)
}

/// The keys of an operation.
fn keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "search" => &[
            "base",
            "scope",
            "filter",
            "attributes",
            "size_limit",
            "time_limit_s",
            "types_only",
            "take",
        ],
        "bind" => &account::KEYS,
        "compare" => &["dn", "attribute", "value"],
        "add" => &["dn", "attributes", "entry"],
        "modify" => &["dn", "delete", "add", "replace", "increment"],
        "rename" => &["dn", "rdn", "delete_old", "superior"],
        "delete" => &["dn"],
        "whoami" => &[],
        "passmod" => &["user", "old_password", "new_password"],
        _ => &["oid", "value"],
    }
}

struct Reading<'r, 't, 'n> {
    body: &'r mut Section<'t>,
    names: &'r mut Names<'n>,
    entry: &'r mut Option<String>,
    context: &'r Context<'r>,
}

type Controls<'t> = Vec<Control<'t>>;

impl<'t> Reading<'_, 't, '_> {
    fn marked(&mut self, text: &str) -> Result<String, Error> {
        self.names.mark(text).map_err(|why| self.body.error(why))
    }

    fn required(&mut self, key: &'static str) -> Result<&'t str, Error> {
        self.body.text(key)?.ok_or_else(|| self.body.error(format!("{key} is missing")))
    }

    /// The entry's name; if none is given, that of the one which the sequence has added.
    fn dn(&mut self) -> Result<String, Error> {
        match self.body.text("dn")? {
            Some(dn) => Ok(dn.to_owned()),
            None => self.entry.clone().ok_or_else(|| {
                self.body.error("dn is missing (it may be left out after an add of the same job)")
            }),
        }
    }

    fn request(&self, op: Op<'_>, controls: Controls<'_>) -> Request {
        Request::new(op, controls, self.names)
    }

    fn search(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let base = self.body.text("base")?.unwrap_or(&self.context.target.base).to_owned();
        let base = self.marked(&base)?;
        let scope = match self.body.text("scope")? {
            None | Some("sub") => Scope::Subtree,
            Some("base") => Scope::Base,
            Some("one") => Scope::One,
            Some("children") => Scope::Subordinate,
            Some(_) => return Err(self.body.error("scope should be base, one, sub or children")),
        };
        let text = self.body.text("filter")?.unwrap_or("(objectClass=*)");
        let marked = self.marked(text)?;
        let filter = Filter::parse(&marked)
            .map_err(|why| self.body.error(format!("filter {}: {why}", short(text))))?;
        let attributes = self.body.texts("attributes")?.unwrap_or_default();
        let limit = 0..u64::from(INTEGER_MAX) + 1;
        let size_limit = self.body.whole("size_limit", limit.clone())?.unwrap_or(0) as u32;
        let time_limit_s = self.body.whole("time_limit_s", limit)?.unwrap_or(0) as u32;
        let types_only = self.body.flag("types_only")?.unwrap_or(false);
        let search = SearchRequest {
            base: &base,
            scope,
            deref: Deref::Never,
            size_limit,
            time_limit_s,
            types_only,
            filter,
            attributes,
        };
        Ok(self.request(Op::SearchRequest(search), controls))
    }

    fn bind(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let account = Account::read(self.body, self.context.folder)?;
        account.request(controls, self.names).map_err(|why| self.body.error(why))
    }

    fn compare(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let dn = self.dn()?;
        let (dn, attribute) = (self.marked(&dn)?, self.required("attribute")?);
        let value = self.required("value")?;
        let value = self.marked(value)?;
        let compare = CompareRequest { dn: &dn, attribute, value: value.as_bytes() };
        Ok(self.request(Op::CompareRequest(compare), controls))
    }

    fn add(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        if let Some(name) = self.body.text("entry")? {
            return self.add_entry(name, controls);
        }
        let text = self.required("dn")?;
        *self.entry = Some(text.to_owned());
        let dn = self.marked(text)?;
        let missing = "attributes = { objectClass = [...], ... } is missing";
        let table = self.body.section("attributes")?;
        let table = table.ok_or_else(|| self.body.error(missing))?;
        let attributes = self.attributes(&table)?;
        if attributes.iter().any(|attribute| attribute.values.is_empty()) {
            return Err(table.error("each attribute of a new entry has a value"));
        }
        Ok(self.request(Op::AddRequest(AddRequest { dn: &dn, attributes }), controls))
    }

    /// The entry of a template.
    fn add_entry(&mut self, name: &str, controls: Controls<'t>) -> Result<Request, Error> {
        if self.body.get("dn").is_some() || self.body.get("attributes").is_some() {
            return Err(self.body.error("either entry, or dn with attributes"));
        }
        let source = self.names.entry(name).map_err(|why| self.body.error_of("entry", why))?;
        *self.entry = Some(format!("{{{name}}}"));
        Ok(Request::add_entry(source, controls, self.names))
    }

    fn attributes(&mut self, table: &Section<'t>) -> Result<Vec<Attribute<'t>>, Error> {
        let mut attributes = Vec::new();
        for (name, value) in table.entries() {
            let mut values = Vec::new();
            for member in members(value) {
                let why = format!("{name} should be a text or a list of texts");
                let text = member.get_ref().as_str();
                let text = text.ok_or_else(|| table.error_at(member, why))?;
                values.push(Cow::Owned(self.marked(text)?.into_bytes()));
            }
            attributes.push(Attribute { description: Cow::Borrowed(name), values });
        }
        Ok(attributes)
    }

    fn modify(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let dn = self.dn()?;
        let dn = self.marked(&dn)?;
        let mut changes = Vec::new();
        for (key, operation) in [
            ("delete", ChangeOperation::Delete),
            ("add", ChangeOperation::Add),
            ("replace", ChangeOperation::Replace),
            ("increment", ChangeOperation::Increment),
        ] {
            if let Some(table) = self.body.section(key)? {
                let attributes = self.attributes(&table)?;
                let change = |attribute| Change { operation, attribute };
                changes.extend(attributes.into_iter().map(change));
            }
        }
        if changes.is_empty() {
            let why =
                "there is no change: replace = { description = \"...\" }, add, delete or increment";
            return Err(self.body.error(why));
        }
        Ok(self.request(Op::ModifyRequest(ModifyRequest { dn: &dn, changes }), controls))
    }

    fn rename(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let text = self.dn()?;
        let rdn = self.required("rdn")?;
        let superior = self.body.text("superior")?;
        let delete_old_rdn = self.body.flag("delete_old")?.unwrap_or(true);
        let parent = superior.unwrap_or_else(|| parent(&text));
        *self.entry = match parent {
            // The parent is known only once the value is drawn.
            "" if text.starts_with('{') => None,
            "" => Some(rdn.to_owned()),
            parent => Some(format!("{rdn},{parent}")),
        };
        let (dn, new_rdn) = (self.marked(&text)?, self.marked(rdn)?);
        let superior = superior.map(|text| self.marked(text)).transpose()?;
        let new_superior = superior.as_deref();
        let rename = ModifyDnRequest { dn: &dn, new_rdn: &new_rdn, delete_old_rdn, new_superior };
        Ok(self.request(Op::ModifyDnRequest(rename), controls))
    }

    fn delete(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let dn = self.dn()?;
        let dn = self.marked(&dn)?;
        Ok(self.request(Op::DeleteRequest(&dn), controls))
    }

    fn whoami(&mut self, controls: Controls<'t>) -> Request {
        self.request(Op::ExtendedRequest(ExtendedRequest { oid: WHO_AM_I, value: None }), controls)
    }

    fn passmod(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let mut marked = |key| {
            let text = self.body.text(key)?.map(|text| self.names.mark(text)).transpose();
            text.map(|text| text.map(Zeroizing::new)).map_err(|why| self.body.error(why))
        };
        let user = marked("user")?;
        let (old, new) = (marked("old_password")?, marked("new_password")?);
        let passmod = PasswordModifyRequest {
            user: user.as_ref().map(|user| user.as_str()),
            old: old.as_ref().map(|old| old.as_bytes()),
            new: new.as_ref().map(|new| new.as_bytes()),
        };
        let mut value = Zeroizing::new(Vec::new());
        passmod.encode(&mut value);
        let request = ExtendedRequest { oid: PASSWORD_MODIFY, value: Some(&value) };
        Ok(Request::with_element(request, controls, self.names))
    }

    fn extended(&mut self, controls: Controls<'t>) -> Result<Request, Error> {
        let oid = self.required("oid")?;
        let value = self.body.text("value")?.map(|value| self.marked(value)).transpose()?;
        let value = value.as_ref().map(String::as_bytes);
        Ok(self.request(Op::ExtendedRequest(ExtendedRequest { oid, value }), controls))
    }
}

/// The part after the first comma that is not escaped.
pub(crate) fn parent(dn: &str) -> &str {
    let mut escaped = false;
    for (at, c) in dn.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => return dn.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

/// `controls = [{ oid = "...", critical = true, value = "..." }]`
fn controls<'t>(body: &mut Section<'t>) -> Result<Controls<'t>, Error> {
    let document = body.document();
    let read = |value: &'t Value<'t>| {
        let mut section = Section::of(document, value, "a control")?;
        let oid = section.text("oid")?.ok_or_else(|| section.error("oid is missing"))?;
        let critical = section.flag("critical")?.unwrap_or(false);
        let value = section.text("value")?.map(|text| Cow::Borrowed(text.as_bytes()));
        section.finish()?;
        Ok(Control { oid, critical, value })
    };
    body.list("controls").into_iter().map(read).collect()
}

/// `expect = { code = [0, 4], entries = 1, value = { mail = "..." } }`
fn expectation(
    mut section: Section<'_>,
    operation: &mut Operation,
    names: &mut Names<'_>,
) -> Result<(), Error> {
    if let Some(value) = section.get("code") {
        let code = |value: &Value<'_>| u32::try_from(whole(value.get_ref())?).ok();
        let codes: Option<Vec<u32>> = members(value).into_iter().map(code).collect();
        let wrong = "code should be a result code or a list of them";
        operation.codes = codes.ok_or_else(|| section.error_at(value, wrong))?;
    }
    if let Some(value) = section.get("entries") {
        let number = |value: &Value<'_>| u32::try_from(whole(value.get_ref())?).ok();
        let (low, high) = match members(value)[..] {
            [one] => (number(one), number(one)),
            [low, high] => (number(low), number(high)),
            _ => (None, None),
        };
        let wrong = "entries should be a number or [LEAST, MOST]";
        operation.entries = Some(low.zip(high).ok_or_else(|| section.error_at(value, wrong))?);
    }
    if let Some(values) = section.section("value")? {
        for (attribute, value) in values.entries() {
            let text = value.get_ref().as_str();
            let text = text.ok_or_else(|| values.error_at(value, "a value is a text"))?;
            let pieces = names.pieces(text).map_err(|why| values.error_at(value, why))?;
            operation.values.push((attribute.to_owned(), pieces));
        }
    }
    section.finish()
}

/// `take = "dn"` or `take = { mail = "mail" }`: a name of ours, and the attribute.
fn takes(
    body: &mut Section<'_>,
    operation: &mut Operation,
    names: &mut Names<'_>,
) -> Result<(), Error> {
    let Some(value) = body.get("take") else { return Ok(()) };
    let wrong = "take should be \"dn\" or { NAME = \"ATTRIBUTE\" }";
    let wanted: Vec<(String, String)> = match value.get_ref().as_str() {
        Some("dn") => vec![("dn".into(), "dn".into())],
        Some(_) => return Err(body.error_at(value, wrong)),
        None => {
            let table = Section::of(body.document(), value, "take")?;
            let pair = |(name, value): (&str, &Value<'_>)| {
                let attribute = value.get_ref().as_str()?;
                Some((name.to_owned(), attribute.to_owned()))
            };
            let pairs: Option<Vec<_>> = table.entries().map(pair).collect();
            pairs.ok_or_else(|| body.error_at(value, wrong))?
        }
    };
    for (name, attribute) in wanted {
        let slot = names.taken.iter().position(|taken| *taken == name).unwrap_or_else(|| {
            names.taken.push(name);
            names.taken.len() - 1
        });
        let attribute = (!attribute.eq_ignore_ascii_case("dn")).then_some(attribute);
        operation.takes.push(Take { attribute, slot });
    }
    Ok(())
}
