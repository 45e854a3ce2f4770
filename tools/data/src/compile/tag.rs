//! A tag of a line, made an instruction.

use super::draft::{Context, Site};
use crate::letters::{Charset, Letters};
use crate::limits::{EXEC_BYTES_MAX, RANDOM_MAX, VALUES_MAX};
use crate::list::{List, Pick};
use crate::number::NumberForm;
use crate::piece::{Condition, Piece};
use crate::plan::class;
use crate::random::mix;
use crate::reference::Reference;
use crate::tags;
use crate::template::split;
use crate::time;
use keyway_codec::definitions::nearest;
use std::str::FromStr;
use std::sync::Arc;

/// The result of a tag.
pub(super) enum Made {
    Piece(Piece),
    Condition(Condition),
    /// The line is there so often.
    Loop(Piece, u64),
    /// The line refers to entries; so often, if `many`.
    Reference(Reference, bool),
}

/// The kinds of `<random>`.
const RANDOM: [&str; 8] =
    ["alpha", "alphanumeric", "base64", "chars", "hex", "month", "numeric", "telephone"];

const DIGITS: &str = "0123456789";
const ALPHA: &str = "abcdefghijklmnopqrstuvwxyz";
const ALPHANUMERIC: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";

/// Compiles a tag; the arguments are as they are written, without those of `<base64>`, which may
/// have tags in them.
pub(super) fn compile(
    context: &mut Context<'_>,
    site: &Site,
    name: &str,
    arguments: Option<&str>,
) -> Result<Made, String> {
    let name = name.to_ascii_lowercase();
    let Some(tag) = tags::find(&name) else { return Err(tags::unknown(&name)) };
    let split = arguments.map(|text| split(text, ':')).unwrap_or_default();
    let all: Vec<&str> = split.iter().map(|it| it.trim()).collect();
    let form = || format!("<{name}> is written {}", tag.forms.join(" or "));
    let piece = match (name.as_str(), all.as_slice()) {
        ("first", []) => Piece::First,
        ("last", []) => Piece::Last,
        ("guid" | "uuid", []) => Piece::Guid,
        ("sequential", []) => Piece::Sequential { start: 0, over_all: false },
        ("sequential", [start]) => Piece::Sequential { start: number(start)?, over_all: false },
        ("sequential", [start, reset]) => Piece::Sequential {
            start: if start.is_empty() { 0 } else { number(start)? },
            over_all: !truth(reset).ok_or_else(form)?,
        },
        ("random", [what, arguments @ ..]) => random(what, arguments)?.ok_or_else(form)?,
        ("list", [_, ..]) => list(arguments.unwrap_or_default())?,
        ("file", [file, order @ ..]) => {
            let list = context.list(file)?;
            let pick = order_of(context, order, list.len())?.ok_or_else(form)?;
            Piece::Choice { pick, list }
        }
        ("presence", [percent]) => return presence(percent).map(Made::Condition),
        ("ifpresent" | "ifabsent", [attribute, value @ ..]) => {
            let (lines, value) = (context.others(site, attribute), joined(value));
            let present = name == "ifpresent";
            return Ok(Made::Condition(Condition::If { lines, value, present }));
        }
        ("loop", [first, last]) => return repeated(number(first)?, number(last)?),
        ("dn", []) => Piece::Dn { part: 0, underscore: false },
        ("dn", [part]) => Piece::Dn { part: number(part)?, underscore: false },
        ("_dn" | "underscoredn", []) => Piece::Dn { part: 0, underscore: true },
        ("rdn", []) => Piece::Rdn { part: None },
        ("rdn", [part]) => Piece::Rdn { part: Some(number(part)?) },
        ("parentdn", []) => Piece::Ancestor { depth: 1, underscore: false },
        ("_parentdn" | "underscoreparentdn", []) => Piece::Ancestor { depth: 1, underscore: true },
        ("ancestordn" | "_ancestordn", [depth]) => {
            let depth = number::<usize>(depth)?.max(1);
            Piece::Ancestor { depth, underscore: name.starts_with('_') }
        }
        ("parent", [attribute]) => {
            Piece::Parent { lines: context.lines_of_all(attribute), characters: None }
        }
        ("parent", [attribute, characters]) => Piece::Parent {
            lines: context.lines_of_all(attribute),
            characters: Some(number(characters)?),
        },
        ("csvfield", [field]) => {
            context.table.as_ref().ok_or("<csvfield> reads a file, which --csv FILE names")?;
            Piece::Field(number(field)?)
        }
        ("exec", [_, ..]) => exec(context, arguments.unwrap_or_default())?,
        ("ref", [template, arguments @ ..]) => {
            let (reference, many) = reference(context, template, arguments)?.ok_or_else(form)?;
            return Ok(Made::Reference(reference, many));
        }
        ("zipf", [most, exponent @ ..]) => {
            let exponent = match exponent {
                [] => 1.0,
                [exponent] => number(exponent)?,
                _ => return Err(form()),
            };
            if !(0.0..=16.0).contains(&exponent) {
                return Err("the exponent of <zipf> is from 0 to 16".to_owned());
            }
            Piece::Zipf(context.zipf(number(most)?, exponent)?)
        }
        ("normal", [mean, deviation]) => normal(mean, deviation, i64::MIN, i64::MAX)?,
        ("normal", [mean, deviation, least, most]) => {
            normal(mean, deviation, number(least)?, number(most)?)?
        }
        ("timestamp", []) => moments("2020-01-01", "2024-12-31")?,
        ("timestamp", [from, to]) => moments(from, to)?,
        ("bytes", [least, most @ ..]) => {
            let (least, most) = range(least, most)?.ok_or_else(form)?;
            Piece::Bytes { least, most, base64: false }
        }
        ("unique", [what, length]) => unique(context, site, what, length)?.ok_or_else(form)?,
        _ => return Err(form()),
    };
    Ok(Made::Piece(piece))
}

