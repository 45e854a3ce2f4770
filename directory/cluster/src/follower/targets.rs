//! Which members a follower asks, one after the other.

use crate::message::{ClusterRow, MEMBERS_LIMIT, MemberId};

/// Members that may send on to another one without a pause.
const REDIRECTS_LIMIT: u32 = 3;

/// URLs of members.
#[derive(Clone, Debug)]
pub struct Targets {
    folder: Vec<String>,
    /// The writer's first.
    row: Vec<String>,
    redirect: Option<String>,
    redirects: u32,
    next: usize,
    failures: usize,
}

impl Targets {
    /// Those that are asked first.
    pub fn new(mut folder: Vec<String>) -> Targets {
        folder.truncate(MEMBERS_LIMIT);
        let (row, redirect) = (Vec::new(), None);
        Targets { folder, row, redirect, redirects: 0, next: 0, failures: 0 }
    }

    /// Those of the cluster row without the member itself.
    pub fn row(&mut self, own: MemberId, row: &ClusterRow) {
        let others = || row.members.iter().filter(|member| member.id != own);
        let writer = others().filter(|member| member.id == row.writer);
        let followers = others().filter(|member| member.id != row.writer);
        self.row = writer.chain(followers).map(|member| member.url.clone()).collect();
        self.row.truncate(MEMBERS_LIMIT);
    }

    /// The one to ask now; `None` if there is none.
    pub fn next_url(&mut self) -> Option<String> {
        if let Some(url) = self.redirect.take() {
            return Some(url);
        }
        let all = || self.row.iter().chain(&self.folder);
        let url = all().nth(self.next).or_else(|| all().next())?.clone();
        self.next = if self.next < self.count() { self.next + 1 } else { 1 };
        Some(url)
    }

    fn count(&self) -> usize {
        self.row.len() + self.folder.len()
    }

    /// The one that was asked has named another. Whether that one is asked next.
    pub fn redirect(&mut self, url: &str) -> bool {
        let is_taken = self.redirects < REDIRECTS_LIMIT;
        if is_taken {
            self.redirects += 1;
            self.redirect = Some(url.to_owned());
        }
        is_taken
    }

    /// The attempt has failed: how many times all were asked; `None` if the next one is to be asked at once.
    pub fn failed(&mut self) -> Option<u32> {
        if self.redirect.is_some() {
            return None;
        }
        self.redirects = 0;
        let rounds = self.failures / self.count().max(1);
        self.failures = self.failures.saturating_add(1);
        Some(u32::try_from(rounds).unwrap_or(u32::MAX))
    }

    /// The writer is found.
    pub fn succeeded(&mut self) {
        (self.failures, self.redirects, self.next) = (0, 0, 0);
    }
}
