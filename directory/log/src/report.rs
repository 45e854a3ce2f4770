//! Lines summed up.

use crate::limits::LOG_GROUPS_MAX;
use crate::line::Line;
use serde_json::{Value, json};
use std::collections::HashMap;

/// The stages of an operation's time, by the names of their fields without the unit.
const STAGES: [&str; 5] = ["queue", "plan", "store", "crypto", "write"];

/// The kinds of summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// Binds that failed, by address and DN.
    FailedBinds,
    /// Kinds of search by the longest that one of them took, with the mean of each stage.
    Slowest,
    /// Changes, by who made them and what they were.
    Changes,
}

/// A summary in the making.
pub struct Report {
    what: Summary,
    groups: HashMap<Vec<String>, Group>,
    /// Lines of groups for which there was no room.
    left_out: u64,
    /// Whether an operation that went well is among them.
    has_well: bool,
}

/// Lines that belong together.
#[derive(Default)]
struct Group {
    count: u64,
    total_us: u64,
    stages_us: [u64; STAGES.len()],
    max_us: u64,
    first: String,
    last: String,
}

impl Report {
    /// An empty one.
    pub fn new(what: Summary) -> Report {
        Report { what, groups: HashMap::new(), left_out: 0, has_well: false }
    }

    /// Counts a line, if it is of those that are summed up.
    pub fn add(&mut self, line: &Line) {
        let Some(key) = self.key(line) else { return };
        self.has_well |= line.number("result") == Some(0);
        if self.groups.len() == LOG_GROUPS_MAX && !self.groups.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        let group = self.groups.entry(key).or_default();
        let time_us = line.number("time_us").unwrap_or_default();
        group.count += 1;
        group.total_us = group.total_us.saturating_add(time_us);
        group.max_us = group.max_us.max(time_us);
        for (total, stage) in group.stages_us.iter_mut().zip(STAGES) {
            let us = line.number(&format!("{stage}_us")).unwrap_or_default();
            *total = total.saturating_add(us);
        }
        if group.first.is_empty() {
            group.first.clone_from(&line.time);
        }
        group.last.clone_from(&line.time);
    }

    fn key(&self, line: &Line) -> Option<Vec<String>> {
        let field = |name| line.field(name).unwrap_or_default();
        match self.what {
            Summary::FailedBinds if line.log == "access" && line.event == "bind" => {
                let failed = line.number("result").is_some_and(|code| code != 0);
                failed.then(|| {
                    vec![
                        host(field("from")).to_owned(),
                        field("dn").to_owned(),
                        field("name").into(),
                    ]
                })
            }
            Summary::Slowest if line.log == "access" && line.event == "search" => {
                Some(vec![field("dn").to_owned(), shape(field("detail"))])
            }
            Summary::Changes if line.log == "audit" => Some(vec![
                field("as").to_owned(),
                line.event.clone(),
                field("attributes").to_owned(),
            ]),
            _ => None,
        }
    }

    /// The names of its columns.
    pub fn heading(&self) -> String {
        heading(self.what)
    }

    /// Its first rows, for people and for programs: the highest ones.
    pub fn rows(&self, count: usize) -> impl Iterator<Item = (String, Value)> {
        let slowest = self.what == Summary::Slowest;
        let rank = |group: &Group| if slowest { group.max_us } else { group.count };
        let mut rows: Vec<_> = self.groups.iter().collect();
        rows.sort_by(|(a_key, a), (b_key, b)| rank(b).cmp(&rank(a)).then_with(|| a_key.cmp(b_key)));
        let row = |(key, group): (&Vec<String>, &Group)| {
            (group.row(self.what, key), group.json(self.what, key))
        };
        rows.into_iter().take(count).map(row)
    }

