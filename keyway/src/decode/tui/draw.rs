//! What is on the screen. Colours are the terminal's own, so that light and dark ones can be read.

use super::book::{Book, Item, What};
use super::detail::{Detail, Row, Tab};
use super::list::{self, List};
use super::{Screen, Shows};
use keyway_decode::End;
use keyway_decode::view::{Line as AsLine, clock};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

/// So wide must a screen be for a tree and octets side by side.
const WIDE: u16 = 110;

/// So wide must it be for times with milliseconds.
const ROOMY: u16 = 100;

/// A line of octets: 16 of them, in hexadecimal and as text.
const OCTETS_COLUMNS: u16 = 75;

const HELP: [&str; 19] = [
    " list                                one operation",
    "  up down j k   go up, down           up down j k  go up, down",
    "  PgUp PgDn     a screen              n p          next, previous",
    "  g G Home End  first, last           Tab          tree, octets, words",
    "  Enter         look at it            Space        fold an element",
    "  f /           filter                q Esc Left   back to the list",
    "  s S           sort by, reversed",
    "  F             follow what comes    both",
    "  m Space       mark                  y            copy in other words",
    "  M             marked ones only      w            write marked ones, or",
    "  u             unmark all                         all shown, as pcapng",
    "  P             pause                 ?            this",
    "  q             end                   Ctrl-C       end",
    "",
    " A filter is an LDAP filter over the operation, as keyway decode --help",
    " has it; the outer parentheses may be left out: op=search, or",
    " |(code>=1)(latency>=10ms). Any other text means the lines it is in.",
    " Copies go to the terminal's clipboard (OSC 52), where it has one.",
    "",
];

pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen, book: &Book) {
    let whole = frame.area();
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [head, body, state, keys] = areas.areas(whole);
    frame.render_widget(title(screen, book), head);
    match &mut screen.shows {
        Shows::Detail(detail) => one(frame, detail, book, body),
        _ => all(frame, &mut screen.list, book, body),
    }
    frame.render_widget(status(screen, book), state);
    frame.render_widget(bottom(screen), keys);
    if let Some(prompt) = &screen.prompt {
        let typed = format!("{}{}", prompt.kind.label(), prompt.text);
        let column = u16::try_from(Span::raw(typed).width()).unwrap_or(u16::MAX);
        frame.set_cursor_position((keys.x + column.min(keys.width.saturating_sub(1)), keys.y));
    }
    match &screen.popup {
        Some(super::Popup::Help) => popup(frame, body, " keys ", HELP.join("\n").trim_end()),
        Some(super::Popup::Words { title, text }) => popup(frame, body, title, text),
        None => {}
    }
}

fn title(screen: &Screen, book: &Book) -> Line<'static> {
    let shown = screen.list.shown().len();
    let mut text = format!(" {}  {shown} of {}", screen.source, book.len());
    if book.dropped > 0 {
        text.push_str(&format!("; the oldest {} are not kept", book.dropped));
    }
    if book.dropped_marked > 0 {
        text.push_str(&format!(", {} of them marked", book.dropped_marked));
    }
    Line::from(text).style(Style::new().add_modifier(Modifier::REVERSED))
}

fn status(screen: &Screen, book: &Book) -> Line<'static> {
    if let Some(why) = &screen.wrong {
        return Line::from(format!(" {why}")).style(failed());
    }
    let List { order, is_reversed, follows, .. } = &screen.list;
    let mut parts = Vec::new();
    if !screen.filter.is_empty() {
        parts.push(format!("filter {}", screen.filter));
    }
    let reversed = if *is_reversed { ", reversed" } else { "" };
    parts.push(format!("by {}{reversed}", order.name()));
    if *follows {
        parts.push("follows".to_owned());
    }
    if screen.list.shows_only_marked() {
        parts.push("marked only".to_owned());
    }
    if screen.is_paused {
        parts.push("paused".to_owned());
    }
    if book.is_complete {
        parts.push("complete".to_owned());
    }
    if let Some(remark) = &screen.said {
        parts.push(remark.clone());
    } else if let Some(remark) = book.remarks.back() {
        parts.push(remark.clone());
    }
    Line::from(format!(" {}", parts.join("  ")))
}

