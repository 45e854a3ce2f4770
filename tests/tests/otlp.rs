//! Metrics pushed to collectors: what arrives, as OpenTelemetry's own messages understand it, and collectors
//! that are away, refuse, or do not answer.

use keyway_tests::authority::Authority;
use keyway_tests::client::Client;
use keyway_tests::{Server, available, finish, keyway};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Metric, metric, number_data_point,
};
use prost::Message;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(60);

/// A collector: it takes what is sent, and answers as it is told.
struct Collector {
    url: String,
    received: Receiver<ExportMetricsServiceRequest>,
    answer: Arc<Mutex<Vec<u8>>>,
}

const GOOD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1/metrics", listener.local_addr().expect("its address"));
        let (send, received) = channel();
        let answer = Arc::new(Mutex::new(GOOD.to_vec()));
        let says = answer.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let (head, body) = request(&mut stream);
                assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
                assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
                let answer = says.lock().expect("no panic").clone();
                let decoded = ExportMetricsServiceRequest::decode(body.as_slice());
                if send.send(decoded.expect("a request of OTLP")).is_err() {
                    return;
                }
                if answer.is_empty() {
                    // Held open, without a word, until the client goes.
                    thread::spawn(move || drop(stream.read(&mut [0])));
                } else {
                    let _ = stream.write_all(&answer);
                }
            }
        });
        Collector { url, received, answer }
    }

    fn answers(&self, answer: &[u8]) {
        *self.answer.lock().expect("no panic") = answer.to_vec();
    }

    fn next(&self) -> ExportMetricsServiceRequest {
        self.received.recv_timeout(WAIT).expect("a push")
    }
}

/// The head of a request of HTTP, and its body.
fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let from = head.len();
        reader.read_line(&mut head).expect("a line");
        let line = head[from..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    (head, body)
}

fn metrics(push: &ExportMetricsServiceRequest) -> BTreeMap<&str, &Metric> {
    let [resource] = push.resource_metrics.as_slice() else { panic!("one resource") };
    let all = resource.scope_metrics.iter().flat_map(|scope| &scope.metrics);
    all.map(|metric| (metric.name.as_str(), metric)).collect()
}

fn text<'a>(attributes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text),
        _ => None,
    }
}

/// The value of a sum or gauge with this label.
fn value(
    metrics: &BTreeMap<&str, &Metric>,
    name: &str,
    label: Option<(&str, &str)>,
) -> Option<i64> {
    let points = match metrics.get(name)?.data.as_ref()? {
        metric::Data::Sum(sum) => &sum.data_points,
        metric::Data::Gauge(gauge) => &gauge.data_points,
        _ => return None,
    };
    let is_meant = |attributes: &[KeyValue]| {
        label.is_none_or(|(key, value)| text(attributes, key) == Some(value))
    };
    let point = points.iter().find(|point| is_meant(&point.attributes))?;
    match point.value? {
        number_data_point::Value::AsInt(value) => Some(value),
        number_data_point::Value::AsDouble(_) => None,
    }
}

fn serve(data: &Path, settings: &str) -> Server {
    std::fs::create_dir(data).expect("a folder");
    std::fs::write(data.join("keyway.toml"), settings).expect("written");
    Server::start(data, &["--sample", "3"])
}

fn log_has(data: &Path, what: &str) -> usize {
    let log = std::fs::read_to_string(data.join("log/error.log")).unwrap_or_default();
    log.lines().filter(|line| line.contains(what)).count()
}

