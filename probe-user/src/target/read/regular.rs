//! Opens regular files only, even while the path changes.
//!
//! Opening a fifo waits for a writer, and opening a device may do anything. So the path is resolved
//! once without opening its target, and is opened only if it is a file.
//!
//! A path through another process's root keeps its links inside that root. A container decides
//! their text: one to `/etc/shadow` must mean its own file, not the host's.

use super::root::Root;
use std::fs::File;
use std::io;
use std::path::{Component, Path};

/// Opens a regular file to read. Returns `None` where the path leads to something else.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    match below_root(path) {
        Some((root, inside)) => Root::at(root)?.open(inside),
        None => Root::ours()?.open(&std::path::absolute(path)?),
    }
}

/// Splits `/proc/PID/root/PATH`.
fn below_root(path: &Path) -> Option<(&Path, &Path)> {
    let mut parts = path.components();
    let is =
        |part: Option<Component<'_>>, name: &str| part == Some(Component::Normal(name.as_ref()));
    let prefix = parts.next() == Some(Component::RootDir) && is(parts.next(), "proc");
    let pid = parts.next()?.as_os_str().to_str()?;
    let digits = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    if !prefix || !digits || !is(parts.next(), "root") {
        return None;
    }
    let root = path.ancestors().find(|above| above.components().count() == 4)?;
    Some((root, parts.as_path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode};
    use std::io::Read;

    #[test]
    fn opens_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let (file, fifo) = (dir.path().join("file"), dir.path().join("fifo"));
        std::fs::write(&file, "text").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        assert!(open_regular(&file).unwrap().is_some());
        assert!(open_regular(&dir.path().join("link")).unwrap().is_some());
        assert!(open_regular(Path::new("/proc/self/exe")).unwrap().is_some());
        assert!(open_regular(Path::new("Cargo.toml")).unwrap().is_some());
        for other in [fifo.as_path(), dir.path(), Path::new("/dev/null"), Path::new("/dev/tty")] {
            assert!(open_regular(other).unwrap().is_none(), "{}", other.display());
        }
        assert!(open_regular(&dir.path().join("absent")).is_err());
    }

    #[test]
    fn roots_of_processes() {
        let below = |path: &'static str| below_root(Path::new(path));
        let expected = (Path::new("/proc/17/root"), Path::new("usr/lib/x.so"));
        assert_eq!(below("/proc/17/root/usr/lib/x.so"), Some(expected));
        for other in ["/proc/17/exe", "/proc/self/root/x", "/x/proc/17/root/y", "proc/17/root/x"] {
            assert_eq!(below(other), None);
        }
    }

    /// A process in its own directory, with links that would reach the host's files outside.
    #[test]
    fn links_of_a_container_stay_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let inside = |path: &str| dir.path().join(path);
        std::fs::create_dir(inside("etc")).unwrap();
        std::fs::write(inside("etc/passwd"), "its own").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", inside("link")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", inside("host")).unwrap();
        let built = crate::target::fixtures::compile(
            "gcc -static",
            "c",
            "#include <unistd.h>\nint main(int c, char **v) { return chroot(v[1]) || chdir(\"/\") || (puts(\"\"), fflush(0), pause()); }",
        );
        let mut program = std::process::Command::new(&built.program);
        let mut child =
            program.arg(dir.path()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let ready = child.stdout.take().unwrap().read(&mut [0]).unwrap();
        let path = |name: &str| format!("/proc/{}/root/{name}", child.id());
        let read = |name: &str| -> io::Result<String> {
            let mut text = String::new();
            open_regular(path(name).as_ref())?.expect("a file").read_to_string(&mut text)?;
            Ok(text)
        };
        let found = (read("link"), read("host"), std::fs::read_to_string(path("link")));
        child.kill().unwrap();
        child.wait().unwrap();
        if ready == 0 {
            return eprintln!("skipped: no right to change the root directory");
        }
        assert_eq!(found.0.unwrap(), "its own");
        assert_eq!(found.1.unwrap_err().kind(), io::ErrorKind::NotFound);
        // Without that care, the result would be different.
        assert_ne!(found.2.unwrap(), "its own");
    }
}
