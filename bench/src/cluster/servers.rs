//! The servers of a cluster, each with a folder of its own.

use crate::ldap::{Account, keyway};
use keyway_tests::client::Client;
use keyway_tests::etcd::Etcd;
use keyway_tests::{Server, finish, port, secret};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{fs, thread};

/// How long the first server may take to take changes, and a follower to have them.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The server that writes, and its followers.
pub struct Cluster {
    /// The writer first.
    pub servers: Vec<Server>,
}

impl Cluster {
    /// Starts so many on the entries of a file, below a folder; with the tail of the feed in etcd, if there is one.
    pub fn start(
        folder: &Path,
        ldif: &Path,
        count: usize,
        etcd: Option<&Etcd>,
    ) -> Result<Cluster, String> {
        fs::create_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let mut writer = keyway(folder, ldif, &[])?;
        let data = folder.join("keyway-data");
        if let Some(etcd) = etcd {
            writer.stop();
            let settings = data.join("keyway.toml");
            let text = fs::read_to_string(&settings).map_err(|why| why.to_string())?;
            let urls: Vec<_> =
                etcd.addresses().iter().map(|at| format!("\"http://{at}\"")).collect();
            let line = format!("\netcd = [{}]", urls.join(", "));
            secret(&settings, &text.replacen("\netcd = []", &line, 1));
            writer = Server::start(&data, &[]);
        }
        let mut servers = vec![writer];
        for number in 1..count {
            let follower = follower(&folder.join(format!("follower-{number}")), &data, &servers[0]);
            servers.push(follower);
        }
        let cluster = Cluster { servers };
        cluster.wait()?;
        Ok(cluster)
    }

    /// The processes that serve.
    pub fn processes(&self) -> Vec<u32> {
        self.servers.iter().flat_map(Server::server_pids).collect()
    }

    /// A connection to one of them, as the administrator.
    pub fn connect(&self, which: usize) -> Result<Client, String> {
        let server = &self.servers[which % self.servers.len()];
        let password = self.servers[0].password();
        let address: SocketAddr =
            server.address().parse().map_err(|_| "a server's address is none")?;
        let account =
            Account { address, admin: self.servers[0].administrator(), password: &password };
        let mut client = Client::connect(account.address)?;
        client.bind(account.admin, account.password)?;
        Ok(client)
    }

    /// Waits until the first takes changes, and all have them.
    fn wait(&self) -> Result<(), String> {
        let until = Instant::now() + START_LIMIT;
        let mut writer = self.connect(0)?;
        while let Err(why) = crate::ldap::add(&mut writer) {
            pause(until, &why)?;
        }
        let mut found = writer.search(crate::ldap::SUFFIX, "cn", "Added Person")?;
        for which in 0..self.servers.len() {
            let mut client = self.connect(which)?;
            loop {
                let there = client.search(crate::ldap::SUFFIX, "cn", "Added Person")?;
                if there >= found {
                    found = there;
                    break;
                }
                pause(until, "a follower has not what the writer has")?;
            }
        }
        Ok(())
    }
}

fn pause(until: Instant, why: &str) -> Result<(), String> {
    if Instant::now() >= until {
        return Err(format!("the cluster does not come up: {why}"));
    }
    thread::sleep(Duration::from_millis(20));
    Ok(())
}

fn follower(data: &Path, writer_data: &Path, writer: &Server) -> Server {
    let mut token = Command::new(keyway_tests::keyway());
    token.args(["cluster", "token", "--data"]).arg(writer_data);
    let token = finish(&mut token, "").expect(0).out;
    let mut up = Command::new(keyway_tests::keyway());
    up.args(["up", "--json", "--listen", "127.0.0.1:0", "--listen-tls", &port(), "--follow"]);
    up.args([writer.ldaps(), "--join", token.trim_end(), "--data"]).arg(data);
    Server::spawn(&mut up)
}
