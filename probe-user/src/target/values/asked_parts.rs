//! The parts of what users ask for: functions or a probe, a colon, and arguments with commas between them.

use super::abi::Type;

/// Splits at the colon behind the functions: the first one that is no part of `::`. A regular
/// expression, or the path of an object, may have others, but a slash comes behind them.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let from = text.rfind('/').unwrap_or(0);
    let at = (from..text.len()).find(|&at| is_single_colon(text, at))?;
    let (functions, rest) = (text[..at].trim(), text[at + 1..].trim());
    (!functions.is_empty() && !rest.is_empty()).then_some((functions, rest))
}

/// Returns whether there is a colon at this place that is no part of `::`.
pub(super) fn is_single_colon(text: &str, at: usize) -> bool {
    let is_colon = |at: usize| text.as_bytes().get(at) == Some(&b':');
    is_colon(at) && !is_colon(at + 1) && !(at > 0 && is_colon(at - 1))
}

/// Returns whether what is behind the first colon begins with the name of a USDT probe: an argument
/// has one colon, and the name has another.
pub(super) fn is_probe(list: &str) -> bool {
    list.split(',').next().is_some_and(|first| first.matches(':').count() == 2)
}

/// Returns whether something other than a colon is behind the type of an argument.
pub(super) fn lacks_comma(piece: &str) -> bool {
    let words: Vec<&str> = piece.split_whitespace().collect();
    words.windows(2).enumerate().any(|(place, pair)| {
        let is_behind_colon = place > 0 && words[place - 1].ends_with(':');
        let of = pair[0].rsplit_once(':').map(|(_, of)| of).or(is_behind_colon.then_some(pair[0]));
        of.is_some_and(|of| of.parse::<Type>().is_ok()) && !pair[1].starts_with([':', '='])
    })
}
