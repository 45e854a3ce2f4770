//! `cn=changelog`: a client polls for what was changed, as those of other servers do.

use keyway_tests::{Finished, Server, available, finish, sample};

const PEOPLE: &str = "ou=People,dc=example,dc=com";
const TOOLS: [&str; 5] = ["ldapadd", "ldapmodify", "ldapmodrdn", "ldapdelete", "ldapsearch"];

fn done(server: &Server, tool: &str, arguments: &[&str], input: &str) {
    finish(server.admin_tool(tool).args(arguments), input).expect(0);
}

fn search(server: &Server, arguments: &[&str]) -> Finished {
    let mut search = server.admin_tool("ldapsearch");
    finish(search.args(["-LLL", "-o", "ldif-wrap=no"]).args(arguments), "")
}

/// The values of an attribute in LDIF, in their order.
fn values<'a>(ldif: &'a str, name: &str) -> Vec<&'a str> {
    ldif.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

/// A client of the changelog, which knows the last number that it has seen.
struct Poller {
    last: u64,
}

impl Poller {
    fn begin(server: &Server) -> Poller {
        let dse = search(server, &["-s", "base", "-b", "", "changelog", "lastChangeNumber"]);
        let dse = dse.expect(0).out;
        assert_eq!(values(&dse, "changeLog"), ["cn=changelog"], "{dse}");
        Poller { last: values(&dse, "lastChangeNumber")[0].parse().unwrap() }
    }

    fn poll(&mut self, server: &Server) -> String {
        let filter = format!("(changeNumber>={})", self.last + 1);
        let found = search(server, &["-s", "one", "-b", "cn=changelog", &filter]).expect(0).out;
        if let Some(last) = values(&found, "changeNumber").last() {
            self.last = last.parse().unwrap();
        }
        found
    }
}

#[test]
fn a_client_polls_the_changelog() {
    if !available(&TOOLS) {
        return;
    }
    let (folder, server) = sample(2);
    let mut poller = Poller::begin(&server);
    assert_eq!(poller.poll(&server), "");
    let ann = format!("uid=ann,{PEOPLE}");
    let person = format!(
        "dn: {ann}\nobjectClass: inetOrgPerson\nuid: ann\ncn: Ann\nsn: A\nuserPassword: a secret of ann\n"
    );
    done(&server, "ldapadd", &[], &person);
    let found = poller.poll(&server);
    assert_eq!(values(&found, "changeType"), ["add"], "{found}");
    assert_eq!(values(&found, "targetDN"), [ann.as_str()], "{found}");
    let change = format!(
        "dn: {ann}\nchangetype: modify\nadd: mail\nmail: ann@example.com\n-\nreplace: userPassword\n\
         userPassword: another\n-\n"
    );
    done(&server, "ldapmodify", &[], &change);
    done(&server, "ldapmodrdn", &["-r", &ann, "uid=anna"], "");
    done(&server, "ldapdelete", &[&format!("uid=anna,{PEOPLE}")], "");
    let found = poller.poll(&server);
    assert_eq!(values(&found, "changeType"), ["modify", "modrdn", "delete"], "{found}");
    assert_eq!(values(&found, "newRDN"), ["uid=anna"], "{found}");
    assert_eq!(values(&found, "deleteOldRDN"), ["TRUE"], "{found}");
    assert_eq!(poller.poll(&server), "");

    // The lines of the change, which have line ends and so are in base64 here.
    let every = search(
        &server,
        &["-T", folder.path().to_str().unwrap(), "-t", "-s", "sub", "-b", "cn=changelog"],
    );
    let every = every.expect(0).out;
    let files = every.lines().filter_map(|line| line.strip_prefix("changes:< file://"));
    let texts: Vec<String> = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(
        texts.iter().any(|text| text.contains("add: mail\nmail: ann@example.com\n-\n")),
        "{texts:?}"
    );
    assert!(
        !texts.concat().contains("{ARGON2") && !texts.concat().contains("userPassword:"),
        "{texts:?}"
    );

    // Others see none of it.
    let (someone, password) = (format!("uid=eve,{PEOPLE}"), "a secret of eve");
    let eve = person.replace("ann", "eve").replace("a secret of eve", password);
    done(&server, "ldapadd", &[], &eve);
    for bound in [&["-D", &someone, "-w", password][..], &[]] {
        let mut search = server.tool("ldapsearch", server.ldaps());
        let search = search.args(["-x", "-LLL"]).args(bound).args(["-b", "cn=changelog"]);
        let refused = finish(search, "").expect(50);
        assert_eq!(refused.out, "");
    }
    assert!(server.stop().success());
}
