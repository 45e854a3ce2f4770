//! Keycloak, which has its users in the directory and knows only HAProxy: no login fails, and no user is unknown, while
//! the writer is changed.

use crate::applications::{Applications, Front, known};
use crate::balancer::HAPROXY;
use keyway_tests::debian::{BASE, CA, HOST, Machine, SECRET, port_of, skipped};
use keyway_tests::{available, finish, port};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Maven's coordinates, and the SHA-256 of what is there.
const KEYCLOAK: &str = "org.keycloak:keycloak-quarkus-dist:26.7.3:tar.gz";
const KEYCLOAK_HASH: &str = "77657f30b7e90d70f727712ce1c967f430fd6a5e9f458d32d8c6df0635345f47";
/// How often a change is tried at most.
const ATTEMPTS_MAX: usize = 600;

/// What the guide says to set, and that it remembers no users.
fn federation(front: &Front) -> Value {
    let config = json!({
        "enabled": ["true"],
        "vendor": ["other"],
        "connectionUrl": [format!("ldaps://{HOST}:{}", port_of(front.balancer.tls_address()))],
        "authType": ["simple"],
        "bindDn": ["cn=admin,cn=keyway"],
        "bindCredential": [front.password],
        "usersDn": [format!("ou=People,{BASE}")],
        "searchScope": ["1"],
        "userObjectClasses": ["inetOrgPerson"],
        "usernameLDAPAttribute": ["uid"],
        "rdnLDAPAttribute": ["uid"],
        "uuidLDAPAttribute": ["entryUUID"],
        "editMode": ["WRITABLE"],
        "importEnabled": ["true"],
        "syncRegistrations": ["true"],
        "usePasswordModifyExtendedOp": ["true"],
        "connectionPooling": ["true"],
        "connectionTimeout": ["5000"],
        "readTimeout": ["40000"],
        "cachePolicy": ["NO_CACHE"],
    });
    json!({
        "name": "keyway",
        "providerId": "ldap",
        "providerType": "org.keycloak.storage.UserStorageProvider",
        "config": config,
    })
}

/// A Keycloak with a realm `staff`.
struct Keycloak<'a> {
    machine: &'a Machine,
    url: String,
    token: String,
}

/// Status and body of an answer.
type Answer = Result<(u16, Value), String>;

