//! Password policy as people with OpenLDAP's clients meet it, and as an export of slapd brings it.

use keyway_tests::{Finished, Server, available, finish};
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const BASE: &str = "dc=example,dc=com";
const SECRET: &str = "correct horse";
/// 2020-01-01, in seconds since 1970.
const LONG_AGO_S: u64 = 1_577_836_800;
const TOOLS: [&str; 5] = ["ldapwhoami", "ldappasswd", "ldapmodify", "ldapsearch", "ldapadd"];

/// The entries of a server with a policy, as slapd would export them.
fn export() -> String {
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let soon_s = now_s - LONG_AGO_S + 3_000;
    let policy = |cn: &str, more: &str| {
        format!(
            "dn: cn={cn},{BASE}\nobjectClass: organizationalRole\nobjectClass: pwdPolicy\n\
             cn: {cn}\npwdAttribute: userPassword\n{more}\n"
        )
    };
    let person = |uid: &str, more: &str| {
        format!(
            "dn: uid={uid},{BASE}\nobjectClass: inetOrgPerson\nuid: {uid}\ncn: {uid}\nsn: Test\n\
             userPassword: {SECRET}\n{more}\n"
        )
    };
    let named =
        |cn: &str| format!("pwdPolicySubentry: cn={cn},{BASE}\npwdChangedTime: 20200101000000Z\n");
    [
        format!("dn: {BASE}\nobjectClass: domain\ndc: example\n\n"),
        policy(
            "default",
            "pwdLockout: TRUE\npwdMaxFailure: 3\npwdMustChange: TRUE\npwdCheckQuality: 2\n\
             pwdMinLength: 8\npwdInHistory: 3\npwdAllowUserChange: TRUE\n",
        ),
        policy("short", "pwdMaxAge: 86400\npwdGraceAuthNLimit: 1\n"),
        policy("soon", &format!("pwdMaxAge: {soon_s}\npwdExpireWarning: 5000\n")),
        person("ann", ""),
        person("old", &named("short")),
        person("soon", &named("soon")),
        person("fresh", "pwdReset: TRUE\n"),
        person("gone", "pwdAccountLockedTime: 000001010000Z\n"),
        person("ported", "nsAccountLock: TRUE\n"),
        person(
            "hist",
            "pwdFailureTime: 20200101000000.123456Z\n\
             pwdHistory: 20200101000000Z#1.3.6.1.4.1.1466.115.121.1.40#38#\
             {SSHA}8xo5uHJ8agiX8iCzb4YUajDilb1zYWx0\n",
        ),
    ]
    .concat()
}

fn server() -> (TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("export.ldif"));
    fs::create_dir(&data).unwrap();
    fs::write(&file, export()).unwrap();
    let lines = format!("[password]\nmemory_kib = 64\npolicy = \"cn=default,{BASE}\"\n");
    fs::write(data.join("keyway.toml"), lines).unwrap();
    let server = Server::start(&data, &["--import", file.to_str().unwrap()]);
    (folder, server)
}

fn dn(uid: &str) -> String {
    format!("uid={uid},{BASE}")
}

/// A client that asks what the policy has to say.
fn asking(server: &Server, program: &str, uid: &str, password: &str, more: &[&str]) -> Finished {
    let mut command = server.tool(program, server.ldaps());
    command.args(["-e", "ppolicy", "-D", &dn(uid), "-w", password]).args(more);
    let mut finished = finish(&mut command, "");
    finished.out.push_str(&finished.err);
    finished
}

fn whoami(server: &Server, uid: &str, password: &str) -> Finished {
    asking(server, "ldapwhoami", uid, password, &[])
}

#[track_caller]
fn says(finished: &Finished, text: &str) {
    assert!(finished.out.to_lowercase().contains(text), "{text}: {}", finished.out);
}

fn modify(server: &Server, uid: &str, change: &str) {
    let ldif = format!("dn: {}\nchangetype: modify\n{change}\n\n", dn(uid));
    finish(&mut server.admin_tool("ldapmodify"), &ldif).expect(0);
}

/// An entry with all its attributes, as the administrator sees it.
fn entry(server: &Server, uid: &str) -> String {
    let mut command = server.admin_tool("ldapsearch");
    command.args(["-LLL", "-o", "ldif-wrap=no", "-b", &dn(uid), "-s", "base", "*", "+"]);
    finish(&mut command, "").expect(0).out
}

/// The effect of a bind is written soon after it.
fn until_it_says(server: &Server, uid: &str, text: &str) {
    let seen = (0..200).any(|_| entry(server, uid).contains(text));
    assert!(seen, "{text}: {}", entry(server, uid));
}

