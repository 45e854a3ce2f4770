//! The meaning of the figures: the claims with their bars, and the tables.

use super::bound::Bound;
use super::sample::{Algorithm, BATCH_MAX, Case, Way};
use super::{ALGORITHMS, BATCHES, BULK_BYTES, CONNECTION_BYTES, CONNECTIONS, Figures, SIZES, WAYS};
use crate::plot;
use crate::report::{Claim, Findings, Table, median};
use std::path::Path;

/// Bytes of the payloads that claims are made of.
const CLAIMED_BYTES: [usize; 6] = [16, 64, 256, 600, 1280, 1450];
const QUINN: &str = "rustls + ring";
/// How many times faster than quinn's default.
const QUINN_GAIN: [(usize, f64); 2] = [(16, 8.0), (1280, 4.0)];
/// The most that opening may take of the time of sealing.
const OPEN_MAX: f64 = 1.05;
/// The time that the mask may add to a packet, in nanoseconds.
const MASK_NS_MAX: [f64; 2] = [1.5, 10.0];
/// How many times what one key takes.
const COLD_MAX: f64 = 2.0;
const BULK_CLAIM_BYTES: usize = 16_384;
/// GB/s at so many GHz, and the bound of that processor.
const BULK_RATE: (f64, f64, f64) = (28.0, 3.7, 37.9);
const BULK_GAIN: f64 = 1.2;

const SEAL: Case = Case {
    algorithm: Algorithm::Aes128Gcm,
    way: Way::Seal,
    header: true,
    bytes: 0,
    batch: BATCH_MAX,
    keys: 1,
};

impl Figures {
    /// Nanoseconds a packet of each round, where it was measured.
    fn of(&self, side: usize, case: Case) -> Option<Vec<f64>> {
        let turns = self.turns.get(&(side, case))?;
        Some(turns.iter().map(|turn| turn.nanoseconds).collect())
    }

    fn median(&self, side: usize, case: Case) -> Option<f64> {
        Some(median(&self.of(side, case)?))
    }

    fn backends(&self) -> usize {
        self.names.iter().filter(|name| name.starts_with("Keyway")).count()
    }

    /// The backend that Keyway chooses.
    fn ours(&self, case: Case) -> Option<Vec<f64>> {
        self.of(self.backends() - 1, case)
    }

    /// The best of the peers, with any of these batches: its name and figures.
    fn best_peer(&self, case: Case, batches: &[usize]) -> Option<(String, Vec<f64>)> {
        let of = |side: usize, batch| {
            let figures = self.of(side, Case { batch, ..case })?;
            Some((self.label(side, batch), figures))
        };
        let all = (self.backends()..self.names.len())
            .flat_map(|side| batches.iter().filter_map(move |batch| of(side, *batch)));
        all.min_by(|(_, one), (_, other)| median(one).total_cmp(&median(other)))
    }

    fn quinn(&self, case: Case) -> Option<Vec<f64>> {
        let side = self.names.iter().position(|name| name == QUINN)?;
        self.of(side, Case { batch: 1, ..case })
    }

    fn label(&self, side: usize, batch: usize) -> String {
        let name = &self.names[side];
        if batch == 1 { name.clone() } else { format!("{name}, batch {batch}") }
    }

    /// Everyone, with each batch they take.
    fn lines(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.names.len()).flat_map(|side| BATCHES.map(|batch| (side, batch)))
    }

    fn bound(&self, bytes: usize) -> Option<f64> {
        Some(self.bound.as_ref()?.packet(bytes))
    }
}

