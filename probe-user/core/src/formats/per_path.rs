//! Caches the output for each call path, as long as there is room.

/// Limit of kept bytes.
const ROOM: usize = 64 << 20;

pub(super) struct PerPath<F> {
    make: F,
    kept: Vec<Option<Box<[u8]>>>,
    room: usize,
    /// The last output that was not kept.
    passing: Vec<u8>,
}

impl<F: FnMut(u32) -> Vec<u8>> PerPath<F> {
    /// Makes a cache for this number of paths.
    pub(super) fn new(paths: usize, make: F) -> Self {
        Self { make, kept: vec![None; paths], room: ROOM, passing: Vec::new() }
    }

    #[inline]
    pub(super) fn get(&mut self, path: u32) -> &[u8] {
        let place = path as usize;
        if self.kept.get(place).is_none_or(Option::is_none) {
            let made = (self.make)(path);
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
        let mut paths = PerPath::new(3, |path| {
            made += 1;
            vec![b'0' + path as u8; ROOM / 2 - 1]
        });
        for path in [0, 1, 2, 0, 1, 2] {
            assert_eq!(paths.get(path)[0], b'0' + path as u8);
        }
        assert_eq!(made, 4);
    }
}
