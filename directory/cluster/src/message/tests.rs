//! Frames out and in again, hostile octets, and texts that may not come in.

use proptest::prelude::*;

use super::*;

/// A frame of a peer that is known.
fn decode(octets: &[u8]) -> Result<Option<(Frame, usize)>, FrameError> {
    Frame::decode(octets, LARGE_FRAME)
}

fn place(position: u64) -> Place {
    Place {
        history: History([7; 16]),
        epoch: 3,
        writer: Some(MemberId(1)),
        position,
        digest: Digest([9; 32]),
    }
}

fn status() -> Status {
    Status {
        role: RoleName::Follower,
        member: MemberId(2),
        name: "b".into(),
        url: Some("ldaps://b.example.com:636".into()),
        epoch: 3,
        writer: Some(MemberId(1)),
        heard: Some(Reign { epoch: 3, writer: MemberId(1) }),
        is_connected: true,
        position: 1000,
        digest: Digest([1; 32]),
        head: 1001,
        lag_changes: Some(1),
        lag_seconds: Some(0.25),
        last_error: None,
        followers: vec![FollowerStatus {
            member: MemberId(3),
            name: "c".into(),
            position: 900,
            heard_seconds: 1.5,
        }],
        contents: Some(Contents { position: 1000, digest: Digest([2; 32]) }),
        rules: Some(Digest([3; 32])),
        diverged_from: Some(u64::MAX),
        promised: Some(Reign { epoch: 4, writer: MemberId(3) }),
        has_stopped: true,
    }
}

fn refusals() -> Vec<Refusal> {
    vec![
        Refusal::NotWriter { writer_url: None },
        Refusal::NotWriter { writer_url: Some("ldaps://a:636".into()) },
        Refusal::Busy,
        Refusal::OtherHistory,
        Refusal::OlderEpoch { epoch: u64::MAX },
        Refusal::Ahead { last: 5 },
        Refusal::Trimmed { first: 5 },
        Refusal::Diverged { position: 5 },
        Refusal::Behind { last: 5 },
        Refusal::Forked { position: 5 },
        Refusal::OtherContents { position: 1000 },
        Refusal::Twin,
        Refusal::Unleased,
        Refusal::Promised { to: MemberId(7) },
        Refusal::BadToken,
        Refusal::UnknownMember,
        Refusal::NoRoom,
        Refusal::OnlyJoin,
    ]
}

fn frames() -> Vec<Frame> {
    let mut frames = vec![
        Frame::Request(Request::Join {
            token: Token("secret".into()),
            name: "b".into(),
            url: None,
            public_key: vec![0x30, 0, 255],
        }),
        Frame::Request(Request::Base {}),
        Frame::Request(Request::Follow { member: MemberId(2), place: place(17), heard: None }),
        Frame::Request(Request::Forward { member: MemberId(u64::MAX) }),
        Frame::Request(Request::Status {}),
        Frame::Request(Request::Prepare { reign: Reign { epoch: 4, writer: MemberId(2) } }),
        Frame::Answer(Answer::Promised(Box::new(status()))),
        Frame::Request(Request::Move { url: "ldaps://b.example.com:636".into() }),
        Frame::Answer(Answer::Moved {}),
        Frame::Answer(Answer::Joined {
            member: MemberId(1),
            cluster: ClusterId([3; 16]),
            certificate: "-----BEGIN".into(),
            authority: String::new(),
        }),
        Frame::Answer(Answer::Base {
            files: vec![BaseFile { path: "store/data.mdb".into(), mode: 0o600, bytes: u64::MAX }],
        }),
        Frame::Answer(Answer::Following { epoch: 3, head: 17 }),
        Frame::Answer(Answer::Forwarding {}),
        Frame::Answer(Answer::Status(Box::new(status()))),
        Frame::Data(Vec::new()),
        Frame::Data(vec![1, 2, 3]),
        Frame::Row { position: 18, stored: vec![0; 100] },
        Frame::Heartbeat(Heartbeat { head: 18, epoch: 3, unix_us: 1, contents: None }),
        Frame::Acknowledge { position: 18 },
        Frame::End { sha256: Digest([5; 32]) },
    ];
    frames
        .extend(refusals().into_iter().map(|reason| Frame::Answer(Answer::refused(reason, None))));
    frames
}

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut out = Vec::new();
    frame.encode(&mut out).unwrap();
    out
}

