//! Memory maps of processes that are made for it, and texts of others.

use super::*;
use crate::target::fixtures::install;
use std::process::{Child, Command, Stdio};

#[test]
fn parses_lines() {
    let line =
        parse_line(b"7f00-7fff r-xp 00001000 fd:01 1234    /a b/li\\012b.so (deleted)").unwrap();
    assert_eq!(line.addresses, 0x7f00..0x7fff);
    assert_eq!((line.offset, line.inode), (0x1000, 1234));
    assert!(line.executable && line.readable && !line.writable);
    assert_eq!(line.path, "/a b/li\nb.so (deleted)");
    for broken in ["", "x", "1-2", "1-2 rwxp 0 0:0", "1-2 rwxp 0 00 0", "z-2 rwxp 0 0:0 0 /x"] {
        assert_eq!(parse_line(broken.as_bytes()), None, "{broken}");
    }
}

#[test]
fn regions_are_anonymous_and_writable() {
    let text = "1000-2000 rw-p 0 00:00 0 [stack]\n2000-3000 rw-p 0 00:00 0\n\
                3000-4000 ---p 0 00:00 0\n4000-5000 rw-p 0 fd:01 7 /lib/x.so\n";
    let lines: Vec<Line> = text.lines().filter_map(|l| parse_line(l.as_bytes())).collect();
    let names: Vec<String> = regions(&lines).into_iter().map(|region| region.name).collect();
    assert_eq!(names, ["[stack]", ""]);
}

/// A running copy of `sleep`, killed at the end of the test.
struct Sleeper(Child);

impl Sleeper {
    fn start(program: &Path) -> Self {
        let child = Command::new(program).arg("1000").spawn().unwrap();
        // Until the exec is done, the child is still this test process.
        let own = fs::read_link("/proc/self/exe").unwrap();
        while fs::read_link(proc_path(child.id(), "exe")).is_ok_and(|exe| exe == own) {
            std::thread::yield_now();
        }
        Self(child)
    }

    fn main(&self) -> MappedObject {
        let objects = objects(self.0.id()).unwrap();
        assert_eq!(objects.iter().filter(|object| object.is_main).count(), 1);
        assert!(objects[0].is_main);
        objects[0].clone()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn opens_the_inode_that_runs() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("sleeper");
    let original = fs::read("/bin/sleep").unwrap();
    install(&original, &program);
    let sleeper = Sleeper::start(&program);

    let object = sleeper.main();
    assert_eq!((object.path.as_path(), object.is_deleted), (program.as_path(), false));
    assert_eq!(object.name, "sleeper");
    assert!(!object.code.is_empty());

    fs::remove_file(&program).unwrap();
    let object = sleeper.main();
    assert_eq!((object.path.as_path(), object.is_deleted), (program.as_path(), true));
    assert_eq!(fs::read(&object.open_path).unwrap(), original);

    fs::write(&program, "another file").unwrap();
    let object = sleeper.main();
    assert_eq!(object.path, program);
    assert_eq!(fs::read(&object.open_path).unwrap(), original);
}

/// By its name it is found only while that means the same file.
#[test]
fn a_file_is_found_by_its_name_when_its_process_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("sleeper");
    install(&fs::read("/bin/sleep").unwrap(), &program);
    let object = Sleeper::start(&program).main();
    assert_eq!(object.path_now(), program);
    let other = MappedObject { inode: object.inode + 1, ..object.clone() };
    assert_eq!(other.path_now(), object.open_path);
}

/// On overlay, the map and stat differ in the device. The mount has its own namespace.
#[test]
fn a_file_is_the_same_before_and_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    for part in ["lower", "upper", "merged"] {
        fs::create_dir(dir.path().join(part)).unwrap();
    }
    install(&fs::read("/bin/sleep").unwrap(), &dir.path().join("lower/sleeper"));
    let script = "mount -t overlay overlay -o lowerdir=upper:lower merged && \
                  exec merged/sleeper 1000";
    let mut unshare = Command::new("unshare");
    unshare.args(["-m", "sh", "-c", script]).current_dir(dir.path()).stderr(Stdio::null());
    let Ok(child) = unshare.spawn() else { return eprintln!("skipped: no unshare") };
    let mut sleeper = Sleeper(child);
    let pid = sleeper.0.id();
    while !fs::read_link(proc_path(pid, "exe")).is_ok_and(|exe| exe.ends_with("sleeper")) {
        if sleeper.0.try_wait().unwrap().is_some() {
            return eprintln!("skipped: no right to mount an overlay, or no such file system");
        }
        std::thread::yield_now();
    }
    let mapped = sleeper.main();
    let path = rooted(pid, &dir.path().join("merged/sleeper"));
    let file = MappedObject::from_file(&path, true).unwrap();
    assert_eq!((mapped.dev, mapped.inode), (file.dev, file.inode));
    assert_eq!(mapped.name, "sleeper");
}

#[test]
fn finds_libraries_and_stacks() {
    let own = std::process::id();
    let objects = objects(own).unwrap();
    assert!(objects.iter().any(|object| object.name.starts_with("libc.")));
    assert!(stack_regions(own).unwrap().iter().any(|region| region.name == "[stack]"));
    let here = 0u8;
    let at = std::ptr::from_ref(&here).addr() as u64;
    assert!(stack_regions(own).unwrap().iter().any(|region| region.addresses.contains(&at)));
}

#[test]
fn a_process_that_is_gone() {
    assert!(matches!(objects(4_194_305), Err(MapsError::Ended { .. })));
}
