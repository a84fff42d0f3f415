//! The places of uprobes that are perf events, as those of older tools are. The kernel tells them of a process and
//! the number of a file in it.

use crate::bpf::sys;
use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::Path,
    time::{Duration, Instant},
};

/// Limit of events that are asked about.
const MOST_EVENTS: usize = 10_000;
/// No file of a process is looked at after this time: a process may have a million of them.
const LIMIT: Duration = Duration::from_millis(300);

/// Lists such places: the device and inode of the file, and the offset in it. The kernel does not tell which
/// processes they concern. Without the right to ask, no place is known.
pub(crate) fn event_places() -> HashSet<((u64, u64), u64)> {
    let until = Instant::now() + LIMIT;
    let is_early = || Instant::now() < until;
    let files = numbers("/proc").flat_map(|pid| {
        numbers(format!("/proc/{pid}/fd")).take_while(|_| is_early()).map(move |fd| (pid, fd))
    });
    let is_event = |(pid, fd): &(u32, u32)| {
        let file = fs::read_link(format!("/proc/{pid}/fd/{fd}"));
        file.is_ok_and(|file| file.as_os_str() == "anon_inode:[perf_event]")
    };
    let events = files.filter(is_event).take(MOST_EVENTS);
    events.filter_map(|(pid, fd)| place(pid, fd)).collect()
}

fn numbers(folder: impl AsRef<Path>) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the place of this file of a process, if it is a uprobe.
fn place(pid: u32, fd: u32) -> Option<((u64, u64), u64)> {
    let (path, offset) = sys::place_of_event(pid, fd).ok()??;
    // The path is the one that the tracer gave, as it sees files.
    let path = Path::new(OsStr::from_bytes(&path));
    let seen = match path.strip_prefix("/") {
        Ok(path) => Path::new(&format!("/proc/{pid}/root")).join(path),
        Err(_) => Path::new(&format!("/proc/{pid}/cwd")).join(path),
    };
    let file = fs::metadata(seen).ok()?;
    Some(((file.dev(), file.ino()), offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::{
        link::{multi::empty_program, perf::UprobeUnit},
        sys::{AttachType, UprobeEvent, link_perf, open_uprobe},
    };
    use std::{ffi::CString, os::fd::AsFd as _};

    #[test]
    fn an_event_with_a_program_tells_its_place() {
        // Without the right to load a program, nothing is told.
        let Ok(program) = empty_program(AttachType::Any) else { return };
        // Nobody executes it.
        let copy = tempfile::NamedTempFile::new().unwrap();
        fs::copy("/bin/sh", copy.path()).unwrap();
        let path = CString::new(copy.path().as_os_str().as_bytes()).unwrap();
        let unit = UprobeUnit::find().unwrap();
        let offset = 0x1000;
        let event = open_uprobe(&UprobeEvent {
            unit: unit.number(),
            return_bit: unit.return_bit(),
            at_return: false,
            path: &path,
            offset,
            ref_ctr_offset: 0,
            pid: None,
        });
        let event = event.unwrap();
        let file = copy.as_file().metadata().unwrap();
        let place = ((file.dev(), file.ino()), offset);
        assert!(!event_places().contains(&place), "the kernel tells nothing without a program");
        let link = link_perf(program.as_fd(), event.as_fd(), 0).unwrap();
        assert!(event_places().contains(&place));
        drop((event, link));
        assert!(!event_places().contains(&place));
    }
}
