//! Caches the output for each call path, as long as there is room.

/// Limit of kept bytes.
const ROOM: usize = 64 << 20;

pub(super) struct PerPath {
    kept: Vec<Option<Box<[u8]>>>,
    room: usize,
    /// The last output that was not kept.
    passing: Vec<u8>,
}

impl Default for PerPath {
    fn default() -> Self {
        Self { kept: Vec::new(), room: ROOM, passing: Vec::new() }
    }
}

impl PerPath {
    /// Returns the output for this path, which `make` makes. There may be `paths` of them.
    #[inline]
    pub(super) fn get(
        &mut self,
        path: u32,
        paths: usize,
        make: impl FnOnce(u32) -> Vec<u8>,
    ) -> &[u8] {
        let place = path as usize;
        if self.kept.get(place).is_none_or(Option::is_none) {
            if self.kept.len() < paths {
                self.kept.resize(paths, None);
            }
            let made = make(path);
            match self.kept.get_mut(place) {
                Some(slot) if made.len() <= self.room => {
                    self.room -= made.len();
                    *slot = Some(made.into());
                }
                _ => self.passing = made,
            }
        }
        self.kept.get(place).and_then(Option::as_deref).unwrap_or(&self.passing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_made_again() {
        let mut made = 0;
        let mut paths = PerPath::default();
        for path in [0, 1, 2, 0, 1, 2] {
            let output = paths.get(path, 3, |path| {
                made += 1;
                vec![b'0' + path as u8; ROOM / 2 - 1]
            });
            assert_eq!(output[0], b'0' + path as u8);
        }
        assert_eq!(made, 4);
    }
}
