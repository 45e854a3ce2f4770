//! `[[job]]`: its steps, in order, and the connections they go over.

use super::context::Context;
use super::section::{Section, Value, duration, number};
use super::{Group, Job, Step, connections, operation};
use crate::error::Error;
use crate::limits::STEPS_MAX;
use crate::text::Names;
use std::time::Duration;

pub(crate) fn read(
    mut section: Section<'_>,
    groups: &mut Vec<Group>,
    context: &Context<'_>,
) -> Result<Job, Error> {
    let name = section.text("name")?.map_or_else(|| format!("job{}", groups.len()), str::to_owned);
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(section.error_of("name", "a name is one word"));
    }
    let weight = section.number("weight", 0.0, 1e9)?.unwrap_or(1.0);
    let think = section.time("think")?.unwrap_or(Duration::ZERO);
    let group = match section.section("connections")? {
        None => 0,
        own => {
            let usual = groups.first().cloned();
            groups.push(connections::read(own, usual.as_ref(), context)?);
            groups.len() - 1
        }
    };
    let mut names = Names::new(context.sources);
    let mut steps = Vec::new();
    // The name that the entry has which the sequence made or moved.
    let mut entry: Option<String> = None;
    for value in section.list("steps") {
        if steps.len() == STEPS_MAX {
            return Err(section.error(format!("a job has {STEPS_MAX} steps at most")));
        }
        steps.push(step(&section, value, &mut names, &mut entry, context)?);
    }
    if !steps.iter().any(|step| matches!(step, Step::Operation(_))) {
        return Err(section.error("steps = [...] has no operation in it"));
    }
    let on_first = |step: &Step| matches!(step, Step::Operation(operation) if operation.is_bind && !operation.on_second);
    if steps.iter().any(on_first) && groups.get(group).is_some_and(|group| group.in_flight > 1) {
        return Err(section.error(
            "while a bind is under way nothing else may be on its connection: with in_flight above \
             1, binds go over another one (on = \"second\")",
        ));
    }
    section.finish()?;
    let sources = names.sources_named();
    Ok(Job { name, weight, group, think, steps, sources, taken: names.taken.len() })
}

fn step<'t>(
    job: &Section<'t>,
    value: &'t Value<'t>,
    names: &mut Names<'_>,
    entry: &mut Option<String>,
    context: &Context<'_>,
) -> Result<Step, Error> {
    let mut section = Section::of(job.document(), value, "a step")?;
    section.keys(&[&operation::KINDS[..], &["wait", "on"]].concat())?;
    if let Some(wait) = section.get("wait") {
        let time = match wait.get_ref().as_str() {
            Some(text) => duration(text),
            None => number(wait.get_ref()).and_then(|s| Duration::try_from_secs_f64(s).ok()),
        };
        let time = time.ok_or_else(|| section.error_at(wait, "wait should be a time: \"2s\""))?;
        section.finish()?;
        return Ok(Step::Wait(time));
    }
    let mut operation = operation::read(&mut section, names, entry, context)?;
    operation.on_second = match section.text("on")? {
        None | Some("first") => false,
        Some("second") => true,
        Some(_) => return Err(section.error("on should be \"first\" or \"second\"")),
    };
    section.finish()?;
    Ok(Step::Operation(Box::new(operation)))
}