pub(super) fn charset(name: &str) -> Option<Charset> {
    Charset::named(name)
}

fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.trim().parse().map_err(|_| format!("'{text}' is not a number that fits here"))
}

fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

fn joined(value: &[&str]) -> Option<Vec<u8>> {
    (!value.is_empty()).then(|| value.join(":").into_bytes())
}

/// `N` or `N:M`
fn range(least: &str, most: &[&str]) -> Result<Option<(u64, u64)>, String> {
    let least = number(least)?;
    let most = match most {
        [] => least,
        [most] => number(most)?,
        _ => return Ok(None),
    };
    if least > most {
        return Err(format!("{least} is more than {most}"));
    }
    match most <= RANDOM_MAX {
        true => Ok(Some((least, most))),
        false => Err(format!("{most} is more than {RANDOM_MAX}, the most that one tag makes")),
    }
}

fn random(what: &str, arguments: &[&str]) -> Result<Option<Piece>, String> {
    let letters = |letters: &str, arguments: &[&str]| -> Result<Option<Piece>, String> {
        let Some((first, rest)) = arguments.split_first() else { return Ok(None) };
        let letters = Letters::new(letters);
        if !(1..=1 << 16).contains(&letters.len()) {
            return Err("there are no characters to choose from, or too many".to_owned());
        }
        let range = range(first, rest)?;
        Ok(range.map(|(least, most)| Piece::Letters { letters, least, most }))
    };
    match (what.to_ascii_lowercase().as_str(), arguments) {
        ("numeric", [least, most, format @ ..]) => between(least, most, format),
        ("numeric", [digits]) if (1..=18).contains(&number::<u32>(digits)?) => {
            let digits: u32 = number(digits)?;
            let span = 10u64.pow(digits);
            Ok(Some(Piece::Number { least: 0, span, form: NumberForm::digits(digits as usize) }))
        }
        ("numeric", _) => letters(DIGITS, arguments),
        ("alpha", _) => letters(ALPHA, arguments),
        ("alphanumeric", _) => letters(ALPHANUMERIC, arguments),
        ("hex", _) => letters(HEX, arguments),
        ("chars", [signs, arguments @ ..]) => letters(signs, arguments),
        ("base64", [least, most @ ..]) => {
            let range = range(least, most)?;
            Ok(range.map(|(least, most)| Piece::Bytes { least, most, base64: true }))
        }
        ("telephone", []) => Ok(Some(Piece::Telephone)),
        ("month", []) => Ok(Some(Piece::Month { characters: usize::MAX })),
        ("month", [characters]) => Ok(Some(Piece::Month { characters: number(characters)? })),
        (what, _) if RANDOM.contains(&what) => Ok(None),
        (what, _) => Err(no_random(what)),
    }
}

