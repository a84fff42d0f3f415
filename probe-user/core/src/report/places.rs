//! Every index of a function that a report has, in one place.

use super::Report;

impl Report {
    /// Tells all that refer to functions that these have moved: each to `places` of where it was.
    pub fn move_functions(&mut self, places: &[usize]) {
        let histograms = self.histograms.iter_mut().flat_map(|all| &mut all.functions);
        let calls = self.slowest_calls.iter_mut().flatten();
        let calls = calls.flat_map(|call| {
            call.inside.iter_mut().map(|row| &mut row.function).chain([&mut call.function])
        });
        let lanes = self.timeline.iter_mut().flat_map(|timeline| &mut timeline.lanes);
        let cells = lanes.flat_map(|lane| {
            lane.depths.iter_mut().flatten().chain(&mut lane.innermost).map(|c| &mut c.function)
        });
        let paths = self.paths.iter_mut().map(|path| &mut path.function);
        let latencies = self.latencies.iter_mut().flatten().map(|latency| &mut latency.function);
        let all = paths.chain(histograms.map(|h| &mut h.function)).chain(latencies);
        let all = all.chain(calls).chain(cells);
        all.for_each(|function| *function = places[*function]);
    }
}
