use super::*;
use crate::limits::*;
use keyway_engine::{Algorithm, Engine, Key};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use zeroize::Zeroizing;

fn passwords() -> Passwords {
    let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
    let all = Scheme::NAMES.map(|(_, scheme)| scheme);
    Passwords::new(keyway_drivers::engine(), cost).accepting(&all)
}

async fn checks(passwords: &Passwords, password: &[u8], values: &[&[u8]]) -> bool {
    let values: Vec<_> = values.iter().map(|value| value.to_vec()).collect();
    let password = Zeroizing::new(password.to_vec());
    match passwords.check(any_attempt(passwords), None, password, &values).unwrap() {
        PasswordCheck::Known(verdict) => verdict.is_right(),
        PasswordCheck::Pending(pending) => pending.await.unwrap().is_right(),
    }
}

/// A client that has not tried before.
fn any_attempt(passwords: &Passwords) -> Attempt {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let number = LAST.fetch_add(1, Ordering::Relaxed);
    let from = Ipv4Addr::from_bits(number).into();
    passwords.attempt(from, &number.to_be_bytes(), BindHistory::default())
}

/// Each made by another program from the password `secret password`.
const FOREIGN: &[&str] = &[
    // slappasswd (OpenLDAP 2.5) with its core, pw-sha2 and argon2 modules.
    "{SSHA}rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV",
    "{SHA}0goJVFx6/xSk9ZbduhkpbVj2wQE=",
    "{SSHA256}pLKZW9HWEt3lk1SqV5qO6j5LWAejNOKguy8DdA5jiwzMBiV/6/AxIw==",
    "{SSHA384}EKIx9ijZ2fYW24DUS3InzkHJZ1kPaTW5A8ClB8I+INQI3B+Ycv5ejo+Z7JrDPlpvsVSrMEE5GeM=",
    "{SSHA512}BdBa3aBXHF+PTy4Rw6nu1m6lbd8EZmw9dBdb9cI7+PeuKnPp9Eb25ygVLCeXsqtRcROnzEksdcfvnFWUqwxpTs9e\
     xVkrbavs",
    "{ARGON2}$argon2i$v=19$m=4096,t=3,p=1$/sEXLKfKr7Hy4dD62hnL1Q$G6sVOIgVLebxVI9Dary8P3NMHYuxzXoQ/rE\
     2Lo2bHU8",
    "{ARGON2}$argon2i$v=19$m=128,t=3,p=2$uLGQbbxmCIu3x/y3vFnZ6w$pxeREf2BTsDSUb66g+29Ex23iby2+4u0zavq\
     Xut6SYk",
    // openssl passwd (OpenSSL 3.0) and glibc's crypt(3).
    "{CRYPT}$6$saltstring$mXvSStodjL2/qu3vO7vyzeO73AhIXRAVPMu2Wy27XQRg2ygktJmklRj9683dZpzGIXEqvsoQ1bM\
     UH/ORrAaE70",
    "{crypt}$5$saltstring$meKE4bAyUAmnZ6B3dSOjM1F1jnPrCg9DNBJIi.lJLXA",
    "{CRYPT}$5$rounds=1400$anotherlongsalts$TONWt8VO9qZMHWCDisYNf8TYqDl7B1sbiow52c4WF..",
    "{CRYPT}$6$rounds=1500$saltsaltsaltsalt$XXw1.f9FqUzuokoJtqB9gE3JQob0ymxrF/IMJIQpwSJACjwCb1O4WVxAD\
     c5aPgBjqPbttLajPH/nJVp7edEan.",
    "{CRYPT}$5$rounds=1000$x$Qzp4awPrurHBqPGdxvfRbq5kc.krx3eJpLgtGu8N5H4",
    // Python's hashlib.pbkdf2_hmac, written down as passlib and OpenLDAP's pw-pbkdf2 do, and in
    // 389-ds's older packed form.
    "{PBKDF2}1200$sVZYIKXNrEDgUg0j.dCxSQ$F8/PhEPcgWW24FLKfg/A5pZIPNs",
    "{PBKDF2-SHA256}1000$XVsJ9tyy1Tpf/8YMSsDVXw$DorlYqButjoU/VVuJjHdCbf3Ew1TfmtL8SK0gJGtCEs",
    "{PBKDF2-SHA512}1000$o5YkRkO1beShZCtayuWUcA$5Y7zlbgric9bu3MgKTyrZhcd7hLlLTiIfSgSjmXsazmW5i7ItXWA2\
     iCC60A5UtICXUjcsgGiWAv/3gexLJDylw",
    "{PBKDF2_SHA256}AAAIAGoaNHlwsKSFSRo+vE5zp9OiC3hWs3WbdAHwFcLryhycb5bO60b2327pGhnh6K5dOn/w7Z53zVG3\
     Ky30/Ywd0TQ4YY3mE6XwF0t4xKuFXQrxK8VExzkVZ1+faO9zKF0O8y1vbp8rEdFlsxvA93ItVLsrIjw7TYxX5qmEXnhgPS3\
     yeAxu4oFxlG5ws9iTgSyPl94xPFBy6itHteAyQa5y4CX0JZdi59lsZlE9IiSz+Tcro9z9Sg84qeZLWivR2NnQVblkwn0mfn\
     Co41X5OhYImn3Dr+6cBEIQbKQ/6aKK6/6y8DkV8FmgC3ka3TPdYpKEyvaR6KyHL3mNJvZcDWFE6OfBy/93EyeputR7TKMQu\
     LE8hwPgAKFSqnhZxXoSUmjSJSHG0ipGE3R8rb3vwrdjzTEVxnOgM+J7hyaZ/eiYEn04",
    // crypt(3) of libxcrypt.
    "{CRYPT}$2y$05$abcdefghijklmnopqrstuuCk8jkoqETEiNj.yXXza3UhEkEmCpaNe",
    "{BCRYPT}$2b$06$abcdefghijklmnopqrstuut3rfpz77WyoqCa6tLzI8yUtmHpAisU.",
    "{CRYPT}$2a$04$......................BJzfNinRVfaSDmcuRqvng80XDHW/AjO",
    "{CRYPT}$1$saltsalt$ysiaJOefMBJXicKvul5ww/",
    "{CRYPT}$1$x$TemHKIOTlx3k59gXMpee.1",
    // OpenSSL's MD5.
    "{MD5}pYTvr6j56n/lzxhELzKwew==",
    "{SMD5}BZ9FE5HQV4WBqmKR7B+KI3NhbHQ=",
    "secret password",
    "{CLEARTEXT}secret password",
];

