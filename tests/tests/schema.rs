//! A schema of one's own: from files at an import and at a start, and over LDAP while it runs.

use keyway_tests::dirsrv::Dirsrv;
use keyway_tests::{Finished, Server, available, finish, keyway, nightly, sample};
use rustix::process::Signal;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TREE: &str = "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n\n\
    dn: uid=ada,dc=shoes\nobjectClass: account\nobjectClass: shoeOwner\nuid: ada\nshoeSize: 42\n";

const OPENLDAP: &str = "objectidentifier Shoes 1.3.6.1.4.1.99999\n\
    attributetype ( Shoes:1 NAME 'shoeSize'\n\tDESC 'how long they are'\n\tEQUALITY integerMatch\n\
    \tSYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )\n\
    objectclass ( Shoes:2 NAME 'shoeOwner' SUP top AUXILIARY MAY shoeSize )\n";

const CONFIG: &str = "dn: cn=shoes,cn=schema,cn=config\nobjectClass: olcSchemaConfig\ncn: shoes\n\
    olcAttributeTypes: {0}( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' EQUALITY integerMatch SYNTAX 1.3.6.1\n \
    .4.1.1466.115.121.1.27 )\n\
    olcObjectClasses: {0}( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' SUP top AUXILIARY MAY shoeSize )\n";

const SUBSCHEMA: &str = "dn: cn=schema\nobjectClass: top\nobjectClass: subschema\ncn: schema\n\
    attributeTypes: ( shoeSize-oid NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 X-ORIGIN 'us\n \
    er defined' )\n\
    objectClasses: ( shoeOwner-oid NAME 'shoeOwner' AUXILIARY MAY ( shoeSize ) )\n";

const CHANGE: &str = "dn: cn=schema\nchangetype: modify\nadd: attributeTypes\n\
    attributeTypes: ( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )\n-\n\
    add: objectClasses\n\
    objectClasses: ( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' AUXILIARY MAY shoeSize )\n-\n";

fn import(data: &Path, ldif: &str, schema: &[&Path]) -> Finished {
    let mut command = Command::new(keyway());
    command.args(["directory", "import", "-", "--restart", "--data"]).arg(data);
    for file in schema {
        command.arg("--schema").arg(file);
    }
    finish(&mut command, ldif)
}

fn start(data: &Path) -> Server {
    Server::start(data, &[])
}

fn modify(server: &Server, change: &str) -> Finished {
    finish(&mut server.admin_tool("ldapmodify"), change)
}

fn add(server: &Server, entry: &str) -> Finished {
    finish(&mut server.admin_tool("ldapadd"), entry)
}

fn search(server: &Server, arguments: &[&str]) -> Finished {
    let mut search = server.admin_tool("ldapsearch");
    finish(search.args(["-LLL", "-o", "ldif-wrap=no"]).args(arguments), "")
}

/// Definitions of shoes that the subschema has.
fn shoes(server: &Server) -> String {
    let found =
        search(server, &["-s", "base", "-b", "cn=schema", "attributeTypes", "objectClasses"]);
    let out = found.expect(0).out;
    out.lines().filter(|line| line.contains("'shoe")).collect::<Vec<_>>().join("\n")
}

#[test]
fn definitions_come_with_an_import_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let forms = [
        ("shoes.schema", OPENLDAP),
        ("shoes.ldif", CONFIG),
        ("99user.ldif", SUBSCHEMA),
        ("schema.Shoes", CHANGE),
    ];
    for (index, (name, text)) in forms.into_iter().enumerate() {
        let data = folder.path().join(format!("data{index}"));
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        let refused = import(&data, TREE, &[]);
        assert!(refused.err.contains("attribute shoeSize is not known"), "{}", refused.err);
        import(&data, TREE, &[&file]).expect(0);
        // The given files are in the folder, and need not be given again.
        assert_eq!(fs::read_dir(data.join("schema")).unwrap().count(), 1, "{name}");
        import(
            &data,
            "dn: uid=ada,dc=shoes\nchangetype: modify\nadd: shoeSize\nshoeSize: 43\n",
            &[],
        )
        .expect(0);
        let export =
            Command::new(keyway()).args(["directory", "export", "--data"]).arg(&data).output();
        let out = String::from_utf8(export.unwrap().stdout).unwrap();
        assert!(out.contains("shoeSize: 42\nshoeSize: 43\n"), "{name}\n{out}");
        finish(Command::new(keyway()).args(["directory", "check", "--data"]).arg(&data), "")
            .expect(0);
    }
}