fn json_frame(kind: u8, json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len() + 1).unwrap();
    [&length.to_be_bytes()[..], &[kind], json.as_bytes()].concat()
}

#[test]
fn each_frame_comes_back_octet_by_octet() {
    let mut octets = Vec::new();
    for frame in frames() {
        frame.encode(&mut octets).unwrap();
    }
    let (mut decoder, mut came) = (Decoder::new(), Vec::new());
    for octet in octets {
        decoder.push(&[octet]);
        while let Some(frame) = decoder.next_frame().unwrap() {
            came.push(frame);
        }
    }
    assert_eq!(came, frames());
    assert_eq!(decoder.next_frame(), Ok(None));
}

#[test]
fn a_frame_of_more_than_its_kind_may_have_is_refused_by_its_head() {
    let head = |length: usize, kind: u8| {
        let length = u32::try_from(length).unwrap();
        [&length.to_be_bytes()[..], &[kind]].concat()
    };
    for kind in [1, 2, 5, 6, 7] {
        assert!(decode(&head(SMALL_FRAME + 1, kind)).is_err(), "kind {kind}");
    }
    for kind in [3, 4] {
        assert!(decode(&head(LARGE_FRAME + 1, kind)).is_err(), "kind {kind}");
        assert_eq!(decode(&head(LARGE_FRAME, kind)), Ok(None));
        let mut decoder = Decoder::new();
        decoder.push(&head(SMALL_FRAME + 1, kind));
        assert!(decoder.next_frame().is_err(), "a peer that is not known yet");
        decoder.allow(LARGE_FRAME);
        assert_eq!(decoder.next_frame(), Ok(None));
    }
    assert!(decode(&head(0, 1)).is_err());
    assert!(decode(&head(8, 4)).is_err());
    assert_eq!(decode(&head(1, 99)), Err(FrameError::Kind(99)));
    let long = Frame::Answer(Answer::Joined {
        member: MemberId(1),
        cluster: ClusterId([3; 16]),
        certificate: "x".repeat(SMALL_FRAME),
        authority: String::new(),
    });
    let mut out = vec![1];
    assert!(long.encode(&mut out).is_err());
    assert_eq!(out, [1]);
}

