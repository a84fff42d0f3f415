//! Encodes a profile as a file of pprof.

use super::{
    Profiled,
    profile::{CALLS, PERIOD, WALL},
};
use ctrace_core::formats::pprof_file::PprofFile;
use std::io;

/// Makes a gzipped file. Functions have the numbers of the profile, plus 1.
pub(super) fn encode(profiled: &Profiled) -> io::Result<Vec<u8>> {
    let Profiled { origin, profile, .. } = profiled;
    let mut file = PprofFile::new(Vec::new());
    file.types(&[CALLS, WALL]);
    file.period(PERIOD.0, PERIOD.1);
    for (object, id) in profile.objects.iter().zip(1..) {
        file.mapping(id, &object.name, object.build_id.as_deref().unwrap_or_default());
    }
    for (function, id) in profile.functions.iter().zip(1..) {
        let mapping = function.object.map_or(0, |object| u64::from(object) + 1);
        let source = function.file.as_deref().unwrap_or_default();
        file.function(id, &function.name, source, function.line.into(), mapping)?;
    }
    let duration = origin.end_ns.saturating_sub(origin.start_ns).max(0);
    file.comment(&profile.comment);
    file.time(origin.start_ns.max(0) as u64, duration as u64);
    for path in profile.samples() {
        let stack = profile.stack(path).map(|function| u64::from(function) + 1);
        file.sample(stack, [path.calls, path.self_ns], &[])?;
    }
    file.finish()
}
