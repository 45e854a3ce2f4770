//! The lines of a branch or a template, made instructions.

use super::draft::{Context, Draft, Site};
use super::tag::{self, Made};
use crate::error::TemplateError;
use crate::piece::{Condition, Piece};
use crate::plan::Line;
use crate::random::mix;
use crate::template::{self, Part, Section, Sections, Text, parts};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use keyway_codec::definitions::nearest;
use keyway_codec::dn::Dn;

/// Compiles the lines of a draft.
pub(super) fn compile(
    context: &mut Context<'_>,
    sections: &Sections,
    kind: usize,
) -> Result<Vec<Line>, TemplateError> {
    let drafts = context.drafts;
    let Some(draft) = drafts.get(kind) else { return Ok(Vec::new()) };
    let each = draft.lines.iter().zip(&draft.ids).enumerate();
    each.map(|(at, (written, id))| {
        let site = Site { kind, line: at, salt: mix(kind as u64, at as u64) };
        let mut line = Line {
            attribute: written.attribute.clone(),
            place: written.place,
            id: *id,
            prefix: format!("{}: ", written.attribute).into_bytes(),
            conditions: Vec::new(),
            pieces: Vec::new(),
            times: 1,
            reference: None,
            is_plain: false,
            is_fixed: false,
            is_drawn: false,
            salt: mix(at as u64, 0x6b65_7977_6179),
        };
        let text = &written.value;
        let compiler = &mut Compiler { context: &mut *context, site, text };
        let fault = |(at, why): (usize, String)| sections.error(text.place(at), why);
        line.pieces = compiler.pieces(0, text.text.len(), &mut line).map_err(fault)?;
        if written.is_base64 {
            decode(&mut line).map_err(|why| sections.error(text.place(0), why))?;
        }
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(text) if !text.is_empty());
        line.is_fixed = line.conditions.is_empty()
            && !line.pieces.is_empty()
            && line.pieces.iter().all(is_text);
        let presence = |it: &Condition| matches!(it, Condition::Presence(_));
        line.is_drawn = line.pieces.iter().any(Piece::is_drawn)
            || line.reference.is_some()
            || line.conditions.iter().any(presence);
        Ok(line)
    })
    .collect()
}

struct Compiler<'a, 'c> {
    context: &'a mut Context<'c>,
    site: Site,
    text: &'a Text,
}

type Fault = (usize, String);

impl Compiler<'_, '_> {
    fn pieces(&mut self, from: usize, to: usize, line: &mut Line) -> Result<Vec<Piece>, Fault> {
        let mut pieces = Vec::new();
        for part in parts(self.text, from, to)? {
            match part {
                Part::Text(text) => pieces.push(Piece::Text(text.into_bytes())),
                Part::Attribute { at, name, characters } => {
                    let lines = self.attribute(&name).map_err(|why| (at, why))?;
                    pieces.push(Piece::Attribute { lines, characters });
                }
                Part::Tag { at, name, arguments } => {
                    pieces.extend(self.tag(at, &name, arguments, line)?);
                }
            }
        }
        Ok(pieces)
    }

    fn attribute(&self, name: &str) -> Result<Vec<usize>, String> {
        let lines = self.context.others(&self.site, name);
        if !lines.is_empty() {
            return Ok(lines);
        }
        if !self.context.lines_of(self.site.kind, name).is_empty() {
            return Err(format!("{{{name}}} refers to the line that it is in"));
        }
        let draft = self.context.drafts.get(self.site.kind);
        let known = draft.map(|draft| draft.lines.as_slice()).unwrap_or_default();
        let near = nearest(name, known.iter().map(|line| line.attribute.as_str()));
        let advice = match near {
            Some(near) => format!("did you mean {{{near}}}?"),
            None => "write \\{ for the sign itself".to_owned(),
        };
        Err(format!("there is no line with the attribute {name} to take a value of; {advice}"))
    }

    fn tag(
        &mut self,
        at: usize,
        name: &str,
        arguments: Option<(usize, usize)>,
        line: &mut Line,
    ) -> Result<Option<Piece>, Fault> {
        if let Some((from, to)) = arguments.filter(|_| name.eq_ignore_ascii_case("base64")) {
            return self.base64(from, to, line).map(Some);
        }
        let text = self.text;
        let written = arguments.and_then(|(from, to)| text.text.get(from..to));
        let site = Site { salt: mix(self.site.salt, at as u64), ..self.site };
        let made = tag::compile(self.context, &site, name, written).map_err(|why| (at, why))?;
        let twice = |what| Err((at, format!("a line has one {what}, no more")));
        match made {
            Made::Piece(piece) => return Ok(Some(piece)),
            Made::Condition(condition) => line.conditions.push(condition),
            Made::Loop(piece, times) => {
                // Several count together.
                line.times = if line.times <= 1 { times } else { line.times.min(times) };
                return Ok(Some(piece));
            }
            Made::Reference(..) if line.reference.is_some() => return twice("<ref>"),
            Made::Reference(reference, many) => {
                if many && line.times == 1 {
                    line.times = 0;
                }
                line.reference = Some(reference);
                return Ok(Some(Piece::Reference));
            }
        }
        Ok(None)
    }

