//! The order in which tasks of ordered sessions leave a queue: that in which they went in.

use crate::Task;
use std::collections::{BTreeMap, HashMap};
use std::mem;

/// The order of each ordered session that has tasks in the queue, by the session's number.
#[derive(Default)]
pub(crate) struct Orders(HashMap<u64, Order>);

#[derive(Default)]
struct Order {
    /// How many tasks went in.
    entered: u64,
    /// How many came out.
    left: u64,
    /// Finished, but after one that is not.
    parked: BTreeMap<u64, Box<Task>>,
}

const NOT_ENTERED: &str = "a task of an ordered session has its place from when it was accepted";

impl Orders {
    /// Gives a task its place.
    pub fn enter(&mut self, task: &mut Task) {
        let order = self.0.entry(task.session.inner().id).or_default();
        task.order = order.entered;
        order.entered += 1;
    }

    /// Takes a finished task, and returns those that may come out now.
    pub fn leave(&mut self, task: Box<Task>) -> Vec<Box<Task>> {
        let id = task.session.inner().id;
        let order = self.0.get_mut(&id).expect(NOT_ENTERED);
        let other = order.parked.insert(task.order, task);
        assert!(other.is_none(), "two tasks have one place in their session's order");
        let mut ready = Vec::new();
        while let Some(task) = order.parked.remove(&order.left) {
            order.left += 1;
            ready.push(task);
        }
        if order.left == order.entered {
            self.0.remove(&id);
        }
        ready
    }

    /// Takes out all that are finished, though one before them is not.
    pub fn take_parked(&mut self) -> impl Iterator<Item = Box<Task>> + use<> {
        mem::take(&mut self.0).into_values().flat_map(|order| order.parked.into_values())
    }
}
