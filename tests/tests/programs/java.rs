//! Java: JNDI, and UnboundID's tools.

use super::site::{BASE, CA, HOST, OTHER_HOST, SECRET, Site, skipped};
use keyway_tests::Finished;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const JNDI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/Jndi.java");
const STORE: &str = "/run/keyway.p12";
const READER: &str = "cn=reader,ou=Services,dc=example,dc=com";

/// Maven's coordinates, and the SHA-256 of what is there.
const UNBOUNDID: &str = "com.unboundid:unboundid-ldapsdk:7.0.3:jar";
const UNBOUNDID_HASH: &str = "7f1b9141f2c955d3a03b3f5da2c450bd616826e921a87fc19264a3f22b35e2fb";

/// With the trust store that the guide makes, and files with passwords.
fn served() -> Option<Site> {
    let site = Site::new()?;
    site.out(&format!(
        "keytool -importcert -noprompt -alias keyway -file {CA} -keystore {STORE} \
         -storetype PKCS12 -storepass changeit"
    ));
    site.write("/run/store", "changeit");
    site.write("/run/reader", "reader secret\n");
    site.write("/run/admin", &site.server().password());
    Some(site)
}

#[test]
fn jndi() {
    let Some(site) = served() else { return };
    let mut java = site.inside("java");
    java.arg(format!("-Djavax.net.ssl.trustStore={STORE}"));
    java.args(["-Djavax.net.ssl.trustStorePassword=changeit", JNDI]);
    java.arg(format!("ldap://{HOST}:{}", site.port()));
    java.args([HOST, OTHER_HOST].map(|host| format!("ldaps://{host}:{}", site.tls_port())));
    java.args([READER, "reader secret", site.server().administrator(), &site.server().password()]);
    let done = keyway_tests::finish(&mut java, "").expect(0);
    assert!(done.out.ends_with("all well\n"), "{}{}", done.out, done.err);
}

/// UnboundID's library, which is fetched once.
static JAR: OnceLock<Result<PathBuf, String>> = OnceLock::new();

fn jar() -> &'static Path {
    JAR.get().unwrap().as_ref().unwrap()
}

fn served_with_unboundid() -> Option<Site> {
    let site = served()?;
    match JAR.get_or_init(|| site.fetched(UNBOUNDID, UNBOUNDID_HASH)) {
        Ok(_) => Some(site),
        Err(why) => {
            skipped(why);
            None
        }
    }
}

/// One of its tools over StartTLS, as the reader or as the administrator.
fn tool(site: &Site, name: &str, who: &str, arguments: &[&str]) -> Finished {
    let mut java = site.inside("java");
    java.arg("-jar").arg(jar()).args([name, "--hostname", HOST, "--port", site.port()]);
    java.args(["--useStartTLS", "--verifyCertificateHostnames"]);
    java.args(["--trustStorePath", STORE, "--trustStorePasswordFile", "/run/store"]);
    match who {
        "admin" => java.args(["--bindDN", site.server().administrator()]),
        _ => java.args(["--bindDN", READER]),
    };
    java.args(["--bindPasswordFile", &format!("/run/{who}")]).args(arguments);
    keyway_tests::finish(&mut java, "")
}

