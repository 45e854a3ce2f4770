//! Whether the crates use one another as ARCHITECTURE.md says, by what `cargo metadata` says.

use crate::shell::{metadata, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## The arrows";
/// On the right: whatever was named before. Such an arrow need not be used.
const ALL: &str = "all of the above";

/// The crates that a crate uses, by their short names.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The two blocks of the page.
#[derive(Debug, Default, PartialEq)]
struct Page {
    normal: Arrows,
    /// The crates that tests inside a crate use beside those.
    dev: Arrows,
}

#[derive(Debug, Default, PartialEq)]
struct Arrows {
    exact: Uses,
    /// Arrows that may be used or not.
    free: Uses,
}

pub fn check() -> Result<(), String> {
    let path = root().join(PAGE);
    let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let page = Page::read(&text)?;
    let (mut normal, mut dev) = (Uses::new(), Uses::new());
    gather(&metadata()?, &mut normal, &mut dev);
    let mut differences = page.normal.differences(&normal, "");
    // Tests may use all that the code may use.
    for (name, used) in &mut dev {
        used.retain(|other| !normal.get(name).is_some_and(|normal| normal.contains(other)));
    }
    differences.extend(page.dev.differences(&dev, "in its tests "));
    differences.extend(page.unnamed(&normal));
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{PAGE}, \"{}\", and Cargo.toml differ:\n  {}",
        &HEADING[3..],
        differences.join("\n  ")
    ))
}

impl Page {
    fn read(text: &str) -> Result<Self, String> {
        let (_, section) = text
            .split_once(&format!("\n{HEADING}\n"))
            .ok_or_else(|| format!("{PAGE} has no \"{HEADING}\""))?;
        let section = section.split("\n## ").next().unwrap_or_default();
        // Between fences: every second piece.
        let mut blocks = section.split("```").skip(1).step_by(2);
        let first = blocks.next().ok_or_else(|| format!("{PAGE} has no arrows"))?;
        let normal = Arrows::read(first)?;
        let dev = Arrows::read(blocks.next().unwrap_or_default())?;
        Ok(Self { normal, dev })
    }

    /// Crates that the page does not have.
    fn unnamed(&self, normal: &Uses) -> Vec<String> {
        let named = |name: &String| {
            self.normal.exact.contains_key(name) || self.normal.free.contains_key(name)
        };
        let missing = normal.keys().filter(|name| !named(name));
        missing.map(|name| format!("crate {name} has no arrow on the page")).collect()
    }
}

impl Arrows {
    /// Lines `left, left  ->  right, right`; one without an arrow goes on with the right of the
    /// line before. Text in round brackets is a remark.
    fn read(block: &str) -> Result<Self, String> {
        let mut lines: Vec<(String, String)> = Vec::new();
        for line in without_remarks(block)?.lines().filter(|line| !line.trim().is_empty()) {
            match (line.split_once("->"), lines.last_mut()) {
                (Some((left, right)), _) => lines.push((left.into(), right.into())),
                (None, Some((_, right))) => right.push_str(line),
                (None, None) => return Err(format!("{PAGE}: no arrow in '{line}'")),
            }
        }
        let mut arrows = Self::default();
        for (left, right) in &lines {
            let above: BTreeSet<String> = arrows.names();
            for left in names(left) {
                let left = single(left)?;
                for right in names(right) {
                    if right == ALL {
                        let others = above.iter().filter(|name| **name != left).cloned();
                        arrows.free.entry(left.clone()).or_default().extend(others);
                    } else {
                        arrows.exact.entry(left.clone()).or_default().insert(single(right)?);
                    }
                }
                arrows.exact.entry(left).or_default();
            }
        }
        Ok(arrows)
    }

    fn names(&self) -> BTreeSet<String> {
        self.exact
            .iter()
            .flat_map(|(left, right)| [left].into_iter().chain(right))
            .cloned()
            .collect()
    }

    /// Uses without an arrow, and arrows that are not used.
    fn differences(&self, used: &Uses, how: &str) -> Vec<String> {
        let has = |uses: &Uses, left: &str, right: &str| {
            uses.get(left).is_some_and(|uses| uses.contains(right))
        };
        let mut all = Vec::new();
        for (left, right) in pairs(used) {
            if !has(&self.exact, left, right) && !has(&self.free, left, right) {
                all.push(format!("{left} {how}uses {right}, and the page has no such arrow"));
            }
        }
        for (left, right) in pairs(&self.exact) {
            if !has(used, left, right) {
                all.push(format!("{left} {how}does not use {right}, and the page has that arrow"));
            }
        }
        all
    }
}