/// Claims and tables of those that are wanted.
pub fn all(figures: &Figures, wants: impl Fn(u8) -> bool) -> Findings {
    let mut found = Findings::default();
    /// Adds what the figures say of one claim.
    type Part = fn(&Figures, &mut Findings);
    let parts: [(u8, Part); 5] =
        [(1, libraries), (2, masks), (3, connections), (4, bulk), (5, seed)];
    for (_, part) in parts.into_iter().filter(|(number, _)| wants(*number)) {
        part(figures, &mut found);
    }
    let grid = ALGORITHMS.into_iter().flat_map(|algorithm| WAYS.map(|way| (algorithm, way)));
    let tables = grid.map(|(algorithm, way)| everything(figures, algorithm, way));
    found.tables.extend(tables.filter(|table| !table.rows.is_empty()));
    found.tables.extend(figures.bound.as_ref().map(Bound::table));
    found.tables.push(samples(figures));
    found
}

/// Beside the libraries: one packet a call beside the best of them, batches beside quinn's default.
fn libraries(figures: &Figures, found: &mut Findings) {
    one_a_call(figures, found);
    let columns = ["bytes", "batch 16", "batch 64", "cycles", QUINN, "times"];
    let columns = [&columns[..], &["best peer", "", "times", "bound"]].concat();
    let title = "1 AES-128-GCM with header protection, seal, ns a packet";
    let mut table = Table::new(title, &columns);
    for bytes in CLAIMED_BYTES {
        let case = Case { bytes, ..SEAL };
        let Some(ours) = figures.ours(case) else { continue };
        let small = figures.ours(Case { batch: 16, ..case }).unwrap_or_default();
        let quinn = figures.quinn(case).unwrap_or_default();
        if let Some((_, gain)) = QUINN_GAIN.iter().find(|(size, _)| *size == bytes) {
            let name = format!("1 seal with header, {bytes} B, quinn's default");
            found.claims.push(Claim::cost(&name, "ns", &ours, QUINN, &quinn).demand(*gain));
        }
        if let Some(open) = figures.ours(Case { way: Way::Open, ..case }) {
            let most: Vec<_> = ours.iter().map(|seal| seal * OPEN_MAX).collect();
            let name = format!("1 open with header, {bytes} B, batch 64");
            found.claims.push(Claim::cost(&name, "ns", &open, "seal + 5 %", &most).demand(1.0));
        }
        let (peer, best) = figures.best_peer(case, &BATCHES).unwrap_or_default();
        let (one, two, three) = (median(&ours), median(&quinn), median(&best));
        let clock = figures.bound.as_ref().map(|bound| bound.clock);
        table.rows.push(vec![
            bytes.to_string(),
            show(median(&small)),
            show(one),
            clock.map_or(String::new(), |clock| format!("{:.0}", one * clock)),
            show(two),
            show(two / one),
            show(three),
            peer,
            show(three / one),
            figures.bound(bytes).map_or(String::new(), show),
        ]);
    }
    found.tables.push(table);
    found.tables.extend(figures.bound.as_ref().map(|bound| cycles(figures, bound)));
}

/// A line through a short and a long packet: what each 64 bytes take, and what a packet takes
/// besides. The first is bound by the instructions' throughput, the second, where packets come one
/// a call, by their latency.
fn cycles(figures: &Figures, bound: &Bound) -> Table {
    let title = "1 where the cycles go, with header protection, by a line through 64 and 1450 B";
    let columns = ["", "seal: each 64 B", "a packet besides", "open: each 64 B", "besides"];
    let mut table = Table::new(title, &columns);
    let [short, long] = [64, 1450].map(|bytes| (bytes, Bound::steps(bytes)));
    let line = |ns: &dyn Fn(usize) -> Option<f64>| {
        let (one, other) = (ns(short.0)? * bound.clock, ns(long.0)? * bound.clock);
        let each = (other - one) / (long.1 - short.1);
        Some([show(each), show(one - short.1 * each)])
    };
    for (side, batch) in figures.lines() {
        let cells =
            WAYS.map(|way| line(&|bytes| figures.median(side, Case { bytes, batch, way, ..SEAL })));
        if let [Some(seal), Some(open)] = cells {
            table.rows.push([vec![figures.label(side, batch)], seal.into(), open.into()].concat());
        }
    }
    if let Some(cells) = line(&|bytes| Some(bound.packet(bytes))) {
        let name = vec!["the processor's bound".to_owned()];
        table.rows.push([name, cells.to_vec(), cells.to_vec()].concat());
    }
    table
}

