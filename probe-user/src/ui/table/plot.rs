//! Draws numbers as bars, shades and sparklines, which need no colour.

use crate::ui::output::style::{Heat, Style, Tone};

/// Eighths of a column.
const EIGHTHS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Draws `part` as a bar; `whole` fills the room.
pub(crate) fn bar(part: u64, whole: u64, room: usize) -> String {
    let eighths = scaled(part, whole, room * 8);
    let mut out = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        out.push(EIGHTHS[eighths % 8]);
    }
    out
}

/// Scales `part` of `whole` to at most `most` marks: none for 0, else at least one.
fn scaled(part: u64, whole: u64, most: usize) -> usize {
    if part == 0 || whole == 0 {
        return 0;
    }
    let scaled = u128::from(part.min(whole)) * most as u128 / u128::from(whole);
    (scaled as usize).max(1)
}

/// Draws one mark for each number. The largest has the highest mark.
pub(crate) fn sparkline(numbers: &[u64]) -> String {
    let largest = numbers.iter().copied().max().unwrap_or(0);
    let mark = |&number: &u64| match scaled(number, largest, HEIGHTS.len()) {
        0 => ' ',
        height => HEIGHTS[height - 1],
    };
    numbers.iter().map(mark).collect()
}

/// Returns the shade of `count` on a logarithmic scale up to `most`: rare calls are the interesting
/// ones.
fn shade(count: u64, most: u64) -> (char, Tone) {
    if count == 0 {
        return (' ', Tone::Plain);
    }
    // Powers must be whole levels despite rounding errors of the logarithm.
    let level = (logarithmic(count, most) * (SHADES.len() - 1) as f64 + 1e-9) as usize;
    let level = level.min(SHADES.len() - 1);
    (SHADES[level], [Tone::Dim, Tone::Plain, Tone::Warm, Tone::Warm, Tone::Hot][level])
}

/// Returns the same shade with a colour of its own for more levels; none for no calls.
fn heat(count: u64, most: u64) -> (char, Option<Heat>) {
    let heat = (count > 0).then(|| Heat::of_share(logarithmic(count, most)));
    (shade(count, most).0, heat)
}

/// Returns the share of a count of at least 1 on a logarithmic scale up to `most`.
fn logarithmic(count: u64, most: u64) -> f64 {
    match most {
        0 | 1 => 1.0,
        _ => (count.min(most) as f64).ln() / (most as f64).ln(),
    }
}

/// Returns the shade of a share from 0 to 1.
pub(crate) fn shade_of_share(share: f64) -> char {
    SHADES[((share * SHADES.len() as f64) as usize).min(SHADES.len() - 1)]
}

/// Draws shades of these counts, in the colours that the terminal has.
pub(crate) fn shades(counts: &[u64], most: u64, style: &Style) -> String {
    let counts = counts.iter();
    if style.truecolour {
        let mark = |heat: Option<Heat>, run: &str| heat.map_or(run.to_owned(), |it| it.mark(run));
        return runs(counts.map(|&count| heat(count, most)), mark);
    }
    runs(counts.map(|&count| shade(count, most)), |tone, run| tone.mark(run))
}

/// Joins marks, and groups those of one colour.
fn runs<C: Copy + PartialEq>(
    marks: impl Iterator<Item = (char, C)>,
    mark: impl Fn(C, &str) -> String,
) -> String {
    let marks: Vec<(char, C)> = marks.collect();
    let runs = marks.chunk_by(|a, b| a.1 == b.1);
    runs.map(|run| mark(run[0].1, &run.iter().map(|mark| mark.0).collect::<String>())).collect()
}

/// Returns the number of slices in a column, so that all slices fit.
pub(crate) fn slices_per_column(slices: usize, room: usize) -> usize {
    slices.div_ceil(room.max(1)).max(1)
}

/// Labels the ends of a time axis of `columns` columns.
pub(crate) fn scale(first: &str, last: &str, columns: usize) -> String {
    let taken = crate::ui::text::names::width(first) + crate::ui::text::names::width(last);
    format!("{first}{}{last}", " ".repeat(columns.saturating_sub(taken).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_never_nothing() {
        assert_eq!(bar(0, 1_000, 10), "");
        assert_eq!(bar(1, 1_000_000, 10), "▏");
        assert_eq!(bar(1_000, 1_000, 3), "███");
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
        assert_eq!(bar(3, 4, 2), "█▌");
        assert_eq!(sparkline(&[0, 1, 500, 1_000]), " ▁▄█");
        assert_eq!(sparkline(&[0, 0]), "  ");
    }

    #[test]
    fn shades_are_logarithmic() {
        let shades: String = [0, 1, 9, 10, 100, 1_000, 9_999, 10_000]
            .iter()
            .map(|&count| shade(count, 10_000).0)
            .collect();
        assert_eq!(shades, " ··░▒▓▓█");
        assert_eq!(shade(1, 1).0, '█');
        assert_eq!((shade_of_share(0.0), shade_of_share(1.0)), ('·', '█'));
    }

    #[test]
    fn slices_fit() {
        assert_eq!(slices_per_column(60, 66), 1);
        assert_eq!(slices_per_column(60, 59), 2);
        assert_eq!(slices_per_column(60, 0), 60);
        assert_eq!(scale("a", "b", 5), "a   b");
    }
}
