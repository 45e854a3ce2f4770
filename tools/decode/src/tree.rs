//! A message as a tree of its elements, each with its name and its place among the octets.
//!
//! Names are those of RFC 4511. The contents of values of controls and extended operations stand
//! below them as fields.

use crate::direction::Direction;
use crate::framing::is_request;
use crate::parameters::{self, Value};
use crate::view::value;
use keyway_codec::ber::Reader;
use keyway_codec::message::tag;
use std::ops::Range;

/// How deep elements are looked into; filters may be nested deeper.
const DEPTH_MAX: usize = 64;

/// An element. Those within it follow it, one deeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// How deep it is.
    pub depth: usize,
    /// Its name.
    pub name: &'static str,
    /// Its value as text; empty where there are elements in it.
    pub text: String,
    /// Where it is among the message's octets, its header too.
    pub place: Range<usize>,
}

/// The known elements in one.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// Text, or octets shown as text.
    Text(&'static str),
    Number(&'static str),
    /// These, in this order.
    Sequence(&'static str, &'static [Shape]),
    /// Any number of these.
    List(&'static str, &'static Shape),
    Filter,
    Result(&'static str),
    Controls,
    Control,
    /// Nothing: it is told apart by its tag.
    Tagged(&'static [(u8, Shape)]),
}

use Shape::{Control, Controls, Filter, List, Number, Result, Sequence, Tagged, Text};

const ATTRIBUTE: Shape = Sequence("attribute", &[Text("type"), List("vals", &Text("value"))]);
const CHANGE: Shape = Sequence("change", &[Number("operation"), ATTRIBUTE]);
const AVA: &[Shape] = &[Text("attributeDesc"), Text("assertionValue")];

/// The elements after a control's object identifier.
const IN_CONTROL: &[(u8, Shape)] = &[(0x01, Number("criticality")), (0x04, Text("controlValue"))];

const SUBSTRINGS: &[Shape] = &[
    Text("type"),
    List(
        "substrings",
        &Tagged(&[(0x80, Text("initial")), (0x81, Text("any")), (0x82, Text("final"))]),
    ),
];

const EXTENSIBLE: &[(u8, Shape)] = &[
    (0x81, Text("matchingRule")),
    (0x82, Text("type")),
    (0x83, Text("matchValue")),
    (0x84, Number("dnAttributes")),
];

/// The bit of a tag that says that elements are in it.
const CONSTRUCTED: u8 = 0x20;

/// Elements of a bind's credentials, a SASL bind's among them.
const AUTHENTICATION: Shape = Tagged(&[
    (0x80, Text("simple")),
    (0xa3, Sequence("sasl", &[Text("mechanism"), Text("credentials")])),
]);

/// The elements after the components of a result.
const AFTER_RESULT: &[(u8, Shape)] = &[
    (0xa3, List("referral", &Text("uri"))),
    (0x87, Text("serverSaslCreds")),
    (0x8a, Text("responseName")),
    (0x8b, Text("responseValue")),
];

/// Operations by their tags.
const OPERATIONS: &[(u8, Shape)] = &[
    (
        tag::BIND_REQUEST,
        Sequence("bindRequest", &[Number("version"), Text("name"), AUTHENTICATION]),
    ),
    (tag::BIND_RESPONSE, Result("bindResponse")),
    (tag::UNBIND_REQUEST, Text("unbindRequest")),
    (
        tag::SEARCH_REQUEST,
        Sequence(
            "searchRequest",
            &[
                Text("baseObject"),
                Number("scope"),
                Number("derefAliases"),
                Number("sizeLimit"),
                Number("timeLimit"),
                Number("typesOnly"),
                Filter,
                List("attributes", &Text("selector")),
            ],
        ),
    ),
    (
        tag::SEARCH_RESULT_ENTRY,
        Sequence("searchResEntry", &[Text("objectName"), List("attributes", &ATTRIBUTE)]),
    ),
    (tag::SEARCH_RESULT_DONE, Result("searchResDone")),
    (tag::SEARCH_RESULT_REFERENCE, List("searchResRef", &Text("uri"))),
    (tag::MODIFY_REQUEST, Sequence("modifyRequest", &[Text("object"), List("changes", &CHANGE)])),
    (tag::MODIFY_RESPONSE, Result("modifyResponse")),
    (tag::ADD_REQUEST, Sequence("addRequest", &[Text("entry"), List("attributes", &ATTRIBUTE)])),
    (tag::ADD_RESPONSE, Result("addResponse")),
    (tag::DELETE_REQUEST, Text("delRequest")),
    (tag::DELETE_RESPONSE, Result("delResponse")),
    (
        tag::MODIFY_DN_REQUEST,
        Sequence(
            "modDNRequest",
            &[Text("entry"), Text("newrdn"), Number("deleteoldrdn"), Text("newSuperior")],
        ),
    ),
    (tag::MODIFY_DN_RESPONSE, Result("modDNResponse")),
    (tag::COMPARE_REQUEST, Sequence("compareRequest", &[Text("entry"), Sequence("ava", AVA)])),
    (tag::COMPARE_RESPONSE, Result("compareResponse")),
    (tag::ABANDON_REQUEST, Number("abandonRequest")),
    (tag::EXTENDED_REQUEST, Sequence("extendedReq", &[Text("requestName"), Text("requestValue")])),
    (tag::EXTENDED_RESPONSE, Result("extendedResp")),
    (
        tag::INTERMEDIATE_RESPONSE,
        Sequence("intermediateResponse", &[Text("responseName"), Text("responseValue")]),
    ),
];

/// Elements that say what is in the value behind them.
const OIDS: [&str; 3] = ["controlType", "requestName", "responseName"];

/// Choices of a filter by their tags.
const FILTERS: [(u8, &str); 10] = [
    (0xa0, "and"),
    (0xa1, "or"),
    (0xa2, "not"),
    (0xa3, "equalityMatch"),
    (0xa4, "substrings"),
    (0xa5, "greaterOrEqual"),
    (0xa6, "lessOrEqual"),
    (0x87, "present"),
    (0xa8, "approxMatch"),
    (0xa9, "extensibleMatch"),
];

/// The elements of a message, as far as it is one.
#[must_use]
pub fn tree(message: &[u8]) -> Vec<Node> {
    let direction = Direction::Request;
    let mut walk = Walk { octets: message, nodes: Vec::new(), direction, oid: String::new() };
    const MESSAGE: Shape =
        Sequence("LDAPMessage", &[Number("messageID"), Tagged(OPERATIONS), Controls]);
    walk.one(0, 0..message.len(), &MESSAGE);
    walk.nodes
}

struct Walk<'m> {
    octets: &'m [u8],
    nodes: Vec<Node>,
    /// The direction of the message, once its operation was seen.
    direction: Direction,
    /// The last object identifier, which says what is in the value behind it.
    oid: String,
}

/// An element that was found.
struct Element {
    tag: u8,
    place: Range<usize>,
    contents: Range<usize>,
}

impl Walk<'_> {
    /// The element that a part of the message begins with.
    fn element(&self, part: &Range<usize>) -> Option<Element> {
        let octets = self.octets.get(part.clone())?;
        let (tag, contents) = Reader::new(octets).element().ok()?;
        let first = usize::from(*octets.get(1)?);
        let begin = part.start + 2 + if first < 0x80 { 0 } else { first & 0x7f };
        let end = begin + contents.len();
        Some(Element { tag, place: part.start..end, contents: begin..end })
    }

    fn add(&mut self, depth: usize, name: &'static str, element: &Element, text: String) {
        self.nodes.push(Node { depth, name, text, place: element.place.clone() });
    }

    fn text(&self, element: &Element) -> String {
        shown(self.octets.get(element.contents.clone()).unwrap_or_default())
    }

    /// Adds the element that a part begins with, and those in it: where the next one begins.
    fn one(&mut self, depth: usize, part: Range<usize>, shape: &Shape) -> Option<usize> {
        let element = self.element(&part).filter(|_| depth <= DEPTH_MAX)?;
        let within = element.contents.clone();
        match shape {
            Text(name) => {
                let text = self.text(&element);
                if OIDS.contains(name) {
                    self.oid.clone_from(&text);
                }
                self.add(depth, name, &element, text);
                self.fields(depth + 1, name, &element);
            }
            Number(name) => {
                let text = number(self.octets.get(within).unwrap_or_default());
                self.add(depth, name, &element, text);
            }
            Sequence(name, shapes) => {
                self.add(depth, name, &element, String::new());
                self.sequence(depth + 1, within, shapes);
            }
            List(name, shape) => {
                self.add(depth, name, &element, String::new());
                self.all(depth + 1, within, shape);
            }
            Result(name) => {
                self.add(depth, name, &element, String::new());
                let parts = [Number("resultCode"), Text("matchedDN"), Text("diagnosticMessage")];
                self.sequence_and(depth + 1, within, &parts, &Tagged(AFTER_RESULT));
            }
            Controls => {
                self.add(depth, "controls", &element, String::new());
                self.all(depth + 1, within, &Control);
            }
            Control => {
                self.add(depth, "control", &element, String::new());
                self.sequence_and(depth + 1, within, &[Text("controlType")], &Tagged(IN_CONTROL));
            }
            Filter => self.filter(depth, &element),
            Tagged(choices) => match choices.iter().find(|(known, _)| *known == element.tag) {
                Some((_, shape)) => {
                    if std::ptr::eq(*choices, OPERATIONS) && !is_request(element.tag) {
                        self.direction = Direction::Response;
                    }
                    return self.one(depth, part, shape);
                }
                None => self.add(depth, "unknown", &element, self.text(&element)),
            },
        }
        Some(element.place.end)
    }

    /// Adds what is in the value of a control or an extended operation that is known.
    fn fields(&mut self, depth: usize, name: &str, element: &Element) {
        let octets = self.octets.get(element.contents.clone()).unwrap_or_default();
        let known = match name {
            "controlValue" => parameters::control(&self.oid, octets, self.direction),
            "requestValue" | "responseValue" => {
                parameters::extended(&self.oid, octets, self.direction)
            }
            _ => return,
        };
        if matches!(known, Value::Octets(_)) || octets.is_empty() {
            return;
        }
        known.leaves(&mut |path, octets| {
            let colon = if path.is_empty() { "" } else { ": " };
            let text = format!("{path}{colon}{}", shown(octets));
            self.nodes.push(Node { depth, name: "field", text, place: element.contents.clone() });
        });
    }

    /// Adds elements of these shapes, in this order, and what is more than is known.
    fn sequence(&mut self, depth: usize, part: Range<usize>, shapes: &[Shape]) {
        self.sequence_and(depth, part, shapes, &Text("more"));
    }

    fn sequence_and(&mut self, depth: usize, part: Range<usize>, shapes: &[Shape], others: &Shape) {
        let mut at = part.start;
        for shape in shapes {
            let Some(next) = self.one(depth, at..part.end, shape) else { return };
            at = next;
        }
        self.all(depth, at..part.end, others);
    }

    fn all(&mut self, depth: usize, part: Range<usize>, shape: &Shape) {
        let mut at = part.start;
        while let Some(next) = self.one(depth, at..part.end, shape) {
            at = next;
        }
    }

    fn filter(&mut self, depth: usize, element: &Element) {
        let known = FILTERS.iter().find(|(known, _)| *known == element.tag);
        let name = known.map_or("unknown", |(_, name)| *name);
        if element.tag & CONSTRUCTED == 0 {
            return self.add(depth, name, element, self.text(element));
        }
        self.add(depth, name, element, String::new());
        let (depth, within) = (depth + 1, element.contents.clone());
        match element.tag {
            0xa0..=0xa2 => self.all(depth, within, &Filter),
            0xa4 => self.sequence(depth, within, SUBSTRINGS),
            0xa9 => self.all(depth, within, &Tagged(EXTENSIBLE)),
            _ => self.sequence(depth, within, AVA),
        }
    }
}

fn shown(octets: &[u8]) -> String {
    let mut out = Vec::new();
    value(octets, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// An integer, an enumeration or a boolean.
fn number(octets: &[u8]) -> String {
    if octets.len() > 8 || octets.is_empty() {
        return shown(octets);
    }
    let start = if octets.first().is_some_and(|first| first & 0x80 != 0) { -1 } else { 0 };
    octets.iter().fold(start, |number: i64, octet| number << 8 | i64::from(*octet)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use keyway_codec::message::{Deref, Scope, SearchRequest};
    use keyway_codec::{Filter as Wanted, Message, Op};

    #[test]
    fn values_of_controls_are_taken_apart() {
        let value = [0x30, 0x05, 0x02, 0x01, 0x32, 0x04, 0x00];
        let oid = keyway_codec::controls::PAGED_RESULTS;
        let control =
            keyway_codec::message::Control { oid, critical: true, value: Some(value[..].into()) };
        let mut message = Message::new(3, Op::DeleteRequest("dc=example"));
        message.controls.push(control);
        let mut octets = Vec::new();
        message.encode(&mut octets);
        let fields: Vec<_> =
            tree(&octets).into_iter().filter(|node| node.name == "field").collect();
        let texts: Vec<_> = fields.iter().map(|node| node.text.as_str()).collect();
        assert_eq!(texts, ["size: 50", "cookie: "]);
    }

    #[test]
    fn elements_have_names_and_places() {
        let search = SearchRequest {
            base: "dc=example",
            scope: Scope::Subtree,
            deref: Deref::Never,
            size_limit: 7,
            time_limit_s: 0,
            types_only: false,
            filter: Wanted::parse("(&(uid=anna)(cn=a*b))").unwrap(),
            attributes: vec!["cn", "mail"],
        };
        let mut octets = Vec::new();
        Message::new(5, Op::SearchRequest(search)).encode(&mut octets);
        let nodes = tree(&octets);
        let find = |name: &str| nodes.iter().find(|node| node.name == name).unwrap();
        assert_eq!(nodes[0].place, 0..octets.len());
        assert_eq!(find("messageID").text, "5");
        assert_eq!(find("sizeLimit").text, "7");
        assert_eq!(find("initial").text, "a");
        let base = find("baseObject");
        assert_eq!(base.text, "dc=example");
        assert_eq!(&octets[base.place.clone()], b"\x04\x0adc=example");
        let selectors = nodes.iter().filter(|node| node.name == "selector").count();
        assert_eq!(selectors, 2, "{nodes:#?}");
        assert!(nodes.iter().all(|node| node.place.end <= octets.len()));
    }
}
