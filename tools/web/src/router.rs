//! The answer to each request.

use crate::answer::{answer, json, refused, with_security_headers};
use crate::api;
use crate::auth::{Auth, Refused};
use crate::limits::{BODY_BYTES_MAX, REQUEST_MAX};
use crate::monitor::{Detail, MonitorTarget};
use crate::order::Order;
use crate::page;
use crate::race::Races;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_TYPE, HeaderValue, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::routing::{get, post};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;
use zeroize::Zeroizing;

type Answer = Response<Body>;

/// All of the page.
pub struct App {
    /// The check of the users who may see it.
    pub auth: Auth,
    /// The servers that it shows.
    pub monitored: Vec<MonitorTarget>,
    /// The load that it may start.
    pub races: Races,
    /// A number that another process does not have.
    pub page: u64,
}

/// The routes.
pub(crate) fn router(app: Arc<App>) -> Router {
    let asked = Router::new()
        .route("/hosts", get(hosts))
        .route("/load", get(load))
        .route("/load/start", post(start))
        .route("/load/stop", post(stop))
        .route("/load/rate", post(rate))
        .route("/{what}", get(about))
        .layer(middleware::from_fn_with_state(app.clone(), pages_only));
    Router::new()
        .route("/", get(root))
        .route("/login", post(login))
        .route("/logout", post(logout))
        .route("/static/{name}", get(file))
        .nest("/api", asked)
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(app.clone(), ours_only))
        .with_state(app)
}

/// Refuses what is not for us, takes what is too slow for too long, and dresses all answers.
async fn ours_only(State(app): State<Arc<App>>, request: Request, next: Next) -> Answer {
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    let answered = match app.auth.admits(request.headers(), changes) {
        Err(Refused::Host) => refused(
            StatusCode::MISDIRECTED_REQUEST,
            "this is not the host that the page is called by; use the URL that keyway web has printed, or \
             name the host with --name",
        ),
        Err(Refused::Origin) => {
            refused(StatusCode::FORBIDDEN, "the request does not come from this page")
        }
        Ok(()) => match tokio::time::timeout(REQUEST_MAX, next.run(request)).await {
            Ok(answered) => answered,
            Err(_) => refused(StatusCode::SERVICE_UNAVAILABLE, "it took too long"),
        },
    };
    with_security_headers(answered)
}

/// Lets only our own pages ask.
async fn pages_only(State(app): State<Arc<App>>, request: Request, next: Next) -> Answer {
    let headers = request.headers();
    match Auth::is_foreign(headers) || !app.auth.trusts(headers, Instant::now()) {
        true => refused(StatusCode::UNAUTHORIZED, "log in first"),
        false => next.run(request).await,
    }
}

async fn nothing() -> Answer {
    refused(StatusCode::NOT_FOUND, "there is nothing here")
}

/// The page, or what leads to it.
async fn root(State(app): State<Arc<App>>, headers: HeaderMap, uri: Uri) -> Answer {
    let now = Instant::now();
    if let Some(token) = asked(&uri, "token") {
        match app.auth.enter(&token, now) {
            Ok(Some(cookie)) => return onward(&cookie),
            Ok(None) if app.auth.knows(&headers, now) => return onward(""),
            Ok(None) => {}
            Err(why) => return refused(StatusCode::INTERNAL_SERVER_ERROR, &why),
        }
    }
    if app.auth.knows(&headers, now) {
        let key = app.auth.key(&headers, now).unwrap_or_default();
        let has_login = app.auth.login().is_some();
        return html(StatusCode::OK, page::main(&key, has_login));
    }
    closed(&app, "")
}

/// The answer without a session.
fn closed(app: &App, why: &str) -> Answer {
    match app.auth.login() {
        Some(_) => html(StatusCode::UNAUTHORIZED, page::login(why)),
        None => html(StatusCode::UNAUTHORIZED, page::closed()),
    }
}

fn html(status: StatusCode, text: String) -> Answer {
    answer(status, "text/html; charset=utf-8", text)
}

/// To the page itself, with a cookie if there is one.
fn onward(cookie: &str) -> Answer {
    let mut onward = answer(StatusCode::SEE_OTHER, "text/plain", "");
    onward.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
    if let Some(cookie) = HeaderValue::from_str(cookie).ok().filter(|cookie| !cookie.is_empty()) {
        onward.headers_mut().insert(SET_COOKIE, cookie);
    }
    onward
}

async fn file(State(app): State<Arc<App>>, Path(name): Path<String>, headers: HeaderMap) -> Answer {
    let Some(found) = page::file(&name) else { return nothing().await };
    match found.is_open || app.auth.knows(&headers, Instant::now()) {
        true => answer(StatusCode::OK, found.kind, found.text),
        false => refused(StatusCode::UNAUTHORIZED, "log in first"),
    }
}