#[test]
fn binds_are_warned_and_refused() {
    if !available(&TOOLS) {
        return;
    }
    let (_folder, server) = server();
    let soon = whoami(&server, "soon", SECRET).expect(0);
    says(&soon, "password expires in");
    let old = whoami(&server, "old", SECRET).expect(0);
    says(&old, "0 grace logins remain");
    let old = whoami(&server, "old", SECRET).expect(49);
    says(&old, "password expired");
    until_it_says(&server, "old", "pwdGraceUseTime: 2");
    for disabled in ["gone", "ported"] {
        says(&whoami(&server, disabled, SECRET).expect(49), "account locked");
        let wrong = whoami(&server, disabled, "wrong secret").expect(49);
        assert!(!wrong.out.to_lowercase().contains("locked"), "{}", wrong.out);
    }
    // The bind is let through, and nothing else; the client's exit status is not the result then.
    let must_change = |finished: Finished| {
        says(&finished, "ldap_bind: success (0); password must be changed");
        says(&finished, "insufficient access (50)");
    };
    must_change(whoami(&server, "fresh", SECRET));
    let change = ["-a", SECRET, "-s", "a better battery"];
    asking(&server, "ldappasswd", "fresh", SECRET, &change).expect(0);
    whoami(&server, "fresh", "a better battery").expect(0);
    // A password that an administrator sets has to be changed.
    finish(server.admin_tool("ldappasswd").args(["-s", SECRET, &dn("fresh")]), "").expect(0);
    must_change(whoami(&server, "fresh", SECRET));
}

#[test]
fn failures_lock_until_an_administrator_unlocks_also_over_a_restart() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = server();
    for _ in 0..3 {
        whoami(&server, "ann", "wrong secret").expect(49);
    }
    says(&whoami(&server, "ann", SECRET).expect(49), "account locked");
    whoami(&server, "absent", SECRET).expect(49);
    assert!(server.stop().success());
    let log = |name: &str| fs::read_to_string(folder.path().join("data/log").join(name)).unwrap();
    let access = log("access.log");
    for (count, reason) in [
        (3, "the password is wrong"),
        (1, "the account is locked: too many binds have failed"),
        (1, "there is no such entry"),
    ] {
        assert_eq!(access.matches(reason).count(), count, "{reason}: {access}");
    }
    let errors = log("error.log");
    assert_eq!(errors.matches("account-locked").count(), 1, "{errors}");
    assert!(
        errors.lines().any(|line| line.contains("account-locked") && line.contains(&dn("ann")))
    );
    let server = Server::start(&folder.path().join("data"), &[]);
    says(&whoami(&server, "ann", SECRET).expect(49), "account locked");
    let locked = entry(&server, "ann");
    assert!(locked.contains("pwdAccountLockedTime: 2"), "{locked}");
    assert_eq!(locked.matches("pwdFailureTime: 2").count(), 3, "{locked}");
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-E", "accountUsability", "-b", &dn("ann"), "-s", "base", "1.1"]);
    let shown = finish(&mut search, "").expect(0).out;
    assert!(shown.contains("1.3.6.1.4.1.42.2.27.9.5.8"), "{shown}");
    modify(&server, "ann", "delete: pwdAccountLockedTime");
    assert!(!entry(&server, "ann").contains("pwdFailureTime"));
    whoami(&server, "ann", SECRET).expect(0);
}

#[test]
fn new_passwords_are_long_and_new() {
    if !available(&TOOLS) {
        return;
    }
    let (_folder, server) = server();
    let change =
        |new: &str| asking(&server, "ldappasswd", "hist", SECRET, &["-a", SECRET, "-s", new]);
    for (new, why) in [
        ("short", "password is too short"),
        ("12hist21", "quality"),
        (SECRET, "list of old passwords"),
        ("before 2020", "list of old passwords"),
    ] {
        let refused = change(new);
        says(&refused, "constraint violation (19)");
        says(&refused, why);
    }
    change("never had it").expect(0);
    let entry = entry(&server, "hist");
    assert_eq!(entry.matches("pwdHistory:").count(), 2, "{entry}");
    assert!(!entry.contains("pwdFailureTime"), "{entry}");
    // Only the administrator sees the old passwords.
    let mut own = server.tool("ldapsearch", server.ldaps());
    own.args(["-LLL", "-D", &dn("hist"), "-w", "never had it", "-b", BASE, "(uid=hist)", "*", "+"]);
    let seen = finish(&mut own, "").expect(0).out;
    assert!(seen.contains("pwdChangedTime: ") && !seen.contains("pwdHistory"), "{seen}");
}

#[test]
fn a_policy_is_a_line_of_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write(&data, "policy = \"no dn\"");
    let out = std::process::Command::new(keyway_tests::keyway())
        .args(["up", "--data", data.to_str().unwrap()])
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && err.contains("line 2: policy"), "{err}");
}

fn write(data: &Path, line: &str) {
    fs::create_dir(data).unwrap();
    fs::write(data.join("keyway.toml"), format!("[password]\n{line}\n")).unwrap();
}
