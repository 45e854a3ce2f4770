//! Whether files of a crate import one another in a circle.

mod imports;

use crate::shell::{metadata, root};
use imports::{Crate, Imports};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// That no files of a crate of the workspace import one another in a circle.
pub fn check() -> Result<(), String> {
    let mut wrong = Vec::new();
    let packages = metadata()?["packages"].as_array().cloned().unwrap_or_default();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        for source in sources(package) {
            let circles = circles(&Crate::read(&source)?.imports());
            wrong.extend(circles.iter().map(|circle| format!("{name}: {}", circle.words())));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("files import one another in a circle:\n{}", wrong.join("\n")))
}

/// The first file of the library and of the programs of a package.
fn sources(package: &Value) -> Vec<PathBuf> {
    let targets = package["targets"].as_array().cloned().unwrap_or_default();
    let is_source = |target: &&Value| {
        let kinds = target["kind"].as_array().cloned().unwrap_or_default();
        kinds.iter().any(|kind| kind == "lib" || kind == "bin")
    };
    let path = |target: &Value| target["src_path"].as_str().map(PathBuf::from);
    targets.iter().filter(is_source).filter_map(path).collect()
}

/// Files that import one another, and what ties each to the next ones.
struct Circle {
    files: Vec<PathBuf>,
    ties: Vec<(PathBuf, PathBuf, BTreeSet<String>)>,
}

impl Circle {
    fn words(&self) -> String {
        let mut words = format!("{} files", self.files.len());
        for (from, to, names) in &self.ties {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            words += &format!("\n  {} -> {}: {}", short(from), short(to), names.join(", "));
        }
        words
    }
}

fn short(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The circles of a crate.
fn circles(imports: &Imports<'_>) -> Vec<Circle> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> =
        imports.keys().map(|file| (*file, reached(imports, file))).collect();
    let both = |a: &Path, b: &Path| {
        reached[a].contains(b) && reached.get(b).is_some_and(|all| all.contains(a))
    };
    let mut circles: Vec<Circle> = Vec::new();
    for file in reached.keys().filter(|file| both(file, file)) {
        if circles.iter().any(|circle| circle.files.iter().any(|one| one == file)) {
            continue;
        }
        let files: Vec<&Path> = reached.keys().copied().filter(|one| both(file, one)).collect();
        let ties = files
            .iter()
            .flat_map(|from| imports[from].iter().map(move |(to, names)| (*from, *to, names)));
        let ties = ties.filter(|(_, to, _)| files.contains(to));
        let ties = ties.map(|(from, to, names)| (from.into(), to.into(), names.clone()));
        circles
            .push(Circle { ties: ties.collect(), files: files.iter().map(Into::into).collect() });
    }
    circles
}

/// All files that one imports, by way of others too.
fn reached<'c>(imports: &Imports<'c>, from: &'c Path) -> BTreeSet<&'c Path> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(file) = next.pop() {
        let all = imports.get(file).into_iter().flat_map(BTreeMap::keys);
        next.extend(all.copied().filter(|file| seen.insert(*file)));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::{Circle, Crate};
    use std::path::Path;

    /// The files of each circle of a crate, whose first file is `lib.rs`.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let text = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        let read = Crate::read_with(Path::new("lib.rs"), &text).unwrap();
        let circles = super::circles(&read.imports());
        let names =
            |circle: &Circle| circle.files.iter().map(|file| file.display().to_string()).collect();
        circles.iter().map(names).collect()
    }

    #[test]
    fn a_circle_is_found_whichever_way_the_names_are_taken() {
        for (a, b) in [
            ("use crate::b::B; pub struct A(B);", "use super::a::A; pub struct B(Box<A>);"),
            ("use crate::{b::{self}, c}; pub fn f() { b::g() }", "pub fn g() { crate::a::f() }"),
            (
                "use super::b as other; pub fn f() -> u8 { vec![other::G][0] }",
                "use crate::*; pub static G: u8 = f();",
            ),
            (
                "pub use crate::b::g; pub const fn f() { g() }",
                "use super::a; pub const fn g() { if true { a::f() } }",
            ),
        ] {
            let lib = "mod a; mod b; mod c; pub use a::f;";
            let files =
                [("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("c.rs", "use crate::a; struct C;")];
            assert_eq!(circles(&files), [["a.rs", "b.rs"]], "{a}");
        }
    }

    #[test]
    fn a_parent_that_calls_its_child_must_not_be_used_by_it() {
        let files = [
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b; pub const LIMIT: u8 = 1; pub fn f() { b::g() }"),
            ("a/b.rs", "use super::LIMIT; pub fn g() { assert!(LIMIT > 0) }"),
        ];
        assert_eq!(circles(&files), [["a/b.rs", "a/mod.rs"]]);
    }

    #[test]
    fn a_facade_that_only_hands_on_what_its_children_define_is_in_no_circle() {
        let files = [
            ("lib.rs", "mod a; mod d; pub use a::{B, c};"),
            ("a/mod.rs", "mod b; mod c; pub(crate) use b::B; pub use c::*;"),
            ("a/b.rs", "use super::c; use crate::c as _c; pub struct B;"),
            ("a/c.rs", "pub fn c() {} // crate::a::B\n pub const TEXT: &str = \"crate::a::B\";"),
            ("d.rs", "use crate::{B, a::c}; pub fn d(b: B) { c(); b.c() }"),
        ];
        assert_eq!(circles(&files), [[""; 0]; 0]);
    }

    #[test]
    fn tests_inside_a_file_count_for_nothing() {
        let files = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod c;"),
            (
                "a.rs",
                "#[cfg(test)] use crate::{b::B}; pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
            ),
            ("b.rs", "use crate::a::A; pub struct B(A); impl B { #[cfg(test)] fn f() { } }"),
        ];
        assert_eq!(circles(&files), [[""; 0]; 0]);
    }
}
