//! Requests that are prepared once and written many times, with other values each time.

use crate::text::{Drawn, Names, Piece};
use keyway_codec::ber::{self, Reader, SEQUENCE, Writer};
use keyway_codec::message::{Control, ExtendedRequest, Message, Op, tag};
use keyway_data::View;
use zeroize::{Zeroize, Zeroizing};

/// A message without its id: what never changes as it goes out, and texts between.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// Elements that are the same each time.
    Fixed(Vec<u8>),
    /// A primitive element whose contents vary.
    Varying(u8, Vec<Piece>),
    /// An element with such a one in it, whose length varies so, too.
    Nested(u8, Vec<Part>),
    /// The request to add an entry of this source.
    Entry(usize),
}

impl Request {
    /// Cuts an operation apart that was built of marked texts ([`Names::mark`]).
    pub(crate) fn new(op: Op<'_>, controls: Vec<Control<'_>>, names: &Names<'_>) -> Request {
        Request::of(op, controls, names, None)
    }

    /// Prepares an extended operation whose value is an element itself: its length varies with its
    /// content.
    pub(crate) fn with_element(
        request: ExtendedRequest<'_>,
        controls: Vec<Control<'_>>,
        names: &Names<'_>,
    ) -> Request {
        const VALUE: u8 = ber::context(1);
        Request::of(Op::ExtendedRequest(request), controls, names, Some(VALUE))
    }

    /// A request to add the entry of a source that has some.
    pub(crate) fn add_entry(
        source: usize,
        controls: Vec<Control<'_>>,
        names: &Names<'_>,
    ) -> Request {
        let mut bytes = Vec::new();
        Message { id: 0, op: Op::UnbindRequest, controls }.encode(&mut bytes);
        let mut parts = vec![Part::Entry(source)];
        // Only what stands behind the operation is of use.
        if let Ok(mut body) = Reader::new(&bytes).nested(SEQUENCE)
            && body.natural(ber::INTEGER).is_ok()
            && body.element().is_ok()
        {
            parts.extend(cut(body, names, None));
        }
        Request { parts }
    }

    fn of(
        op: Op<'_>,
        controls: Vec<Control<'_>>,
        names: &Names<'_>,
        element: Option<u8>,
    ) -> Request {
        let mut bytes = Zeroizing::new(Vec::new());
        Message { id: 0, op, controls }.encode(&mut bytes);
        let mut parts = Vec::new();
        // The codec can read its own output.
        if let Ok(mut body) = Reader::new(&bytes).nested(SEQUENCE)
            && body.natural(ber::INTEGER).is_ok()
        {
            parts = cut(body, names, element);
        }
        Request { parts }
    }

    /// Appends the message. `scratch` is for texts as they are put together.
    pub(crate) fn write(
        &self,
        id: u32,
        drawn: &mut Drawn<'_>,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        let mut writer = Writer::new(out);
        let message = writer.begin(SEQUENCE);
        writer.integer(ber::INTEGER, i64::from(id));
        write(&self.parts, drawn, scratch, &mut writer);
        writer.end(message);
    }
}

impl Drop for Request {
    /// A bind has a password in it.
    fn drop(&mut self) {
        wipe(&mut self.parts);
    }
}

fn wipe(parts: &mut [Part]) {
    for part in parts {
        match part {
            Part::Fixed(bytes) => bytes.zeroize(),
            Part::Nested(_, parts) => wipe(parts),
            Part::Entry(_) => {}
            Part::Varying(_, pieces) => {
                for piece in pieces {
                    if let Piece::Literal(bytes) = piece {
                        bytes.zeroize();
                    }
                }
            }
        }
    }
}

fn write(parts: &[Part], drawn: &mut Drawn<'_>, scratch: &mut Vec<u8>, writer: &mut Writer<'_>) {
    for part in parts {
        match part {
            Part::Fixed(bytes) => writer.raw(bytes),
            Part::Varying(tag, pieces) => {
                scratch.clear();
                drawn.write(pieces, scratch);
                writer.octets(*tag, scratch);
            }
            Part::Nested(tag, parts) => {
                let element = writer.begin(*tag);
                write(parts, drawn, scratch, writer);
                writer.end(element);
            }
            Part::Entry(source) => {
                if let Some(entry) = drawn.entry(*source) {
                    add(&entry, writer);
                }
            }
        }
    }
}