#[tokio::test]
async fn bcrypt_looks_at_72_bytes_and_such_a_password_is_not_stored_again() {
    let passwords = passwords();
    // crypt(3) of libxcrypt, of 80 times p.
    let value = b"{CRYPT}$2b$04$abcdefghijklmnopqrstuuNt.0ah97gHY3F7JC1Z6EXmQc0bQBhIO";
    for (length, right) in [(71, None), (72, Some(Some(0))), (73, Some(None)), (80, Some(None))] {
        let password = Zeroizing::new(vec![b'p'; length]);
        let check =
            passwords.check(any_attempt(&passwords), None, password, &[value.to_vec()]).unwrap();
        let PasswordCheck::Pending(pending) = check else { panic!("it is slow") };
        let verdict =
            right.map_or(CheckOutcome::Wrong, |outdated| CheckOutcome::Right { outdated });
        assert_eq!(pending.await, Ok(verdict), "{length}");
    }
}

#[tokio::test]
async fn md5_crypt_of_every_shape() {
    let passwords = passwords();
    for (password, hash) in
        [(vec![], "5Jhcit4zN9UlGiA0txPkO0"), (vec![b'p'; 40], "NjuPcf/pXMrUv37P8d/qv.")]
    {
        let value = format!("{{CRYPT}}$1$saltsalt${hash}");
        assert!(checks(&passwords, &password, &[value.as_bytes()]).await, "{value}");
    }
}

#[tokio::test]
async fn values_of_other_programs_verify() {
    let passwords = passwords();
    for value in FOREIGN {
        assert!(checks(&passwords, b"secret password", &[value.as_bytes()]).await, "{value}");
        for wrong in [&b"secret passwore"[..], b"", b"secret password\0", b"secret passwor"] {
            assert!(!checks(&passwords, wrong, &[value.as_bytes()]).await, "{value}");
        }
    }
}

#[tokio::test]
async fn argon2id_vectors_of_the_reference_implementation() {
    let passwords = passwords();
    for value in [
        "{ARGON2}$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        "{ARGON2}$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4",
    ] {
        assert!(checks(&passwords, b"password", &[value.as_bytes()]).await, "{value}");
        assert!(!checks(&passwords, b"Password", &[value.as_bytes()]).await, "{value}");
    }
}

