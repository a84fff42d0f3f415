//! Notes about a comparison besides its numbers.

use super::Source;
use super::model::{SideReport, SourceKind};
use super::stretches::Stretches;
use super::survey::{Survey, Surveyed};
use crate::recording::replay::report::{damage, notes as of_recording};
use crate::recording::{Host, ReadAt};

/// A recording with fewer stretches is called short.
const FEW: usize = 8;

pub(super) fn notes<R: ReadAt>(
    sources: &[&[Source<'_, R>]; 2],
    surveys: &[Vec<Survey<'_, R>>; 2],
    sides: [&SideReport; 2],
) -> Vec<String> {
    let mut notes = Vec::new();
    let is_report = sides.iter().any(|side| side.kind == SourceKind::Report);
    if is_report {
        notes.push(
            "A report has no single calls, so nothing is judged: only recordings of `ctrace record` \
             show what is a change and what is noise."
                .to_owned(),
        );
    } else if sides.iter().any(|side| side.files.len() < 2) {
        notes.push(
            "One recording of a side does not show what differs from run to run of the same program: \
             record each side five times, taking turns (ctrace diff OLD... -- NEW...)."
                .to_owned(),
        );
    }
    let mut hosts: Vec<&Host> = Vec::new();
    let mut of_files = OfFiles::default();
    let mut net = false;
    for (source, survey) in sources.iter().zip(surveys).flat_map(|(s, v)| s.iter().zip(v)) {
        let Surveyed::Recording(read) = &survey.content else { continue };
        let recording = read.recording;
        let mut about = of_recording(recording);
        about.extend(damage(read.counted.counts.unreadable));
        let stretches = Stretches::new(read.period.clone()).count();
        if stretches < FEW && !is_report {
            about.push(format!(
                "too short to be judged alone: stretches of 10 ms are compared, and {FEW} are needed"
            ));
        }
        about.into_iter().for_each(|note| of_files.add(&source.file, note));
        let costs = recording.functions().iter().filter_map(|function| function.probe);
        net |= costs.into_iter().any(|cost| cost.measured);
        hosts.push(&recording.start().host);
    }
    notes.extend(of_files.lines());
    if net {
        notes.push(
            "Times are as seen, with the cost of probes on both sides; `ctrace report` subtracts it."
                .to_owned(),
        );
    }
    if hosts.windows(2).any(|pair| pair[0] != pair[1]) {
        notes.push(
            "The recordings are not of the same machine and kernel: differences may come from that."
                .to_owned(),
        );
    }
    notes
}

/// Notes on single files. Those that differ in numbers only are one.
#[derive(Default)]
struct OfFiles(Vec<Note>);

struct Note {
    /// The words that have no numbers, which tell notes apart.
    words: String,
    text: String,
    file: String,
    /// How many other files have the same note, and how many have it with other numbers.
    same: usize,
    alike: usize,
}

impl OfFiles {
    fn add(&mut self, file: &str, text: String) {
        let words = words(&text);
        match self.0.iter_mut().find(|known| known.words == words) {
            Some(known) if known.text == text => known.same += 1,
            Some(known) => known.alike += 1,
            None => self.0.push(Note { words, text, file: file.to_owned(), same: 0, alike: 0 }),
        }
    }

    fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|note| {
            let files = |n: usize| {
                if n == 1 { "1 other file".to_owned() } else { format!("{n} other files") }
            };
            let others = match (note.same, note.alike) {
                (0, 0) => String::new(),
                (same, 0) => format!(" and {}", files(same)),
                (same, alike) => format!(" and, with other numbers, {}", files(same + alike)),
            };
            format!("{}{others}: {}", note.file, note.text)
        })
    }
}

/// Returns the text without its numbers and their units.
fn words(text: &str) -> String {
    const UNITS: [&str; 4] = ["ns", "µs", "ms", "s"];
    let is_word = |word: &&str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        !bare.contains(|c: char| c.is_ascii_digit()) && !UNITS.contains(&bare)
    };
    text.split(' ').filter(is_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_differ_in_numbers_only_are_one() {
        let mut notes = OfFiles::default();
        for (file, note) in [
            ("a", "it stopped early"),
            ("a", "probe overhead: about 5.5 s, 69 % of the time"),
            ("b", "probe overhead: about 480 ms, 7 % of the time"),
            ("b", "it stopped early"),
            ("b", "parse2 was not called"),
            ("c", "it stopped early"),
        ] {
            notes.add(file, note.to_owned());
        }
        let lines: Vec<String> = notes.lines().collect();
        assert_eq!(
            lines,
            [
                "a and 2 other files: it stopped early",
                "a and, with other numbers, 1 other file: probe overhead: about 5.5 s, 69 % of the \
                 time",
                "b: parse2 was not called",
            ]
        );
    }
}
