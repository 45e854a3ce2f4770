//! PostgreSQL: ldap authentication, simple, by search and bind, and over ldaps.

use super::site::{SECRET, Site, free_port};

const FOLDER: &str = "/run/cluster";
/// Databases, each for a way to authenticate of the guide.
const WAYS: [(&str, &str); 3] = [
    ("simple", "pg_hba.conf, simple"),
    ("search", "pg_hba.conf, search and bind"),
    ("ldaps", "pg_hba.conf, search and bind over ldaps"),
];

fn served() -> Option<Site> {
    let site = Site::new()?;
    site.write("/etc/ldap/ldap.conf", &site.configuration("/etc/ldap/ldap.conf"));
    let mut rules = "local all postgres trust\n".to_owned();
    for (database, way) in WAYS {
        let rule = site.configuration(way);
        rules +=
            &rule.replace("host all all 0.0.0.0/0", &format!("host {database} all 127.0.0.1/32"));
    }
    site.out(&format!(
        "install -d -o postgres {FOLDER} && runuser -u postgres -- \
         $(pg_config --bindir 2>/dev/null || ls -d /usr/lib/postgresql/*/bin | tail -n 1)/initdb \
         -D {FOLDER}/data -A trust --no-sync"
    ));
    site.write(&format!("{FOLDER}/data/pg_hba.conf"), &rules);
    start(&site);
    for (database, _) in WAYS {
        site.out(&format!("{} -c 'create database {database}'", admin()));
    }
    for role in ["ann", "gone", "\\\"bob@example.com\\\""] {
        site.out(&format!("{} -c \"create role {role} login\"", admin()));
    }
    Some(site)
}

fn start(site: &Site) {
    let port = free_port();
    site.write(&format!("{FOLDER}/port"), &port.to_string());
    site.daemon(&format!(
        "runuser -u postgres -- $(ls -d /usr/lib/postgresql/*/bin | tail -n 1)/postgres \
         -D {FOLDER}/data -p {port} -c listen_addresses=127.0.0.1 -c fsync=off \
         -c unix_socket_directories={FOLDER}"
    ));
    site.until(&format!("{} -c '' 2>/dev/null", admin()));
}

fn admin() -> String {
    format!("psql -q -h {FOLDER} -p $(cat {FOLDER}/port) -U postgres")
}

fn user(site: &Site, database: &str, user: &str, password: &str) -> String {
    let script = format!(
        "PGPASSWORD='{password}' psql -h 127.0.0.1 -p $(cat {FOLDER}/port) -U {user} -d {database} \
         -At -c 'select current_user' 2>&1"
    );
    site.sh(&script, "").out
}

#[test]
fn simple_and_search_and_bind() {
    let Some(mut site) = served() else { return };
    for (database, _) in WAYS {
        assert_eq!(user(&site, database, "ann", SECRET), "ann\n", "{database}");
        for (name, password) in [("ann", "wrong horse"), ("ann", ""), ("gone", SECRET)] {
            let said = user(&site, database, name, password);
            assert!(
                said.contains("authentication failed") || said.contains("no password"),
                "{said}"
            );
        }
    }
    let mail = "bob@example.com";
    assert_eq!(user(&site, "search", mail, SECRET), format!("{mail}\n"));
    assert!(user(&site, "simple", mail, SECRET).contains("authentication failed"));
    site.restart();
    assert_eq!(user(&site, "search", "ann", SECRET), "ann\n");
}

#[test]
fn certificates_are_checked() {
    let Some(site) = served() else { return };
    site.distrust();
    for (database, _) in WAYS {
        let said = user(&site, database, "ann", SECRET);
        assert!(said.contains("authentication failed"), "{database}: {said}");
    }
}