#[tokio::test]
async fn any_value_of_several_will_do() {
    let passwords = passwords();
    let all: Vec<_> =
        FOREIGN.iter().map(|value| value.as_bytes()).take(STORED_VALUES_MAX).collect();
    assert!(checks(&passwords, b"secret password", &all).await);
    let mixed: [&[u8]; 3] = [b"{NTLM}X03MO1qnZdYdgyfeuILPmQ==", FOREIGN[5].as_bytes(), b"other"];
    assert!(checks(&passwords, b"secret password", &mixed).await);
    assert!(checks(&passwords, b"other", &mixed).await);
    assert!(!checks(&passwords, b"third", &mixed).await);
}

#[tokio::test]
async fn what_the_engine_would_refuse_spoils_no_check() {
    let passwords = passwords();
    let (hash, long) = ("A".repeat(43), "A".repeat(1400));
    for value in [
        format!("{{ARGON2}}$argon2id$v=19$m=64,t=65,p=1$c29tZXNhbHQ${hash}"),
        format!("{{ARGON2}}$argon2id$v=19$m=64,t=1,p=1$c2FsdA${hash}"),
        format!("{{ARGON2}}$argon2id$v=19$m=64,t=1,p=1${long}${hash}"),
        format!("{{ARGON2}}$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ${long}"),
        format!("{{PBKDF2-SHA256}}1${long}${hash}"),
    ] {
        assert!(classify(value.as_bytes()).is_err(), "{value}");
        let values: [&[u8]; 2] = [FOREIGN[6].as_bytes(), value.as_bytes()];
        assert!(checks(&passwords, b"secret password", &values).await, "{value}");
        assert!(!checks(&passwords, b"x", &values[1..]).await, "{value}");
    }
}

#[tokio::test]
async fn new_values_are_salted_and_verify() {
    let passwords = passwords();
    let make =
        || async { passwords.hash(Zeroizing::new(b"secret".to_vec())).unwrap().await.unwrap() };
    let (one, other) = (make().await, make().await);
    assert_ne!(one, other);
    assert!(one.starts_with(b"{ARGON2}$argon2id$v=19$m=64,t=1,p=1$"));
    assert_eq!(classify(&one), Ok(Given::Hashed));
    assert!(checks(&passwords, b"secret", &[&one]).await);
    assert!(!checks(&passwords, b"Secret", &[&one]).await);
}

#[tokio::test]
async fn an_absent_user_costs_as_much_as_one_with_a_wrong_password() {
    let passwords = passwords();
    let hash = "a".repeat(86);
    let costly = format!("{{CRYPT}}$6$rounds=100000$salt${hash}");
    let mut stored = vec!["{NTLM}X03MO1qnZdYdgyfeuILPmQ==", "{SSHA}!!!", "", &costly];
    stored.extend(FOREIGN);
    let values = stored.iter().map(|value| vec![value.as_bytes().to_vec()]);
    let all = stored.iter().take(STORED_VALUES_MAX).map(|value| value.as_bytes().to_vec());
    for values in values.chain([vec![], all.collect()]) {
        for wrong in [&b"x"[..], b"x\0", &[b'x'; 1000]] {
            let check = passwords
                .check(any_attempt(&passwords), None, Zeroizing::new(wrong.to_vec()), &values)
                .unwrap();
            let PasswordCheck::Pending(pending) = check else { panic!("too fast: {values:?}") };
            assert_eq!(pending.await, Ok(CheckOutcome::Wrong));
        }
    }
}

#[tokio::test]
async fn what_a_guesser_gets_cheaper_is_outdated() {
    let passwords = passwords();
    let verdict = async |values: &[&str]| {
        let values: Vec<_> = values.iter().map(|value| value.as_bytes().to_vec()).collect();
        let password = Zeroizing::new(b"secret password".to_vec());
        match passwords.check(any_attempt(&passwords), None, password, &values).unwrap() {
            PasswordCheck::Known(verdict) => verdict,
            PasswordCheck::Pending(pending) => pending.await.unwrap(),
        }
    };
    for value in FOREIGN {
        assert_eq!(verdict(&[value]).await, CheckOutcome::Right { outdated: Some(0) }, "{value}");
        let second = verdict(&["{SSHA}!!!", value]).await;
        assert_eq!(second, CheckOutcome::Right { outdated: Some(1) }, "{value}");
    }
    let password = || Zeroizing::new(b"secret password".to_vec());
    for (memory_kib, passes, outdated) in [(64, 1, false), (63, 1, true), (32, 2, false)] {
        let cost = Argon2Cost { memory_kib, passes, lanes: 1 };
        let other = Passwords::new(keyway_drivers::engine(), cost);
        let value = other.hash(password()).unwrap().await.unwrap();
        let value = String::from_utf8(value).unwrap();
        let outdated = outdated.then_some(0);
        assert_eq!(verdict(&[&value]).await, CheckOutcome::Right { outdated }, "{value}");
    }
}

