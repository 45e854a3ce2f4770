//! Metrics as OpenTelemetry has them: `ExportMetricsServiceRequest` of opentelemetry-proto 1.x, as protobuf.
//! Names, fields and numbers of the messages are those of its `metrics.proto`; what is not said here is not
//! sent.

use super::model::{Data, Labels, Metric, Number, Point, Spread};
use prost::{Message, Oneof};

/// Values since the start, and not since the last time (`AGGREGATION_TEMPORALITY_CUMULATIVE`).
const CUMULATIVE: i32 = 2;

/// Metrics of a resource with these attributes, as they are at this time.
pub fn encode(metrics: &[Metric], resource: &[(&str, String)], now_unix_ms: u64) -> Vec<u8> {
    let attributes = resource.iter().map(|(key, value)| attribute(key, value)).collect();
    let scope = Scope { name: "keyway".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let metrics = metrics.iter().map(|metric| metric_of(metric, nanoseconds(now_unix_ms)));
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics: metrics.collect() }];
    let resource = Some(Resource { attributes });
    Request { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }.encode_to_vec()
}

/// How many points a collector has not taken, and why, if its answer to a request that it took says so.
pub fn rejected(answer: &[u8]) -> Option<(i64, String)> {
    let answer = Response::decode(answer).ok()?.partial_success?;
    (answer.rejected_data_points > 0).then_some((answer.rejected_data_points, answer.error_message))
}

/// The text of a refusal (`google.rpc.Status`).
pub fn reason(answer: &[u8]) -> Option<String> {
    Some(Status::decode(answer).ok()?.message).filter(|text| !text.is_empty())
}

fn nanoseconds(unix_ms: u64) -> u64 {
    unix_ms.saturating_mul(1_000_000)
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = Some(AnyValue { value: Some(Value::Text(value.to_owned())) });
    KeyValue { key: key.to_owned(), value }
}

fn attributes(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(key, value)| attribute(key, value)).collect()
}

fn metric_of(metric: &Metric, time_unix_nano: u64) -> WireMetric {
    let number = |point: &Point| number_of(point, time_unix_nano);
    let data = match &metric.data {
        Data::Gauge(points) => {
            WireData::Gauge(Gauge { data_points: points.iter().map(number).collect() })
        }
        Data::Sum(points) => WireData::Sum(Sum {
            data_points: points.iter().map(number).collect(),
            aggregation_temporality: CUMULATIVE,
            is_monotonic: true,
        }),
        Data::Histogram(spreads) => WireData::Histogram(Histogram {
            data_points: spreads.iter().map(|it| histogram_of(it, time_unix_nano)).collect(),
            aggregation_temporality: CUMULATIVE,
        }),
    };
    let (name, description) = (metric.name.clone(), metric.help.clone());
    WireMetric { name, description, unit: unit(metric), data: Some(data) }
}

/// The unit in UCUM's form. A text that is no unit is an annotation, in braces: a collector that makes
/// Prometheus' names of it adds no annotation to them.
fn unit(metric: &Metric) -> String {
    match metric.unit {
        "" => String::new(),
        _ if metric.name.ends_with("_seconds") => "s".to_owned(),
        words => format!("{{{}}}", words.replace(' ', "_")),
    }
}

fn number_of(point: &Point, time_unix_nano: u64) -> NumberPoint {
    let value = match point.value {
        Number::Real(value) => NumberValue::Double(value),
        Number::Whole(value) => NumberValue::Int(i64::try_from(value).unwrap_or(if value < 0 {
            i64::MIN
        } else {
            i64::MAX
        })),
    };
    NumberPoint {
        attributes: attributes(&point.labels),
        start_time_unix_nano: nanoseconds(point.started_unix_ms),
        time_unix_nano,
        value: Some(value),
    }
}

fn histogram_of(spread: &Spread, time_unix_nano: u64) -> HistogramPoint {
    let mut below = 0;
    let mut bucket_counts: Vec<u64> = Vec::new();
    // Each has what exceeds the bound before, and the last one what exceeds all.
    for at_most in spread.buckets.iter().map(|(_, at_most)| *at_most).chain([spread.count]) {
        bucket_counts.push(at_most.saturating_sub(below));
        below = below.max(at_most);
    }
    let is_known = spread.count > 0;
    HistogramPoint {
        attributes: attributes(&spread.labels),
        start_time_unix_nano: nanoseconds(spread.started_unix_ms),
        time_unix_nano,
        count: below,
        sum: Some(spread.sum),
        bucket_counts,
        explicit_bounds: spread.buckets.iter().map(|(bound, _)| *bound).collect(),
        min: is_known.then_some(spread.min),
        max: is_known.then_some(spread.max),
    }
}

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected_data_points: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<WireMetric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Value {
    #[prost(string, tag = "1")]
    Text(String),
}

#[derive(Clone, PartialEq, Message)]
struct WireMetric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "WireData", tags = "5, 7, 9")]
    data: Option<WireData>,
}

#[derive(Clone, PartialEq, Oneof)]
enum WireData {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(Histogram),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct NumberPoint {
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(oneof = "NumberValue", tags = "4, 6")]
    value: Option<NumberValue>,
}

#[derive(Clone, PartialEq, Oneof)]
enum NumberValue {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

#[derive(Clone, PartialEq, Message)]
struct HistogramPoint {
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    count: u64,
    #[prost(double, optional, tag = "5")]
    sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    explicit_bounds: Vec<f64>,
    #[prost(double, optional, tag = "11")]
    min: Option<f64>,
    #[prost(double, optional, tag = "12")]
    max: Option<f64>,
}