fn one_a_call(figures: &Figures, found: &mut Findings) {
    for (bytes, way) in CLAIMED_BYTES.into_iter().flat_map(|bytes| WAYS.map(|way| (bytes, way))) {
        let case = Case { bytes, way, batch: 1, ..SEAL };
        let (ours, best) = (figures.ours(case), figures.best_peer(case, &[1]));
        if let (Some(ours), Some((peer, theirs))) = (ours, best) {
            let name = format!("1 {} with header, {bytes} B, one a call", verb(way));
            found.claims.push(Claim::cost(&name, "ns", &ours, &peer, &theirs).demand(1.0));
        }
    }
}

fn masks(figures: &Figures, found: &mut Findings) {
    for (algorithm, most) in ALGORITHMS.into_iter().zip(MASK_NS_MAX) {
        for (bytes, way) in SIZES.into_iter().flat_map(|bytes| WAYS.map(|way| (bytes, way))) {
            let case = Case { algorithm, bytes, way, ..SEAL };
            let with = figures.ours(case);
            let without = figures.ours(Case { header: false, ..case });
            let (Some(with), Some(without)) = (with, without) else { continue };
            let limit: Vec<_> = without.iter().map(|aead| aead + most).collect();
            let what = if algorithm == ALGORITHMS[0] { "AES" } else { "ChaCha20" };
            let name = format!("2 {what} mask, {}, {bytes} B, batch 64", verb(way));
            let peer = format!("AEAD + {most} ns");
            found.claims.push(Claim::cost(&name, "ns", &with, &peer, &limit).demand(1.0));
        }
        for way in WAYS {
            let title = format!("2 what the mask adds, ns: {}, {}", title(algorithm), verb(way));
            let mut table = per_size(figures, &title, |side, batch, bytes| {
                let case = Case { algorithm, bytes, way, batch, ..SEAL };
                let with = figures.of(side, case)?;
                let without = figures.of(side, Case { header: false, ..case })?;
                let added: Vec<_> = with.iter().zip(&without).map(|(one, two)| one - two).collect();
                Some(show(median(&added)))
            });
            if let Some(bound) = &figures.bound {
                let mut row = vec!["the processor's bound".to_owned()];
                row.resize(1 + SIZES.len(), show(bound.mask(algorithm)));
                table.rows.push(row);
            }
            found.tables.push(table);
        }
    }
}

fn connections(figures: &Figures, found: &mut Findings) {
    let title = format!(
        "3 AES-128-GCM, seal, {CONNECTION_BYTES} B, ns a packet: one key, and {CONNECTIONS} in turn"
    );
    let columns = ["", "AEAD", "in turn", "times", "with header", "in turn", "times"];
    let mut table = Table::new(&title, &columns);
    for (side, batch) in figures.lines() {
        let of = |header, keys| {
            figures.of(side, Case { bytes: CONNECTION_BYTES, header, keys, batch, ..SEAL })
        };
        let mut row = vec![figures.label(side, batch)];
        for header in [false, true] {
            let (Some(hot), Some(cold)) = (of(header, 1), of(header, CONNECTIONS)) else {
                continue;
            };
            let ratio = median(&cold) / median(&hot);
            row.extend([show(median(&hot)), show(median(&cold)), format!("{ratio:.2}")]);
            if side + 1 == figures.backends() && batch == BATCH_MAX {
                let most: Vec<_> = hot.iter().map(|hot| hot * COLD_MAX).collect();
                let what = if header { "with header" } else { "AEAD" };
                let name = format!("3 {CONNECTIONS} keys in turn, {CONNECTION_BYTES} B, {what}");
                let claim = Claim::cost(&name, "ns", &cold, "twice one key", &most);
                found.claims.push(claim.demand(1.0));
            }
        }
        if row.len() > 1 {
            table.rows.push(row);
        }
    }
    found.tables.push(table);
}

