//! Starts the threads that read recordings, including those that a session keeps for its report.

use std::sync::OnceLock;

/// The threads that read recordings could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot start the threads that read calls: {0}; raise `ulimit -v` or `ulimit -u`, or set \
     RAYON_NUM_THREADS=1"
)]
pub struct NoThreads(String);

/// Starts a thread for each CPU, once. Reading a recording starts them, too, but panics on failure.
pub fn start_threads() -> Result<(), NoThreads> {
    static STARTED: OnceLock<Result<(), NoThreads>> = OnceLock::new();
    let start = || rayon::ThreadPoolBuilder::new().build_global();
    STARTED.get_or_init(|| start().map_err(|error| NoThreads(error.to_string()))).clone()
}
