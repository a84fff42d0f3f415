//! The name by which a program was started. A file may be several programs, each with a link of its
//! own name: redis-server is a link to redis-check-rdb on some systems.

use super::proc_path;
use crate::target::read::regular::open_regular;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Returns the name if the command line begins with a path of this very file, and the file's own name
/// does not tell as much: python3 is less than python3.11.
pub(crate) fn name(pid: u32, exe: &Path, command: &[String]) -> Option<String> {
    let first = command.first()?;
    // Programs that show their state there write one text.
    let words = [first.as_str(), first.split(' ').next()?];
    let own = exe.file_name()?.to_str()?;
    words.into_iter().find_map(|word| {
        let name = Path::new(word).file_name()?.to_str()?;
        if own.starts_with(name) {
            return None;
        }
        // A shell that has found it in PATH tells the name only.
        let path = if name == word { exe.with_file_name(name) } else { word.into() };
        (path.is_absolute() && is_program(pid, &path)).then(|| name.to_owned())
    })
}

/// Returns whether a path, as the process sees it, leads to the program that it runs.
fn is_program(pid: u32, path: &Path) -> bool {
    let root = proc_path(pid, "root");
    let Ok(inside) = path.strip_prefix("/") else { return false };
    let file = open_regular(&root.join(inside)).ok().flatten();
    let file = file.and_then(|file| file.metadata().ok());
    let program = fs::metadata(proc_path(pid, "exe")).ok();
    file.zip(program).is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

#[cfg(test)]
mod tests {
    use super::super::Process;
    use std::os::unix::fs::symlink;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// Returns the name of the program that runs if the command line begins like this.
    fn name(arg0: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let sleep = std::fs::read("/bin/sleep").expect("sleep is there");
        let (file, link) = (folder.path().join("checker-1.2"), folder.path().join("server"));
        crate::target::fixtures::install(&sleep, &file);
        symlink("checker-1.2", &link).expect("a link");
        symlink("checker-1.2", folder.path().join("checker")).expect("a link");
        let arg0 = arg0.replace("DIR", folder.path().to_str().expect("text"));
        let mut child = Command::new(&link).arg0(&arg0).arg("100").spawn().expect("starts");
        let open = || Process::open(child.id()).expect("runs");
        // A program that is about to begin has no command line yet.
        let process =
            std::iter::repeat_with(open).find(|it| it.command() != [""; 0]).expect("runs");
        let objects = process.objects().expect("known");
        child.kill().expect("ours");
        child.wait().expect("ours");
        objects[0].name.clone()
    }

    #[test]
    fn a_program_has_the_name_of_the_link_that_started_it() {
        assert_eq!(name("DIR/server"), "server");
        assert_eq!(name("DIR/server *:6379"), "server");
        assert_eq!(name("server"), "server");
    }

    #[test]
    fn what_is_no_name_of_the_file_is_not_believed() {
        for arg0 in ["", "/bin/ls", "ls", "DIR/none", "./server", "DIR/checker"] {
            assert_eq!(name(arg0), "checker-1.2", "{arg0}");
        }
    }
}
