//! Notes about a comparison besides its numbers.

use super::ComparedFile;
use super::model::{SideReport, SourceKind};
use super::stretches::Stretches;
use super::survey::{Survey, Surveyed};
use crate::recording::Host;
use crate::recording::replay::report::{damage, notes as of_recording};

/// A recording with fewer stretches is called short.
const FEW: usize = 8;
/// Told where a side is a single recording.
pub const ONE_RECORDING: &str = "One recording of a side does not show what differs from run to run of the same program: \
                                 record each side five times, taking turns (ctrace diff OLD... -- NEW...).";

/// Says that addresses are no names, if there are any for names.
pub(super) fn by_address<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let count = names.filter(|name| name.starts_with("fn_0x")).count();
    (count > 0).then(|| {
        format!(
            "Functions that have an address for a name (fn_0x…): {count}. Another build has other functions \
             there, so compare recordings of one build, or of builds with symbols."
        )
    })
}

pub(super) fn notes(
    sources: &[&[ComparedFile<'_>]; 2],
    surveys: &[Vec<Survey<'_>>; 2],
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
    } else if is_one_recording(sides) {
        notes.push(
            "Both sides are of one recording: besides the time, the load and the state of the machine may \
             differ."
                .to_owned(),
        );
        let [old, new] = sides.map(|side| side.time);
        if old.zip(new).is_none_or(|(old, new)| old.overlaps(&new)) {
            notes.push("The times of both sides overlap: some calls are on both.".to_owned());
        }
    } else if sides.iter().any(|side| side.files.len() < 2) {
        notes.push(ONE_RECORDING.to_owned());
    }
    let all = || surveys.iter().flatten();
    if all().any(Survey::tells_waits) && !all().all(Survey::tells_waits) {
        notes.push(
            "Only some of the files have waits, which --cpu records. There, waits are calls of their own: \
             they are in no `self` and no `innermost`. Record all in the same way to compare these."
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

/// Returns whether a single recording is compared with itself.
fn is_one_recording([old, new]: [&SideReport; 2]) -> bool {
    old.files.len() == 1 && old.files == new.files
}

/// Notes on single files. Those that differ in numbers only are one.
#[derive(Default)]
struct OfFiles(Vec<Note>);

struct Note {
    /// The words that are no numbers, which tell notes apart.
    words: String,
    text: String,
    /// The first is the one that the text is from. Each is in it once.
    files: Vec<String>,
    /// The number of these files that have other numbers.
    differ: usize,
}

impl OfFiles {
    fn add(&mut self, file: &str, text: String) {
        let words = words(&text);
        let has = |note: &Note| note.files.iter().any(|known| known == file);
        // Two notes of one file that differ in numbers are about two things.
        let same = self.0.iter().position(|note| note.text == text);
        let alike = || self.0.iter().position(|note| note.words == words && !has(note));
        match same.or_else(alike).map(|at| &mut self.0[at]) {
            Some(note) if has(note) => {}
            Some(note) => {
                note.differ += usize::from(note.text != text);
                note.files.push(file.to_owned());
            }
            None => self.0.push(Note { words, text, files: vec![file.to_owned()], differ: 0 }),
        }
    }

    fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|Note { text, files, differ, .. }| {
            let others = files.len() - 1;
            let how = match differ {
                0 => "",
                n if n == others => ", with other numbers,",
                _ => ", some with other numbers,",
            };
            let others = match others {
                0 => String::new(),
                1 => format!(" and{how} 1 other file"),
                n => format!(" and{how} {n} other files"),
            };
            format!("{}{others}: {text}", files[0])
        })
    }
}

/// Returns the text without its numbers and their units. A name with digits is no number.
fn words(text: &str) -> String {
    const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "B", "KiB", "MiB", "GiB", "%"];
    let mut after_number = false;
    let is_word = |word: &&str| {
        let bare = word.trim_matches(|c: char| c != '%' && !c.is_alphanumeric());
        let is_unit = after_number && UNITS.contains(&bare);
        after_number = bare.starts_with(|c: char| c.is_ascii_digit())
            && bare.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '%'));
        !is_unit && !after_number
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
            ("c", "it stopped early"),
            ("c", "probe overhead: about 480 ms, 7 % of the time"),
            ("d", "probe overhead: about 5.5 s, 69 % of the time"),
        ] {
            notes.add(file, note.to_owned());
        }
        let lines: Vec<String> = notes.lines().collect();
        assert_eq!(
            lines,
            [
                "a and 2 other files: it stopped early",
                "a and, some with other numbers, 3 other files: probe overhead: about 5.5 s, 69 % of \
                 the time",
            ]
        );
    }

    #[test]
    fn names_with_digits_are_no_numbers() {
        let mut notes = OfFiles::default();
        for (file, note) in [
            ("a", "parse2 was not called"),
            ("b", "parse3 was not called"),
            ("c", "parse3 was not called"),
            ("d", "waited 20 ms for 3 CPUs"),
            ("e", "waited 7 s for 4 CPUs"),
        ] {
            notes.add(file, note.to_owned());
        }
        let lines: Vec<String> = notes.lines().collect();
        assert_eq!(
            lines,
            [
                "a: parse2 was not called",
                "b and 1 other file: parse3 was not called",
                "d and, with other numbers, 1 other file: waited 20 ms for 3 CPUs",
            ]
        );
    }

    /// A file is not its own other file.
    #[test]
    fn files_are_counted_once() {
        let mut notes = OfFiles::default();
        for (file, note) in [
            ("a", "5 calls were cut"),
            ("a", "8 calls were cut"),
            ("a", "5 calls were cut"),
            ("b", "6 calls were cut"),
            ("b", "8 calls were cut"),
        ] {
            notes.add(file, note.to_owned());
        }
        let lines: Vec<String> = notes.lines().collect();
        assert_eq!(
            lines,
            [
                "a and, with other numbers, 1 other file: 5 calls were cut",
                "a and 1 other file: 8 calls were cut",
            ]
        );
    }
}