#[test]
fn what_arrives_is_what_prometheus_would_get() {
    let collector = Collector::start();
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("data");
    let server =
        serve(&data, &format!("[metrics]\notlp = \"{}\"\ninterval_s = 1\n", collector.url));
    let first = collector.next();
    let mut client = Client::connect(server.address().parse().unwrap()).expect("connects");
    for _ in 0..3 {
        client.bind(server.administrator(), &server.password()).expect("binds");
    }
    let push = loop {
        let push = collector.next();
        if value(&metrics(&push), "keyway_ldap_bind_total", None) == Some(3) {
            break push;
        }
    };
    let now = metrics(&push);
    let mut printed = Command::new(keyway());
    let printed = finish(printed.args(["metrics", "--data"]).arg(&data), "").expect(0).out;
    let named = printed.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let named: BTreeMap<&str, &str> = named.filter_map(|line| line.split_once(' ')).collect();
    let pushed: BTreeSet<&str> = now.keys().copied().collect();
    assert_eq!(pushed, named.keys().copied().collect());
    for (name, metric) in &now {
        match metric.data.as_ref().expect("data") {
            metric::Data::Sum(sum) => {
                assert_eq!(named[name], "counter", "{name}");
                assert!(sum.is_monotonic, "{name}");
                assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
                let began = |it: &_| started(it).0 > 0 && started(it).0 <= started(it).1;
                assert!(sum.data_points.iter().all(began), "{name}");
            }
            metric::Data::Gauge(_) => assert_eq!(named[name], "gauge", "{name}"),
            metric::Data::Histogram(histogram) => {
                assert_eq!(named[name], "histogram", "{name}");
                for point in &histogram.data_points {
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count, "{name}");
                    assert!(point.explicit_bounds.is_sorted(), "{name}");
                }
            }
            _ => panic!("{name} is of another kind"),
        }
    }
    assert_eq!(value(&now, "keyway_up", Some(("process", "directory"))), Some(1));
    assert_eq!(value(&now, "keyway_up", Some(("process", "cryptod"))), Some(1));
    let Some(metric::Data::Histogram(times)) = &now["keyway_ldap_time_seconds"].data else {
        panic!("a histogram")
    };
    let binds =
        times.data_points.iter().find(|it| text(&it.attributes, "operation") == Some("bind"));
    assert_eq!(
        (binds.expect("binds").count, now["keyway_ldap_time_seconds"].unit.as_str()),
        (3, "s")
    );
    let of = |push: &ExportMetricsServiceRequest, key: &str| {
        let resource = push.resource_metrics[0].resource.as_ref().expect("a resource");
        text(&resource.attributes, key).map(str::to_owned)
    };
    assert_eq!(of(&push, "service.name").as_deref(), Some("keyway"));
    let instance = of(&push, "service.instance.id").expect("which");
    assert!(instance.ends_with(data.to_str().unwrap()), "{instance}");
    assert_eq!(of(&first, "service.instance.id"), Some(instance));
    assert_eq!(log_has(&data, " metrics "), 0);
    assert!(server.stop().success());
}

fn started(point: &opentelemetry_proto::tonic::metrics::v1::NumberDataPoint) -> (u64, u64) {
    (point.start_time_unix_nano, point.time_unix_nano)
}

#[test]
fn a_collector_that_refuses_or_is_silent_is_said_once_and_holds_nothing_up() {
    let collector = Collector::start();
    collector.answers(
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
    );
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("data");
    let server =
        serve(&data, &format!("[metrics]\notlp = \"{}\"\ninterval_s = 1\n", collector.url));
    for _ in 0..3 {
        collector.next();
    }
    assert_eq!(log_has(&data, "it answers 503 Service Unavailable"), 1);
    collector.answers(GOOD);
    collector.next();
    collector.next();
    collector.next();
    assert_eq!(log_has(&data, "they arrive at"), 1);
    // A push that is taken in part is not taken.
    let partial = ExportMetricsPartialSuccess {
        rejected_data_points: 7,
        error_message: "too\nlong".to_owned(),
    };
    let partial = ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", partial.len());
    collector.answers(&[head.as_bytes(), &partial].concat());
    (0..3).for_each(|_| drop(collector.next()));
    assert_eq!(log_has(&data, "it has not taken 7 of the points (toolong)"), 1);
    // Off, and on again, while it runs.
    let set = |arguments: &[&str]| {
        let mut set = Command::new(keyway());
        set.args(["config", "set", "--data"]).arg(&data).args(arguments);
        finish(&mut set, "")
    };
    set(&["metrics.otlp", "--default"]).expect(0);
    while collector.received.try_recv().is_ok() {}
    collector.answers(b"");
    set(&["metrics.otlp", &collector.url]).expect(0);
    collector.next();
    // It waits for an answer now. The server answers, and ends, all the same.
    let mut client = Client::connect(server.address().parse().unwrap()).expect("connects");
    client.bind(server.administrator(), &server.password()).expect("binds");
    assert!(server.stop().success());
    let refused = set(&["metrics.otlp", "localhost:4318"]).expect(1);
    assert!(refused.err.contains("is no URL of a collector"), "{}", refused.err);
}

