//! The operations that a filter means.

use super::wire::*;
use keyway_codec::message::{LdapResult, ResultCode};
use keyway_codec::{Message, Op};
use keyway_decode::view::{Line, Printer};
use keyway_decode::{Options, Query};

/// The ids of the operations that a filter means. A packet takes a millisecond.
fn meant(filter: &str) -> Vec<u32> {
    let failed = Op::SearchResultDone(LdapResult::new(ResultCode::SizeLimitExceeded, "too many"));
    let says = vec![
        (End::Client, bind(1, "cn=admin", b"x")),
        (End::Server, bound(1)),
        (End::Client, search(2, "(mail=*@example.com)")),
        (End::Client, search(3, "(uid=a)")),
        (End::Server, entry(3, "uid=a", b"a")),
        (End::Server, done(3)),
        (End::Server, encode(2, failed)),
        (End::Client, add(4, "uid=b,dc=example,dc=com", vec![attribute("sn", b"b")])),
        (End::Client, encode(5, Op::UnbindRequest)),
    ];
    let query = Query::parse(filter).unwrap();
    let mut printer = Printer::new(Ids, Some(query), Vec::new());
    let file = capture(&Conversation::new(false, says).segments(1000));
    into(&file, Options::default(), &mut printer);
    printer.end().unwrap();
    let mut ids: Vec<u32> = printer.into_output().iter().map(|id| u32::from(*id)).collect();
    ids.sort_unstable();
    ids
}

/// Tells of an operation by its id.
struct Ids;

impl keyway_decode::view::View for Ids {
    fn operation(&mut self, operation: &keyway_decode::Operation<'_>, out: &mut Vec<u8>) {
        let _: (&Message<'_>, Line) = (operation.request.message().unwrap(), Line);
        out.push(operation.id as u8);
    }

    fn note(&mut self, _: &keyway_decode::Note<'_>, _: &mut Vec<u8>) {}
}

#[test]
fn operations_are_chosen_by_their_fields() {
    for (filter, ids) in [
        ("(op=search)", &[2, 3][..]),
        ("(&(op=search)(code>=1)(latency>=3ms)(filter=*mail*))", &[2]),
        ("(code=sizeLimitExceeded)", &[2]),
        ("(result=size*)", &[2]),
        ("(!(code=0))", &[2, 4, 5]),
        ("(latency>=4ms)", &[2]),
        ("(latency<=2)", &[1, 3]),
        ("(entries>=1)", &[3]),
        ("(dn=*,DC=Example,*)", &[4]),
        ("(dn~=EXAMPLE)", &[2, 3, 4]),
        ("(attribute=mail)", &[2, 3]),
        ("(attribute=sn)", &[4]),
        ("(bound=cn=admin)", &[2, 3, 4, 5]),
        ("(mechanism=simple)", &[1]),
        ("(client=192.0.2.1)", &[1, 2, 3, 4, 5]),
        ("(server=192.0.2.2:389)", &[1, 2, 3, 4, 5]),
        ("(end=unanswered)", &[4]),
        ("(diagnostic=*)", &[2]),
        ("(&(conn=1)(id>=4))", &[4, 5]),
        ("(tls=true)", &[]),
        ("(&)", &[1, 2, 3, 4, 5]),
    ] {
        assert_eq!(meant(filter), ids, "{filter}");
    }
}