/// Asks the directory, a few at a time; it brakes who guesses.
async fn login(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Answer {
    let Some(ask) = app.auth.login() else { return nothing().await };
    let is_form = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
    let Ok(bytes) = to_bytes(body, BODY_BYTES_MAX).await else {
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "that is too long");
    };
    let bytes = Zeroizing::new(bytes.to_vec());
    let form = Zeroizing::new(String::from_utf8_lossy(&bytes).into_owned());
    let (name, password) = (field(&form, "name"), field(&form, "password"));
    let (true, Some(name), Some(password)) = (is_form, name, password) else {
        return refused(StatusCode::BAD_REQUEST, "expected a form with name and password");
    };
    // An empty password is no password (RFC 4513, section 5.1.2): every name would be right.
    if name.is_empty() || password.is_empty() {
        return closed(&app, "A name and a password are needed.");
    }
    let Ok(_turn) = app.auth.logins.try_acquire() else {
        return closed(&app, "Others are logging in. Try again in a moment.");
    };
    let asked = tokio::task::spawn_blocking(move || ask(&name, password.as_bytes())).await;
    match asked.unwrap_or_else(|_| Err("The directory could not be asked.".into())) {
        Err(why) => closed(&app, &why),
        Ok(()) => match app.auth.let_in(Instant::now()) {
            Ok(cookie) => onward(&cookie),
            Err(why) => refused(StatusCode::INTERNAL_SERVER_ERROR, &why),
        },
    }
}

async fn logout(State(app): State<Arc<App>>, headers: HeaderMap) -> Answer {
    onward(&app.auth.forget(&headers))
}

/// A field of a form, decoded.
#[doc(hidden)]
pub fn field(form: &str, name: &str) -> Option<Zeroizing<String>> {
    let mut pairs = form.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    let spaced = Zeroizing::new(value.replace('+', " "));
    let decoded = percent_decode_str(&spaced).decode_utf8().ok()?;
    Some(Zeroizing::new(decoded.into_owned()))
}

/// A part of the query.
fn asked(uri: &Uri, name: &str) -> Option<String> {
    field(uri.query().unwrap_or_default(), name).map(|value| value.to_string())
}

fn number(uri: &Uri, name: &str) -> Option<u64> {
    asked(uri, name)?.parse().ok()
}

async fn hosts(State(app): State<Arc<App>>) -> Answer {
    json(&api::hosts(&app.monitored))
}

async fn about(State(app): State<Arc<App>>, Path(what): Path<String>, uri: Uri) -> Answer {
    let at = number(&uri, "host").and_then(|at| usize::try_from(at).ok()).unwrap_or_default();
    let Some(target) = app.monitored.get(at).cloned() else { return nothing().await };
    let (prefixes, detail): (&'static [&'static str], _) = match what.as_str() {
        "now" => {
            let after = number(&uri, "after").unwrap_or_default();
            return json(&api::now(&target, after, app.page));
        }
        "slow" => (&[], Some(Detail::Slow)),
        "filters" => (&["search."], Some(Detail::Filters)),
        "connections" => (&["ldap.connection."], Some(Detail::Connections)),
        "store" => (&["store."], None),
        "backups" => (&[], Some(Detail::Backups)),
        "crypto" => (&["engine.", "client.", "cryptod.", "password."], Some(Detail::Crypto)),
        _ => return nothing().await,
    };
    let asked = tokio::task::spawn_blocking(move || api::about(&target, prefixes, detail)).await;
    match asked {
        Ok(value) => json(&value),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "it could not be asked"),
    }
}

async fn load(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    json(&app.races.json(number(&uri, "after").unwrap_or_default()))
}

async fn start(State(app): State<Arc<App>>, body: Body) -> Answer {
    let order: Order = match read(body).await {
        Ok(order) => order,
        Err(refused) => return refused,
    };
    // A scenario may name files, which are read here.
    let races = app.clone();
    let started = tokio::task::spawn_blocking(move || races.races.start(&order)).await;
    done(&app, started.unwrap_or_else(|_| Err("it could not be started".into())))
}

async fn stop(State(app): State<Arc<App>>) -> Answer {
    app.races.stop();
    done(&app, Ok(()))
}

/// Another rate, for all lanes or for one.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rate {
    rate: f64,
    lane: Option<usize>,
}

async fn rate(State(app): State<Arc<App>>, body: Body) -> Answer {
    match read(body).await {
        Ok(Rate { rate, lane }) => done(&app, app.races.set_rate(rate, lane)),
        Err(refused) => refused,
    }
}

fn done(app: &App, done: Result<(), String>) -> Answer {
    match done {
        Ok(()) => json(&app.races.json(0)),
        Err(why) => refused(StatusCode::CONFLICT, &why),
    }
}

/// A body of JSON.
async fn read<T: DeserializeOwned>(body: Body) -> Result<T, Answer> {
    let bytes = to_bytes(body, BODY_BYTES_MAX)
        .await
        .map_err(|_| refused(StatusCode::PAYLOAD_TOO_LARGE, "a request has 16 KiB at most"))?;
    // It may have a password in it.
    let bytes = Zeroizing::new(bytes.to_vec());
    serde_json::from_slice(&bytes).map_err(|why| {
        let why = format!("that is not understood: {why}");
        answer(StatusCode::BAD_REQUEST, "application/json", json!({ "error": why }).to_string())
    })
}