fn bulk(figures: &Figures, found: &mut Findings) {
    let case = |bytes| Case { bytes, header: false, batch: 1, ..SEAL };
    let rate = |bytes: usize, ns: &[f64]| ns.iter().map(|ns| bytes as f64 / ns).collect::<Vec<_>>();
    let bytes = BULK_CLAIM_BYTES;
    if let Some(ours) = figures.ours(case(bytes)) {
        let ours = rate(bytes, &ours);
        let name = "4 AES-128-GCM, 16 KiB";
        if let Some(bound) = &figures.bound {
            let (rate, clock, zen_5) = BULK_RATE;
            let wanted = |rate: f64, peer: &str| {
                let wanted = vec![rate; ours.len()];
                Claim::rate(name, "GB/s", &ours, peer, &wanted).demand(1.0)
            };
            let peer = format!("{rate} at {clock} GHz");
            found.claims.push(wanted(rate * bound.clock / clock, &peer));
            let here = rate * bound.bulk() / zen_5;
            found.claims.push(wanted(here, "by the bound here").secondary());
        }
        if let Some((peer, theirs)) = figures.best_peer(case(bytes), &[1]) {
            let theirs = rate(bytes, &theirs);
            found.claims.push(Claim::rate(name, "GB/s", &ours, &peer, &theirs).demand(BULK_GAIN));
        }
    }
    let title = "4 AES-128-GCM in place, GB/s (cycles a byte)";
    let mut table = Table::new(title, &["", "1536 B", "16384 B", "65536 B"]);
    let clock = figures.bound.as_ref().map(|bound| bound.clock);
    let show = |rate: f64| {
        let cycles = clock.map_or(String::new(), |clock| format!(" ({:.3})", clock / rate));
        format!("{rate:.1}{cycles}")
    };
    for side in 0..figures.names.len() {
        let of = |bytes| Some(show(bytes as f64 / figures.median(side, case(bytes))?));
        let mut row = vec![figures.names[side].clone()];
        row.extend(BULK_BYTES.map(|bytes| of(bytes).unwrap_or_default()));
        table.rows.push(row);
    }
    if let Some(bound) = &figures.bound {
        let rate = show(bound.bulk());
        table.rows.push(vec!["the processor's bound".into(), rate.clone(), rate.clone(), rate]);
    }
    found.tables.push(table);
}

/// The question's own table, with the way it was done then beside Keyway's.
fn seed(figures: &Figures, found: &mut Findings) {
    let of = |name: &str| figures.names.iter().position(|one| one == name);
    let ours = Some(figures.backends() - 1);
    let sides = [
        ("Keyway, batch 64", ours, BATCH_MAX),
        ("Keyway, one a call", ours, 1),
        ("OpenSSL, layered", of("OpenSSL"), 1),
        (QUINN, of(QUINN), 1),
    ];
    let columns: Vec<_> = ["bytes"].into_iter().chain(sides.map(|(label, ..)| label)).collect();
    let title = "5 AES-128-GCM, seal, ns a packet: AEAD / with header (what that adds)";
    let mut table = Table::new(title, &columns);
    for bytes in SIZES {
        let cell = |side: Option<usize>, batch| {
            let case = Case { bytes, batch, ..SEAL };
            let with = figures.median(side?, case)?;
            let without = figures.median(side?, Case { header: false, ..case })?;
            let added = with - without;
            let percent = 100.0 * added / without;
            Some(format!("{without:.1} / {with:.1} ({added:+.1}, {percent:.1} %)"))
        };
        let cells = sides.map(|(_, side, batch)| cell(side, batch).unwrap_or_default());
        table.rows.push([vec![bytes.to_string()], cells.to_vec()].concat());
    }
    found.tables.push(table);
}