/// `keyway metrics --otlp`. Killed when dropped.
struct Pushing(Child);

impl Pushing {
    fn start(data: &Path, arguments: &[&str]) -> Pushing {
        let mut command = Command::new(keyway());
        command.args(["metrics", "--interval", "1", "--data"]).arg(data).arg("--otlp");
        let command = command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Pushing(command.spawn().expect("keyway starts"))
    }

    fn stop(mut self) -> String {
        let pid = Pid::from_raw(self.0.id() as i32).expect("a pid");
        kill_process(pid, Signal::TERM).expect("a signal");
        let mut said = String::new();
        self.0.stderr.take().expect("its notes").read_to_string(&mut said).expect("text");
        assert!(self.0.wait().expect("its end").success());
        said
    }
}

impl Drop for Pushing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_command_pushes_also_while_no_server_runs() {
    let collector = Collector::start();
    let place = tempfile::tempdir().expect("a folder");
    let pushing = Pushing::start(place.path(), &[&collector.url]);
    let push = collector.next();
    let now = metrics(&push);
    assert_eq!(value(&now, "keyway_up", Some(("process", "directory"))), Some(0));
    assert_eq!(now.len(), 1);
    assert_eq!(pushing.stop(), "");
    // A collector that is away, too, is said once.
    let vacant = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it");
    let mut pushing = Pushing::start(place.path(), &[&format!("http://{vacant}")]);
    let mut notes = BufReader::new(pushing.0.stderr.take().expect("its notes"));
    let mut line = String::new();
    notes.read_line(&mut line).expect("a line");
    assert!(
        line.contains(&format!("they do not arrive at http://{vacant}/v1/metrics: cannot connect")),
        "{line}"
    );
}

#[test]
fn a_collector_with_tls_has_to_be_the_right_one() {
    if !available(&["openssl"]) {
        return;
    }
    let authority = Authority::new();
    authority.issue("it", "/CN=it", "subjectAltName=DNS:localhost", ("ca.pem", "ca.key"));
    let mut openssl = Command::new("openssl");
    openssl.current_dir(authority.place());
    openssl.args(["s_server", "-accept", "127.0.0.1:0", "-cert", "it.pem", "-key", "it.key"]);
    let mut openssl =
        openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(openssl.stdout.take().expect("its output"));
    let mut next = |what: &str| {
        let mut line = Vec::new();
        // The pushed bytes are among it, and are no text.
        while !String::from_utf8_lossy(&line).contains(what) {
            line.clear();
            assert!(said.read_until(b'\n', &mut line).expect("a line") > 0, "no {what}");
        }
        String::from_utf8_lossy(&line).into_owned()
    };
    let accept = next("ACCEPT ");
    let port = accept.trim_end().rsplit(':').next().expect("a port").to_owned();
    let url = format!("https://localhost:{port}/v1/metrics");
    let other = Authority::new();
    let ca = |authority: &Authority| authority.path("ca.pem").to_str().unwrap().to_owned();
    let mut wrong = Pushing::start(authority.place(), &[&url, "--ca", &ca(&other)]);
    let mut line = String::new();
    let mut notes = BufReader::new(wrong.0.stderr.take().expect("its notes"));
    notes.read_line(&mut line).expect("a line");
    assert!(line.contains("no TLS: "), "{line}");
    drop(wrong);
    let right = Pushing::start(authority.place(), &[&url, "--ca", &ca(&authority)]);
    next("POST /v1/metrics HTTP/1.1");
    next("content-type: application/x-protobuf");
    openssl.stdin.as_mut().expect("its input").write_all(GOOD).expect("answered");
    assert_eq!(right.stop(), "");
    let any = Pushing::start(authority.place(), &[&url, "--insecure"]);
    next("POST /v1/metrics HTTP/1.1");
    openssl.stdin.as_mut().expect("its input").write_all(GOOD).expect("answered");
    assert!(any.stop().contains("--insecure: any certificate is accepted"));
    let _ = openssl.kill();
    let _ = openssl.wait();
}
