//! Notes for a reader of the reports, besides the numbers.

use crate::ui::text::units::counted;

/// Notes of a flood that are kept.
const MOST: usize = 20;

#[derive(Default)]
pub(super) struct Notes {
    all: Vec<String>,
    /// Those that a flood may have, and how many of them are kept.
    kept: usize,
    left_out: u64,
}

impl Notes {
    /// Adds a note on something that may happen often, such as a library that comes. The first ones
    /// are kept, and the others counted. One that is there already is not told twice.
    pub(super) fn add(&mut self, text: String) {
        if self.all.contains(&text) {
            return;
        }
        if self.kept < MOST {
            self.kept += 1;
            self.all.push(text);
        } else {
            self.left_out += 1;
        }
    }

    /// Adds a note without which the numbers would be misread.
    pub(super) fn add_in_any_case(&mut self, text: String) {
        self.all.push(text);
    }

    pub(super) fn all(&self) -> Vec<String> {
        let mut all = self.all.clone();
        if self.left_out > 0 {
            let count = counted(self.left_out, "more note", "more notes");
            all.push(format!("{count} on programs, libraries and processes left out"));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_takes_no_room_from_what_must_be_told() {
        let mut notes = Notes::default();
        (0..25).for_each(|nth| notes.add(format!("library {nth}")));
        notes.add("library 3".to_owned());
        notes.add_in_any_case("the probes are gone".to_owned());
        let all = notes.all();
        assert_eq!((all.len(), all[19].as_str()), (22, "library 19"));
        assert_eq!(all[20], "the probes are gone");
        assert!(all[21].starts_with("5 more notes"), "{}", all[21]);
    }
}
