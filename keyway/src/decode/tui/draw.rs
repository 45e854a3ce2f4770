//! Draws the browser. Colours are the terminal's own, so that light and dark ones can be read.

use keyway_decode::browse::{
    BrowsedItem, BrowsedItems, Browser, BrowserPage, BrowserPopup, DetailRow, DetailTab, ItemList,
    OperationDetail, RowTone, row,
};
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

pub fn draw(frame: &mut Frame<'_>, browser: &mut Browser, items: &BrowsedItems) {
    let whole = frame.area();
    let areas = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [head, body, state, keys] = areas.areas(whole);
    let title = Line::from(browser.title(items)).style(Modifier::REVERSED);
    frame.render_widget(title, head);
    match &mut browser.page {
        BrowserPage::Detail(detail) => one(frame, detail, items, body),
        _ => all(frame, &mut browser.list, items, body),
    }
    frame.render_widget(status(browser, items), state);
    frame.render_widget(bottom(browser), keys);
    if let Some(prompt) = &browser.prompt {
        let typed = format!("{}{}", prompt.kind.label(), prompt.text);
        let column = u16::try_from(Span::raw(typed).width()).unwrap_or(u16::MAX);
        frame.set_cursor_position((keys.x + column.min(keys.width.saturating_sub(1)), keys.y));
    }
    match &browser.popup {
        Some(BrowserPopup::Help) => popup(frame, body, " keys ", HELP.join("\n").trim_end()),
        Some(BrowserPopup::Words { title, text }) => popup(frame, body, title, text),
        None => {}
    }
}

fn status(browser: &Browser, items: &BrowsedItems) -> Line<'static> {
    match browser.status(items) {
        Ok(text) => Line::from(text),
        Err(why) => Line::from(why).style(failed()),
    }
}

fn bottom(browser: &Browser) -> Line<'static> {
    if let Some(prompt) = &browser.prompt {
        return Line::from(format!("{}{}", prompt.kind.label(), prompt.text));
    }
    Line::from(match (&browser.popup, &browser.page) {
        (Some(_), _) => " any key closes this",
        (None, BrowserPage::Detail(_)) => {
            " q back  n p next, previous  Tab tree, octets, words  Space fold  y copy  ? keys"
        }
        (None, BrowserPage::List) => {
            " q end  Enter open  f filter  s sort  F follow  m mark  y copy  w write  ? keys"
        }
    })
    .style(Style::new().add_modifier(Modifier::DIM))
}

fn failed() -> Style {
    Style::new().fg(Color::Red)
}

/// The list.
fn all(frame: &mut Frame<'_>, list: &mut ItemList, items: &BrowsedItems, area: Rect) {
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
        let Some(item) = items.get(*number) else { continue };
        lines.push(row_line(item, Some(*number) == selected, rows.width));
    }
    if lines.is_empty() {
        lines.push(Line::from(if items.is_empty() { "  nothing yet" } else { "  none of these" }));
    }
    frame.render_widget(Paragraph::new(lines), rows);
}

fn row_line(item: &BrowsedItem, is_selected: bool, width: u16) -> Line<'static> {
    let mark = if item.is_marked { "*" } else { " " };
    let pointer = if is_selected { ">" } else { " " };
    let (text, tone) = row(item, width >= ROOMY);
    let mut style = match tone {
        RowTone::Usual => Style::new(),
        RowTone::Failed => failed(),
        RowTone::Remark => Style::new().add_modifier(Modifier::DIM),
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
fn one(frame: &mut Frame<'_>, detail: &mut OperationDetail, items: &BrowsedItems, area: Rect) {
    let [head, body] = Layout::vertical([Constraint::Length(2), Constraint::Min(0)]).areas(area);
    let line = items
        .get(detail.number)
        .map_or_else(|| "it is not kept any more".to_owned(), BrowsedItem::line);
    frame.render_widget(Paragraph::new(line).style(Modifier::BOLD).wrap(Wrap::default()), head);
    if detail.tab == DetailTab::Words {
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
    } else if detail.tab == DetailTab::Octets {
        octets(frame, detail, body);
    } else {
        elements(frame, detail, body);
    }
}

fn elements(frame: &mut Frame<'_>, detail: &mut OperationDetail, area: Rect) {
    let height = usize::from(area.height);
    detail.scroll(height);
    let rows = detail.rows().skip(detail.top).take(height);
    let lines: Vec<Line<'_>> = rows.map(|(index, row)| element(detail, index, row)).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn element<'d>(detail: &'d OperationDetail, index: usize, row: &'d DetailRow) -> Line<'d> {
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
fn octets(frame: &mut Frame<'_>, detail: &OperationDetail, area: Rect) {
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