#[test]
fn long_passwords_are_turned_away_before_any_work() {
    let passwords = passwords();
    let long = Zeroizing::new(vec![b'x'; PASSWORD_BYTES_MAX + 1]);
    let check = passwords.check(any_attempt(&passwords), None, long.clone(), &[]);
    assert!(matches!(check, Ok(PasswordCheck::Known(CheckOutcome::Wrong))));
    assert!(matches!(passwords.hash(long), Err(Error::TooLong)));
}

#[tokio::test]
async fn sha_crypt_work_is_bounded_by_password_and_rounds_together() {
    let passwords = passwords();
    // crypt(3)'s, of a password so long that its rounds hash too much.
    let long = [b'x'; 100];
    let costly = "{CRYPT}$6$rounds=1000000$salt$PoDc6f23MrW5wNDQrRySeAIousTqF4vdFonLX\
                  UiQFAr5IEQkxoIcxmXtDfLqCYtPM1K68dwiorbAbp2rZCSMQ/";
    assert!(!checks(&passwords, &long, &[costly.as_bytes()]).await);
}

#[tokio::test]
async fn a_full_pool_is_busy() {
    let engine =
        keyway_engine::Engine::builder().driver(keyway_drivers::software()).slow_pool(0, 0).build();
    let passwords = Passwords::new(engine, Argon2Cost::default());
    let check = passwords.check(any_attempt(&passwords), None, Zeroizing::default(), &[]).unwrap();
    let PasswordCheck::Pending(pending) = check else { panic!("it is decided") };
    assert_eq!(pending.await, Err(Error::Busy));
    assert_eq!(passwords.hash(Zeroizing::default()).unwrap().await, Err(Error::Busy));
}

#[test]
fn generated_passwords_differ() {
    let passwords = passwords();
    let (one, other) = (passwords.generate().unwrap(), passwords.generate().unwrap());
    assert_ne!(one, other);
    assert_eq!(one.len(), GENERATED_CHARACTERS);
    assert!(one.iter().all(|byte| byte.is_ascii_alphanumeric()));
}

/// As shadow(5), LDAP account tools and other servers lock accounts.
const LOCKED: &[&str] = &[
    "{CRYPT}!",
    "{CRYPT}*",
    "{CRYPT}!!",
    "{CRYPT}x",
    "{crypt}",
    "{CRYPT}!$6$saltstring$mXvSStodjL2/qu3vO7vyzeO73AhIXRAVPMu2Wy27XQRg2ygktJmklRj9683dZpzGIXEqvsoQ1b\
     MUH/ORrAaE70",
    "{SSHA}!rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV",
    "!{SSHA}rXRAgYm9GAhAdEmNcfET0e07O0LT+WHV",
    "!!",
    "*",
    "*LK*",
];

#[tokio::test]
async fn a_locked_value_matches_nothing() {
    let passwords = passwords();
    for value in LOCKED {
        assert_eq!(classify(value.as_bytes()), Ok(Given::Hashed), "{value}");
        for password in [&b"secret password"[..], b"", b"!", b"x", value.as_bytes()] {
            assert!(!checks(&passwords, password, &[value.as_bytes()]).await, "{value}");
        }
    }
    for password in ["!a", "!!!", "*x", "**", "x", "!{"] {
        assert_eq!(classify(password.as_bytes()), Ok(Given::Password(password.as_bytes())));
    }
}

#[tokio::test]
async fn what_is_not_accepted_matches_nothing() {
    let strict = passwords().accepting(&[]);
    for value in FOREIGN.iter().map(|value| value.as_bytes()) {
        let scheme = stored::parse(value).unwrap().scheme();
        assert_eq!(checks(&strict, b"secret password", &[value]).await, scheme.is_none());
        let Some(scheme) = scheme else { continue };
        assert_eq!(strict.classify(value), Err(StoredError::NotAccepted(scheme)));
        let one = passwords().accepting(&[scheme]);
        assert!(checks(&one, b"secret password", &[value]).await);
    }
    for (name, scheme) in Scheme::NAMES {
        assert_eq!((Scheme::from_name(name), scheme.name()), (Some(scheme), name));
    }
}

/// Holds all keys to pepper with whose names begin so, and has the software driver do the work.
struct Holder(&'static [&'static str]);

impl keyway_engine::Driver for Holder {
    fn name(&self) -> &str {
        "holder"
    }

    fn supports(&self, steps: &[Algorithm]) -> bool {
        keyway_drivers::software().supports(steps)
    }