#[test]
fn a_newer_version_is_understood_as_far_as_it_goes() {
    let (request, _) = decode(&json_frame(1, r#"{"want":"dance","with":3}"#)).unwrap().unwrap();
    assert_eq!(request, Frame::Request(Request::Unknown));
    let (request, _) = decode(&json_frame(1, r#"{"want":"base","fast":true}"#)).unwrap().unwrap();
    assert_eq!(request, Frame::Request(Request::Base {}));
    let (answer, _) = decode(&json_frame(2, r#"{"is":"tired"}"#)).unwrap().unwrap();
    assert_eq!(answer, Frame::Answer(Answer::Unknown));
    let refused = r#"{"is":"refused","reason":"moon","phase":2,"text":"the moon\u0007 is full"}"#;
    let (answer, _) = decode(&json_frame(2, refused)).unwrap().unwrap();
    let text = "the moon? is full".into();
    assert_eq!(
        answer,
        Frame::Answer(Answer::Refused { reason: Refusal::Other, text, heard: None })
    );
}

#[test]
fn texts_of_a_peer_are_bounded() {
    let bad = [
        r#"{"want":"join","token":"t","name":"a b","public_key":""}"#,
        r#"{"want":"join","token":"t","name":"","public_key":""}"#,
        r#"{"want":"join","token":"t","name":"a","url":"http://a","public_key":""}"#,
        r#"{"want":"join","token":"t","name":"a","public_key":"*"}"#,
        r#"{"want":"follow","member":"1","place":{}}"#,
        r#"{"want":"follow","member":"+123456789012345","place":{}}"#,
    ];
    for json in bad {
        assert!(decode(&json_frame(1, json)).is_err(), "{json}");
    }
    for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\\\\b", "a\\u0000"] {
        let json = format!(r#"{{"is":"base","files":[{{"path":"{path}","mode":384,"bytes":1}}]}}"#);
        assert!(decode(&json_frame(2, &json)).is_err(), "{json}");
    }
    let json = r#"{"is":"base","files":[{"path":"a","mode":2541,"bytes":1}]}"#;
    assert!(decode(&json_frame(2, json)).is_err());
}

#[test]
fn a_token_is_not_shown() {
    let request = frames().remove(0);
    assert!(!format!("{request:?}").contains("secret"));
    let wrong = json_frame(1, r#"{"want":"join","token":"secret","name":7,"public_key":""}"#);
    assert!(!decode(&wrong).unwrap_err().to_string().contains("secret"));
}

#[test]
fn a_refusal_that_does_not_pass_names_its_remedy() {
    for refusal in refusals() {
        let text = refusal.to_string();
        assert!(refusal.is_passing() || text.contains("`keyway "), "{text}");
    }
}

fn row() -> ClusterRow {
    let member = |id: u64, name: &str| Member {
        id: MemberId(id),
        name: name.into(),
        url: format!("ldaps://{name}.example.com:636"),
        since: 1_790_000_000,
    };
    ClusterRow {
        cluster: ClusterId([3; 16]),
        epoch: 3,
        writer: MemberId(0x1f),
        members: vec![member(0x1f, "a"), member(2, "b")],
        began: Vec::new(),
        etcd: None,
    }
}

#[test]
fn a_cluster_row_has_the_form_of_the_contract() {
    let json = String::from_utf8(row().to_json().unwrap()).unwrap();
    let start = concat!(
        r#"{"cluster":"03030303030303030303030303030303","epoch":3,"writer":"000000000000001f","#,
        r#""members":[{"id":"000000000000001f","name":"a","url":"ldaps://a.example.com:636","since":1790000000}"#,
    );
    assert!(json.starts_with(start), "{json}");
    assert_eq!(ClusterRow::parse(json.as_bytes()), Ok(row()));
}

#[test]
fn a_cluster_row_that_cannot_be_is_refused() {
    let wrong: [fn(&mut ClusterRow); 7] = [
        |row| row.epoch = 0,
        |row| row.writer = MemberId(9),
        |row| row.members[1].id = row.members[0].id,
        |row| row.members[1].name = "a".into(),
        |row| row.members[1].url = "ldaps://".into(),
        |row| row.members[1].url = format!("ldaps://{}", "x".repeat(URL_LIMIT)),
        |row| {
            let member = |id: u64| Member {
                id: MemberId(id),
                name: id.to_string(),
                ..row.members[0].clone()
            };
            row.members = (0..=MEMBERS_LIMIT as u64).map(member).collect();
        },
    ];
    for wrong in wrong {
        let mut row = row();
        wrong(&mut row);
        assert!(row.to_json().is_err(), "{row:?}");
        assert!(ClusterRow::parse(&serde_json::to_vec(&row).unwrap()).is_err(), "{row:?}");
    }
    assert!(ClusterRow::parse(b"[]").is_err());
}

proptest! {
    #[test]
    fn any_octets_are_a_frame_or_an_error(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(Some((frame, used))) = decode(&octets) {
            prop_assert!(used <= octets.len());
            prop_assert_eq!(decode(&encoded(&frame)).unwrap().unwrap().0, frame);
        }
    }

    #[test]
    fn a_damaged_frame_does_no_harm(which in 0usize..29, at in any::<prop::sample::Index>(), octet: u8) {
        let mut octets = encoded(&frames()[which % frames().len()]);
        let at = at.index(octets.len());
        octets[at] = octet;
        if let Ok(Some((frame, _))) = decode(&octets) {
            prop_assert_eq!(decode(&encoded(&frame)).unwrap().unwrap().0, frame);
        }
    }

    #[test]
    fn rows_and_acknowledgements_come_back(position: u64, stored in prop::collection::vec(any::<u8>(), 0..500)) {
        for frame in [Frame::Row { position, stored: stored.clone() }, Frame::Acknowledge { position }, Frame::Data(stored)] {
            let octets = encoded(&frame);
            prop_assert_eq!(decode(&octets), Ok(Some((frame, octets.len()))));
            for cut in 0..octets.len() {
                prop_assert_eq!(decode(&octets[..cut]), Ok(None));
            }
        }
    }
}
