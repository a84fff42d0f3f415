//! Examines a process, and has a child of ours remove what is found. The removal must not end
//! early, and we may be interrupted or killed at any time.

use super::{HealError, InUse, Outcome, in_use::Place, mend};
use crate::bpf;
use ctrace_core::units::Pid;
use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{RecvTimeoutError, channel},
    },
    thread::Builder,
    time::{Duration, Instant},
};

/// Extra time for the child, which ends by itself at its limit, unless the kernel keeps it: a link
/// takes long where many processes map a file.
const LATE: Duration = Duration::from_secs(20);
/// Limit for everything when ctrace is about to end. Only forged breakpoints take so long.
const HURRIED: Duration = Duration::from_secs(2);
/// Time between two checks whether ctrace is about to end.
const PAUSE: Duration = Duration::from_millis(100);

static IN_A_HURRY: AtomicBool = AtomicBool::new(false);

/// Makes all waits for removals short: ctrace is about to end.
pub(crate) fn hurry() {
    IN_A_HURRY.store(true, Ordering::Relaxed);
}

fn is_in_a_hurry() -> bool {
    IN_A_HURRY.load(Ordering::Relaxed)
}

/// Removes what an earlier tracer left in a process. No place is begun after the limit.
pub(crate) fn process(
    pid: Pid,
    limit: Duration,
    mut in_use: Option<&mut InUse>,
) -> Result<Outcome, HealError> {
    let seen = mend::survey(pid.0, in_use.as_deref_mut())?.outcome;
    if seen.found == seen.in_use {
        return Ok(seen);
    }
    let failed = |why: String| HealError::Helper { pid: pid.0, why };
    let limit = if is_in_a_hurry() { limit.min(HURRIED) } else { limit };
    let answer = ask(pid.0, limit)?;
    let answer: Result<(Outcome, Vec<Place>), String> = serde_json::from_slice(&answer)
        .map_err(|error| failed(format!("no answer of the process that should: {error}")))?;
    let (outcome, places) = answer.map_err(failed)?;
    if let Some(in_use) = in_use {
        in_use.add(places);
    }
    Ok(outcome)
}

/// Returns the child's output. The child has its own process group: no Ctrl-C reaches it.
fn ask(pid: u32, limit: Duration) -> Result<Vec<u8>, HealError> {
    let child = Command::new("/proc/self/exe")
        .arg0("ctrace")
        .args(["__heal", &pid.to_string(), &limit.as_secs().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(HealError::Start)?;
    let helper = child.id();
    let (sender, answers) = channel();
    Builder::new()
        .name("heal".into())
        .spawn(move || {
            let answer = child.wait_with_output().map(|output| output.stdout);
            // After too long a time, nobody waits any more.
            let _ = sender.send(answer);
        })
        .map_err(HealError::Start)?;
    let begun = Instant::now();
    loop {
        match answers.recv_timeout(PAUSE) {
            Ok(answer) => return answer.map_err(HealError::Start),
            Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let patience = patience(limit, is_in_a_hurry());
        if begun.elapsed() >= patience {
            return Err(HealError::Underway { helper, pid, patience });
        }
    }
}

/// Returns how long to wait for the child.
fn patience(limit: Duration, in_a_hurry: bool) -> Duration {
    if in_a_hurry { HURRIED } else { limit.max(mend::ONE_BY_ONE) + LATE }
}

/// Does the child's part. Only SIGKILL ends it early.
pub(crate) fn answer(pid: u32, limit: Duration) -> io::Result<()> {
    bpf::stay_undisturbed();
    let answer = mend::mend(pid, limit).map_err(|error| error.to_string());
    // The asking process may be gone meanwhile.
    serde_json::to_writer(io::stdout(), &answer)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_has_time_to_end_by_itself_unless_ctrace_ends() {
        for seconds in [0, 6, 60] {
            let limit = Duration::from_secs(seconds);
            assert!(patience(limit, false) >= limit + LATE);
            assert_eq!(patience(limit, true), HURRIED);
        }
        assert!(patience(Duration::ZERO, false) > mend::ONE_BY_ONE);
    }
}
