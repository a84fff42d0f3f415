//! The threads that read recordings, also those that a session keeps for its report.

use std::sync::OnceLock;

/// Without these nothing can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot start the threads that read calls: {0}; raise `ulimit -v` or `ulimit -u`, or set \
     RAYON_NUM_THREADS=1"
)]
pub struct NoThreads(String);

/// Starts them, as many as there are processors, unless that is done. Whoever reads a recording
/// without this starts them as well, and panics where that fails.
pub fn start_threads() -> Result<(), NoThreads> {
    static STARTED: OnceLock<Result<(), NoThreads>> = OnceLock::new();
    let start = || rayon::ThreadPoolBuilder::new().build_global();
    STARTED.get_or_init(|| start().map_err(|error| NoThreads(error.to_string()))).clone()
}