fn everything(figures: &Figures, algorithm: Algorithm, way: Way) -> Table {
    let title =
        format!("{}, {}: AEAD / with header protection, ns a packet", title(algorithm), verb(way));
    let mut table = per_size(figures, &title, |side, batch, bytes| {
        let case = Case { algorithm, bytes, way, batch, ..SEAL };
        let with = figures.median(side, case).map_or("-".into(), show);
        Some(format!("{} / {with}", show(figures.median(side, Case { header: false, ..case })?)))
    });
    if algorithm == ALGORITHMS[0] && figures.bound.is_some() && !table.rows.is_empty() {
        let mut row = vec!["the processor's bound".to_owned()];
        row.extend(SIZES.map(|bytes| figures.bound(bytes).map_or(String::new(), show)));
        table.rows.push(row);
    }
    table
}

/// A row for everyone, a column for each size.
fn per_size(
    figures: &Figures,
    title: &str,
    cell: impl Fn(usize, usize, usize) -> Option<String>,
) -> Table {
    let sizes = SIZES.map(|bytes| bytes.to_string());
    let columns: Vec<_> = [""].into_iter().chain(sizes.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &columns);
    for (side, batch) in figures.lines() {
        let cells: Option<Vec<_>> = SIZES.iter().map(|bytes| cell(side, batch, *bytes)).collect();
        if let Some(cells) = cells {
            table.rows.push([vec![figures.label(side, batch)], cells].concat());
        }
    }
    table
}

/// How much of what was measured counts.
fn samples(figures: &Figures) -> Table {
    let mut table = Table::new("samples", &["", "taken", "undisturbed", "percent"]);
    for (side, name) in figures.names.iter().enumerate() {
        let turns = figures.turns.iter().filter(|((of, _), _)| *of == side);
        let (good, tried) = turns
            .flat_map(|(_, turns)| turns)
            .fold((0, 0), |(good, tried), turn| (good + turn.good, tried + turn.tried));
        let percent = format!("{:.0} %", 100.0 * good as f64 / f64::max(tried as f64, 1.0));
        table.rows.push(vec![name.clone(), tried.to_string(), good.to_string(), percent]);
    }
    table
}

/// Draws what packets with header protection take.
pub fn draw(figures: &Figures, folder: &Path) -> Result<(), String> {
    for way in WAYS {
        let case = |bytes, batch| Case { bytes, batch, way, ..SEAL };
        let shown = figures.lines().filter(|(side, batch)| {
            // For Keyway, the backend that it chooses; batches of 16 are close to those of 64.
            *side + 1 >= figures.backends() && *batch != 16
        });
        let mut series = Vec::new();
        for (side, batch) in shown {
            let point = |bytes| Some((bytes as f64, figures.median(side, case(bytes, batch))?));
            let points: Vec<_> = SIZES.into_iter().filter_map(point).collect();
            if !points.is_empty() {
                let (name, dashed) = (figures.label(side, batch), batch == 1);
                let colour = side + 1 - figures.backends();
                series.push(plot::line(name, points, colour, dashed));
            }
        }
        let point = |bytes| Some((bytes as f64, figures.bound(bytes)?));
        let points: Vec<_> = SIZES.into_iter().filter_map(point).collect();
        if series.is_empty() {
            continue;
        }
        if !points.is_empty() {
            let name = "the processor's bound".into();
            series.push(plot::line(name, points, series.len(), false));
        }
        let file = format!("packet-{}.svg", verb(way));
        let title = format!("QUIC packets, AES-128-GCM with header protection, {}", verb(way));
        let labels = ("bytes of payload", "ns a packet");
        plot::draw(folder, &file, &title, labels, series)?;
    }
    Ok(())
}

fn verb(way: Way) -> &'static str {
    match way {
        Way::Seal => "seal",
        Way::Open => "open",
    }
}

fn title(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Aes128Gcm => "AES-128-GCM",
        Algorithm::ChaCha20Poly1305 => "ChaCha20-Poly1305",
    }
}

fn show(figure: f64) -> String {
    format!("{figure:.1}")
}
