//! The timeline over a sweep of random zooms, by an example of ctrace-core.

use super::{Row, line, number, output};
use crate::paths;
use anyhow::{Context, Result};

pub(super) fn run() -> Result<Vec<Row>> {
    let mut command = paths::cargo();
    command.args(["run", "--release", "--package", "ctrace-core", "--example", "timeline", "20"]);
    let printed = output("timeline", &mut command)?;
    let built = number(&printed, "built", " s,")?;
    let bytes = number(&printed, "built", " bytes of tiles")?;
    let [first, exact] = ["first pictures", "pictures"]
        .map(|of| ["p50 ", "p99 "].map(|name| after(&printed, of, name)));
    let [median, last] = first;
    let (median, last) = (median?, last?);
    let [exact_median, exact_last] = exact;
    Ok(vec![
        Row::new("timeline of 20 M calls, ready after", format!("{built:.2} s")),
        Row::new("its tiles", format!("{bytes:.3} bytes a call"))
            .goal("at most 0.5 bytes a call", bytes <= 0.5),
        Row::new("the first picture of 1920 pixels, median", format!("{median:.2} ms")),
        Row::new("the first picture of 1920 pixels, p99 of 1,000 zooms", format!("{last:.2} ms"))
            .goal("at most 2.5 ms", last <= 2.5),
        Row::new("the exact picture, median", format!("{:.2} ms", exact_median?)),
        Row::new("the exact picture, p99", format!("{:.2} ms", exact_last?)),
    ])
}

/// Returns the number after a word of a line of times.
fn after(printed: &str, of: &str, word: &str) -> Result<f64> {
    let line = line(printed, of)?;
    let number = line.split(word).nth(1).and_then(|rest| rest.split(' ').next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no {word} in {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found() {
        let printed = "built: 20.0 M calls in 0.71 s, 28.2 M calls/s, 0.312 bytes of tiles a call, 0.001 \
            of single calls\nfirst pictures: p50 0.12 ms, p90 0.30 ms, p99 1.21 ms, longest 2.00 ms; 7 of 9 are coarse\n\
            pictures: p50 0.42 ms, p90 1.00 ms, p99 1.73 ms, longest 9.00 ms; 6 rows\n";
        assert_eq!(number(printed, "built", " s,").ok(), Some(0.71));
        assert_eq!(number(printed, "built", " bytes of tiles").ok(), Some(0.312));
        assert_eq!(after(printed, "pictures", "p99 ").ok(), Some(1.73));
        assert_eq!(after(printed, "first pictures", "p99 ").ok(), Some(1.21));
        assert!(after(printed, "pictures", "p98 ").is_err());
    }
}
