//! Keeps the notes of a report on a terminal short: those of one kind are one, and where there are many lines, long
//! ones end after their first line. None is left out, since numbers would be misread without it. `--view detail`
//! shows all of them whole; so do files, JSON, CSV and recordings.

use crate::ui::output::style::{Style, Tone};
use crate::ui::text;
use crate::ui::text::{first_few, names};

/// The lines of notes from which on some are cut.
const LINES: usize = 8;
/// Notes that are whole, however long they are.
const LEAST: usize = 2;
/// Words below which notes are too short to be of one kind.
const LEAST_WORDS: usize = 6;
/// Words that a note of a kind names, besides its own.
const NAMED: usize = 3;
/// Stands at the end of a note that is cut.
const CUT: &str = "…";

/// Returns the notes to show, in their order, and a line that says how to see those whole that are cut.
pub(crate) fn few(notes: Vec<String>, style: &Style) -> Vec<String> {
    let mut notes = of_kinds(notes);
    let mut taken = 0;
    let mut is_any_cut = false;
    for (nth, at) in by_weight(notes.len()).enumerate() {
        let more = text::paragraph(&notes[at], Tone::Plain, style).lines().count();
        if nth < LEAST || taken + more <= LINES {
            taken += more;
        } else if more > 1 {
            notes[at] = first_line(&notes[at], style);
            is_any_cut = true;
        }
    }
    if is_any_cut {
        notes.push(format!("notes that end in {CUT} are whole with --view detail"));
    }
    notes
}

/// Returns all notes to show, each in one line.
pub(crate) fn first_lines(notes: Vec<String>, style: &Style) -> Vec<String> {
    of_kinds(notes).iter().map(|note| first_line(note, style)).collect()
}

/// Cuts a text of several lines to the words of the first one.
pub(crate) fn first_line(note: &str, style: &Style) -> String {
    if text::paragraph(note, Tone::Plain, style).lines().count() < 2 {
        return note.to_owned();
    }
    let room = style.width.unwrap_or(usize::MAX);
    let shorter = Style { width: style.width.map(|width| width.saturating_sub(1)), ..*style };
    let lines = text::paragraph(note, Tone::Plain, &shorter);
    let first = lines.lines().next().unwrap_or_default();
    // A single word may be longer than the line.
    names::cut_end(&format!("{first}{CUT}"), room)
}

/// Returns the places of so many notes, the weightiest first: the last ones say how far the numbers can be
/// trusted, the first ones what is in them. Those between are about single functions and files.
fn by_weight(count: usize) -> impl Iterator<Item = usize> {
    let ends = (0..count.div_ceil(2)).flat_map(move |at| [count - 1 - at, at]);
    // The one in the middle comes twice.
    ends.take(count)
}

/// A note, and the words in which others differ from it, all at one place.
struct Kind {
    first: String,
    place: Option<usize>,
    others: Vec<String>,
}

/// Makes one note of those that differ in one word: the first, and the words of the others.
fn of_kinds(notes: Vec<String>) -> Vec<String> {
    let mut kinds: Vec<Kind> = Vec::new();
    'notes: for note in notes {
        for kind in &mut kinds {
            let at = differing(&kind.first, &note);
            if let Some(at) = at.filter(|at| kind.place.is_none_or(|place| place == *at)) {
                let word = note.split(' ').nth(at).unwrap_or_default();
                kind.place = Some(at);
                kind.others.push(word.trim_end_matches([',', ';', ':', '.']).to_owned());
                continue 'notes;
            }
        }
        kinds.push(Kind { first: note, place: None, others: Vec::new() });
    }
    let told = kinds.into_iter().map(|kind| match kind.others.is_empty() {
        true => kind.first,
        false => format!("{} (also {})", kind.first, first_few(NAMED, &kind.others)),
    });
    told.collect()
}