impl Keycloak<'_> {
    /// Starts it of its archive.
    fn start<'a>(machine: &'a Machine, archive: &Path, front: &Front) -> Keycloak<'a> {
        let folder = machine.folder().join("keycloak");
        std::fs::create_dir(&folder).unwrap();
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(archive).arg("--strip-components=1").arg("-C").arg(&folder);
        finish(&mut unpack, "").expect(0);
        let (address, management) = (port(), port());
        machine.daemon(&format!(
            "env KC_BOOTSTRAP_ADMIN_USERNAME=admin KC_BOOTSTRAP_ADMIN_PASSWORD=admin bash {}/bin/kc.sh start-dev \
             --db=dev-mem --http-host=127.0.0.1 --http-port={} --http-management-port={} --truststore-paths={CA}",
            folder.display(),
            port_of(&address),
            port_of(&management),
        ));
        let url = format!("http://{address}");
        let mut wait = machine.inside("curl");
        wait.args(["-sSf", "--retry", "300", "--retry-delay", "1", "--retry-connrefused"]);
        finish(wait.arg(format!("{url}/realms/master")), "").expect(0);
        let mut keycloak = Keycloak { machine, url, token: String::new() };
        let master = ("/admin/realms/master", json!({ "accessTokenLifespan": 36_000 }));
        keycloak.token = keycloak.login("master", "admin", "admin").unwrap();
        assert_eq!(keycloak.call("PUT", master.0, &master.1).unwrap().0, 204);
        keycloak.token = keycloak.login("master", "admin", "admin").unwrap();
        let realm = json!({ "realm": "staff", "enabled": true });
        let made = keycloak.call("POST", "/admin/realms", &realm).unwrap();
        assert_eq!(made.0, 201, "{made:?}");
        let path = "/admin/realms/staff/components";
        let made = keycloak.call("POST", path, &federation(front)).unwrap();
        assert_eq!(made.0, 201, "{made:?}");
        keycloak
    }

    fn curl(&self, path: &str, words: &[&str], input: &str) -> Answer {
        let mut curl = self.machine.inside("curl");
        curl.args(["-sS", "-m", "60", "-w", "\n%{http_code}"]).args(words);
        let done = finish(curl.arg(format!("{}{path}", self.url)), input);
        if done.code != 0 {
            return Err(format!("{path}: {}", done.err));
        }
        let (body, status) = done.out.rsplit_once('\n').unwrap();
        Ok((status.parse().unwrap(), serde_json::from_str(body).unwrap_or_default()))
    }

    /// A call of the administrator's.
    fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        let bearer = format!("Authorization: Bearer {}", self.token);
        let words =
            ["-X", method, "-H", &bearer, "-H", "Content-Type: application/json", "-d", "@-"];
        self.curl(path, &words, &body.to_string())
    }

    /// A user's token for a password: the direct grant.
    fn login(&self, realm: &str, user: &str, password: &str) -> Result<String, String> {
        let path = format!("/realms/{realm}/protocol/openid-connect/token");
        let fields = [("grant_type", "password"), ("client_id", "admin-cli"), ("username", user)];
        let mut fields: Vec<_> = fields.iter().map(|(name, it)| format!("{name}={it}")).collect();
        fields.push(format!("password={password}"));
        let words: Vec<_> = fields.iter().flat_map(|it| ["--data-urlencode", it]).collect();
        let (status, body) = self.curl(&path, &words, "")?;
        let token = body["access_token"].as_str().filter(|_| status == 200);
        token.map(str::to_owned).ok_or_else(|| format!("{user} does not get in: {status} {body}"))
    }

    /// Its own name for a user.
    fn find(&self, user: &str) -> Result<String, String> {
        let path = format!("/admin/realms/staff/users?exact=true&username={user}");
        let (status, body) = self.call("GET", &path, &Value::Null)?;
        let id = body[0]["id"].as_str();
        id.map(str::to_owned).ok_or_else(|| format!("{user} is not found: {status} {body}"))
    }

    /// Makes a change, however often that has to be tried.
    fn until_done(&self, method: &str, path: &str, body: &Value, done: &[u16]) -> Answer {
        let mut last = Err(String::new());
        for _ in 0..ATTEMPTS_MAX {
            last = self.call(method, path, body);
            if last.as_ref().is_ok_and(|(status, _)| done.contains(status)) {
                break;
            }
        }
        last
    }

    /// A new user with a password.
    fn create(&self, front: &Front, user: &str) -> Result<(), String> {
        let _creating = front.creating();
        let body = json!({
            "username": user,
            "email": format!("{user}@example.com"),
            "firstName": "Some",
            "lastName": "Test",
            "enabled": true,
        });
        // It conflicts with an attempt that had no answer.
        let made = self.until_done("POST", "/admin/realms/staff/users", &body, &[201, 409])?;
        if ![201, 409].contains(&made.0) {
            return Err(format!("{user} is not created: {made:?}"));
        }
        let path = format!("/admin/realms/staff/users/{}/reset-password", self.find(user)?);
        let body = json!({ "type": "password", "value": SECRET, "temporary": false });
        match self.until_done("PUT", &path, &body, &[204])? {
            (204, _) => Ok(()),
            other => Err(format!("{user} has no password: {other:?}")),
        }
    }

    /// A user is found and gets in.
    fn uses(&self, user: &str) -> Result<(), String> {
        self.find(user)?;
        self.login("staff", user, SECRET).map(drop)
    }
}

#[test]
fn users_of_keycloak_get_in_while_the_writer_is_changed() {
    let Some(machine) = Machine::new() else { return };
    if !available(&[HAPROXY, "tar"]) {
        return;
    }
    let archive = match machine.fetched(KEYCLOAK, KEYCLOAK_HASH) {
        Ok(archive) => archive,
        Err(why) => return skipped(&why),
    };
    let mut applications = Applications::new(&machine);
    let keycloak = Keycloak::start(&machine, &archive, applications.front());
    // One of each thread at each server that goes: to Keycloak, a bind without an answer is a wrong password.
    applications.change_the_writer(
        4,
        |round| keycloak.uses(&known(round)),
        |front, round| {
            let name = format!("new-{round}");
            keycloak.create(front, &name)?;
            keycloak.uses(&name)
        },
    );
    // It did ask.
    let refused = keycloak.login("staff", "known-0", "wrong horse").unwrap_err();
    assert!(refused.contains("Invalid user credentials"), "{refused}");
    let unknown = keycloak.find("absent-user").unwrap_err();
    assert!(unknown.contains("200 []"), "{unknown}");
}
