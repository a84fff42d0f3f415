//! Notes for a reader of the reports, besides the numbers.

#[derive(Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    /// Adds a note. Only the first ones of a flood are kept.
    pub(super) fn add(&mut self, text: String) {
        const MOST: usize = 20;
        if self.0.len() < MOST {
            self.0.push(text);
        }
    }

    /// Adds the last note, which is kept in any case.
    pub(super) fn push(&mut self, text: String) {
        self.0.push(text);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.clone()
    }
}
