//! Raises limits for many sessions.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of file descriptors to the service manager's limit, since each session takes
/// some dozens.
pub(super) fn allow_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // On a refusal, fewer sessions fit, and the others report so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
