//! A sample: a scenario with places to fill in.

/// A scenario to begin with.
#[derive(Debug)]
pub struct Sample {
    /// Its name.
    pub name: &'static str,
    /// Its name in SLAMD.
    pub slamd: &'static str,
    /// Its description.
    pub about: &'static str,
    pub(super) connections: u64,
    pub(super) in_flight: u64,
    pub(super) needs_admin: bool,
    pub(super) data: &'static str,
    pub(super) pick: &'static str,
    pub(super) jobs: &'static [Job],
    pub(super) phases: &'static str,
}

/// A job of a sample.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) name: &'static str,
    /// A comment above it.
    pub(super) about: &'static str,
    /// 0: it is the only one.
    pub(super) weight: u32,
    /// Its own, where it has some.
    pub(super) connections: &'static str,
    pub(super) steps: &'static [&'static str],
}
