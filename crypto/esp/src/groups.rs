//! The packets of a batch by their security associations.

use std::sync::Arc;

/// Numbers packets from 0 in the order in which they come, and links those of each association.
pub(crate) struct Groups<S> {
    groups: Vec<Group<S>>,
    packets: Vec<Packet>,
}

struct Group<S> {
    sa: Arc<S>,
    first: usize,
    last: usize,
}

struct Packet {
    group: usize,
    /// The next one of its group.
    next: Option<usize>,
}

impl<S> Groups<S> {
    pub fn new() -> Self {
        Groups { groups: Vec::new(), packets: Vec::new() }
    }

    /// Adds a packet of this association.
    #[inline]
    pub fn push(&mut self, sa: &Arc<S>) {
        let number = self.packets.len();
        // Mostly that of the packet before.
        let known = self.groups.iter().rposition(|group| Arc::ptr_eq(&group.sa, sa));
        let group = known.unwrap_or_else(|| {
            self.groups.push(Group { sa: sa.clone(), first: number, last: number });
            self.groups.len() - 1
        });
        let last = &mut self.groups[group].last;
        if *last < number {
            self.packets[*last].next = Some(number);
            *last = number;
        }
        self.packets.push(Packet { group, next: None });
    }

    /// How many associations there are.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// One of them.
    pub fn association(&self, group: usize) -> &Arc<S> {
        &self.groups[group].sa
    }

    /// The association of a packet.
    pub fn of_packet(&self, number: usize) -> &Arc<S> {
        self.association(self.packets[number].group)
    }

    /// The numbers of its packets, ascending.
    pub fn packets(&self, group: usize) -> impl Iterator<Item = usize> {
        let first = self.groups[group].first;
        std::iter::successors(Some(first), |number| self.packets[*number].next)
    }

    /// Lets go of all.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.packets.clear();
    }
}
