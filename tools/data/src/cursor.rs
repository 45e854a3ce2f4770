//! Where in the tree of entries one is. Any entry can be gone to by arithmetic, since a template
//! says how many entries are below each: it takes as many steps as the tree is deep.

use crate::entry::{Entry, Extent, Frame};
use crate::error::MakeError;
use crate::plan::{Kid, Kind, Plan, class};
use crate::value::{Scene, SomeName};

/// A place in the tree: an entry, and those above it.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// From the branch down. More are kept than are in use, for their memory.
    frames: Vec<Frame>,
    depth: usize,
    /// How many entries of each class come before the entry ([`class`]).
    counters: Vec<u64>,
}

impl Cursor {
    /// Goes to the entry with this number. Without such an entry it is nowhere.
    pub(crate) fn seek(&mut self, plan: &Plan, index: u64) -> Result<(), MakeError> {
        self.descend(plan, class::ENTRIES, index, false)
    }

    /// Goes to the entry that has this number among those of a kind, and works out its name.
    pub(crate) fn seek_of(
        &mut self,
        plan: &Plan,
        kind: usize,
        ordinal: u64,
    ) -> Result<(), MakeError> {
        self.descend(plan, class::KINDS + kind, ordinal, false)?;
        self.make(plan, Extent::Name, 0, &mut None)
    }

    /// Goes to the entry that has this number among those of a kind. After the last that the template
    /// counts they go on, below the parent of that.
    pub(crate) fn seek_on(
        &mut self,
        plan: &Plan,
        kind: usize,
        ordinal: u64,
    ) -> Result<(), MakeError> {
        self.descend(plan, class::KINDS + kind, ordinal, true)
    }

    fn descend(
        &mut self,
        plan: &Plan,
        class: usize,
        target: u64,
        goes_on: bool,
    ) -> Result<(), MakeError> {
        let mut rest = target;
        self.depth = 0;
        self.counters.clear();
        self.counters.resize(class::KINDS + plan.kinds.len(), 0);
        let mut kids: &[Kid] = &plan.roots;
        loop {
            let is_wanted = |kid: &Kid| class == class::KINDS + kid.kind;
            let leads_on = |kid: &Kid| {
                is_wanted(kid) || kid.count > 0 && plan.leads(kid.kind, class - class::KINDS)
            };
            let last = if goes_on { kids.iter().rposition(leads_on) } else { None };
            let found = kids.iter().enumerate().find_map(|(slot, kid)| {
                let each = plan.in_subtree(kid.kind, class);
                let all = each.saturating_mul(kid.count);
                if rest >= all && last != Some(slot) {
                    rest -= all;
                    self.skip(plan, kid.kind, kid.count);
                    return None;
                }
                let most = if is_wanted(kid) { u64::MAX } else { kid.count.saturating_sub(1) };
                // Where there are none yet, the last parent is the place.
                let child = rest.checked_div(each).unwrap_or(most).min(most);
                rest -= child * each;
                self.skip(plan, kid.kind, child);
                Some((slot, child, kid))
            });
            let Some((slot, child, kid)) = found else {
                self.depth = 0;
                return Ok(());
            };
            self.push(slot, child, kid);
            let Some(kind) = plan.kinds.get(kid.kind) else { return Ok(()) };
            if is_of(kid.kind, kind, class) {
                if rest == 0 {
                    return Ok(());
                }
                rest -= 1;
            }
            self.make(plan, Extent::Inherited, 0, &mut None)?;
            self.count(kid.kind, kind);
            kids = &kind.kids;
        }
    }

    /// Goes to the next entry. After the last it is nowhere.
    pub(crate) fn advance(&mut self, plan: &Plan) {
        let Some(kind) = self.top().map(|top| top.kind) else { return };
        let Some(described) = plan.kinds.get(kind) else { return };
        self.count(kind, described);
        if let Some((slot, kid)) = next_kid(&described.kids, 0) {
            self.push(slot, 0, kid);
            return;
        }
        while let Some(depth) = self.depth.checked_sub(1) {
            let above = depth.checked_sub(1).and_then(|at| self.frames.get(at));
            let kids = match above {
                Some(frame) => plan.kinds.get(frame.kind).map(|kind| kind.kids.as_slice()),
                None => Some(plan.roots.as_slice()),
            };
            let kids = kids.unwrap_or_default();
            let Some((slot, child)) = self.frames.get(depth).map(|it| (it.slot, it.child)) else {
                return;
            };
            self.depth = depth;
            if let Some(kid) = kids.get(slot).filter(|kid| child + 1 < kid.count) {
                self.push(slot, child + 1, kid);
                return;
            }
            if let Some((slot, kid)) = next_kid(kids, slot + 1) {
                self.push(slot, 0, kid);
                return;
            }
        }
    }

