//! Keeps the notes of a report short: those of one kind are one, and where there are many lines, some are only
//! counted. `--view detail` shows all; so do JSON, CSV and recordings.

use crate::ui::output::style::{Style, Tone};
use crate::ui::text;
use crate::ui::text::units::counted;

/// The lines of notes from which on some are left out.
const LINES: usize = 8;
/// Notes that are shown, however long they are.
const LEAST: usize = 2;
/// Words below which notes are too short to be of one kind.
const LEAST_WORDS: usize = 6;
/// The share of words that may differ between notes of one kind, such as the names in them.
const SHARE: usize = 4;

/// Returns the notes to show, in their order, and a line that counts those that are left out.
pub(crate) fn few(notes: Vec<String>, style: &Style) -> Vec<String> {
    let notes = of_kinds(notes);
    let lines = |note: &String| text::paragraph(note, Tone::Plain, style).lines().count();
    let mut shown = vec![false; notes.len()];
    let mut taken = 0;
    for (nth, at) in by_weight(notes.len()).enumerate() {
        let more = lines(&notes[at]);
        if nth < LEAST || taken + more <= LINES {
            shown[at] = true;
            taken += more;
        }
    }
    let left_out = shown.iter().filter(|is_shown| !**is_shown).count();
    let kept = notes.into_iter().zip(shown).filter(|(_, is_shown)| *is_shown);
    let mut kept: Vec<String> = kept.map(|(note, _)| note).collect();
    if left_out > 0 {
        kept.push(format!(
            "and {}: --view detail",
            counted(left_out as u64, "more note", "more notes")
        ));
    }
    kept
}

/// Returns the places of so many notes, the weightiest first: the last ones say how far the numbers can be
/// trusted, the first ones what is in them. Those between are about single functions and files.
fn by_weight(count: usize) -> impl Iterator<Item = usize> {
    let ends = (0..count.div_ceil(2)).flat_map(move |at| [count - 1 - at, at]);
    // The one in the middle comes twice.
    ends.take(count)
}

/// Makes one note of those that differ in few words: the first, and how many others there are.
fn of_kinds(notes: Vec<String>) -> Vec<String> {
    let mut kinds: Vec<(String, u64)> = Vec::new();
    for note in notes {
        match kinds.iter_mut().find(|(first, _)| is_alike(first, &note)) {
            Some((_, others)) => *others += 1,
            None => kinds.push((note, 0)),
        }
    }
    let told = kinds.into_iter().map(|(note, others)| match others {
        0 => note,
        n => format!("{note} (and {} of this kind: --view detail)", counted(n, "other", "others")),
    });
    told.collect()
}

fn is_alike(one: &str, other: &str) -> bool {
    let words = |text: &str| text.split(' ').count();
    if words(one) != words(other) || words(one) < LEAST_WORDS {
        return false;
    }
    let differ = one.split(' ').zip(other.split(' ')).filter(|(a, b)| a != b).count();
    differ * SHARE <= words(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Style = Style { width: Some(60), colour: false, truecolour: false, ascii: false };

    fn notes(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn notes_that_differ_in_names_are_one() {
        let told = few(
            notes(&[
                "the values of add are not read: its parameters are changed",
                "the values of mul are not read: its parameters are changed",
                "the values of mul are not read: there is no memory for them",
                "the values of sub are not read: its parameters are changed",
                "no child process",
                "no other process",
            ]),
            &NARROW,
        );
        let expected = [
            "the values of add are not read: its parameters are changed (and 2 others of this kind: --view \
             detail)",
            "the values of mul are not read: there is no memory for them",
            "no child process",
            "no other process",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn many_lines_leave_out_what_is_in_the_middle() {
        let texts: Vec<String> = (0..20).map(|nth| format!("note{nth}")).collect();
        let told = few(texts, &NARROW);
        let names: Vec<String> = (0..4).chain(16..20).map(|nth| format!("note{nth}")).collect();
        assert_eq!(told[..8], names);
        assert_eq!(told[8..], ["and 12 more notes: --view detail"]);
        // Two are shown, however long they are.
        let long = |name: &str| format!("{name} ").repeat(200);
        let told = few(vec![long("a"), "b".to_owned(), long("c")], &NARROW);
        let firsts: Vec<&str> = told.iter().filter_map(|note| note.split(' ').next()).collect();
        assert_eq!(firsts, ["a", "c", "and"]);
    }
}
