//! Whether files of a crate import one another in a circle, by what their sources say.
//!
//! A file imports another if it takes a name that is defined there: with `use`, or by a path in its code. A name is
//! followed through re-exports to the file that defines it, so that a `mod.rs` which only hands on what its
//! children define ties nothing. Methods have no paths and are not seen; a call to one has the type's file behind
//! it, whose name stands somewhere. Tests inside a file may use what they like.

use crate::shell::{metadata, root};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that still have circles, and how many files the largest of each has. No crate is to be added, and no
/// number may grow; one that has shrunk is to be lowered here.
const NOT_YET: &[(&str, usize)] = &[
    ("keyway", 35),
    ("keyway-drivers", 8),
    ("keyway-engine", 6),
    ("keyway-server", 42),
    ("keyway-simd", 14),
];

/// What a crate's files are called.
type Name = String;

/// By file: from which others it takes which names.
type Imports<'c> = BTreeMap<&'c Path, BTreeMap<&'c Path, BTreeSet<Name>>>;

pub fn check() -> Result<(), String> {
    let mut wrong = Vec::new();
    let packages = metadata()?["packages"].as_array().cloned().unwrap_or_default();
    for package in &packages {
        let name = package["name"].as_str().unwrap_or_default();
        let may =
            NOT_YET.iter().find(|(not_yet, _)| *not_yet == name).map_or(0, |(_, files)| *files);
        let mut largest = 0;
        for source in sources(package) {
            let circles = Crate::read(&source)?.circles();
            let most = circles.iter().map(|circle| circle.files.len()).max().unwrap_or(0);
            largest = largest.max(most);
            if most > may {
                wrong.extend(circles.iter().map(|circle| format!("{name}: {}", circle.words())));
            }
        }
        if largest < may {
            wrong.push(format!(
                "{name}: its largest circle has {largest} files; NOT_YET says {may}"
            ));
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

/// A crate's modules, the root first.
#[derive(Default)]
struct Crate {
    modules: Vec<Module>,
}

#[derive(Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<Name, usize>,
    /// Names that `use` brings in, with the path of each.
    uses: BTreeMap<Name, Vec<Name>>,
    globs: Vec<Vec<Name>>,
    defined: BTreeSet<Name>,
    /// Paths in its code, those of its private `use` among them.
    paths: BTreeSet<Vec<Name>>,
}

/// Names that were looked for, and in which modules: globs may lead back.
type Seen = BTreeSet<(usize, Name)>;

/// Files that import one another, and what ties each to the next ones.
struct Circle {
    files: Vec<PathBuf>,
    ties: Vec<(PathBuf, PathBuf, BTreeSet<Name>)>,
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

impl Crate {
    /// Reads a crate from its first file on.
    fn read(first: &Path) -> Result<Self, String> {
        Self::read_with(first, &|path| fs::read_to_string(path).ok())
    }

    fn read_with(first: &Path, text: &dyn Fn(&Path) -> Option<String>) -> Result<Self, String> {
        let mut this = Self::default();
        let folder = first.parent().unwrap_or(first).to_owned();
        this.read_file(first.to_owned(), folder, None, text)?;
        Ok(this)
    }

    /// `below` is the folder of its children.
    fn read_file(
        &mut self,
        file: PathBuf,
        below: PathBuf,
        parent: Option<usize>,
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<usize, String> {
        let source = text(&file).ok_or_else(|| format!("{} cannot be read", file.display()))?;
        let tokens: TokenStream =
            source.parse().map_err(|why| format!("{}: {why}", file.display()))?;
        let at = self.add(file, parent);
        self.read_items(at, &below, tokens, text)?;
        Ok(at)
    }

    fn add(&mut self, file: PathBuf, parent: Option<usize>) -> usize {
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules.len() - 1
    }

    /// Reads what stands in a module.
    fn read_items(
        &mut self,
        at: usize,
        below: &Path,
        tokens: TokenStream,
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<(), String> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        let mut place = None;
        while !rest.is_empty() {
            if let [TokenTree::Punct(hash), TokenTree::Group(attribute), after @ ..] = rest
                && hash.as_char() == '#'
            {
                let attribute = attribute.stream().to_string();
                rest = after;
                if is_of_tests(&attribute) {
                    rest = behind_item(rest);
                } else if let Some((_, path)) = attribute.split_once("path = \"") {
                    place = path.split('"').next().map(str::to_owned);
                }
                continue;
            }
            match rest {
                [
                    TokenTree::Ident(word),
                    TokenTree::Ident(name),
                    TokenTree::Punct(_),
                    after @ ..,
                ] if word == "mod" => {
                    let name = name.to_string();
                    let file = match place.take() {
                        Some(path) => below.join(path),
                        None if text(&below.join(format!("{name}.rs"))).is_some() => {
                            below.join(format!("{name}.rs"))
                        }
                        None => below.join(&name).join("mod.rs"),
                    };
                    let child = self.read_file(file, below.join(&name), Some(at), text)?;
                    self.modules[at].children.insert(name, child);
                    rest = after;
                }
                [
                    TokenTree::Ident(word),
                    TokenTree::Ident(name),
                    TokenTree::Group(body),
                    after @ ..,
                ] if word == "mod" => {
                    let name = name.to_string();
                    let child = self.add(self.modules[at].file.clone(), Some(at));
                    self.read_items(child, &below.join(&name), body.stream(), text)?;
                    self.modules[at].children.insert(name, child);
                    rest = after;
                }
                [TokenTree::Ident(word), after @ ..] if word == "pub" => {
                    let after = match after {
                        [TokenTree::Group(_), after @ ..] => after,
                        _ => after,
                    };
                    rest = match after {
                        [TokenTree::Ident(word), after @ ..] if word == "use" => {
                            self.modules[at].read_use(after, true)
                        }
                        _ => after,
                    };
                }
                _ => rest = self.modules[at].read_next(rest, true),
            }
        }
        Ok(())
    }

    /// The file that defines what a path names, seen from a module; `None` if it names a module, or nothing of
    /// this crate.
    fn file_of(&self, from: usize, path: &[Name], seen: &mut Seen) -> Option<&Path> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent?,
            _ => return self.find(from, path, seen),
        };
        while let [next, after @ ..] = rest
            && next == "super"
        {
            (at, rest) = (self.modules[at].parent?, after);
        }
        self.find(at, rest, seen)
    }

    /// The same, of a path below a module.
    fn find(&self, at: usize, path: &[Name], seen: &mut Seen) -> Option<&Path> {
        let (first, rest) = path.split_first()?;
        let module = &self.modules[at];
        if !seen.insert((at, first.clone())) {
            return None;
        }
        if let Some(child) = module.children.get(first)
            && !rest.is_empty()
        {
            return self.find(*child, rest, seen);
        }
        if module.defined.contains(first) {
            return Some(&module.file);
        }
        if let Some(used) = module.uses.get(first) {
            // `pub(crate) use name;` of a macro that stands here.
            if used.as_slice() == [first.clone()] {
                return None;
            }
            return self.file_of(at, &[used, rest].concat(), seen);
        }
        let mut globs = module.globs.iter();
        globs.find_map(|glob| self.file_of(at, &[glob, path].concat(), seen))
    }

    /// Which files take which names from which others.
    fn imports(&self) -> Imports<'_> {
        let mut imports = Imports::new();
        for (at, module) in self.modules.iter().enumerate() {
            for path in &module.paths {
                if let Some(file) = self.file_of(at, path, &mut Seen::new())
                    && file != module.file
                {
                    let names = imports.entry(&module.file).or_default().entry(file).or_default();
                    names.insert(path.join("::"));
                }
            }
        }
        imports
    }

    fn circles(&self) -> Vec<Circle> {
        let imports = self.imports();
        let reached: BTreeMap<&Path, BTreeSet<&Path>> =
            imports.keys().map(|file| (*file, reached(&imports, file))).collect();
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
            circles.push(Circle {
                ties: ties.collect(),
                files: files.iter().map(Into::into).collect(),
            });
        }
        circles
    }
}