#[test]
fn unboundid_reads_and_writes() {
    let Some(site) = served_with_unboundid() else { return };
    let search =
        ["--baseDN", BASE, "--simplePageSize", "2", "(objectClass=posixAccount)", "uid", "+"];
    let found = tool(&site, "ldapsearch", "reader", &search).expect(0).out;
    assert!(found.contains("Total Entries Returned:  5"), "{found}");
    assert!(found.contains("entryUUID: ") && found.contains("memberOf: cn=employees,"), "{found}");
    let ldif = format!(
        "dn: uid=eve,ou=People,{BASE}\nchangetype: add\nobjectClass: inetOrgPerson\nuid: eve\n\
         cn: Eve\nsn: Test\nuserPassword: {SECRET}\n\n\
         dn: uid=eve,ou=People,{BASE}\nchangetype: modify\nreplace: title\ntitle: Engineer\n-\n\n\
         dn: uid=eve,ou=People,{BASE}\nchangetype: moddn\nnewrdn: uid=eva\ndeleteoldrdn: 1\n\n"
    );
    site.write("/run/changes.ldif", &ldif);
    let read = ["-f", "/run/changes.ldif", "--postReadAttribute", "title"];
    let changed = tool(&site, "ldapmodify", "admin", &read).expect(0).out;
    assert!(changed.contains("title: Engineer"), "{changed}");
    let eva = format!("uid=eva,ou=People,{BASE}");
    let compared = |value: &str| tool(&site, "ldapcompare", "reader", &[value, &eva]);
    assert!(compared("title:engineer").expect(0).out.contains("compare true"));
    let new = ["--userIdentity", &eva, "--newPassword", "battery staple 7"];
    tool(&site, "ldappasswordmodify", "admin", &new).expect(0);
    let asking =
        ["--usePasswordPolicyControl", "--baseDN", "", "--scope", "base", "(objectClass=*)"];
    tool(&site, "ldapsearch", "reader", &asking).expect(0);
    let missing = tool(
        &site,
        "identify-references-to-missing-entries",
        "admin",
        &["-b", BASE, "-A", "member"],
    );
    assert!(missing.expect(0).out.contains("No references were found"));
    tool(&site, "ldapdelete", "admin", &[&eva]).expect(0);
    let none = tool(&site, "ldapsearch", "reader", &["-b", &eva, "-s", "base", "(uid=*)"]);
    assert!(none.out.contains("Result Code:  32 (no such object)"), "{}", none.out);
    let refused = tool(&site, "ldapdelete", "reader", &[&format!("uid=bob,ou=People,{BASE}")]);
    assert!(refused.err.contains("Result Code:  50"), "{}{}", refused.out, refused.err);
}

/// It takes no definition that is at odds with another one, or with itself.
#[test]
fn unboundid_finds_the_schema_valid() {
    let Some(site) = served_with_unboundid() else { return };
    let schema = ["--baseDN", "cn=schema", "--scope", "base", "--outputFile", "/run/schema.ldif"];
    let all = ["--terse", "(objectClass=*)", "*", "+"];
    tool(&site, "ldapsearch", "reader", &[&schema[..], &all].concat()).expect(0);
    let mut java = site.inside("java");
    java.arg("-jar").arg(jar());
    java.args(["validate-ldap-schema", "--schema-path", "/run/schema.ldif"]);
    keyway_tests::finish(&mut java, "").expect(0);
}

/// Several threads and connections, from one tool; none of their requests may fail.
#[test]
fn unboundid_measures() {
    let Some(site) = served_with_unboundid() else { return };
    let ann = format!("uid=ann,ou=People,{BASE}");
    let short = ["--numThreads", "4", "--intervalDuration", "1", "--numIntervals", "2"];
    let without_errors = |name: &str, who: &str, arguments: &[&str]| {
        let done = tool(&site, name, who, &[&short[..], arguments].concat()).expect(0);
        let last = done.out.lines().last().unwrap().to_owned();
        let figures: Vec<f64> = last.split_whitespace().map(|word| word.parse().unwrap()).collect();
        // The columns end with those of the whole run: operations a second, milliseconds each.
        assert!(figures[figures.len() - 2] > 1.0, "{}", done.out);
        let errors = figures[figures.len() - 3];
        assert!(errors == 0.0, "{}", done.out);
    };
    let found_by = ["--baseDN", BASE, "--filter", "(uid=ann)"];
    without_errors("searchrate", "reader", &found_by);
    without_errors("authrate", "reader", &[&found_by[..], &["--credentials", SECRET]].concat());
    let modified = ["--entryDN", &ann, "--attribute", "description", "--valueLength", "12"];
    without_errors("modrate", "admin", &modified);
}

#[test]
fn certificates_are_checked() {
    let Some(site) = served_with_unboundid() else { return };
    let whole = ["--baseDN", "", "--scope", "base", "(objectClass=*)"];
    tool(&site, "ldapsearch", "reader", &whole).expect(0);
    site.distrust();
    site.out(&format!("rm {STORE}"));
    site.out(&format!(
        "keytool -importcert -noprompt -alias keyway -file {CA} -keystore {STORE} \
         -storetype PKCS12 -storepass changeit"
    ));
    let refused = tool(&site, "ldapsearch", "reader", &whole);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("PKIX path building failed"), "{said}");
}