fn bottom(screen: &Screen) -> Line<'static> {
    if let Some(prompt) = &screen.prompt {
        return Line::from(format!("{}{}", prompt.kind.label(), prompt.text));
    }
    Line::from(match (&screen.popup, &screen.shows) {
        (Some(_), _) => " any key closes this",
        (None, Shows::Detail(_)) => {
            " q back  n p next, previous  Tab tree, octets, words  Space fold  y copy  ? keys"
        }
        (None, Shows::List) => {
            " q end  Enter open  f filter  s sort  F follow  m mark  y copy  w write  ? keys"
        }
    })
    .style(Style::new().add_modifier(Modifier::DIM))
}

fn failed() -> Style {
    Style::new().fg(Color::Red)
}

/// The list.
fn all(frame: &mut Frame<'_>, list: &mut List, book: &Book, area: Rect) {
    let [head, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let columns = match rows.width >= ROOMY {
        true => "  time          conn.id    operation    latency  result",
        false => "  time      conn.id  operation  latency  result",
    };
    frame.render_widget(Line::from(columns).style(Modifier::BOLD), head);
    let height = usize::from(rows.height);
    list.scroll(height);
    let selected = list.selected();
    let mut lines = Vec::new();
    for number in list.shown().iter().skip(list.top).take(height) {
        let Some(item) = book.get(*number) else { continue };
        lines.push(row(item, Some(*number) == selected, rows.width));
    }
    if lines.is_empty() {
        lines.push(Line::from(if book.len() == 0 { "  nothing yet" } else { "  none of these" }));
    }
    frame.render_widget(Paragraph::new(lines), rows);
}

fn row(item: &Item, is_selected: bool, width: u16) -> Line<'static> {
    let mark = if item.is_marked { "*" } else { " " };
    let pointer = if is_selected { ">" } else { " " };
    let mut style = Style::new();
    let text = match &item.what {
        What::Note(line) => {
            style = style.add_modifier(Modifier::DIM);
            line.clone()
        }
        What::Operation(kept) => {
            let operation = kept.operation();
            let is_lost = operation.end == End::Unanswered;
            if is_lost || item.code.is_some_and(|code| ![0, 5, 6, 10, 14].contains(&code)) {
                style = failed();
            }
            let mut time = Vec::new();
            clock(item.time_ns, &mut time);
            let is_roomy = width >= ROOMY;
            let digits = if is_roomy { 12 } else { 8 };
            let time = String::from_utf8_lossy(&time).chars().take(digits).collect::<String>();
            let connection = format!("c{}.{}", operation.connection.number, operation.id);
            let latency = item.latency_ns.map_or_else(|| "-".to_owned(), AsLine::latency);
            let (result, subject) = (AsLine::result(&operation), AsLine::subject(&operation));
            let name = operation.name();
            match is_roomy {
                true => {
                    format!("{time}  {connection:<10} {name:<9} {latency:>10}  {result}  {subject}")
                }
                false => {
                    format!("{time}  {connection:<8} {name:<8} {latency:>9}  {result}  {subject}")
                }
            }
        }
    };
    if is_selected {
        style = style.add_modifier(Modifier::REVERSED);
    }
    let text = format!("{pointer}{mark}{text}");
    // To the edge, so that a reversed line is one.
    let width = usize::from(width);
    Line::from(format!("{text:<width$}")).style(style)
}

