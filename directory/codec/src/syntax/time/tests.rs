//! The RFC's examples, what is refused, and that normal forms are ordered as time is.

use super::{generalized, is_utc_time};
use proptest::prelude::*;

fn normal(value: &str) -> Option<String> {
    generalized(value.as_bytes()).map(|form| String::from_utf8(form).unwrap())
}

#[test]
fn one_time_has_one_form() {
    let forms = [
        ("199412161032Z", "19941216103200"),
        ("199412160532-0500", "19941216103200"),
        ("1994121605.5-05", "19941216103000"),
        ("1994121605,50-05", "19941216103000"),
        ("19941216103200.000Z", "19941216103200"),
        ("19941216103200.120Z", "19941216103200.12"),
        ("199412161032.25Z", "19941216103215"),
        ("199412161032.001Z", "19941216103200.06"),
        ("1994121610.0000001Z", "19941216100000.00036"),
        ("1994121610.99999Z", "19941216105959.964"),
        ("20000229000000+0001", "20000228235900"),
        ("19991231235959-0001", "20000101000059"),
        ("20000101000000+2359", "19991231000100"),
        ("20161231235960Z", "20161231235960"),
        ("20170101005960+0100", "20161231235960"),
        ("00000101000000Z", "00000101000000"),
        ("99991231235959Z", "99991231235959"),
    ];
    for (value, form) in forms {
        assert_eq!(normal(value).as_deref(), Some(form), "{value}");
    }
}

#[test]
fn what_is_no_time() {
    let wrong = [
        "",
        "Z",
        "1994121610",
        "199412161032",
        "19941216Z",
        "199412161Z",
        "19941316103200Z",
        "19940016103200Z",
        "19941200103200Z",
        "19941232103200Z",
        "19940231103200Z",
        "19940229103200Z",
        "19000229103200Z",
        "19941216243200Z",
        "19941216106000Z",
        "19941216103261Z",
        "19941216103200.Z",
        "19941216103200.1",
        "19941216103200z",
        "19941216103200+",
        "19941216103200+1",
        "19941216103200+24",
        "19941216103200+0060",
        "19941216103200+01000",
        "19941216103200Z ",
        " 19941216103200Z",
        "1994121610320Z",
        "00000101000000+0001",
        "99991231235959-0001",
    ];
    for value in wrong {
        assert_eq!(normal(value), None, "{value}");
    }
}

#[test]
fn utc_times() {
    for value in
        ["9412161032Z", "941216103200Z", "9412161032", "941216103200-0500", "000229000000Z"]
    {
        assert!(is_utc_time(value.as_bytes()), "{value}");
    }
    for value in ["", "94121610Z", "9413161032Z", "9412161032z", "9412161032-05000", "94121610321Z"]
    {
        assert!(!is_utc_time(value.as_bytes()), "{value}");
    }
}

/// A time as text, and the tenths of milliseconds since the year 1600 that it is.
fn any_time() -> impl Strategy<Value = (String, i128)> {
    let date = (1970i128..2040, 1i128..=12, 1i128..=28);
    let time = (0i128..24, prop::option::of((0i128..60, prop::option::of(0i128..60))));
    let fraction = prop::option::of((0u32..10_000, 4usize..5));
    (date, time, fraction, -1439i128..1440).prop_map(|(date, time, fraction, offset)| {
        let ((year, month, day), (hour, minute)) = (date, time);
        let mut text = format!("{year:04}{month:02}{day:02}{hour:02}");
        let mut seconds = (days(year, month, day) * 24 + hour) * 3600;
        let mut unit = 3600;
        if let Some((minute, second)) = minute {
            text += &format!("{minute:02}");
            seconds += minute * 60;
            unit = 60;
            if let Some(second) = second {
                text += &format!("{second:02}");
                seconds += second;
                unit = 1;
            }
        }
        let mut tenths = seconds * 10_000;
        if let Some((fraction, digits)) = fraction {
            text += &format!(".{fraction:0digits$}");
            tenths += i128::from(fraction) * unit;
        }
        let sign = if offset < 0 { '-' } else { '+' };
        text += &format!("{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60);
        (text, tenths - offset * 60 * 10_000)
    })
}

/// Days since 1 January 1600, counted one year and month after another.
fn days(year: i128, month: i128, day: i128) -> i128 {
    let is_leap = |year: i128| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let years: i128 = (1600..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months = [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    years + months[..(month - 1) as usize].iter().sum::<i128>() + day - 1
}

proptest! {
    #[test]
    fn times_are_ordered(a in any_time(), b in any_time()) {
        let (form_a, form_b) = (normal(&a.0), normal(&b.0));
        prop_assert!(form_a.is_some(), "{}", a.0);
        prop_assert_eq!(form_a.cmp(&form_b), a.1.cmp(&b.1));
        let again = normal(&format!("{}Z", form_a.clone().unwrap()));
        prop_assert_eq!(again, form_a);
    }
}
