//! Ids of traces, spans and profiles: random, so that those of several daemons do not collide.

use std::hash::{BuildHasher as _, RandomState};

/// A source of ids.
pub(crate) struct Ids {
    /// Keyed by the kernel's random numbers.
    hasher: RandomState,
    made: u64,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { hasher: RandomState::new(), made: 0 }
    }

    pub(crate) fn span(&mut self) -> [u8; 8] {
        loop {
            self.made += 1;
            let id = self.hasher.hash_one(self.made);
            // 0 would mean no id.
            if id != 0 {
                return id.to_be_bytes();
            }
        }
    }

    /// Makes one of a trace or of a profile.
    pub(crate) fn trace(&mut self) -> [u8; 16] {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.span());
        id[8..].copy_from_slice(&self.span());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_two_are_the_same_in_any_daemon() {
        let mut daemons = [Ids::new(), Ids::new()];
        let all: HashSet<_> = (0..20_000).map(|turn| daemons[turn % 2].trace()).collect();
        assert_eq!(all.len(), 20_000);
        assert!(!all.contains(&[0; 16]));
    }
}
