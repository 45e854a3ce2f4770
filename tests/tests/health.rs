//! What probes and monitoring are told of a server in a cluster.

use keyway_tests::cryptod::eventually;
use keyway_tests::{Finished, Server, finish, keyway, port};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn ask(data: &Path, words: &[&str]) -> Finished {
    let mut command = Command::new(keyway());
    finish(command.args(words).arg("--data").arg(data), "")
}

/// A gauge of the server on a folder.
fn gauge(data: &Path, name: &str) -> Option<u64> {
    let metrics = ask(data, &["metrics"]).expect(0).out;
    let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
    metrics.lines().find_map(value)
}

fn monitored(server: &Server) -> String {
    let mut search = server.admin_tool("ldapsearch");
    search.args(["-LLL", "-o", "ldif-wrap=no", "-b", "cn=monitor"]);
    search.args(["(monitoredInfo=role=*)", "monitoredInfo"]);
    finish(&mut search, "").out
}

#[test]
fn a_server_alone_is_ready_while_it_runs() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("a");
    let server = Server::start(&data, &["--empty"]);
    for words in [&["health"][..], &["health", "--ready", "--max-lag", "5s"]] {
        assert_eq!(ask(&data, words).expect(0).out.lines().count(), 1);
    }
    let said = ask(&data, &["health", "--ready", "--json"]).expect(0).out;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["ready"], &said["role"]), (&true.into(), &Value::Null));
    assert!(!monitored(&server).contains("cn=Cluster"));
    assert_eq!(gauge(&data, "keyway_cluster_epoch"), Some(0));
    assert!(server.stop().success());
    assert!(ask(&data, &["health"]).expect(1).err.contains("no server runs on"));
    ask(&data, &["health", "--max-lag", "5s"]).expect(2);
}

#[test]
fn a_follower_without_its_writer_is_not_ready_and_says_so_everywhere() {
    let place = tempfile::tempdir().unwrap();
    let (a, b) = (place.path().join("a"), place.path().join("b"));
    let mut writer = Server::start(&a, &["--sample", "5"]);
    let token = ask(&a, &["cluster", "token", "--name", "bee"]).expect(0).out;
    let mut up = Command::new(keyway());
    up.args(["up", "--json", "--listen", "off", "--listen-tls", &port()]);
    up.args(["--follow", writer.ldaps(), "--join", token.trim_end(), "--data"]).arg(&b);
    let follower = Server::spawn(&mut up);
    let probe = ["health", "--ready", "--max-lag", "20s"];
    eventually("the follower is ready", || ask(&b, &probe).code == 0);
    assert_eq!(ask(&b, &probe).expect(0).out, "ready (follower)\n");
    assert_eq!(ask(&a, &probe).expect(0).out, "ready (writer)\n");
    eventually("gauges say who writes", || {
        let of = |data, name| gauge(data, &format!("keyway_cluster_{name}"));
        of(&a, "writer") == Some(1)
            && of(&a, "followers") == Some(1)
            && (of(&b, "writer"), of(&b, "connected")) == (Some(0), Some(1))
            && of(&b, "lag") == Some(0)
    });
    eventually("cn=monitor does as well", || {
        let (a, b) = (monitored(&writer), monitored(&follower));
        a.contains("monitoredInfo: role=writer\n")
            && b.contains("dn: cn=Self,cn=Cluster,cn=monitor\n")
            && b.contains("monitoredInfo: name=bee\n")
            && b.contains("monitoredInfo: role=follower\n")
            && b.contains("monitoredInfo: connected=true\n")
    });
    writer.kill();
    eventually("the follower is not ready", || {
        let said = ask(&b, &probe);
        (said.code, &*said.out) == (1, "not ready: it is connected to no writer\n")
    });
    let said = ask(&b, &[&probe[..], &["--json"]].concat()).expect(1).out;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["ready"], &said["role"]), (&false.into(), &"follower".into()));
    // Reads go on.
    ask(&b, &["health"]).expect(0);
    ask(&b, &["health", "--ready"]).expect(0);
    eventually("its gauge says so", || gauge(&b, "keyway_cluster_connected") == Some(0));
    assert!(follower.stop().success());
}