/// The error for a kind that `<random>` does not have.
fn no_random(what: &str) -> String {
    let (form, all) = (format!("there is no <random:{what}>"), RANDOM.join(", "));
    match nearest(what, RANDOM.into_iter()) {
        Some(near) => format!("{form}; did you mean <random:{near}>?"),
        None => format!("{form}; there are {all}, and other tags (keyway data tags lists them)"),
    }
}

/// A number from `least` to `most`, with so many digits (SLAMD) or in this form (OpenDJ: `0000`, `#,##0`).
fn between(least: &str, most: &str, format: &[&str]) -> Result<Option<Piece>, String> {
    let (least, most): (i64, i64) = (number(least)?, number(most)?);
    let form = match format {
        [] => NumberForm::digits(1),
        [format] if format.starts_with(['0', '#', ',', '.']) => NumberForm::parse(format)
            .ok_or_else(|| {
                format!("the form '{format}' is not known; 0000 is four digits, #,##0 has commas")
            })?,
        [digits] => match number(digits)? {
            digits @ ..=20 => NumberForm::digits(digits),
            _ => return Err("a number has 20 digits at most".to_owned()),
        },
        _ => return Ok(None),
    };
    if least > most {
        return Err(format!("{least} is more than {most}"));
    }
    let span = most.abs_diff(least).saturating_add(1);
    Ok(Some(Piece::Number { least, span, form }))
}

/// The two ways to write a list: SLAMD's `a:2,b`, OpenDJ's `a;2:b`.
fn list(text: &str) -> Result<Piece, String> {
    let weight = |value: String, sign: char| match value.rsplit_once(sign) {
        Some((value, weight)) => {
            weight.trim().parse::<u64>().ok().map(|weight| (value.to_owned(), weight))
        }
        None => Some((value, 1)),
    };
    let by_commas = split(text, ',');
    let colons = split(text, ':');
    let is_weighted = |value: &String| {
        value.rsplit_once(';').is_some_and(|(_, weight)| weight.trim().parse::<u64>().is_ok())
    };
    let slamd: Option<Vec<(String, u64)>> =
        by_commas.iter().cloned().map(|value| weight(value, ':')).collect();
    let values = match slamd {
        Some(values) if by_commas.len() > 1 && !colons.iter().any(is_weighted) => values,
        _ => {
            let plain = |value: String| {
                if is_weighted(&value) { weight(value, ';') } else { Some((value, 1)) }
            };
            colons.into_iter().filter_map(plain).collect()
        }
    };
    let list = List::new(values.iter().map(|(value, _)| value.as_str()));
    let weights: Vec<u64> = values.iter().map(|(_, weight)| *weight).collect();
    let sum = weights.iter().fold(0u64, |sum, weight| sum.saturating_add(*weight));
    if sum == 0 || sum > 1 << 53 {
        return Err("the weights of the list add up to nothing, or to too much".to_owned());
    }
    let is_even = weights.iter().all(|weight| Some(weight) == weights.first());
    let pick = if is_even { Pick::Even } else { Pick::weighted(weights.into_iter()) };
    Ok(Piece::Choice { list: Arc::new(list), pick })
}

fn order_of(
    context: &mut Context<'_>,
    order: &[&str],
    count: usize,
) -> Result<Option<Pick>, String> {
    Ok(match order {
        [] => Some(Pick::Even),
        [order] => match order.to_ascii_lowercase().as_str() {
            "random" => Some(Pick::Even),
            "sequential" => Some(Pick::Sequential),
            "zipf" => Some(context.zipf(count as u64, 1.0)?),
            _ => None,
        },
        _ => None,
    })
}

fn presence(percent: &str) -> Result<Condition, String> {
    match percent.trim_end_matches('%').parse::<f64>() {
        Ok(part) if (0.0..=100.0).contains(&part) => {
            Ok(Condition::Presence((part / 100.0 * (1u64 << 32) as f64) as u64))
        }
        _ => Err(format!("'{percent}' is not a percentage from 0 to 100")),
    }
}

