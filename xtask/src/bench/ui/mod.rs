//! The timeline (`ctrace ui`) on recordings of many calls: its server, its page in a browser, and other
//! tools on the same recordings. Each size of a recording is made, measured and removed.

mod client;
mod files;
mod frames;
mod page;
mod peers;
mod perfetto;
mod recording;
mod server;
mod speedscope;
mod sweep;
mod tracy;

use super::{Options, Row};
use anyhow::Result;

/// Recordings of this many calls are for the page and for other tools, which may load no larger ones.
const SMALL: [u64; 2] = [1_000_000, 10_000_000];

/// Parses a number of calls, such as `20M` or `1G`.
pub(super) fn calls(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['k', 'M', 'G']) {
        Some(number) if text.ends_with('k') => (number, 1e3),
        Some(number) if text.ends_with('M') => (number, 1e6),
        Some(number) => (number, 1e9),
        None => (text, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text} is no number of calls"))?;
    match number * unit {
        calls if (1.0..1e11).contains(&calls) => Ok(calls as u64),
        _ => Err(format!("{text} is no number of calls from 1 to 100G")),
    }
}

/// Returns a number of calls as people say it.
fn told(calls: u64) -> String {
    let units = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = units.into_iter().find(|(unit, _)| calls >= *unit);
    unit.map_or_else(
        || calls.to_string(),
        |(unit, name)| format!("{} {name}", (calls as f64 / unit as f64 * 10.0).round() / 10.0),
    )
}

/// Measures the server.
pub(super) fn served(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut before = None;
    for &calls in &options.calls {
        let recording = recording::Made::new(calls)?;
        let (more, last) = server::rows(&recording, before)?;
        rows.extend(more);
        rows.extend(recording.tiles()?);
        before = Some(last);
    }
    Ok(rows)
}

/// Measures the page, in a browser.
pub(super) fn page(options: &Options) -> Result<Vec<Row>> {
    each(options, |recording| page::rows(recording).map(|rows| (rows, true)))
}

/// Searches as Tracy does.
pub(super) fn tracy(options: &Options) -> Result<Vec<Row>> {
    each(options, tracy::rows)
}

/// Measures Perfetto's page.
pub(super) fn perfetto(options: &Options) -> Result<Vec<Row>> {
    each(options, perfetto::rows)
}

/// Measures speedscope.
pub(super) fn speedscope(options: &Options) -> Result<Vec<Row>> {
    each(options, speedscope::rows)
}

/// Measures with small recordings, and with those asked for, until one is too large.
fn each(
    options: &Options,
    mut measure: impl FnMut(&recording::Made) -> Result<(Vec<Row>, bool)>,
) -> Result<Vec<Row>> {
    let mut sizes: Vec<u64> = SMALL.iter().chain(&options.calls).copied().collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = Vec::new();
    for calls in sizes {
        let (more, is_loaded) = measure(&recording::Made::new(calls)?)?;
        rows.extend(more);
        if !is_loaded {
            break;
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_calls_have_units() {
        assert_eq!(calls("20M"), Ok(20_000_000));
        assert_eq!((calls("1.5G"), calls("7")), (Ok(1_500_000_000), Ok(7)));
        assert!(["", "M", "-1M", "1T", "1e30G", "0"].iter().all(|text| calls(text).is_err()));
        assert_eq!((told(20_000_123), told(1_000_000_000)), ("20 M".into(), "1 G".into()));
        assert_eq!((told(1_540_000), told(12)), ("1.5 M".into(), "12".into()));
    }
}