    /// `<base64:charset:value>`, where tags may be in the value.
    fn base64(&mut self, from: usize, to: usize, line: &mut Line) -> Result<Piece, Fault> {
        let text = self.text.text.get(from..to).unwrap_or_default();
        let head = text.find(['<', '{']).and_then(|at| text.get(..at)).unwrap_or(text);
        let (charset, skipped) = match head.find(':') {
            None => ("UTF-8", 0),
            Some(colon) => (head.get(..colon).unwrap_or_default(), colon + 1),
        };
        let charset = tag::charset(charset.trim()).ok_or_else(|| {
            let known = "UTF-8, ISO-8859-1, UnicodeLittleUnmarked (UTF-16LE), UTF-16BE, UTF-16";
            (from, format!("'{charset}' is not a known charset (expected {known})"))
        })?;
        let pieces = self.pieces(from + skipped, to, line)?;
        Ok(Piece::Encoded { charset, base64: true, pieces })
    }
}

/// The text after `::` is base64. An entry has the value itself.
fn decode(line: &mut Line) -> Result<(), String> {
    let why =
        "the value after '::' is not base64; <base64:..>, <random:base64:N> and <bytes:N> are";
    match line.pieces.as_mut_slice() {
        [Piece::Text(text)] => {
            *text = STANDARD.decode(&*text).map_err(|_| why.to_owned())?;
        }
        [Piece::Encoded { base64, .. }] => *base64 = false,
        [Piece::Bytes { least, most, base64 }] => {
            if std::mem::take(base64) {
                (*least, *most) = (*least * 3 / 4, *most * 3 / 4);
            }
        }
        [Piece::Attribute { characters: None, .. }] => {}
        _ => return Err(why.to_owned()),
    }
    Ok(())
}

/// A branch: its name's depth, and what it says with what goes without saying.
pub(super) fn branch(
    sections: &Sections,
    section: &Section,
    name: &str,
) -> Result<(usize, Draft), TemplateError> {
    let dn =
        Dn::parse(name).map_err(|why| sections.error(section.place, format!("{name}: {why}")))?;
    let Some(rdn) = dn.rdn() else {
        return Err(sections.error(section.place, "a branch is not the root"));
    };
    rdn.avas.iter().try_for_each(|ava| sections.check_word(&ava.attribute, section.place))?;
    let has = |attribute: &str| {
        section.lines.iter().any(|line| line.attribute.eq_ignore_ascii_case(attribute))
    };
    let made = |attribute: &str, value: &str| template::Line {
        attribute: attribute.to_owned(),
        value: Text::made(&literal(value), section.place),
        is_base64: false,
        place: section.place,
    };
    let mut lines = Vec::new();
    if !has("objectClass") {
        let first = rdn.avas.first().map(|ava| ava.attribute.as_str()).unwrap_or_default();
        lines.push(made("objectClass", "top"));
        lines.extend(classes(first).iter().map(|class| made("objectClass", class)));
    }
    for ava in rdn.avas.iter().filter(|ava| !has(&ava.attribute)) {
        lines.push(made(&ava.attribute, &String::from_utf8_lossy(&ava.value)));
    }
    lines.extend(section.lines.iter().cloned());
    let kids = section.kids.iter();
    let draft = Draft {
        name: name.to_owned(),
        dn: Some(name.to_owned()),
        place: section.place,
        rdn: None,
        kids: kids.map(|it| template::Kid { name: it.name.clone(), ..*it }).collect(),
        lines,
        ids: Vec::new(),
    };
    Ok((dn.rdns.len(), draft))
}

/// One text for every spelling of a branch's name, as far as that can be told without a schema.
pub(super) fn same_name(name: &str) -> String {
    let Ok(dn) = Dn::parse(name) else { return name.to_owned() };
    let rdns = dn.rdns.iter().map(|rdn| {
        let ava = |ava: &keyway_codec::dn::Ava| {
            let value = String::from_utf8_lossy(&ava.value).to_lowercase();
            let words = value.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("{}={words:?}", ava.attribute.to_ascii_lowercase())
        };
        let mut avas: Vec<String> = rdn.avas.iter().map(ava).collect();
        avas.sort_unstable();
        avas.join("+")
    });
    rdns.collect::<Vec<_>>().join(",")
}

/// Text in which nothing is a tag.
fn literal(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for sign in value.chars() {
        if "<>[]{}\\".contains(sign) {
            text.push('\\');
        }
        text.push(sign);
    }
    text
}

/// The classes of a branch that names none, by the attribute of its name.
fn classes(attribute: &str) -> &'static [&'static str] {
    match attribute.to_ascii_lowercase().as_str() {
        "dc" => &["domain"],
        "o" => &["organization"],
        "ou" => &["organizationalUnit"],
        "c" => &["country"],
        "l" | "st" | "street" => &["locality"],
        "cn" => &["applicationProcess"],
        "uid" => &["account"],
        "automountmapname" => &["automountMap"],
        "nismapname" => &["nisMap"],
        _ => &["untypedObject", "extensibleObject"],
    }
}
