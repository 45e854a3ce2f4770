//! The entries of a virtual tree at one moment, found by name and scope.

use super::entry::VirtualEntry;
use crate::failure::{Failure, Result};
use keyway_codec::message::Scope;
use keyway_schema::operational::{
    ENTRY_DN, HAS_SUBORDINATES, NUM_SUBORDINATES, STRUCTURAL_OBJECT_CLASS, SUBSCHEMA_DN,
    SUBSCHEMA_SUBENTRY,
};
use keyway_schema::{EntryName, Schema};
use std::collections::{HashMap, HashSet, VecDeque};

/// All entries of a tree, at one moment.
pub(crate) struct Tree(Vec<Node>);

struct Node {
    name: Vec<u8>,
    parent: Vec<u8>,
    entry: VirtualEntry,
}

impl Tree {
    /// The tree of these entries, each after the one above it. An entry whose name cannot be one is left out.
    pub fn new(schema: &Schema, entries: Vec<VirtualEntry>) -> Tree {
        let node = |entry: VirtualEntry| {
            let name = EntryName::parse(schema, &entry.dn).ok()?;
            Some(Node { parent: name.parent().canonical(), name: name.canonical(), entry })
        };
        let mut nodes: Vec<Node> = entries.into_iter().filter_map(node).collect();
        let mut below: HashMap<Vec<u8>, usize> = HashMap::new();
        for node in &nodes {
            *below.entry(node.parent.clone()).or_default() += 1;
        }
        for node in &mut nodes {
            node.complete(below.get(&node.name).copied().unwrap_or_default());
        }
        Tree(nodes)
    }

    /// The entry of a name.
    ///
    /// # Errors
    /// `noSuchObject`, with the nearest one above it.
    pub fn find(&self, name: &EntryName) -> Result<&VirtualEntry> {
        self.node(name).map(|node| &node.entry)
    }

    /// The entries of a scope.
    ///
    /// # Errors
    /// As [`Tree::find`].
    pub fn below(self, base: &EntryName, scope: Scope) -> Result<VecDeque<VirtualEntry>> {
        let top = self.node(base)?.name.clone();
        // Their parents come before them.
        let mut within = HashSet::from([top.clone()]);
        let mut found = VecDeque::new();
        for Node { name, parent, entry } in self.0 {
            let is_below = within.contains(&parent) && name != top;
            let is_meant = match scope {
                Scope::Base => name == top,
                Scope::One => parent == top,
                Scope::Subtree => name == top || is_below,
                Scope::Subordinate => is_below,
            };
            if is_below {
                within.insert(name);
            }
            if is_meant {
                found.push_back(entry);
            }
        }
        Ok(found)
    }

    fn node(&self, name: &EntryName) -> Result<&Node> {
        let of = |name: &EntryName| {
            let canonical = name.canonical();
            self.0.iter().find(|node| node.name == canonical)
        };
        if let Some(node) = of(name) {
            return Ok(node);
        }
        let mut above = name.parent();
        while !above.is_root() {
            if let Some(node) = of(&above) {
                return Err(Failure::no_such_object(node.entry.dn.clone()));
            }
            above = above.parent();
        }
        Err(Failure::no_such_object(""))
    }
}

impl Node {
    /// Adds what follows from where an entry is.
    fn complete(&mut self, made: usize) {
        let attributes = &mut self.entry.attributes;
        let told = attributes.iter().position(|(name, _)| name == NUM_SUBORDINATES);
        let told = told.map(|at| attributes.remove(at).1.concat());
        let told = told.and_then(|told| String::from_utf8(told).ok()?.parse().ok());
        let below: usize = told.unwrap_or(made);
        let has = if below > 0 { "TRUE" } else { "FALSE" };
        let class = self.entry.attributes.first().and_then(|(_, classes)| classes.last()).cloned();
        let dn = self.entry.dn.clone();
        let text = |text: &str| vec![text.as_bytes().to_vec()];
        self.entry.attributes.extend([
            (STRUCTURAL_OBJECT_CLASS.to_owned(), class.into_iter().collect()),
            (SUBSCHEMA_SUBENTRY.to_owned(), text(SUBSCHEMA_DN)),
            (ENTRY_DN.to_owned(), text(&dn)),
            (HAS_SUBORDINATES.to_owned(), text(has)),
            (NUM_SUBORDINATES.to_owned(), text(&below.to_string())),
        ]);
    }
}