/// An operation.
fn one(frame: &mut Frame<'_>, detail: &mut Detail, book: &Book, area: Rect) {
    let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let line =
        book.get(detail.number).map_or_else(|| "it is not kept any more".to_owned(), list::line);
    frame.render_widget(Paragraph::new(line).style(Modifier::BOLD).wrap(Wrap::default()), head);
    if detail.tab == Tab::Words {
        let height = usize::from(body.height);
        let lines = detail.words().iter().skip(detail.words_top).take(height);
        let lines: Vec<Line<'_>> = lines.map(|line| Line::from(line.as_str())).collect();
        return frame.render_widget(Paragraph::new(lines), body);
    }
    if body.width >= WIDE {
        let sides = [Constraint::Min(0), Constraint::Length(OCTETS_COLUMNS + 2)];
        let [left, right] = Layout::horizontal(sides).areas(body);
        elements(frame, detail, left);
        octets(frame, detail, right);
    } else if detail.tab == Tab::Octets {
        octets(frame, detail, body);
    } else {
        elements(frame, detail, body);
    }
}

fn elements(frame: &mut Frame<'_>, detail: &mut Detail, area: Rect) {
    let height = usize::from(area.height);
    detail.scroll(height);
    let rows = detail.rows().skip(detail.top).take(height);
    let lines: Vec<Line<'_>> = rows.map(|(index, row)| element(detail, index, row)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn element<'d>(detail: &'d Detail, index: usize, row: &'d Row) -> Line<'d> {
    let sign = match (row.has_children, detail.is_folded(index)) {
        (true, true) => "+ ",
        (true, false) => "- ",
        (false, _) => "  ",
    };
    let line = match &row.node {
        None => Line::from(vec![Span::raw(sign), detail.title(row.message).bold()]),
        Some(node) => {
            let indent = "  ".repeat(node.depth + 1);
            let colon = if node.text.is_empty() { "" } else { ": " };
            let name = format!("{indent}{sign}{}{colon}", node.name);
            Line::from(vec![Span::raw(name), Span::raw(node.text.as_str())])
        }
    };
    if index == detail.selected() { line.reversed() } else { line }
}

/// Octets in hexadecimal and as text, those of the element that is looked at apart.
fn octets(frame: &mut Frame<'_>, detail: &Detail, area: Rect) {
    let (octets, place) = detail.octets();
    let height = usize::from(area.height).max(1);
    let wanted = place.start / 16;
    let all = octets.len().div_ceil(16);
    let first = wanted.saturating_sub(height / 3).min(all.saturating_sub(height));
    let mut lines = Vec::new();
    for (index, chunk) in octets.chunks(16).enumerate().skip(first).take(height) {
        let mut spans = vec![Span::raw(format!("{:06x}  ", index * 16)).dim()];
        let is_meant = |column: usize| place.contains(&(index * 16 + column));
        for column in 0..16 {
            let text = chunk.get(column).map_or("  ".to_owned(), |octet| format!("{octet:02x}"));
            let gap = if column == 7 { "  " } else { " " };
            let span = Span::raw(text);
            let is_meant = is_meant(column) && column < chunk.len();
            spans.push(if is_meant { span.reversed() } else { span });
            spans.push(Span::raw(gap));
        }
        for (column, octet) in chunk.iter().enumerate() {
            let shown = match octet {
                b' '..=b'~' => char::from(*octet),
                _ => '.',
            };
            let span = Span::raw(shown.to_string());
            spans.push(if is_meant(column) { span.reversed() } else { span });
        }
        lines.push(Line::from(spans));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn popup(frame: &mut Frame<'_>, area: Rect, title: &str, text: &str) {
    let widest = text.lines().map(|line| Span::raw(line).width()).max().unwrap_or_default();
    let width = u16::try_from(widest + 2).unwrap_or(u16::MAX).min(area.width);
    let inner = usize::from(width.saturating_sub(2)).max(1);
    let lines = text.lines().map(|line| Span::raw(line).width().div_ceil(inner).max(1));
    let height = u16::try_from(lines.sum::<usize>() + 2).unwrap_or(u16::MAX).min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    let block = Block::bordered().title(title.to_owned());
    let paragraph = Paragraph::new(text).wrap(Wrap { trim: false }).block(block);
    frame.render_widget(paragraph, place);
}