fn pairs(uses: &Uses) -> impl Iterator<Item = (&String, &String)> {
    uses.iter().flat_map(|(left, all)| all.iter().map(move |right| (left, right)))
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn single(name: &str) -> Result<String, String> {
    if name.split_whitespace().count() != 1 {
        return Err(format!("{PAGE}: '{name}' is no crate; remarks stand in round brackets"));
    }
    Ok(name.into())
}

fn without_remarks(block: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = block;
    while let Some((before, after)) = rest.split_once('(') {
        let (_, after) =
            after.split_once(')').ok_or_else(|| format!("{PAGE}: a bracket is open"))?;
        text.push_str(before);
        rest = after;
    }
    Ok(text + rest)
}

/// Adds the workspace's crates, with their dependencies inside the workspace.
fn gather(metadata: &Value, normal: &mut Uses, dev: &mut Uses) {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for package in array(&metadata["packages"]) {
        let name = short(&package["name"]);
        normal.entry(name.clone()).or_default();
        // The others come from a registry, and have no path.
        let ours = |one: &Value| one["path"].is_string();
        for one in array(&package["dependencies"]).iter().filter(|one| ours(one)) {
            let uses = if one["kind"] == "dev" { &mut *dev } else { &mut *normal };
            uses.entry(name.clone()).or_default().insert(short(&one["name"]));
        }
    }
}

fn short(name: &Value) -> String {
    let name = name.as_str().unwrap_or_default();
    name.strip_prefix("keyway-").unwrap_or(name).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn uses(all: &[(&str, &[&str])]) -> Uses {
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        all.iter().map(|(left, right)| (left.to_string(), owned(right))).collect()
    }

    fn page(first: &str) -> String {
        format!(
            "# A page\n\n{HEADING}\n\nWords.\n\n```\n{first}```\n\n## Next\n\n```\nno -> arrow\n```\n"
        )
    }

    #[test]
    fn lists_remarks_and_continued_lines_are_read() {
        let text = "a, b  ->  (nothing)\nc  ->  a,\n       b (its client, and\n       more)\n";
        let page = Page::read(&page(text)).unwrap();
        assert_eq!(page.normal.exact, uses(&[("a", &[]), ("b", &[]), ("c", &["a", "b"])]));
        assert_eq!(page.normal.free, uses(&[]));
        assert_eq!(page.dev, Arrows::default());
    }

    #[test]
    fn the_second_block_is_about_tests() {
        let text =
            format!("# P\n{HEADING}\n```\na -> (nothing)\n```\nIn tests:\n```\na -> b\n```\n");
        let page = Page::read(&text).unwrap();
        assert_eq!(page.dev.exact, uses(&[("a", &["b"])]));
    }

    #[test]
    fn all_of_the_above_is_what_was_named_and_may_be_unused() {
        let page = Page::read(&page("a -> b\nc -> all of the above\nd -> e\n")).unwrap();
        assert_eq!(page.normal.free, uses(&[("c", &["a", "b"])]));
        let used = uses(&[("a", &["b"]), ("c", &["b"]), ("d", &["e"])]);
        assert!(page.normal.differences(&used, "").is_empty());
        let used = uses(&[("a", &["b"]), ("c", &["e"]), ("d", &["e"])]);
        assert_eq!(page.normal.differences(&used, "").len(), 1);
    }

    #[test]
    fn a_difference_either_way_is_named() {
        let page = Page::read(&page("a -> b, c\n")).unwrap();
        let used = uses(&[("a", &["b", "d"]), ("e", &[])]);
        let differences = page.normal.differences(&used, "");
        assert_eq!(differences.len(), 2);
        assert!(differences[0].starts_with("a uses d"), "{differences:?}");
        assert!(differences[1].starts_with("a does not use c"), "{differences:?}");
        assert_eq!(page.unnamed(&used), ["crate e has no arrow on the page"]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for block in ["a b\n", "a -> b and c\n", "a -> b (open\n"] {
            assert!(Page::read(&page(block)).is_err(), "{block}");
        }
        assert!(Page::read("# No arrows\n").is_err());
    }

    #[test]
    fn metadata_gives_what_is_in_the_house() {
        let metadata = json!({ "packages": [{ "name": "keyway-a", "dependencies": [
            { "name": "keyway-b", "path": "/b", "kind": null },
            { "name": "serde", "kind": null },
            { "name": "keyway-c", "path": "/c", "kind": "dev" },
        ]}]});
        let (mut normal, mut dev) = (Uses::new(), Uses::new());
        gather(&metadata, &mut normal, &mut dev);
        assert_eq!(normal, uses(&[("a", &["b"])]));
        assert_eq!(dev, uses(&[("a", &["c"])]));
    }
}
