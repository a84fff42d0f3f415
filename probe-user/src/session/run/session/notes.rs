//! What a reader of the reports should know besides the numbers.

#[derive(Default)]
pub(super) struct Notes(Vec<String>);

impl Notes {
    /// Of a flood of notes the first ones are kept.
    pub(super) fn add(&mut self, text: String) {
        const MOST: usize = 20;
        if self.0.len() < MOST {
            self.0.push(text);
        }
    }

    /// The last one, which is kept in any case.
    pub(super) fn push(&mut self, text: String) {
        self.0.push(text);
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.clone()
    }
}