    fn open(
        &self,
        steps: &[keyway_engine::Step<'_>],
    ) -> Result<Box<dyn keyway_engine::DriverSession>, keyway_engine::Error> {
        let [step] = *steps else { return Err(keyway_engine::Error::invalid_request("a chain")) };
        let pepper;
        let key = match step.key {
            Key::Named(name) if self.0.iter().any(|held| name.starts_with(held)) => {
                pepper = format!("{name}, sixteen bytes at least");
                Key::Secret(pepper.as_bytes())
            }
            Key::Named(_) => return Err(keyway_engine::Error::Unsupported(step.algorithm)),
            key => key,
        };
        keyway_drivers::software().open(&[keyway_engine::Step { key, ..step }])
    }
}

fn peppered(held: &'static [&'static str], pepper: Option<&str>) -> Passwords {
    let engine = Engine::builder().driver(Arc::new(Holder(held))).build();
    let cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };
    let passwords = Passwords::new(engine, cost);
    passwords.check_pepper(pepper).unwrap();
    passwords.set_policy(cost, &Scheme::defaults(), pepper);
    passwords
}

async fn verdict(
    passwords: &Passwords,
    password: &str,
    values: &[&[u8]],
) -> Result<CheckOutcome, Error> {
    let values: Vec<_> = values.iter().map(|value| value.to_vec()).collect();
    let password = Zeroizing::new(password.as_bytes().to_vec());
    match passwords.check(any_attempt(passwords), None, password, &values)? {
        PasswordCheck::Known(verdict) => Ok(verdict),
        PasswordCheck::Pending(pending) => pending.await,
    }
}

#[tokio::test]
async fn a_pepper_is_named_in_what_is_stored_and_nothing_verifies_without_it() {
    let secret = || Zeroizing::new(b"secret".to_vec());
    let passwords = peppered(&["cayenne", "paprika.2"], Some("paprika.2"));
    let value = passwords.hash(secret()).unwrap().await.unwrap();
    // Base64 of `paprika.2`.
    assert!(value.starts_with(b"{ARGON2}$argon2id$v=19$m=64,t=1,p=1,keyid=cGFwcmlrYS4y$"));
    assert_eq!(passwords.classify(&value), Ok(Given::Hashed));
    let right = |outdated| Ok(CheckOutcome::Right { outdated });
    assert_eq!(verdict(&passwords, "secret", &[&value]).await, right(None));
    assert_eq!(verdict(&passwords, "Secret", &[&value]).await, Ok(CheckOutcome::Wrong));
    // The same bytes under another key, or under none, are another value.
    let text = String::from_utf8(value.clone()).unwrap();
    for keyid in [",keyid=Y2F5ZW5uZQ", ""] {
        let other = text.replace(",keyid=cGFwcmlrYS4y", keyid);
        assert_eq!(
            verdict(&passwords, "secret", &[other.as_bytes()]).await,
            Ok(CheckOutcome::Wrong)
        );
    }
    // Under another name from now on: the stored value is right, and to be stored again.
    let later = peppered(&["cayenne", "paprika.2"], Some("cayenne"));
    assert_eq!(verdict(&later, "secret", &[&value]).await, right(Some(0)));
    let plain = peppered(&["paprika.2"], None);
    assert_eq!(verdict(&plain, "secret", &[&value]).await, right(None));
    let value_without = plain.hash(secret()).unwrap().await.unwrap();
    assert_eq!(verdict(&later, "secret", &[&value_without]).await, right(Some(0)));
    // Where no driver holds the key it is said, unless another value is right.
    let bare = peppered(&[], None);
    let gone = verdict(&bare, "secret", &[&value]).await;
    assert!(matches!(gone, Err(Error::Pepper(keyway_engine::Error::InvalidKey(_)))), "{gone:?}");
    assert_eq!(verdict(&bare, "secret", &[&value_without, &value]).await, right(None));
    let refused = bare.check_pepper(Some("paprika.2")).unwrap_err().to_string();
    assert_eq!(refused, "the key cannot be used: no driver that is there holds one of that name");
    bare.set_policy(Argon2Cost::default(), &[], Some("paprika.2"));
    assert!(matches!(bare.hash(secret()).err(), Some(Error::Pepper(_))));
}

#[tokio::test]
async fn sessions_for_peppers_are_bounded() {
    let passwords = peppered(&["cayenne"], Some("cayenne"));
    for number in 0..3 * SESSIONS_MAX {
        passwords.session(Algorithm::Argon2id, Some(&format!("cayenne-{number}"))).unwrap();
        assert!(passwords.sessions.read().unwrap().len() <= SESSIONS_MAX);
    }
}