/// An AddRequest (RFC 4511 § 4.7).
fn add(entry: &View<'_>, writer: &mut Writer<'_>) {
    let request = writer.begin(tag::ADD_REQUEST);
    writer.string(ber::OCTET_STRING, entry.dn());
    let attributes = writer.begin(SEQUENCE);
    for (name, values) in entry.attributes() {
        let attribute = writer.begin(SEQUENCE);
        writer.string(ber::OCTET_STRING, name);
        let set = writer.begin(ber::SET);
        values.for_each(|value| writer.octets(ber::OCTET_STRING, value));
        writer.end(set);
        writer.end(attribute);
    }
    writer.end(attributes);
    writer.end(request);
}

/// Cuts elements apart, as deep as something varies in them. `element` is one that is primitive and has
/// an element in it all the same.
fn cut(mut elements: Reader<'_>, names: &Names<'_>, element: Option<u8>) -> Vec<Part> {
    const CONSTRUCTED: u8 = 0x20;
    let mut parts: Vec<Part> = Vec::new();
    while let Ok((tag, contents)) = elements.element() {
        let is_constructed = tag & CONSTRUCTED != 0;
        let inner = if is_constructed || element == Some(tag) {
            let element = element.filter(|_| is_constructed);
            Some(cut(Reader::new(contents), names, element))
                .filter(|inner| inner.iter().any(|part| !matches!(part, Part::Fixed(_))))
                .map(|inner| Part::Nested(tag, inner))
        } else {
            Some(names.cut(contents))
                .filter(|pieces| pieces.iter().any(|piece| matches!(piece, Piece::Variable(_))))
                .map(|pieces| Part::Varying(tag, pieces))
        };
        match (inner, parts.last_mut()) {
            (Some(part), _) => parts.push(part),
            (None, Some(Part::Fixed(bytes))) => Writer::new(bytes).octets(tag, contents),
            (None, _) => {
                let mut bytes = Vec::new();
                Writer::new(&mut bytes).octets(tag, contents);
                parts.push(Part::Fixed(bytes));
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Pick, Source, Values};
    use fastrand::Rng;
    use keyway_codec::Filter;
    use keyway_codec::message::{Deref, Scope, SearchRequest};

    #[test]
    fn what_is_patched_is_what_the_codec_would_write() {
        let range = Values::Range { low: 0, count: 1 << 40, width: 0 };
        let sources = [Source::new("user".into(), range, Pick::Uniform)];
        let mut names = Names::new(&sources);
        let base = "ou=People,dc=example,dc=com";
        let search = |filter: &str, id| {
            let op = SearchRequest {
                base,
                scope: Scope::Subtree,
                deref: Deref::Never,
                size_limit: 0,
                time_limit_s: 0,
                types_only: false,
                filter: Filter::parse(filter).unwrap().into_owned(),
                attributes: vec!["cn"],
            };
            let mut out = Vec::new();
            Message::new(id, Op::SearchRequest(op.clone())).encode(&mut out);
            (op, out)
        };
        let marked =
            names.mark("(&(objectClass=*)(|(uid=user.{user})(cn=*{user}*{user}))(!(sn=x)))");
        let (op, _) = search(&marked.unwrap(), 0);
        let request = Request::new(Op::SearchRequest(op), Vec::new(), &names);
        let (mut random, mut scratch) = (Rng::with_seed(1), Vec::new());
        let mut makers = crate::entries::Makers::default();
        for (index, id) in [(0, 1), (7, 127), (250_000, 128), (12_345_678_901, 70_000)] {
            let mut drawn = Drawn {
                sources: &sources,
                indices: &[index],
                taken: &[],
                random: &mut random,
                makers: &mut makers,
            };
            let mut out = Vec::new();
            request.write(id, &mut drawn, &mut scratch, &mut out);
            let filter =
                format!("(&(objectClass=*)(|(uid=user.{index})(cn=*{index}*{index}))(!(sn=x)))");
            assert_eq!(out, search(&filter, id).1, "{index}");
        }
    }

    #[test]
    fn names_that_are_not_there() {
        let range = Values::Range { low: 0, count: 9, width: 0 };
        let sources = [Source::new("user".into(), range, Pick::Uniform)];
        let mut names = Names::new(&sources);
        assert!(names.mark("{usr}").unwrap_err().contains("did you mean {user}?"));
        assert!(names.mark("{zebra}").unwrap_err().contains("there is no {zebra}"));
        assert!(names.mark("{user").unwrap_err().contains("a brace without"));
        assert!(names.mark("{random:alpha:0}").unwrap_err().contains("LENGTH from 1"));
        assert_eq!(names.mark("{{SSHA}}x").unwrap(), "{SSHA}x");
    }
}
