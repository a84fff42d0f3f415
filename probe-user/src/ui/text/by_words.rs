//! Cuts names that differ at several places, where to cut around one of them would make them equal: the
//! words that all of them have go first.

use crate::ui::text::names::width;
use std::collections::{HashMap, HashSet};

/// Longer names have no place in a table, and nobody compares more of them.
const MOST_WORDS: usize = 256;
const MOST_NAMES: usize = 1000;

/// Cuts each of these names to its room. Words that not all have stay, and as many others as there is room for:
/// first those between them, then those before. `None` where there is no room for what differs.
pub(super) fn cut(names: &[&str], rooms: &[usize]) -> Vec<Option<String>> {
    if names.len() > MOST_NAMES {
        return vec![None; names.len()];
    }
    let words: Vec<Vec<&str>> = names.iter().map(|name| words(name)).collect();
    let mut having = HashMap::<&str, usize>::new();
    for words in &words {
        for word in words.iter().copied().collect::<HashSet<&str>>() {
            *having.entry(word).or_default() += 1;
        }
    }
    let is_common = |word: &str| having[word] == names.len();
    let cut = |(words, &room): (&Vec<&str>, &usize)| {
        let mut stays: Vec<bool> = words.iter().map(|word| !is_common(word)).collect();
        if words.len() > MOST_WORDS || width(&joined(words, &stays)) > room {
            return None;
        }
        // Names may differ in the order of their words only.
        let first = stays.iter().position(|stays| *stays)?;
        let last = stays.iter().rposition(|stays| *stays)?;
        let mut restore = |places: &mut dyn Iterator<Item = usize>| {
            for at in places.filter(|&at| is_common(words[at])) {
                stays[at] = true;
                if width(&joined(words, &stays)) > room {
                    stays[at] = false;
                    return;
                }
            }
        };
        restore(&mut (first..last).rev());
        restore(&mut (0..first).rev());
        restore(&mut (last + 1..words.len()));
        Some(joined(words, &stays))
    };
    words.iter().zip(rooms).map(cut).collect()
}

/// Returns the words of a name, and the characters between them: one more than there may be at most.
fn words(name: &str) -> Vec<&str> {
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next()
        && words.len() <= MOST_WORDS
    {
        let end = match is_of_word(first) {
            true => rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, others) = rest.split_at(end);
        words.push(word);
        rest = others;
    }
    words
}

/// Puts `…` where words do not stay.
fn joined(words: &[&str], stays: &[bool]) -> String {
    let mut text = String::new();
    for (word, stays) in words.iter().zip(stays) {
        if *stays {
            text += word;
        } else if !text.ends_with('…') {
            text.push('…');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_stay() {
        let names = ["Cache<int>::get.isra.0", "Cache<long>::get.isra.0", "Cache<int>::put.isra.0"];
        let of = |room| cut(&names, &[room; 3]);
        let text = |short: [&str; 3]| short.map(|it| Some(it.to_owned()));
        assert_eq!(of(9), [Some("…int…get…".to_owned()), None, Some("…int…put…".to_owned())]);
        assert_eq!(of(14), text(["…<int>::get.…", "…<long>::get.…", "…<int>::put.…"]));
        assert_eq!(of(22), text([names[0], "Cache<long>::get.isra…", names[2]]));
    }
}
