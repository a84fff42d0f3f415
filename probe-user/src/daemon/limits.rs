//! Room for what many sessions need.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the number of file descriptors to what the service manager allows: each session has some
/// dozens.
pub(super) fn allow_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it is refused, fewer sessions fit, and those that do not say so.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