#[test]
fn an_error_in_a_file_says_where_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("bad.schema"));
    fs::write(&file, OPENLDAP.replace("MAY shoeSize", "MAY shoeSise")).unwrap();
    let refused = import(&data, TREE, &[&file]);
    assert_eq!(refused.code, 1);
    for words in
        ["bad.schema, line 6", "shoeOwner", "attribute shoeSise is not known", "mean shoesize"]
    {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    assert!(!data.join("schema").exists());
    let good = folder.path().join("good.schema");
    fs::write(&good, OPENLDAP).unwrap();
    import(&data, TREE, &[&good]).expect(0);
    // A change that an entry contradicts is refused, and the folder is left as it was.
    let stricter = OPENLDAP.replace("MAY shoeSize", "MUST ( shoeSize $ description )");
    fs::write(data.join("schema/good.schema"), &stricter).unwrap();
    let refused = import(&data, "", &[]);
    assert_eq!(refused.code, 1);
    for words in
        ["1 entry needs shoeOwner as it is", "uid=ada,dc=shoes", "demands attribute description"]
    {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    fs::write(data.join("schema/good.schema"), OPENLDAP).unwrap();
    finish(Command::new(keyway()).args(["directory", "check", "--data"]).arg(&data), "").expect(0);
}

/// All values of objectClasses or attributeTypes, as LDIF lines.
fn published(server: &Server, attribute: &str) -> Vec<String> {
    let found = search(server, &["-s", "base", "-b", "cn=schema", attribute]).expect(0).out;
    found.lines().filter(|line| line.starts_with(attribute)).map(str::to_owned).collect()
}

/// `replace` takes away what clients have added, and nothing that the server needs.
#[test]
fn the_servers_own_definitions_stay_whatever_clients_replace() {
    if !available(&["ldapmodify", "ldapsearch"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    import(&data, "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n", &[]).expect(0);
    let mut server = start(&data);
    let before = [published(&server, "objectClasses"), published(&server, "attributeTypes")];
    assert!(before[0].iter().any(|line| line.contains("'keywayConfig'")));
    let replace = "dn: cn=schema\nchangetype: modify\nreplace: objectClasses\n\
        objectClasses: ( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' AUXILIARY MAY cn )\n-\n";
    modify(&server, replace).expect(0);
    let replaced = published(&server, "objectClasses");
    assert_eq!(replaced.len(), before[0].len() + 1, "one more, and none less");
    // A client that has read all of it writes all of it back.
    let mut all = "dn: cn=schema\nchangetype: modify\nreplace: objectClasses\n".to_owned();
    before[0].iter().for_each(|line| all += &format!("{line}\n"));
    all += "-\nreplace: attributeTypes\n";
    before[1].iter().for_each(|line| all += &format!("{line}\n"));
    modify(&server, &(all + "-\n")).expect(0);
    assert_eq!([published(&server, "objectClasses"), published(&server, "attributeTypes")], before);
    let own = before[0].iter().find(|line| line.contains("'keywayConfig'")).unwrap();
    let delete = format!("dn: cn=schema\nchangetype: modify\ndelete: objectClasses\n{own}\n");
    let refused = modify(&server, &delete);
    assert_eq!(refused.code, 53, "{}", refused.err);
    assert!(refused.err.contains("the server needs keywayConfig"), "{}", refused.err);
    // Its settings are there, now and after another start.
    for _ in 0..2 {
        let found =
            search(&server, &["-s", "base", "-b", "cn=config", "(objectClass=keywayConfig)"]);
        assert!(found.expect(0).out.contains("dn: cn=config"));
        server.kill();
        server = start(&data);
    }
}

#[test]
fn definitions_that_lead_nowhere_are_refused() {
    if !available(&["ldapmodify", "ldapsearch"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    import(&data, "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n", &[]).expect(0);
    let server = start(&data);
    let add = |rest: &str| {
        let change = format!(
            "dn: cn=schema\nchangetype: modify\nadd: attributeTypes\n\
             attributeTypes: ( 1.3.6.1.4.1.99999.1 NAME 'shoeSize' {rest} )\n"
        );
        modify(&server, &change)
    };
    let string = "SYNTAX 1.3.6.1.4.1.1466.115.121.1.15";
    for (rest, what) in [
        ("SYNTAX 9.9.9".to_owned(), "shoeSize: syntax 9.9.9 is not known here"),
        (format!("EQUALITY noMatch {string}"), "matching rule noMatch is not known here"),
        (format!("ORDERING 9.9.9 {string}"), "matching rule 9.9.9 is not known here"),
        (format!("SUBSTR noMatch {string}"), "matching rule noMatch is not known here"),
        ("SUP noAttribute".to_owned(), "supertype noAttribute is not known"),
    ] {
        let refused = add(&rest);
        assert_eq!(refused.code, 21, "invalidAttributeSyntax: {}", refused.err);
        assert!(refused.err.contains(what), "{what}: {}", refused.err);
    }
    assert_eq!(shoes(&server), "");
    add(&format!("EQUALITY caseIgnoreMatch {string}")).expect(0);
    assert_eq!(shoes(&server).lines().count(), 1);
}

/// Definitions that were made over LDAP go with an export into a new folder.
#[test]
fn an_export_brings_what_was_defined_over_ldap() {
    if !available(&["ldapmodify", "ldapadd", "ldapsearch"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, new) = (folder.path().join("data"), folder.path().join("new"));
    let file = folder.path().join("all.ldif");
    import(&data, "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n", &[]).expect(0);
    let server = start(&data);
    modify(&server, CHANGE).expect(0);
    let ada = "dn: uid=ada,dc=shoes\nobjectClass: account\nobjectClass: shoeOwner\nuid: ada\n\
        shoeSize: 42\n";
    add(&server, ada).expect(0);
    let export = |data: &Path, to: &Path| {
        let mut command = Command::new(keyway());
        finish(command.args(["directory", "export", "--data"]).arg(data).arg(to), "").expect(0);
        fs::read_to_string(to).unwrap()
    };
    let text = export(&data, &file);
    let mut command = Command::new(keyway());
    let into = finish(command.args(["directory", "import", "--data"]).arg(&new).arg(&file), "");
    let said = into.expect(0).out;
    assert!(said.contains("2 definitions that came with it, added: shoeSize; shoeOwner"), "{said}");
    assert_eq!(export(&new, &folder.path().join("again.ldif")), text);
    let server = start(&new);
    assert_eq!(shoes(&server).lines().count(), 2);
    let found = search(&server, &["-b", "dc=shoes", "(uid=ada)", "shoeSize"]);
    assert!(found.expect(0).out.contains("shoeSize: 42"));
    // For other programs all of it is comments.
    if available(&["/usr/sbin/slapadd"]) {
        let config = folder.path().join("slapd.conf");
        let own = folder.path().join("shoes.schema");
        fs::write(&own, OPENLDAP).unwrap();
        let base = folder.path().join("db");
        fs::create_dir(&base).unwrap();
        let lines = format!(
            "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
             include {}\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\ndatabase mdb\n\
             suffix dc=shoes\ndirectory {}\n",
            own.display(),
            base.display()
        );
        fs::write(&config, lines).unwrap();
        let mut slapadd = Command::new("/usr/sbin/slapadd");
        let added = finish(slapadd.arg("-f").arg(&config).arg("-l").arg(&file), "");
        assert_eq!(added.code, 0, "{}", added.err);
    }
}

#[test]
fn definitions_change_over_ldap_while_it_runs() {
    if !available(&["ldapmodify", "ldapadd", "ldapsearch"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    import(&data, "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n", &[]).expect(0);
    let mut server = start(&data);
    let ada = "dn: uid=ada,dc=shoes\nobjectClass: account\nobjectClass: shoeOwner\nuid: ada\n\
        shoeSize: 42\n";
    assert_eq!(add(&server, ada).code, 17, "undefinedAttributeType");
    modify(&server, CHANGE).expect(0);
    assert_eq!(shoes(&server).lines().count(), 2);
    assert_eq!(modify(&server, CHANGE).code, 20, "attributeOrValueExists");
    add(&server, ada).expect(0);

    // It survives a kill, and what is in use stays.
    server.kill();
    let server = start(&data);
    assert_eq!(shoes(&server).lines().count(), 2);
    let delete = "dn: cn=schema\nchangetype: modify\ndelete: objectClasses\n\
        objectClasses: ( 1.3.6.1.4.1.99999.2 )\n-\ndelete: attributeTypes\n\
        attributeTypes: ( 1.3.6.1.4.1.99999.1 )\n-\n";
    let refused = modify(&server, delete);
    assert_eq!(refused.code, 53, "unwillingToPerform: {}", refused.err);
    for words in ["1 entry needs shoeOwner, shoeSize", "uid=ada,dc=shoes"] {
        assert!(refused.err.contains(words), "{words}: {}", refused.err);
    }
    // A wider form takes the place of the narrower one.
    let wider = "dn: cn=schema\nchangetype: modify\ndelete: objectClasses\n\
        objectClasses: ( 1.3.6.1.4.1.99999.2 )\n-\nadd: objectClasses\n\
        objectClasses: ( 1.3.6.1.4.1.99999.2 NAME 'shoeOwner' AUXILIARY MAY ( shoeSize $ title ) )\n-\n";
    modify(&server, wider).expect(0);
    let title = "dn: uid=ada,dc=shoes\nchangetype: modify\nadd: title\ntitle: runner\n";
    modify(&server, title).expect(0);
    let narrower = wider.replace("( shoeSize $ title )", "shoeSize");
    let refused = modify(&server, &narrower);
    assert!(
        refused.code == 53 && refused.err.contains("allows attribute title"),
        "{}",
        refused.err
    );
    // The program's own schema cannot be deleted, and no other user may change anything.
    let person =
        "dn: cn=schema\nchangetype: modify\ndelete: objectClasses\nobjectClasses: ( 2.5.6.6 )\n";
    let refused = modify(&server, person);
    assert!(refused.code == 53 && refused.err.contains("standard definition"), "{}", refused.err);
    let mut anonymous = server.tool("ldapmodify", server.ldap());
    assert_eq!(finish(anonymous.arg("-x"), CHANGE).code, 50, "insufficientAccessRights");

    let gone = "dn: uid=ada,dc=shoes\nchangetype: delete\n";
    modify(&server, gone).expect(0);
    modify(&server, delete).expect(0);
    assert_eq!(shoes(&server), "");
    let log = fs::read_to_string(data.join("log/audit.log")).unwrap();
    assert!(log.contains("modify") && log.contains("cn=schema"), "{log}");
    assert!(server.stop().success());
    let server = start(&data);
    assert_eq!(shoes(&server), "");
    assert!(server.stop().success());
    finish(Command::new(keyway()).args(["directory", "check", "--data"]).arg(&data), "").expect(0);
}

#[test]
fn files_are_read_again_while_it_runs() {
    if !available(&["ldapsearch", "ldapadd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    import(&data, "dn: dc=shoes\nobjectClass: domain\ndc: shoes\n", &[]).expect(0);
    let mut server = start(&data);
    fs::create_dir(data.join("schema")).unwrap();
    fs::write(data.join("schema/shoes.schema"), OPENLDAP).unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
    assert_eq!(shoes(&server).lines().count(), 2);
    add(&server, TREE.split_once("\n\n").unwrap().1).expect(0);
    // In use: the file is needed.
    fs::remove_file(data.join("schema/shoes.schema")).unwrap();
    server.signal(Signal::HUP);
    let refused = server.next_event();
    assert!(refused["error"].as_str().unwrap().contains("uid=ada,dc=shoes"), "{refused}");
    assert_eq!(shoes(&server).lines().count(), 2);
    fs::write(data.join("schema/shoes.schema"), OPENLDAP).unwrap();
    server.signal(Signal::HUP);
    assert_eq!(server.next_event()["event"], "reloaded");
    assert!(server.stop().success());
}

/// `keyway data check`, against the schema of this server.
fn check(template: &str, url: &str, more: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    command.args(["data", "check", template, "--each", "20", "--json", "--to", url]).args(more);
    finish(&mut command, "")
}

/// slapd, killed when dropped.
struct Slapd(Child);

impl Drop for Slapd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One without an entry, that knows people, and where it is.
fn slapd(folder: &Path) -> (Slapd, String) {
    let config = folder.join("slapd.conf");
    let include = |name: &str| format!("include /etc/ldap/schema/{name}.schema\n");
    let text =
        ["core", "cosine", "inetorgperson"].map(include).concat() + "access to * by * read\n";
    fs::write(&config, text).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("ldap://{address}");
    let mut command = Command::new("/usr/sbin/slapd");
    command.args(["-d", "0", "-h", &url, "-f"]).arg(&config).stderr(Stdio::null());
    let slapd = Slapd(command.spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(60);
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < until, "slapd does not answer");
        thread::yield_now();
    }
    (slapd, url)
}

/// The faults, in words.
fn faults(checked: &Finished) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
    let faults = json["faults"].as_array().unwrap();
    faults.iter().map(|fault| fault["why"].as_str().unwrap().to_owned()).collect()
}

/// Accounts, which not every server knows.
const ACCOUNTS: &str = "branch: ou=Accounts,dc=example,dc=com\nsubordinateTemplate: account:9\n\n\
    template: account\nrdnAttr: uid\nobjectClass: account\nobjectClass: posixAccount\n\
    uid: u<sequential>\ncn: {uid}\nuidNumber: <sequential:1000>\ngidNumber: 100\n\
    homeDirectory: /home/{uid}\n";

fn accounts(folder: &Path) -> String {
    let template = folder.join("accounts.template");
    fs::write(&template, ACCOUNTS).unwrap();
    template.display().to_string()
}

#[test]
fn a_template_is_checked_against_what_a_server_publishes() {
    let (folder, server) = sample(1);
    let template = accounts(folder.path());
    let password = server.text("administrator_password_file").to_owned();
    let access = ["--bind-dn", server.administrator(), "--password-file", &password];
    let ca = ["--ca", server.text("ca_certificate")];
    let access = [&access[..], &ca].concat();
    for template in ["example", "people_and_groups", &template] {
        check(template, server.ldaps(), &access).expect(0);
    }
    // Without an account of its own it is not shown, or shown.
    let anonymous = check(&template, server.ldaps(), &ca);
    assert!(anonymous.code == 0 || anonymous.out.contains("--bind-dn"), "{}", anonymous.out);
    if !available(&["/usr/sbin/slapd"]) {
        return;
    }
    let (_slapd, url) = slapd(folder.path());
    for template in ["example", "people_and_groups"] {
        check(template, &url, &[]).expect(0);
    }
    let unknown = check(&template, &url, &[]).expect(1);
    let faults = faults(&unknown);
    assert!(faults.iter().any(|why| why.contains("object class posixAccount is not known")));
    assert!(
        faults.iter().any(|why| why.contains("attribute homeDirectory is not known")),
        "{faults:?}"
    );
}

/// It takes half a minute to load and to start; so it is a test of the night.
#[test]
fn a_template_is_checked_against_what_389_ds_publishes() {
    if !nightly() || !available(&["/usr/sbin/ns-slapd"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ldif = folder.path().join("top.ldif");
    fs::write(&ldif, "dn: dc=example,dc=com\nobjectClass: domain\ndc: example\n").unwrap();
    // No client binds with it; but it wants one that is hashed.
    let stored = "{SSHA512}OKrX9aR0J3KnqWmXOyIykOyB7ZeyAd+Ckn2ThaLXalAutVQo4s4\
        hdhfKwVcBGhfApSf+P1OFBGvWkjaQIB8zemVpZ2h0LWJ5";
    let server = Dirsrv::start(folder.path(), &ldif, stored).unwrap();
    let url = format!("ldap://{}", server.address);
    for template in ["example", "people_and_groups", &accounts(folder.path())] {
        check(template, &url, &[]).expect(0);
    }
}
