//! The tail of the feed in a real etcd: the fence, doubt, compaction, copies of another time, and etcds that are none.

mod failing;
mod fenced;
mod followed;
mod foreign;
mod rate;
mod rows;
mod steps;
mod tls;

use keyway_cluster_etcd::{ClusterId, Etcd, Fence, MemberId, Options};
use keyway_tests::etcd;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long anything may take that takes milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// A lease outlives what happens on a slow machine, unless a test is about its end.
const LEASE: Duration = Duration::from_secs(600);
const CLUSTER: ClusterId = ClusterId([7; 16]);
const A: MemberId = MemberId(0xa);
const B: MemberId = MemberId(0xb);

/// A runtime of one server of ours.
fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
}

fn options(server: &etcd::Etcd) -> Options {
    let endpoints = server.addresses();
    let endpoints = endpoints.iter().map(|address| format!("http://{address}").parse().unwrap());
    let call_limit = Duration::from_secs(20);
    Options { lease_s: LEASE.as_secs(), call_limit, ..Options::new(endpoints.collect(), CLUSTER) }
}

fn client(server: &etcd::Etcd, runtime: &Runtime) -> Etcd {
    Etcd::new(options(server), runtime.handle().clone()).unwrap()
}

/// Becomes the writer.
#[track_caller]
fn won(etcd: &Etcd, member: MemberId) -> Fence {
    etcd.take(member, LEASE).unwrap().unwrap_or_else(|| panic!("another one is the writer"))
}
