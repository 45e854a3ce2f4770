//! The page's files, embedded.

/// A file of the page.
pub(crate) struct File {
    pub kind: &'static str,
    pub text: &'static str,
    /// Whether it is served without a session.
    pub is_open: bool,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The file of a name.
pub(crate) fn file(name: &str) -> Option<File> {
    let (kind, text) = match name {
        "style.css" => (STYLE, include_str!("../page/style.css")),
        "icon.svg" => ("image/svg+xml", include_str!("../page/icon.svg")),
        "uplot.js" => (SCRIPT, include_str!("../vendor/uPlot.iife.min.js")),
        "uplot.css" => (STYLE, include_str!("../vendor/uPlot.min.css")),
        "main.js" => (SCRIPT, include_str!("../page/main.js")),
        "ask.js" => (SCRIPT, include_str!("../page/ask.js")),
        "build.js" => (SCRIPT, include_str!("../page/build.js")),
        "show.js" => (SCRIPT, include_str!("../page/show.js")),
        "graph.js" => (SCRIPT, include_str!("../page/graph.js")),
        "now.js" => (SCRIPT, include_str!("../page/now.js")),
        "slow.js" => (SCRIPT, include_str!("../page/slow.js")),
        "filters.js" => (SCRIPT, include_str!("../page/filters.js")),
        "connections.js" => (SCRIPT, include_str!("../page/connections.js")),
        "store.js" => (SCRIPT, include_str!("../page/store.js")),
        "crypto.js" => (SCRIPT, include_str!("../page/crypto.js")),
        "backups.js" => (SCRIPT, include_str!("../page/backups.js")),
        "load.js" => (SCRIPT, include_str!("../page/load.js")),
        _ => return None,
    };
    Some(File { kind, text, is_open: matches!(name, "style.css" | "icon.svg") })
}

/// The page; the key is for who sees it first.
pub(crate) fn main(key: &str, has_login: bool) -> String {
    let logout = match has_login {
        true => "<form method=\"post\" action=\"/logout\"><button>Log out</button></form>",
        false => "",
    };
    // Both are our own: digits, and a form.
    include_str!("../page/main.html").replace("@KEY@", key).replace("@LOGOUT@", logout)
}

/// The page that asks for a name and a password.
pub(crate) fn login(why: &str) -> String {
    include_str!("../page/login.html").replace("@WHY@", &escaped(why))
}

/// The page that says how to get in.
pub(crate) fn closed() -> String {
    include_str!("../page/closed.html").to_owned()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