impl Module {
    /// Reads one token, a path or an import, and says what comes after it. Names of items are noted where `items`
    /// may stand.
    fn read_next<'t>(&mut self, tokens: &'t [TokenTree], items: bool) -> &'t [TokenTree] {
        match tokens {
            [TokenTree::Ident(word), after @ ..] if word == "use" => self.read_use(after, false),
            // `crate` of a macro's own crate, as elsewhere; a field, method or lifetime is no path.
            [TokenTree::Punct(sign), TokenTree::Ident(_), after @ ..]
                if "'.".contains(sign.as_char()) =>
            {
                after
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), after @ ..]
                if items && is_item(&word.to_string()) =>
            {
                self.defined.insert(name.to_string());
                after
            }
            [TokenTree::Ident(word), TokenTree::Punct(_), TokenTree::Ident(name), after @ ..]
                if items && word == "macro_rules" =>
            {
                self.defined.insert(name.to_string());
                after
            }
            [TokenTree::Ident(word), after @ ..] => {
                let mut path = vec![word.to_string()];
                let mut rest = after;
                while let [
                    TokenTree::Punct(a),
                    TokenTree::Punct(b),
                    TokenTree::Ident(next),
                    after @ ..,
                ] = rest
                    && (a.as_char(), b.as_char()) == (':', ':')
                {
                    path.push(next.to_string());
                    rest = after;
                }
                self.paths.insert(path);
                rest
            }
            [TokenTree::Group(group), after @ ..] => {
                self.read_code(group.stream());
                after
            }
            [_, after @ ..] => after,
            [] => &[],
        }
    }

    fn read_code(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut rest = tokens.as_slice();
        while !rest.is_empty() {
            rest = match rest {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), after @ ..]
                    if hash.as_char() == '#' && is_of_tests(&attribute.stream().to_string()) =>
                {
                    behind_item(after)
                }
                _ => self.read_next(rest, false),
            };
        }
    }

    /// Reads the tree of an import, and says what comes after it.
    fn read_use<'t>(&mut self, tokens: &'t [TokenTree], is_public: bool) -> &'t [TokenTree] {
        let is_end =
            |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ';');
        let end = tokens.iter().position(is_end).unwrap_or(tokens.len());
        let (tree, rest) = tokens.split_at(end);
        self.read_tree(&mut Vec::new(), tree, is_public);
        rest.get(1..).unwrap_or_default()
    }

    fn read_tree(&mut self, path: &mut Vec<Name>, tree: &[TokenTree], is_public: bool) {
        let before = path.len();
        let mut alias = None;
        let mut rest = tree;
        while let [token, after @ ..] = rest {
            rest = after;
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    alias = after.first().map(ToString::to_string)
                }
                TokenTree::Ident(word) if alias.is_none() => path.push(word.to_string()),
                TokenTree::Punct(sign) if sign.as_char() == '*' => {
                    self.globs.push(path.clone());
                    return path.truncate(before);
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',');
                    for one in inner.split(is_comma).filter(|one| !one.is_empty()) {
                        self.read_tree(path, one, is_public);
                    }
                    return path.truncate(before);
                }
                _ => {}
            }
        }
        // `a::{self}` is `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last() {
            self.uses.insert(alias.unwrap_or_else(|| last.clone()), path.clone());
        }
        if !is_public {
            self.paths.insert(path.clone());
        }
        path.truncate(before);
    }
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

/// Words that a name stands behind, of something that others may import.
fn is_item(word: &str) -> bool {
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mut"].contains(&word)
}

fn is_of_tests(attribute: &str) -> bool {
    let attribute: String = attribute.split_whitespace().collect();
    ["cfg(test", "cfg(all(test"].iter().any(|start| attribute.starts_with(start))
}

/// What comes after the next item, or the next field or statement.
fn behind_item(mut tokens: &[TokenTree]) -> &[TokenTree] {
    let is_use = |word: &TokenTree| matches!(word, TokenTree::Ident(word) if word == "use");
    let used = tokens.iter().take(3).any(is_use);
    while let [token, after @ ..] = tokens {
        tokens = after;
        match token {
            TokenTree::Punct(sign) if ";,".contains(sign.as_char()) => break,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !used => break,
            _ => {}
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of each circle of a crate, whose first file is `lib.rs`.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let text = |path: &Path| {
            let found = files.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        let circles = Crate::read_with(Path::new("lib.rs"), &text).unwrap().circles();
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
                "pub use crate::b::g; pub fn f() { g() }",
                "use super::a; pub fn g() { if true { a::f() } }",
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
