//! Reads the list of the values that come with the entries of a marker: `bytes:u64,path:str`.
//!
//! The file may hold anything. So the list is short, its names are short and differ, and a text comes
//! last, as events have it there.

use ctrace_common::Mark;
use ctrace_core::function::{LONGEST_VALUE_NAME, ValueInfo, ValueKind};

/// Bytes of a list, at most.
const LONGEST: usize = 512;

/// Returns the values of a list; `None` if a list of a runtime never is like this.
pub(super) fn parse(list: &str) -> Option<Vec<ValueInfo>> {
    if list.len() > LONGEST {
        return None;
    }
    let mut values: Vec<ValueInfo> = Vec::new();
    for value in list.split(',') {
        let value = one(value)?;
        let is_behind_text = values.last().is_some_and(|last| last.kind.is_text());
        let is_known = values.iter().any(|other| other.name == value.name);
        if is_behind_text || is_known || values.len() == Mark::MOST_VALUES {
            return None;
        }
        values.push(value);
    }
    Some(values)
}

/// Reads `NAME:TYPE` or `NAME[UNIT]:TYPE`.
fn one(value: &str) -> Option<ValueInfo> {
    let (name, kind) = value.split_once(':')?;
    let kind = match kind {
        "i64" => ValueKind::Signed,
        "u64" => ValueKind::Unsigned,
        "f64" => ValueKind::Float,
        "bool" => ValueKind::Bool,
        "str" => ValueKind::LongText,
        _ => return None,
    };
    let (name, unit) = match name.strip_suffix(']') {
        Some(name) => name.split_once('[').map(|(name, unit)| (name, Some(unit)))?,
        None => (name, None),
    };
    let is_word =
        |text: &str| (1..=LONGEST_VALUE_NAME).contains(&text.len()) && !text.contains(['[', ']']);
    let is_sound = is_word(name) && unit.is_none_or(is_word);
    is_sound.then(|| ValueInfo { unit: unit.map(Into::into), ..ValueInfo::new(name, kind) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_their_order() {
        let values = parse("bytes[B]:u64,is_new:bool,ratio:f64,path:str").expect("a list");
        let told: Vec<_> =
            values.iter().map(|it| (&*it.name, it.kind, it.unit.as_deref())).collect();
        assert_eq!(
            told,
            [
                ("bytes", ValueKind::Unsigned, Some("B")),
                ("is_new", ValueKind::Bool, None),
                ("ratio", ValueKind::Float, None),
                ("path", ValueKind::LongText, None),
            ]
        );
        assert_eq!(parse("offset:i64").expect("a list")[0].kind, ValueKind::Signed);
    }

    #[test]
    fn other_lists_are_refused() {
        let long = format!("{}:u64", "x".repeat(LONGEST));
        // A recording with these could not be read.
        let name = format!("{}:u64", "x".repeat(LONGEST_VALUE_NAME + 1));
        let unit = format!("a[{}]:u64", "x".repeat(LONGEST_VALUE_NAME + 1));
        assert!(parse(&name[1..]).is_some());
        for list in [
            "",
            ",",
            "a",
            "a:",
            ":u64",
            "a:u32",
            "a:u64,",
            "a:str,b:u64",
            "a:str,b:str",
            "a:u64,a:f64",
            "a:u64,b:u64,c:u64,d:u64,e:u64",
            "a[]:u64",
            "[ms]:u64",
            "a[ms:u64",
            "a]ms[:u64",
            "a[[ms]:u64",
            "a[m]s]:u64",
            "a ms]:u64",
            &long,
            &name,
            &unit,
        ] {
            assert_eq!(parse(list), None, "{list}");
        }
    }
}
