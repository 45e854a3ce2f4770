//! Apache httpd: mod_authnz_ldap, users and groups.

use super::site::{SECRET, Site, free_port};

/// Pages that different people may see: a folder, and what the guide has for its condition.
const PAGES: [(&str, &str); 4] = [
    ("staff", ""),
    ("core", "httpd: a group of DNs"),
    ("admins", "httpd: a group of names"),
    ("employees", "httpd: groups in groups"),
];

fn begin(site: &Site, port: u16) {
    let guide = site.configuration("/etc/apache2/conf-available/keyway.conf");
    let (everywhere, location) = guide.split_once("<Location").unwrap();
    let mut lines = format!("LogLevel authnz_ldap:info\n{everywhere}");
    for (page, condition) in PAGES {
        let location = format!("<Location{location}").replace("\"/staff\"", &format!("/{page}"));
        lines += &match condition {
            "" => location,
            name => location.replace("Require valid-user", &site.configuration(name)),
        };
        site.write(&format!("/var/www/html/{page}/index.html"), page);
    }
    site.write("/etc/apache2/conf-available/keyway.conf", &lines);
    site.write("/etc/apache2/ports.conf", &format!("Listen 127.0.0.1:{port}\n"));
    site.out("a2enmod -q authnz_ldap && a2enconf -q keyway && mkdir -p /run/apache2");
    site.daemon("apache2ctl -X");
    site.until(&format!("curl -s -o /dev/null http://127.0.0.1:{port}/"));
}

fn status(site: &Site, port: u16, page: &str, user: &str, password: &str) -> String {
    site.out(&format!(
        "curl -s -o /dev/null -w '%{{http_code}}' -u '{user}:{password}' \
         http://127.0.0.1:{port}/{page}/"
    ))
}

#[test]
fn users_and_groups() {
    let port = free_port();
    let Some(mut site) = Site::new() else { return };
    begin(&site, port);
    let sees = |site: &Site, user: &str| -> Vec<String> {
        PAGES.iter().map(|(page, _)| status(site, port, page, user, SECRET)).collect()
    };
    assert_eq!(sees(&site, "ann"), ["200", "200", "200", "200"]);
    assert_eq!(sees(&site, "bob"), ["200", "401", "401", "200"]);
    assert_eq!(sees(&site, "gone"), ["401"; 4]);
    assert_eq!(status(&site, port, "staff", "ann", "wrong horse"), "401");
    assert_eq!(status(&site, port, "staff", "absent", SECRET), "401");
    assert_eq!(status(&site, port, "staff", "*", SECRET), "401");
    site.restart();
    assert_eq!(status(&site, port, "staff", "old", SECRET), "200");
}

#[test]
fn certificates_are_checked() {
    let Some(site) = Site::new() else { return };
    let port = free_port();
    site.distrust();
    begin(&site, port);
    assert_eq!(status(&site, port, "staff", "ann", SECRET), "500");
    assert!(site.out("cat /var/log/apache2/error.log").contains("ldap_start_tls_s() failed"));
}
