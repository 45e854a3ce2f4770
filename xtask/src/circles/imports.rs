//! Which files of a crate take which names from which others, by what their sources say.
//!
//! A file imports another if it takes a name that is defined there: with `use`, or by a path in its code. A name is
//! followed through re-exports to the file that defines it, so that a `mod.rs` which only hands on what its
//! children define ties nothing. Methods have no paths and are not seen; a call to one has the type's file behind
//! it, whose name stands somewhere. Tests inside a file may use what they like.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A name that a crate's files give or take.
type Name = String;

/// By file: from which others it takes which names.
pub type Imports<'c> = BTreeMap<&'c Path, BTreeMap<&'c Path, BTreeSet<Name>>>;

/// A crate's modules, the root first.
#[derive(Default)]
pub struct Crate {
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

impl Crate {
    /// Reads a crate from its first file on.
    pub fn read(first: &Path) -> Result<Self, String> {
        Self::read_with(first, &|path| fs::read_to_string(path).ok())
    }

    pub(super) fn read_with(
        first: &Path,
        text: &dyn Fn(&Path) -> Option<String>,
    ) -> Result<Self, String> {
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

    /// As above, for a path below a module.
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
    pub fn imports(&self) -> Imports<'_> {
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
            // The name of `const fn` and `unsafe fn` is behind the second word.
            [TokenTree::Ident(word), TokenTree::Ident(name), after @ ..]
                if items && is_item(&word.to_string()) && !is_item(&name.to_string()) =>
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

/// Words that a name stands behind, of something that others may import.
fn is_item(word: &str) -> bool {
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "mut"].contains(&word)
}

fn is_of_tests(attribute: &str) -> bool {
    let attribute: String = attribute.split_whitespace().collect();
    ["cfg(test", "cfg(all(test"].iter().any(|start| attribute.starts_with(start))
}

/// The tokens after the next item, or the next field or statement.
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
