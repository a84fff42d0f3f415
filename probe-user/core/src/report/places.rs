//! The list of all places in a report that refer to functions by index.

use super::{Report, SlowCall};

impl Report {
    /// Removes functions by their indices, unless events of them were seen: a row with 0 calls
    /// would claim too much. Returns the old indices of the remaining ones.
    pub fn leave_out(&mut self, is_out: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut places = Vec::with_capacity(self.functions.len());
        let (mut kept, mut ids) = (Vec::with_capacity(self.functions.len()), Vec::new());
        for (id, function) in self.functions.drain(..).enumerate() {
            places.push(kept.len());
            if function.calls > 0 || function.headless > 0 || !is_out(id) {
                kept.push(function);
                ids.push(id);
            }
        }
        self.functions = kept;
        self.move_functions(&places);
        ids
    }

    /// Updates all references to functions: each index becomes the one in `places`.
    pub fn move_functions(&mut self, places: &[usize]) {
        let histograms = self.histograms.iter_mut().flat_map(|all| &mut all.functions);
        let calls = self.slowest_calls.iter_mut().flatten();
        let calls = calls.flat_map(|call| {
            let inside = call.inside.iter_mut().map(|row| &mut row.function);
            let points = call.points.first.iter_mut().map(|point| &mut point.function);
            inside.chain(points).chain(&mut call.functions).chain([&mut call.function])
        });
        let slow = self.slow_calls.iter_mut().flat_map(SlowCall::functions_mut);
        let lanes = self.timeline.iter_mut().flat_map(|timeline| &mut timeline.lanes);
        let cells = lanes.flat_map(|lane| {
            lane.depths.iter_mut().flatten().chain(&mut lane.innermost).map(|c| &mut c.function)
        });
        let paths = self.paths.iter_mut().map(|path| &mut path.function);
        let points = self.points.first.iter_mut().map(|point| &mut point.function);
        let all = paths.chain(histograms.map(|h| &mut h.function)).chain(calls).chain(points);
        let frames = self.frames.iter_mut().flat_map(|frames| {
            let worst = frames.worst.iter_mut().map(|frame| &mut frame.function);
            let parts = frames.parts.iter_mut().map(|part| &mut part.function);
            worst.chain(parts).chain([&mut frames.function])
        });
        let values = self.values.iter_mut().map(|values| &mut values.function);
        let trend = self.trend.iter_mut().flat_map(|trend| &mut trend.functions);
        let ctrack = self.ctrack.iter_mut().flat_map(|ctrack| &mut ctrack.functions);
        let all =
            all.chain(cells).chain(frames).chain(values).chain(trend.map(|of| &mut of.function));
        let all = all.chain(ctrack.map(|row| &mut row.function)).chain(slow);
        all.for_each(|function| *function = places[*function]);
    }
}