    #[inline]
    fn push(&mut self, slot: usize, child: u64, kid: &Kid) {
        if self.frames.len() <= self.depth {
            self.frames.push(Frame::default());
        }
        let counter = |class: usize| self.counters.get(class).copied().unwrap_or_default();
        let (index, names) = (counter(class::ENTRIES), counter(class::NAMES));
        let ordinal = counter(class::KINDS + kid.kind);
        if let Some(frame) = self.frames.get_mut(self.depth) {
            frame.kind = kid.kind;
            (frame.slot, frame.child, frame.in_parent) = (slot, child, kid.before + child);
            (frame.index, frame.ordinal, frame.names) = (index, ordinal, names);
        }
        self.depth += 1;
    }

    /// Counts an entry that is left behind.
    #[inline]
    fn count(&mut self, number: usize, kind: &Kind) {
        let mut add = |class: usize, by: u64| {
            if let Some(counter) = self.counters.get_mut(class) {
                *counter += by;
            }
        };
        add(class::ENTRIES, 1);
        add(class::NAMES, u64::from(kind.uses_names));
        add(class::KINDS + number, 1);
    }

    /// Counts so many subtrees that are passed by.
    fn skip(&mut self, plan: &Plan, kind: usize, count: u64) {
        let totals = plan.kinds.get(kind).map(|kind| kind.totals.as_slice()).unwrap_or_default();
        for (counter, total) in self.counters.iter_mut().zip(totals) {
            *counter = counter.saturating_add(total.saturating_mul(count));
        }
    }

    fn top(&self) -> Option<&Frame> {
        self.depth.checked_sub(1).and_then(|at| self.frames.get(at))
    }

    /// The entry's number; `None` if it is nowhere.
    pub(crate) fn index(&self) -> Option<u64> {
        self.top().map(|frame| frame.index)
    }

    /// The number of the entry above it.
    pub(crate) fn parent_index(&self) -> Option<u64> {
        let at = self.depth.checked_sub(2)?;
        self.frames.get(at).map(|frame| frame.index)
    }

    /// Appends the name of the entry that has this number among those of a kind.
    pub(crate) fn push_name(
        &mut self,
        plan: &Plan,
        kind: usize,
        ordinal: u64,
        text: &mut Vec<u8>,
    ) -> Result<(), MakeError> {
        self.seek_of(plan, kind, ordinal)?;
        text.extend_from_slice(
            self.top().map(|frame| frame.entry.dn.as_bytes()).unwrap_or_default(),
        );
        Ok(())
    }

    /// The entry and its kind.
    pub(crate) fn entry<'a>(&'a self, plan: &'a Plan) -> Option<(&'a Kind, &'a Entry)> {
        let top = self.top()?;
        Some((plan.kinds.get(top.kind)?, &top.entry))
    }

    /// Makes so much of the entry.
    #[inline]
    pub(crate) fn make(
        &mut self,
        plan: &Plan,
        extent: Extent,
        generation: u64,
        others: &mut Option<SomeName<'_>>,
    ) -> Result<(), MakeError> {
        let frames = self.frames.get_mut(..self.depth).unwrap_or_default();
        let Some((top, above)) = frames.split_last_mut() else { return Ok(()) };
        let Some(kind) = plan.kinds.get(top.kind) else { return Ok(()) };
        let made = Some((top.index, extent));
        // Entries that are referred to often have the same ones above them.
        if extent < Extent::All && top.made == made {
            return Ok(());
        }
        let Frame { index, ordinal, names, in_parent, .. } = *top;
        let scene = Scene { plan, kind, index, ordinal, names, in_parent, above };
        // If it fails, the buffers are half made and must not pass for whole.
        top.made = None;
        top.entry.make(top.kind, &scene, extent, generation, others)?;
        top.made = made;
        Ok(())
    }
}

fn is_of(number: usize, kind: &Kind, class: usize) -> bool {
    match class {
        class::ENTRIES => true,
        class::NAMES => kind.uses_names,
        class => class == class::KINDS + number,
    }
}

/// The first from here on of which there are any.
#[inline]
fn next_kid(kids: &[Kid], from: usize) -> Option<(usize, &Kid)> {
    kids.iter().enumerate().skip(from).find(|(_, kid)| kid.count > 0)
}
