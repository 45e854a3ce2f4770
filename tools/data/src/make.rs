//! Makes an entry: the values of its lines, in the order in which they need one another, and its name.

use crate::entry::{Entry, Extent, Frame};
use crate::error::MakeError;
use crate::piece::Condition;
use crate::plan::Line;
use crate::random::{Random, mix};
use crate::value::{Scene, SomeName, Turn};

impl Entry {
    /// Makes the entry of a frame. `generation` changes what may change of an entry that stays the
    /// same one.
    pub(crate) fn make(
        &mut self,
        number: usize,
        scene: &Scene<'_>,
        extent: Extent,
        generation: u64,
        others: &mut Option<SomeName<'_>>,
    ) -> Result<(), MakeError> {
        self.prepare(number, scene.kind);
        let key = mix(scene.plan.seed.wrapping_add(scene.index), scene.index);
        let order = &scene.kind.order;
        self.lines(&order.name, scene, key, others)?;
        self.name(scene)?;
        if extent >= Extent::Inherited {
            self.lines(&order.inherited, scene, key, others)?;
        }
        if extent >= Extent::All {
            let key = if generation == 0 { key } else { mix(key, generation) };
            self.lines(&order.rest, scene, key, others)?;
        }
        Ok(())
    }

    fn lines(
        &mut self,
        order: &[usize],
        scene: &Scene<'_>,
        key: u64,
        others: &mut Option<SomeName<'_>>,
    ) -> Result<(), MakeError> {
        for at in order {
            let Some(line) = scene.kind.lines.get(*at) else { continue };
            let first = self.spans.len();
            let mut random = Random::new(key ^ line.salt);
            if line.conditions.iter().all(|it| self.holds(it, &mut random)) {
                self.line(line, scene, &mut random, others)
                    .map_err(|why| why.at(&line.attribute))?;
            }
            if let Some(of_line) = self.of_line.get_mut(*at) {
                *of_line = (first, self.spans.len() - first);
            }
        }
        Ok(())
    }

    #[inline]
    fn line(
        &mut self,
        line: &Line,
        scene: &Scene<'_>,
        random: &mut Random,
        others: &mut Option<SomeName<'_>>,
    ) -> Result<(), MakeError> {
        let mut turn =
            Turn { copy: 0, walk: Default::default(), reference: line.reference.as_ref() };
        let mut times = line.times;
        if let Some(reference) = turn.reference {
            times = if times == 0 { reference.times(random) } else { times };
            turn.walk = reference.walk(random);
        }
        for copy in 0..times {
            turn.copy = copy;
            let from = self.text.len();
            for piece in &line.pieces {
                piece.write(scene, &turn, random, self, others)?;
            }
            // No attribute has an empty value in a directory.
            if self.text.len() > from {
                self.spans.push((from, self.text.len()));
            }
        }
        Ok(())
    }

    fn holds(&self, condition: &Condition, random: &mut Random) -> bool {
        match condition {
            Condition::Presence(part) => random.next() >> 32 < *part,
            Condition::If { lines, value, present } => {
                let mut all = lines.iter().flat_map(|line| self.values(*line));
                let found = match value {
                    None => all.any(|it| !it.is_empty()),
                    Some(value) => all.any(|it| it.eq_ignore_ascii_case(value)),
                };
                found == *present
            }
        }
    }

    /// Works out the name, of the values of the RDN's attributes.
    fn name(&mut self, scene: &Scene<'_>) -> Result<(), MakeError> {
        self.dn.clear();
        if let Some(dn) = &scene.kind.dn {
            self.dn.push_str(dn);
            return Ok(());
        }
        for (index, (attribute, lines)) in scene.kind.rdn.iter().enumerate() {
            if index > 0 {
                self.dn.push('+');
            }
            self.dn.push_str(attribute);
            self.dn.push('=');
            let Some((from, to)) = self.first_of(lines) else {
                let (entry, attribute) = (scene.index, attribute.clone());
                return Err(MakeError::NoName { entry, attribute });
            };
            push_escaped(&mut self.dn, self.text.get(from..to).unwrap_or_default());
        }
        let parent = scene.above.last().map(|frame: &Frame| frame.entry.dn.as_str());
        if let Some(parent) = parent.filter(|parent| !parent.is_empty()) {
            self.dn.push(',');
            self.dn.push_str(parent);
        }
        Ok(())
    }
}

/// Writes a value of a name, RFC 4514 § 2.4.
fn push_escaped(dn: &mut String, value: &[u8]) {
    let special =
        |byte: u8| matches!(byte, b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' | 0..=31);
    let is_plain = !value.iter().copied().any(special)
        && !matches!(value.first(), Some(b' ' | b'#'))
        && value.last() != Some(&b' ');
    let text = std::str::from_utf8(value);
    match text {
        Ok(text) if is_plain => dn.push_str(text),
        Ok(text) => {
            let last = text.chars().count().saturating_sub(1);
            for (at, sign) in text.chars().enumerate() {
                let at_edge = sign == ' ' && (at == 0 || at == last) || sign == '#' && at == 0;
                match u8::try_from(sign).ok().filter(|byte| special(*byte) || at_edge) {
                    Some(byte @ 0..=31) => push_hex_pair(dn, byte),
                    Some(_) => dn.extend(['\\', sign]),
                    None => dn.push(sign),
                }
            }
        }
        Err(_) => value.iter().for_each(|byte| push_hex_pair(dn, *byte)),
    }
}

fn push_hex_pair(dn: &mut String, byte: u8) {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    dn.extend(['\\', digit(byte >> 4), digit(byte & 15)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_codec::dn::Dn;

    #[test]
    fn values_of_names_are_escaped() {
        for value in ["plain", " a ", "#x", "a,b+c", "\"\\;<>", "é", "a\nb", " ", "a\0b"] {
            let mut dn = "cn=".to_owned();
            push_escaped(&mut dn, value.as_bytes());
            let read = Dn::parse(&dn).unwrap_or_else(|why| panic!("{dn:?}: {why}"));
            assert_eq!(read.rdns[0].avas[0].value, value.as_bytes(), "{dn}");
        }
        let mut dn = "cn=".to_owned();
        push_escaped(&mut dn, &[0xff, b'a']);
        assert_eq!(Dn::parse(&dn).unwrap().rdns[0].avas[0].value, [0xff, b'a']);
    }
}
