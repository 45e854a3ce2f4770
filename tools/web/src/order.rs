//! The page's order for a run, and its meaning.

use crate::limits::{
    IN_FLIGHT_MAX, LANES_MAX, RATE_MAX, RUN_CONNECTIONS_MAX, RUN_MAX, TEXT_BYTES_MAX,
};
use keyway_load::{Options, UserPassword, Users};
use serde::Deserialize;
use std::time::Duration;

/// An order for a run. Members that are left out are as the scenario has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The scenario, by its name.
    pub scenario: String,
    /// On which servers, by their places in the list; two of them are raced.
    pub targets: Vec<usize>,
    /// Sequences a second; without it as many as are answered.
    pub rate: Option<f64>,
    /// How long, in seconds.
    pub seconds: f64,
    /// How many connections.
    pub connections: Option<u64>,
    /// How many operations are in flight on each.
    pub in_flight: Option<u64>,
    /// Below which entry.
    pub base: Option<String>,
    /// How a user is found.
    pub filter: Option<String>,
    /// How a user is named.
    pub user_dn: Option<String>,
    /// The first and the last user's number.
    pub users: Option<(u64, u64)>,
    /// Every user's password.
    pub user_password: Option<String>,
}

impl Order {
    /// Whether it stays within what the page may ask for.
    ///
    /// # Errors
    /// The part that exceeds the limits, and the limits.
    pub(crate) fn check(&self, targets: usize) -> Result<(), String> {
        let different = self.targets.iter().collect::<std::collections::BTreeSet<_>>().len();
        if self.targets.is_empty() || self.targets.len() > LANES_MAX {
            return Err(format!("choose a server, or {LANES_MAX} to race"));
        }
        if different != self.targets.len() || self.targets.iter().any(|at| *at >= targets) {
            return Err("choose servers of the list, each once".into());
        }
        check_rate(self.rate.unwrap_or(1.0))?;
        let longest = RUN_MAX.as_secs_f64();
        if !(self.seconds >= 1.0 && self.seconds <= longest) {
            return Err(format!("a run takes from 1 to {longest} seconds"));
        }
        within("connections", self.connections, RUN_CONNECTIONS_MAX)?;
        within("operations in flight", self.in_flight, IN_FLIGHT_MAX)?;
        if self.users.is_some_and(|(first, last)| first > last || last == u64::MAX) {
            return Err("the first user's number is above the last one's".into());
        }
        let password = self.user_password.as_deref();
        let texts = [self.base.as_deref(), self.filter.as_deref(), self.user_dn.as_deref()];
        if texts.into_iter().chain([password]).flatten().any(|text| text.len() > TEXT_BYTES_MAX) {
            return Err(format!("a text is longer than {TEXT_BYTES_MAX} bytes"));
        }
        Ok(())
    }

    /// A server's options with what was ordered in them.
    pub(crate) fn fill(&self, mut filled: Options) -> Options {
        filled.rate = self.rate;
        filled.length = Duration::from_secs_f64(self.seconds);
        filled.connections = self.connections.or(filled.connections);
        filled.in_flight = self.in_flight.or(filled.in_flight);
        filled.filter = said(&self.filter).or(filled.filter);
        filled.user_dn = said(&self.user_dn).or(filled.user_dn);
        if let Some(base) = said(&self.base) {
            filled.base = Some(base);
        }
        if let Some((first, last)) = self.users {
            filled.users = Some(Users::Range(first, last));
        }
        if let Some(password) = self.user_password.as_ref().filter(|it| !it.is_empty()) {
            filled.user_password = UserPassword::Text(password.clone());
        }
        filled
    }
}

/// A text, if it says something.
fn said(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.trim().is_empty())
}

/// Whether a rate is one.
pub(crate) fn check_rate(rate: f64) -> Result<(), String> {
    match rate > 0.0 && rate <= RATE_MAX {
        true => Ok(()),
        false => Err(format!("a rate is above 0, and {RATE_MAX} a second at most")),
    }
}

fn within(what: &str, number: Option<u64>, most: u64) -> Result<(), String> {
    match number.is_none_or(|number| (1..=most).contains(&number)) {
        true => Ok(()),
        false => Err(format!("{what}: from 1 to {most}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn order(more: serde_json::Value) -> Result<(), String> {
        let mut all = json!({ "scenario": "search", "targets": [0], "seconds": 10 });
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let order: Order = serde_json::from_value(all).map_err(|why| why.to_string())?;
        order.check(2)
    }

    #[test]
    fn what_is_too_much_is_refused() {
        for good in
            [json!({}), json!({ "targets": [1, 0] }), json!({ "rate": 0.5, "users": [0, 0] })]
        {
            assert_eq!(order(good.clone()), Ok(()), "{good}");
        }
        for bad in [
            json!({ "targets": [] }),
            json!({ "targets": [0, 0] }),
            json!({ "targets": [2] }),
            json!({ "targets": [-1] }),
            json!({ "targets": [0, 1, 2] }),
            json!({ "rate": 0 }),
            json!({ "rate": 1e9 }),
            json!({ "rate": "1" }),
            json!({ "seconds": 0 }),
            json!({ "seconds": 1e12 }),
            json!({ "connections": 0 }),
            json!({ "connections": 1_000_000 }),
            json!({ "in_flight": 1_000_000 }),
            json!({ "users": [2, 1] }),
            json!({ "filter": "x".repeat(TEXT_BYTES_MAX + 1) }),
            json!({ "urls": ["ldap://elsewhere"] }),
        ] {
            assert!(order(bad.clone()).is_err(), "{bad}");
        }
    }
}
