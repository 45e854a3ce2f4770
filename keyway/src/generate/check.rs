//! `keyway data check`: whether a schema takes the entries of a template.

use super::against::Against;
use super::arguments::Check;
use keyway_codec::syntax::Syntax;
use keyway_data::{EntryFaults, Maker, Place, Plan, View};
use keyway_host::failure::Failure;
use keyway_host::output::{self, grouped};
use keyway_host::progress::Progress;
use keyway_host::shutdown::Stop;
use keyway_host::signals::Second;
use keyway_schema::{
    Description, EntryAttributes, OBJECT_CLASS, Schema, base, check_value, violations,
};
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Checks the entries. Says whether all of them are right.
///
/// # Errors
/// The fault of the template, or why there is no schema.
pub fn run(arguments: &Check) -> Result<bool, Failure> {
    let (plan, _) = arguments.entries.plan()?;
    let parts = parts(arguments, &plan)?;
    let stop = Stop::watch(Second::Ends)?;
    let Against { schema, name } = Against::of(arguments)?;
    let bar = Progress::entries("checking entries", parts.iter().map(|(_, count)| count).sum());
    let checked = entries(arguments, &plan, &parts, &mut Checker::new(&schema), &mut |done| {
        bar.at(done, done);
        !stop.is_asked()
    });
    let (faults, done) = checked?;
    let seconds = bar.seconds();
    drop(bar);
    if arguments.json && !stop.is_asked() {
        output::json(&json!({
            "event": "checked", "template": arguments.entries.template,
            "seed": arguments.entries.seed, "schema": name, "entries": done,
            "faulty": faults.entries, "faults": faults.json(&plan), "all_faults": !faults.is_cut,
            "seconds": seconds,
        }))?;
        return Ok(faults.entries == 0);
    }
    let lines: Vec<String> = faults.lines(&plan).collect();
    if !arguments.json && !lines.is_empty() {
        output::text(lines.join("\n"))?;
    }
    if stop.is_asked() {
        let entries = grouped(done);
        return Err(Stop::failure(&format!("stopped after {entries} entries")));
    }
    output::text(summary(&faults, done, &name))?;
    Ok(faults.entries == 0)
}

fn summary(faults: &EntryFaults, done: u64, schema: &str) -> String {
    let done = grouped(done);
    if faults.entries == 0 {
        return format!("checked {done} entries against {schema}: all are right");
    }
    let (wrong, kinds) = (grouped(faults.entries), faults.kinds());
    let kinds = match (kinds, faults.is_cut) {
        (1, false) => "one reason".to_owned(),
        (kinds, false) => format!("{kinds} reasons"),
        (kinds, true) => format!("more than {kinds} reasons"),
    };
    format!("checked {done} entries against {schema}: {wrong} are wrong, for {kinds}")
}

/// Stretches of entries: the number of a branch or template, whose entries they are, and how many.
type Parts = Vec<(Option<usize>, u64)>;

fn parts(arguments: &Check, plan: &Plan) -> Result<Parts, Failure> {
    if let (Some(0), _) | (_, Some(0)) = (arguments.each, arguments.entries.count) {
        return Err(Failure::usage("without an entry there is nothing to check"));
    }
    Ok(match arguments.each {
        Some(most) => {
            let counts = plan.counts().enumerate();
            counts.map(|(kind, (_, count))| (Some(kind), count.min(most))).collect()
        }
        None => vec![(None, arguments.entries.range(plan)?.1)],
    })
}

/// Makes the entries and looks at each; says how many there were. `go_on` is called after each.
fn entries(
    arguments: &Check,
    plan: &Arc<Plan>,
    parts: &Parts,
    checker: &mut Checker<'_>,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<(EntryFaults, u64), Failure> {
    let maker = Maker::new(plan.clone(), arguments.entries.from).map_err(Failure::new)?;
    let mut maker = maker.with_generation(arguments.entries.generation);
    let mut done = 0;
    'all: for (kind, count) in parts {
        for number in 0..*count {
            if let Some(kind) = kind {
                maker.seek_of(*kind, number).map_err(Failure::new)?;
            }
            let Some(view) = maker.next_entry().map_err(Failure::new)? else { break };
            checker.look(&view);
            done += 1;
            if !go_on(done) {
                break 'all;
            }
        }
    }
    Ok((std::mem::take(&mut checker.faults), done))
}

struct Checker<'s> {
    schema: &'s Schema,
    /// The names of attributes in the template, understood.
    described: HashMap<String, Option<Description<'s>>>,
    faults: EntryFaults,
}

impl<'s> Checker<'s> {
    fn new(schema: &'s Schema) -> Checker<'s> {
        Checker { schema, described: HashMap::new(), faults: EntryFaults::default() }
    }

    fn look(&mut self, view: &View<'_>) {
        let schema = self.schema;
        let (mut attributes, mut places) = (EntryAttributes::new(), Vec::new());
        let mut knows_classes = true;
        for (place, written, values) in view.lines() {
            let mut values = values.peekable();
            if values.peek().is_none() {
                continue;
            }
            if !self.described.contains_key(written) {
                self.described.insert(written.to_owned(), schema.describe(written));
            }
            let Some(Some(description)) = self.described.get(written) else {
                let why = schema.unknown_description(written);
                self.faults.add(view, place, (written, None), why);
                continue;
            };
            let (name, attribute) = (description.canonical(), description.attribute);
            let values: Vec<Vec<u8>> = values.map(<[u8]>::to_vec).collect();
            for value in &values {
                if let Err(why) = check_value(schema, attribute, value, Syntax::validate) {
                    self.faults.add(view, place, (&name, Some(value)), why.to_owned());
                }
                if attribute.name() == OBJECT_CLASS {
                    let class = String::from_utf8_lossy(value);
                    if schema.class(&class).is_none() {
                        let why = schema.unknown_class(&class);
                        self.faults.add(view, place, (&name, None), why);
                        knows_classes = false;
                    }
                }
            }
            match attributes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, held)) => held.extend(values),
                None => {
                    attributes.push((name.into_owned(), values));
                    places.push(place);
                }
            }
        }
        self.look_for_twice(view, &attributes, &places);
        if knows_classes {
            self.look_at_classes(view, &attributes, &places);
        }
    }

    /// Values that are there twice, which may be spelled otherwise.
    fn look_for_twice(&mut self, view: &View<'_>, attributes: &EntryAttributes, places: &[Place]) {
        let several = attributes.iter().zip(places).filter(|((_, values), _)| values.len() > 1);
        for ((name, values), place) in several {
            let Some(attribute) = self.schema.attribute(base(name)) else { continue };
            let normal = |value: &Vec<u8>| {
                let normal = attribute.equality().and_then(|it| self.schema.normalize(it, value));
                normal.unwrap_or_else(|| value.clone())
            };
            let mut seen = HashSet::with_capacity(values.len());
            if let Some(value) = values.iter().find(|value| !seen.insert(normal(value))) {
                let why = "it is there twice".to_owned();
                self.faults.add(view, *place, (name, Some(value)), why);
            }
        }
    }

    fn look_at_classes(&mut self, view: &View<'_>, attributes: &EntryAttributes, places: &[Place]) {
        for (name, violation) in violations(self.schema, attributes) {
            let place = attributes.iter().zip(places).find(|((known, _), _)| *known == name);
            let place = place.map_or(view.place(), |(_, place)| *place);
            self.faults.add(view, place, (&name, None), violation.why);
        }
    }
}