    /// Notes for a reader of the rows.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.left_out > 0 {
            let (left, max) = (self.left_out, LOG_GROUPS_MAX);
            remarks.push(format!("{left} lines are not in it: it holds {max} groups"));
        }
        if self.what == Summary::Slowest && !self.has_well {
            let found = match self.groups.is_empty() {
                true => "no search is in the log",
                false => "only searches that were refused or failed are in the log",
            };
            remarks.push(format!(
                "{found}: `keyway config set log.access everything` has all of them written down, and \
                 keyway top shows the slowest operations of the last minutes without that"
            ));
        }
        remarks
    }
}

fn names(what: Summary) -> [&'static str; 3] {
    match what {
        Summary::Slowest => ["base", "search", ""],
        Summary::Changes => ["as", "change", "attributes"],
        Summary::FailedBinds => ["from", "dn", "result"],
    }
}

fn heading(what: Summary) -> String {
    let names = names(what).join("  ");
    match what {
        Summary::Slowest => {
            let stages = STAGES.map(|stage| format!("{stage:>8}")).join(" ");
            format!("   count    mean ms     max ms {stages}  {names}")
        }
        _ => format!("   count  first                last                 {names}"),
    }
}

impl Group {
    fn mean_ms(&self, total_us: u64) -> f64 {
        total_us as f64 / 1000.0 / self.count.max(1) as f64
    }

    fn row(&self, what: Summary, key: &[String]) -> String {
        let key = key.join("  ");
        let short = |time: &str| time.get(..19).unwrap_or(time).to_owned();
        match what {
            Summary::Slowest => {
                let (mean, max) = (self.mean_ms(self.total_us), self.max_us as f64 / 1000.0);
                let stages = self.stages_us.map(|us| format!("{:>8.3}", self.mean_ms(us)));
                let stages = stages.join(" ");
                format!("{:>8} {mean:>10.3} {max:>10.3} {stages}  {key}", self.count)
            }
            _ => format!("{:>8}  {}  {}  {key}", self.count, short(&self.first), short(&self.last)),
        }
    }

    fn json(&self, what: Summary, key: &[String]) -> Value {
        let mut value = json!({ "count": self.count, "first": self.first, "last": self.last });
        for (name, part) in names(what).into_iter().zip(key).filter(|(name, _)| !name.is_empty()) {
            value[name] = part.as_str().into();
        }
        if what == Summary::Slowest {
            value["mean_ms"] = self.mean_ms(self.total_us).into();
            for (stage, us) in STAGES.into_iter().zip(self.stages_us) {
                value[format!("{stage}_ms")] = self.mean_ms(us).into();
            }
            value["max_ms"] = (self.max_us as f64 / 1000.0).into();
        }
        value
    }
}

/// An address without its port.
fn host(from: &str) -> &str {
    from.rsplit_once(':').map_or(from, |(host, _)| host)
}

/// A filter with `?` for what is asked for, so that searches of a kind are one.
fn shape(detail: &str) -> String {
    let mut shape = String::new();
    let mut in_value = false;
    for c in detail.chars() {
        match c {
            ')' | '(' => in_value = false,
            '=' if !in_value => {
                in_value = true;
                shape.push('=');
                continue;
            }
            '*' => {}
            _ if in_value => {
                if !shape.ends_with('?') {
                    shape.push('?');
                }
                continue;
            }
            _ => {}
        }
        shape.push(c);
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_of_a_kind_have_one_shape() {
        let expected = "sub (&(objectClass=?)(|(uid=?)(cn=?*?)(mail=*)(n>=?)))";
        for filter in [
            "sub (&(objectClass=person)(|(uid=a)(cn=x*y)(mail=*)(n>=3)))",
            "sub (&(objectClass=top)(|(uid=bcd)(cn=1=2*z)(mail=*)(n>=14)))",
        ] {
            assert_eq!(shape(filter), expected);
        }
    }

    #[test]
    fn hosts() {
        let hosts = ["10.0.0.7:53", "[::1]:5", "local", ""].map(host);
        assert_eq!(hosts, ["10.0.0.7", "[::1]", "local", ""]);
    }
}
