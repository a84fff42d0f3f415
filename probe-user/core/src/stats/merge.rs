//! The choice of the next source in a k-way merge: a tournament.
//!
//! Each match of the tournament keeps its loser. When the winner gets its next key, only the matches on its
//! way are played again, one for each doubling of the sources.

/// A source in the tournament.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The key of its next item and 1, or 0 if it is over.
    rank: u64,
    source: usize,
}

impl Head {
    fn new(source: usize, key: Option<u64>) -> Self {
        Self { rank: key.map_or(0, |key| key.saturating_add(1)), source }
    }

    /// The greatest key is next; ties go to the lower source.
    #[inline]
    fn beats(&self, other: &Self) -> bool {
        self.rank > other.rank || (self.rank == other.rank && self.source < other.source)
    }
}

/// The sources, of which the one with the greatest key is first.
#[derive(Debug)]
pub(crate) struct Tournament {
    /// The losers of the matches. That of match `n` meets the one of match `n / 2`; source `s` of `k` plays
    /// match `(k + s) / 2` first.
    losers: Vec<Head>,
    winner: Head,
}

impl Tournament {
    /// Begins with the key of each source's first item.
    pub(crate) fn new(keys: impl ExactSizeIterator<Item = Option<u64>>) -> Self {
        let sources = keys.len();
        let leaves = keys.enumerate().map(|(source, key)| Head::new(source, key));
        let none = Head::new(0, None);
        let mut winners: Vec<Head> = std::iter::repeat_n(none, sources).chain(leaves).collect();
        let mut losers = vec![none; sources];
        for at in (1..sources).rev() {
            let [left, right] = [winners[2 * at], winners[2 * at + 1]];
            (winners[at], losers[at]) =
                if left.beats(&right) { (left, right) } else { (right, left) };
        }
        Self { losers, winner: winners.get(1).copied().unwrap_or(none) }
    }

    /// Returns the source that is next, unless all are over.
    #[inline]
    pub(crate) fn first(&self) -> Option<usize> {
        (self.winner.rank > 0).then_some(self.winner.source)
    }

    /// Takes the next key of the first source, which may be over.
    #[inline]
    pub(crate) fn advance(&mut self, key: Option<u64>) {
        let mut winner = Head::new(self.winner.source, key);
        let mut at = (self.losers.len() + winner.source) / 2;
        while at > 0 {
            let loser = &mut self.losers[at];
            if loser.beats(&winner) {
                std::mem::swap(loser, &mut winner);
            }
            at /= 2;
        }
        self.winner = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Merges sources of descending keys.
    fn merged(sources: &[Vec<u64>]) -> Vec<(u64, usize)> {
        let mut rest: Vec<_> = sources.iter().map(|keys| keys.iter().copied().peekable()).collect();
        let first: Vec<_> = rest.iter_mut().map(|keys| keys.peek().copied()).collect();
        let mut tournament = Tournament::new(first.into_iter());
        let mut all = Vec::new();
        while let Some(source) = tournament.first() {
            all.extend(rest[source].next().map(|key| (key, source)));
            tournament.advance(rest[source].peek().copied());
        }
        all
    }

    proptest! {
        #[test]
        fn items_come_by_descending_keys_and_of_the_lower_source_first(
            mut sources in prop::collection::vec(prop::collection::vec(0_u64..20, 0..9), 0..12),
        ) {
            for keys in &mut sources {
                keys.sort_unstable_by(|a, b| b.cmp(a));
            }
            let mut expected: Vec<_> = sources
                .iter()
                .enumerate()
                .flat_map(|(source, keys)| keys.iter().map(move |key| (*key, source)))
                .collect();
            expected.sort_by_key(|(key, source)| (std::cmp::Reverse(*key), *source));
            prop_assert_eq!(merged(&sources), expected);
        }
    }
}
