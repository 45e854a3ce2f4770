//! A message as a tree of its elements.

use keyway_decode::tree as elements;

/// Reads the bytes as a message: whatever they are, elements are within those they belong to.
pub fn tree(data: &[u8]) {
    let nodes = elements::tree(data);
    let mut around: Vec<std::ops::Range<usize>> = Vec::new();
    for node in &nodes {
        assert!(node.place.start < node.place.end && node.place.end <= data.len());
        assert!(node.depth <= around.len(), "{node:?} is deeper than in {around:?}");
        around.truncate(node.depth);
        if let Some(outer) = around.last() {
            assert!(outer.start < node.place.start && node.place.end <= outer.end);
        }
        around.push(node.place.clone());
        assert!(!node.text.contains(char::is_control), "{node:?} commands a terminal");
    }
}