fn repeated(first: i64, last: i64) -> Result<Made, String> {
    let times = last.abs_diff(first).saturating_add(1);
    if first > last || times > VALUES_MAX {
        return Err(format!("<loop> goes up, {VALUES_MAX} times at most"));
    }
    Ok(Made::Loop(Piece::Loop { first }, times))
}

fn exec(context: &Context<'_>, text: &str) -> Result<Piece, String> {
    if !context.allow_exec {
        return Err(
            "<exec> starts programs, for each entry; only keyway data make --allow-exec does, for a \
             template that you trust"
                .to_owned(),
        );
    }
    let command = split(text, ',');
    match command.first() {
        Some(program) if !program.is_empty() && (text.len() as u64) < EXEC_BYTES_MAX => {
            Ok(Piece::Exec(command))
        }
        _ => Err("<exec> names no program".to_owned()),
    }
}

fn reference(
    context: &mut Context<'_>,
    template: &str,
    arguments: &[&str],
) -> Result<Option<(Reference, bool)>, String> {
    let kind = context.template(template)?;
    let total = context.total(class::KINDS + kind);
    if total == 0 {
        return Err(format!("there is no entry of template {template} to refer to"));
    }
    let one = |sizes| Reference { kind, total, least: 1, most: 1, sizes };
    let (least, most, is_zipf) = match arguments {
        [] => return Ok(Some((one(Pick::Even), false))),
        [count] => (*count, *count, false),
        [least, most] => (*least, *most, false),
        [least, most, form] if form.eq_ignore_ascii_case("zipf") => (*least, *most, true),
        _ => return Ok(None),
    };
    let (least, most): (u64, u64) = (number(least)?, number(most)?);
    if least > most || most > VALUES_MAX {
        return Err(format!("{least} to {most} is not a range of counts (at most {VALUES_MAX})"));
    }
    let sizes = if is_zipf { context.zipf(most - least + 1, 1.0)? } else { Pick::Even };
    Ok(Some((Reference { kind, total, least, most, sizes }, true)))
}

fn normal(mean: &str, deviation: &str, least: i64, most: i64) -> Result<Piece, String> {
    let (mean, deviation): (f64, f64) = (number(mean)?, number(deviation)?);
    let fits = mean.abs() < 1e15 && (0.0..1e15).contains(&deviation) && least <= most;
    match fits {
        true => Ok(Piece::Normal { mean, deviation, least, most }),
        false => Err("<normal> has a mean, a deviation that is not negative, MIN below MAX".into()),
    }
}

fn moments(from: &str, to: &str) -> Result<Piece, String> {
    let read = |text: &str| {
        time::parse(text).ok_or_else(|| {
            format!(
                "'{text}' is not a date (for example 2024-02-29 or 20240229093011Z, from 1970 on)"
            )
        })
    };
    let (from, mut last) = (read(from)?, read(to)?);
    // A day is meant to its end.
    last += if to.contains('Z') || to.len() > 10 { 0 } else { 86_399 };
    match from <= last {
        true => Ok(Piece::Timestamp { from, to: last }),
        false => Err(format!("{to} is before the other moment")),
    }
}

fn unique(
    context: &Context<'_>,
    site: &Site,
    what: &str,
    length: &str,
) -> Result<Option<Piece>, String> {
    let letters = match what.to_ascii_lowercase().as_str() {
        "numeric" => DIGITS,
        "alpha" => ALPHA,
        "alphanumeric" => ALPHANUMERIC,
        "hex" => HEX,
        _ => return Ok(None),
    };
    let length: u32 = number(length)?;
    // More than can be counted are enough as well.
    let size = (letters.len() as u64).checked_pow(length).unwrap_or(1 << 60).min(1 << 60);
    let needed = context.total(class::KINDS + site.kind);
    if length == 0 || length > 64 || size < needed {
        return Err(format!(
            "{length} characters make {size} values, and there are {needed} entries; write more"
        ));
    }
    let key = mix(context.seed, site.salt);
    Ok(Some(Piece::Unique { letters: Letters::new(letters), length, size, key }))
}
