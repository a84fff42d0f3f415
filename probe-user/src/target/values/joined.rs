//! Reads the signs that join comparisons: `&&`, `||`, `!` and parentheses.
//!
//! The kernel knows one form only, alternatives of comparisons that hold together. So parentheses
//! are multiplied out: `a && (b || c)` becomes `a && b || a && c`.

use super::condition::{AskedComparison, ConditionError, comparison, outside};
use ctrace_common::MAX_COMPARISONS;

/// Alternatives of comparisons that hold together.
pub(super) type Alternatives = Vec<Vec<AskedComparison>>;

/// Parses a condition.
pub(super) fn alternatives(text: &str) -> Result<Alternatives, ConditionError> {
    any(text, true)
}

/// Parses what `||` joins. If it is negated, all parts must be false.
fn any(text: &str, is_positive: bool) -> Result<Alternatives, ConditionError> {
    let parts = parts(text, "||")?.into_iter().map(|part| all(part, is_positive));
    if is_positive { either(parts) } else { together(parts) }
}

/// Parses what `&&` joins. If it is negated, one false part is enough.
fn all(text: &str, is_positive: bool) -> Result<Alternatives, ConditionError> {
    let parts = parts(text, "&&")?.into_iter().map(|part| one(part, is_positive));
    if is_positive { together(parts) } else { either(parts) }
}

/// Parses a comparison, or a condition in parentheses.
fn one(text: &str, is_positive: bool) -> Result<Alternatives, ConditionError> {
    let text = text.trim();
    let (inner, negates) = match text.strip_prefix('!').map(str::trim_start) {
        Some(behind) if behind.starts_with('(') => (behind, true),
        _ => (text, false),
    };
    if let Some(inner) = in_parentheses(inner)? {
        return any(inner, is_positive != negates);
    }
    let comparison = comparison(text)?;
    Ok(vec![vec![if is_positive { comparison } else { comparison.negated() }]])
}

/// Returns what is inside, if the first parenthesis is closed by the last character.
fn in_parentheses(text: &str) -> Result<Option<&str>, ConditionError> {
    if !text.starts_with('(') || !text.ends_with(')') {
        return Ok(None);
    }
    let depths = depths(text)?;
    let closed = depths.iter().find(|(at, depth)| *at > 0 && *depth == 0);
    let is_whole = closed.is_some_and(|(at, _)| *at == text.len() - 1);
    Ok(is_whole.then(|| &text[1..text.len() - 1]))
}

fn either(
    parts: impl Iterator<Item = Result<Alternatives, ConditionError>>,
) -> Result<Alternatives, ConditionError> {
    let mut sum = Alternatives::new();
    for part in parts {
        sum.extend(part?);
        check(&sum)?;
    }
    Ok(sum)
}

fn together(
    parts: impl Iterator<Item = Result<Alternatives, ConditionError>>,
) -> Result<Alternatives, ConditionError> {
    let mut product = vec![Vec::new()];
    for part in parts {
        let part = part?;
        let pairs = product.iter().flat_map(|left| part.iter().map(move |right| (left, right)));
        product = pairs.map(|(left, right)| [left.as_slice(), right].concat()).collect();
        check(&product)?;
    }
    Ok(product)
}

fn check(alternatives: &Alternatives) -> Result<(), ConditionError> {
    match alternatives.iter().map(Vec::len).sum::<usize>() {
        0..=MAX_COMPARISONS => Ok(()),
        _ => Err(ConditionError::TooMany),
    }
}

/// Splits at a sign outside of texts, characters and parentheses.
fn parts<'a>(text: &'a str, sign: &str) -> Result<Vec<&'a str>, ConditionError> {
    let (mut all, mut from) = (Vec::new(), 0);
    for (at, depth) in depths(text)? {
        if depth == 0 && at >= from && text[at..].starts_with(sign) {
            all.push(&text[from..at]);
            from = at + sign.len();
        }
    }
    all.push(&text[from..]);
    Ok(all)
}

/// Returns the places of the characters that are in no text, each with the number of parentheses that
/// are open behind it.
fn depths(text: &str) -> Result<Vec<(usize, usize)>, ConditionError> {
    let unpaired = || ConditionError::Unpaired(text.trim().to_owned());
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for (at, c) in outside(text)? {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or_else(unpaired)?,
            _ => {}
        }
        found.push((at, depth));
    }
    if depth == 0 { Ok(found) } else { Err(unpaired()) }
}

/// Returns whether a parenthesis has no other.
pub(super) fn is_unpaired(text: &str) -> bool {
    matches!(depths(text), Err(ConditionError::Unpaired(_)))
}
