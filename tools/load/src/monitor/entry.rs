//! Numbers of an entry, and how long a change of one takes to be seen elsewhere.

use super::{Watch, is_over};
use crate::client::Client;
use crate::limits::{MONITOR_EVERY, REPLICATION_MAX};
use keyway_codec::Op;
use keyway_codec::message::{
    Attribute, Change, ChangeOperation, Deref, Message, ModifyRequest, Scope, SearchRequest,
};
use std::borrow::Cow;
use std::io;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime};

/// From one look for a change to the next.
const LOOK_EVERY: Duration = Duration::from_micros(500);

impl Watch<'_> {
    /// Reads an entry once a second.
    pub(super) fn entry(
        &mut self,
        client: &mut Client,
        dn: &str,
        attributes: &[String],
        growth: bool,
        ended: &Receiver<()>,
    ) -> io::Result<()> {
        let mut last: Vec<Option<(f64, Instant)>> = vec![None; attributes.len()];
        loop {
            let at = Instant::now();
            let numbers = numbers(client, dn, attributes)?;
            for (place, (number, last)) in numbers.into_iter().zip(&mut last).enumerate() {
                let before = last.replace((number, at)).filter(|_| growth);
                match before {
                    Some((before, then)) => {
                        self.say(place, (number - before) / (at - then).as_secs_f64().max(1e-3));
                    }
                    None if growth => self.sees(),
                    None => self.say(place, number),
                }
            }
            if is_over(ended, MONITOR_EVERY.saturating_sub(at.elapsed())) {
                return Ok(());
            }
        }
    }

    /// Changes an attribute here, and looks until it is there.
    pub(super) fn replication(
        &mut self,
        write: &mut Client,
        read: &mut Client,
        dn: &str,
        attribute: &str,
        ended: &Receiver<()>,
    ) -> io::Result<()> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        for turn in 0.. {
            let value = format!("keyway load {}.{turn}", since.as_nanos());
            let attribute_value =
                Attribute { description: attribute.into(), values: vec![value.as_bytes().into()] };
            let operation = ChangeOperation::Replace;
            let changes = vec![Change { operation, attribute: attribute_value }];
            write.ask(Op::ModifyRequest(ModifyRequest { dn, changes }), &mut |_| ())?;
            let written = Instant::now();
            while values(read, dn, &[attribute.to_owned()])?.first() != Some(&value) {
                if written.elapsed() > REPLICATION_MAX {
                    let why = format!("a change was not seen after {REPLICATION_MAX:?}");
                    return Err(io::Error::other(why));
                }
                if is_over(ended, LOOK_EVERY) {
                    return Ok(());
                }
            }
            self.say(0, written.elapsed().as_secs_f64() * 1e3);
            if is_over(ended, MONITOR_EVERY) {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The first value of each attribute of an entry, as a number.
fn numbers(client: &mut Client, dn: &str, attributes: &[String]) -> io::Result<Vec<f64>> {
    let values = values(client, dn, attributes)?;
    let number = |(value, attribute): (&String, &String)| {
        let wrong = || match value.is_empty() {
            true => io::Error::other(format!("{dn} has no {attribute} that we may read")),
            false => io::Error::other(format!("{attribute} is not a number: '{value}'")),
        };
        value.trim().parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(wrong)
    };
    values.iter().zip(attributes).map(number).collect()
}

/// The first value of each attribute of an entry; empty where there is none.
fn values(client: &mut Client, dn: &str, attributes: &[String]) -> io::Result<Vec<String>> {
    let search = SearchRequest {
        base: dn,
        scope: Scope::Base,
        deref: Deref::Never,
        size_limit: 0,
        time_limit_s: 0,
        types_only: false,
        filter: keyway_codec::Filter::Present(Cow::Borrowed("objectClass")),
        attributes: attributes.iter().map(String::as_str).collect(),
    };
    let mut values = vec![String::new(); attributes.len()];
    client.ask(Op::SearchRequest(search), &mut |message: &Message<'_>| {
        let Op::SearchResultEntry(entry) = &message.op else { return };
        for (value, wanted) in values.iter_mut().zip(attributes) {
            let mut found = entry.attributes.iter();
            let found = found.find(|found| found.description.eq_ignore_ascii_case(wanted));
            if let Some(first) = found.and_then(|found| found.values.first()) {
                *value = String::from_utf8_lossy(first).into_owned();
            }
        }
    })?;
    Ok(values)
}
