//! Answers: their headers, and errors as JSON.

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};

/// The headers of every answer. Scripts and styles are those of this page only, nothing is loaded from
/// elsewhere, and no other page may show it in a frame.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Without one, browsers would not say where a form comes from.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
];

/// With the headers that all have.
pub(crate) fn with_security_headers(mut answer: Response<Body>) -> Response<Body> {
    let headers = answer.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// An answer of some kind.
pub(crate) fn answer(
    status: StatusCode,
    kind: &'static str,
    body: impl Into<Body>,
) -> Response<Body> {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A value.
pub(crate) fn json(value: &Value) -> Response<Body> {
    answer(StatusCode::OK, "application/json", value.to_string())
}

/// Why not.
pub(crate) fn refused(status: StatusCode, why: &str) -> Response<Body> {
    answer(status, "application/json", json!({ "error": why }).to_string())
}
