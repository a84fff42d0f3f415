//! The time at which one of many calls began: recordings are aligned by it.

use super::Timeline;
use super::chosen::Chosen;
use super::hits::MOST_COLUMNS;
use crate::recording::Recording;
use crate::stop::Stop;
use crate::units::Nanos;

impl Timeline {
    /// Returns the time at which the n-th of the chosen calls began that begin in the recording, or their number
    /// if they are fewer. They are counted from 1 on, by their beginnings. The answer to work that was
    /// stopped is worth nothing.
    pub fn nth(
        &self,
        recording: &Recording,
        chosen: &Chosen,
        n: u64,
        stop: &Stop,
    ) -> Result<Nanos, u64> {
        let (start, end) = recording.period();
        let mut time = start.0..end.0.saturating_add(1);
        let mut before = 0_u64;
        // Each step looks into the column of the one before that has the call.
        loop {
            let stretch = Nanos(time.start)..Nanos(time.end);
            let hits = self.hits(recording, chosen, stretch, MOST_COLUMNS, stop);
            let mut sum = before;
            let found = hits.columns.iter().position(|count| {
                sum += count;
                sum >= n.max(1)
            });
            let Some(place) = found.filter(|_| !stop.is_stopped()) else { return Err(sum) };
            before = sum - hits.columns[place];
            let length = time.end - time.start;
            if length == 1 {
                return Ok(Nanos(time.start));
            }
            let edge = |place: usize| {
                let part = u128::from(length) * place as u128;
                time.start + part.div_ceil(hits.columns.len() as u128) as u64
            };
            time = edge(place)..edge(place + 1);
        }
    }
}
