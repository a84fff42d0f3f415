//! Starts the threads that read recordings, including those that a session keeps for its report, and
//! threads of their own for work that must not wait for a report.

use std::sync::OnceLock;

/// The threads that read recordings could not be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot start the threads that read calls: {0}; raise `ulimit -v` or `ulimit -u`, or set \
     RAYON_NUM_THREADS=1"
)]
pub struct NoThreads(String);

/// Threads for work that must not wait behind other work, one for each CPU.
#[derive(Debug)]
pub struct OwnThreads(rayon::ThreadPool);

impl OwnThreads {
    /// Starts them.
    pub fn start() -> Result<Self, NoThreads> {
        let started = rayon::ThreadPoolBuilder::new().build();
        started.map(Self).map_err(|error| NoThreads(error.to_string()))
    }

    /// Does a piece of work with them.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.0.install(work)
    }
}

/// Starts a thread for each CPU, once. Reading a recording starts them, too, but panics on failure.
pub fn start_threads() -> Result<(), NoThreads> {
    static STARTED: OnceLock<Result<(), NoThreads>> = OnceLock::new();
    let start = || rayon::ThreadPoolBuilder::new().build_global();
    STARTED.get_or_init(|| start().map_err(|error| NoThreads(error.to_string()))).clone()
}
