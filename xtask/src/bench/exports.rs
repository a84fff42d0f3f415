//! Exports ten million calls of a recording on one core, by an example of ctrace-core.

use super::{Row, number, output};
use crate::paths;
use anyhow::Result;

pub(super) fn run() -> Result<Vec<Row>> {
    let mut command = paths::cargo();
    command.args(["run", "--release", "--package", "ctrace-core", "--features", "parquet"]);
    command.args(["--example", "exports", "10"]);
    let printed = output("exports", &mut command)?;
    let chrome = number(&printed, "chrome", " MB/s")?;
    let perfetto = number(&printed, "perfetto", " bytes a call")?;
    let mut rows = vec![
        Row::new("export of 10 M calls to Chrome JSON", format!("{chrome:.0} MB/s"))
            .goal("at least 200 MB/s", chrome >= 200.0),
        Row::new("export of 10 M calls to Perfetto", format!("{perfetto:.1} bytes a call"))
            .goal("under 12 bytes a call", perfetto < 12.0),
    ];
    for (name, rest) in lines(&printed) {
        rows.push(Row::new(format!("export to {name}"), rest));
    }
    Ok(rows)
}

/// Returns the lines `FORMAT: … MB/s, … M calls/s, … bytes a call`.
fn lines(printed: &str) -> impl Iterator<Item = (&str, &str)> {
    printed
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(_, rest)| rest.contains(" MB/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_format_and_unit() {
        let printed = "recording: 9 calls, 3.2 bytes a call\n\
            chrome: 1169 MB/s, 15.16 M calls/s, 77.10 bytes a call\n\
            perfetto: 5 MB/s, 1.04 M calls/s, 5.16 bytes a call\n";
        assert_eq!(number(printed, "chrome", " MB/s").ok(), Some(1169.0));
        assert_eq!(number(printed, "perfetto", " bytes a call").ok(), Some(5.16));
        assert!(number(printed, "csv", " MB/s").is_err());
        assert_eq!(lines(printed).count(), 2);
    }
}