/// Returns the place of the only word in which two notes differ.
fn differing(one: &str, other: &str) -> Option<usize> {
    let words = |text: &str| text.split(' ').count();
    if words(one) != words(other) || words(one) < LEAST_WORDS {
        return None;
    }
    let pairs = one.split(' ').zip(other.split(' ')).enumerate();
    let mut differ = pairs.filter(|(_, (a, b))| a != b).map(|(at, _)| at);
    differ.next().filter(|_| differ.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NARROW: Style =
        Style { width: Some(60), colour: false, truecolour: false, ascii: false, terminal: true };
    const USUAL: Style = Style { width: Some(80), ..NARROW };

    fn notes(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn notes_that_differ_in_one_word_are_one() {
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
            "the values of add are not read: its parameters are changed (also mul, sub)",
            "the values of mul are not read: there is no memory for them",
            "no child process",
            "no other process",
        ];
        assert_eq!(told, expected);
        let named = |lib: usize| format!("calls in lib{lib}.so: what they call was left out");
        let told = few((0..7).map(named).collect(), &USUAL);
        assert_eq!(told, [format!("{} (also lib1.so, lib2.so, lib3.so and 3 more)", named(0))]);
    }

    #[test]
    fn notes_that_differ_in_two_words_stay_apart() {
        let two = [
            "the values of add are not read: its parameters are changed",
            "the values of mul are not read: its registers are changed",
        ];
        assert_eq!(few(notes(&two), &NARROW), two);
        // Each differs from the first in one word, but not in the same one.
        let places = [
            "the values of add are not read: its parameters are changed",
            "the values of mul are not read: its parameters are changed",
            "the values of add are not read: its registers are changed",
        ];
        let told = few(notes(&places), &NARROW);
        assert_eq!(told, [format!("{} (also mul)", places[0]), places[2].to_owned()]);
    }

    #[test]
    fn many_lines_cut_what_is_in_the_middle() {
        let one_line: Vec<String> = (0..20).map(|nth| format!("note{nth}")).collect();
        assert_eq!(few(one_line.clone(), &NARROW), one_line);
        // Two are whole, however long they are.
        let long = |name: &str| format!("{name} ").repeat(100).trim_end().to_owned();
        let told = few(vec![long("aa"), "b".to_owned(), long("cc"), long("dd")], &NARROW);
        let cut = format!("{}cc…", "cc ".repeat(19));
        let hint = "notes that end in … are whole with --view detail";
        assert_eq!(told, [&*long("aa"), "b", &cut, &long("dd"), hint]);
        let word = "w".repeat(100);
        let told = few(vec![long("aa"), format!("{word} {word}"), long("cc")], &NARROW);
        assert_eq!(told[1], "w".repeat(59) + "…");
    }

    #[test]
    fn each_of_the_usual_notes_is_there() {
        let told = few(
            notes(&[
                "the result of parse is not read, as its end is not seen: the function ends in a jump to another \
                 one, and its own result is that of the other",
                "3 child processes were not traced; --follow traces them too.",
                "work: only its calls with arg0 > 5 are in the numbers (--where); 1,204 others were left out, and \
                 the calls inside them are here as calls of their callers",
                "budget 5 %: 12 of 40 functions were armed for a part of the time, and the numbers of each are of \
                 that part only; the column armed says how long that was, and --sort armed puts these rows first",
                "the budget was exceeded: 7.1 % of the CPU time went to probes in the busiest second, since calls \
                 became more frequent",
                "probe overhead: the program is about 2.9× slower while traced, so times of what it waits for may \
                 be too long as well",
            ]),
            &USUAL,
        );
        let begin = [
            "the result of parse",
            "3 child processes were not traced; --follow traces them too.",
            "work: only its calls with arg0 > 5",
            "budget 5 %: 12 of 40 functions",
            "the budget was exceeded: 7.1 %",
            "probe overhead: the program is about 2.9× slower",
            "notes that end in … are whole",
        ];
        assert_eq!(told.len(), begin.len(), "{told:#?}");
        assert!(told.iter().zip(begin).all(|(note, begin)| note.starts_with(begin)), "{told:#?}");
        let lines = |note: &String| text::paragraph(note, Tone::Plain, &USUAL).lines().count();
        let cut: Vec<bool> = told[..6].iter().map(|note| note.ends_with('…')).collect();
        assert!(cut.contains(&true) && !cut[0] && !cut[1] && !cut[5], "{told:#?}");
        assert!(told.iter().filter(|note| note.ends_with('…')).all(|note| lines(note) == 1));
    }
}
