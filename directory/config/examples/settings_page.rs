//! Prints docs/guide/settings.md: each setting of `keyway.toml`, by the default file and the catalogue.
//! `cargo xtask settings` writes it.

use keyway_config::{DEFAULT, catalogue};

fn main() {
    print!("{}", page());
}

/// A setting as the default file has it.
#[derive(Default)]
struct Row {
    key: String,
    value: String,
    meaning: String,
}

/// The page.
fn page() -> String {
    let mut page = "# Settings\n\n\
         Made by `cargo xtask settings` of the default `keyway.toml` and the program's catalogue of settings; \
         `keyway config get` shows what is in force, `keyway config set KEY=VALUE` changes it.\n"
        .to_owned();
    let (mut section, mut pending, mut rows) = (String::new(), Vec::new(), Vec::new());
    let mut lines = DEFAULT.lines();
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix('#') {
            pending.push(comment.trim());
        } else if line.starts_with("[[") {
            flush(&mut page, &mut rows);
            page += "\n## Access rules\n\n```toml\n";
            pending.drain(..).for_each(|comment| page += &format!("# {comment}\n"));
            [line].into_iter().chain(lines).for_each(|line| page += &format!("{line}\n"));
            page += "```\n";
            return page;
        } else if let Some(name) = line.strip_prefix('[') {
            flush(&mut page, &mut rows);
            section = name.trim_end_matches(']').to_owned();
            page += &format!("\n## [{section}]\n\n{}\n", paragraph(&mut pending));
        } else if let Some((key, value)) = line.split_once(" = ") {
            let mut value = value.to_owned();
            while value.matches('[').count() > value.matches(']').count() {
                let Some(more) = lines.next() else { break };
                value += more.trim();
            }
            let (value, beside) = value.split_once(" # ").unwrap_or((&value, ""));
            let key = if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
            let meaning = [paragraph(&mut pending), beside.trim().to_owned()];
            let meaning = meaning.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
            rows.push(Row { key, value: value.trim().to_owned(), meaning: meaning.join("; ") });
        } else if line.is_empty() && section.is_empty() && rows.is_empty() {
            page += &format!("\n{}\n", paragraph(&mut pending));
        } else if line.is_empty() && !pending.is_empty() {
            // Settings that the default file does not have, behind those that it has.
            flush(&mut page, &mut rows);
            page += "\n```toml\n";
            pending.drain(..).for_each(|comment| page += &format!("# {comment}\n"));
            page += "```\n";
        }
    }
    flush(&mut page, &mut rows);
    page
}

/// Text of lines of a comment, which are used up.
fn paragraph(lines: &mut Vec<&str>) -> String {
    let text = lines.join(" ");
    lines.clear();
    text.trim().to_owned()
}

/// Appends the table of a section.
fn flush(page: &mut String, rows: &mut Vec<Row>) {
    if rows.is_empty() {
        return;
    }
    *page += "\n| setting | default | unit | taken | |\n| --- | --- | --- | --- | --- |\n";
    for Row { key, value, meaning } in rows.drain(..) {
        let taken = match key.as_str() {
            "listen" | "listen_tls" => "at a reload by `keyway up`",
            key if catalogue::waits(key) => "at the next start",
            _ => "at a reload",
        };
        let unit = catalogue::unit(&key).unwrap_or_default();
        let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
        let value = value.replace('|', "\\|");
        *page += &format!("| `{key}` | `{value}` | {unit} | {taken} | {} |\n", cell(&meaning));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guide_has_this_page() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/settings.md");
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(written == super::page(), "run `cargo xtask settings`");
    }
}
