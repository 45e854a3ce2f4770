//! Aliases and referral objects through OpenLDAP's clients.

use keyway_tests::{Finished, Server, available, finish, sample};

const BASE: &str = "dc=example,dc=com";

fn search(server: &Server, arguments: &[&str]) -> Finished {
    finish(server.admin_tool("ldapsearch").args(["-o", "ldif-wrap=no"]).args(arguments), "")
}

#[test]
fn aliases_are_followed_where_one_asks() {
    if !available(&["ldapsearch", "ldapadd"]) {
        return;
    }
    let (_folder, server) = sample(3);
    let alias = format!(
        "dn: cn=staff,{BASE}\nobjectClass: alias\nobjectClass: extensibleObject\ncn: staff\n\
         aliasedObjectName: ou=People,{BASE}\n"
    );
    finish(&mut server.admin_tool("ldapadd"), &alias).expect(0);
    let base = format!("cn=staff,{BASE}");
    let found = |deref: &str, base: &str| {
        let arguments = ["-LLL", "-a", deref, "-b", base, "(objectClass=person)", "1.1"];
        search(&server, &arguments).expect(0).out.matches("dn: ").count()
    };
    assert_eq!(
        ["never", "search", "find", "always"].map(|deref| found(deref, &base)),
        [0, 0, 3, 3]
    );
    assert_eq!(found("search", BASE), 3, "each once");
}

#[test]
fn referral_objects_are_referred_to() {
    if !available(&["ldapsearch", "ldapadd", "ldapmodify"]) {
        return;
    }
    let (_folder, server) = sample(3);
    let referral = format!(
        "dn: ou=elsewhere,{BASE}\nobjectClass: referral\nobjectClass: extensibleObject\n\
         ou: elsewhere\nref: ldap://ldap.example.org/ou=here,dc=example,dc=org\n"
    );
    finish(&mut server.admin_tool("ldapadd"), &referral).expect(0);
    let all = search(&server, &["-b", BASE, "(uid=none)"]).expect(0).out;
    assert!(all.contains("ref: ldap://ldap.example.org/ou=here,dc=example,dc=org??sub"), "{all}");
    let below = search(&server, &["-b", &format!("cn=x,ou=elsewhere,{BASE}"), "-s", "base"]);
    let below = below.expect(10);
    let url = "ldap://ldap.example.org/cn=x,ou=here,dc=example,dc=org??base";
    assert!(below.out.contains(url) || below.err.contains(url), "{}{}", below.out, below.err);
    let change =
        format!("dn: ou=elsewhere,{BASE}\nchangetype: modify\nadd: description\ndescription: x\n");
    finish(&mut server.admin_tool("ldapmodify"), &change).expect(10);
    finish(server.admin_tool("ldapmodify").arg("-MM"), &change).expect(0);
    let managed = search(&server, &["-MM", "-LLL", "-b", BASE, "(description=x)", "ref"]).expect(0);
    assert!(managed.out.contains(&format!("dn: ou=elsewhere,{BASE}")), "{}", managed.out);
    assert!(!managed.out.contains("# ref"), "{}", managed.out);
}
