//! Predicts the libraries that a program will start with, without asking its dynamic loader.
//!
//! `ld.so --list` would map the program, and a crafted file can make that run its code with the
//! rights of ctrace. So ctrace follows the rules of the loaders itself and executes nothing. A
//! dynamic section is hostile: reads, paths, libraries and time are [bounded](budget).

mod budget;
mod build;
mod cache;
mod directories;
mod dynamic;
mod environment;
mod glibc;
mod graph;
mod musl;
mod processor;
mod tokens;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use super::process::has_own_root;
use super::read::root::Root;
use budget::SearchBudget;
use environment::Environment;
use graph::{Files, Graph, LOADER};
use processor::Processor;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The libraries of a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Libraries {
    /// In loading order. The dynamic loader is the last.
    pub(super) paths: Vec<PathBuf>,
    pub(super) missing: Vec<String>,
    /// The reason why they are unknown.
    pub(super) unknown: Option<String>,
}

const UNREADABLE: &str = "it cannot be read";

/// Returns the libraries that the loader `interpreter` will bring for the program `exe`, run by a
/// user and group with these ids.
pub(super) fn libraries(exe: &Path, interpreter: &[u8], user: (u32, u32)) -> Libraries {
    // $ORIGIN is the directory of the file behind a link.
    let exe = exe.canonicalize().unwrap_or_else(|_| exe.to_owned());
    let find = || {
        let root = Root::ours().map_err(|error| format!("/ cannot be opened: {error}"))?;
        let Ok(Some(file)) = root.open(&exe) else { return Err(UNREADABLE.to_owned()) };
        find(&exe, interpreter, &root, Environment::ours(&file, user), Processor::ours())
    };
    find().unwrap_or_else(|why| Libraries { unknown: Some(why), ..Libraries::default() })
}

/// Returns the libraries of a process that has just begun its program and has loaded none.
pub(super) fn libraries_of(pid: u32, exe: &Path, interpreter: &[u8]) -> Libraries {
    let find = || {
        if has_own_root(pid) {
            return Err("it has a root directory of its own".to_owned());
        }
        let failed = |error| format!("its environment cannot be read: {error}");
        let environment = Environment::of(pid).map_err(failed)?;
        let root = Root::ours().map_err(failed)?;
        find(exe, interpreter, &root, environment, Processor::ours())
    };
    find().unwrap_or_else(|why| Libraries { unknown: Some(why), ..Libraries::default() })
}

/// The dynamic loaders whose rules are known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    Glibc,
    Musl,
}

impl Rules {
    fn of(interpreter: &Path) -> Option<Self> {
        let name = interpreter.file_name()?.as_bytes();
        match () {
            () if name.starts_with(b"ld-musl-x86_64") => Some(Self::Musl),
            () if name.starts_with(b"ld-linux-x86-64") => Some(Self::Glibc),
            () => None,
        }
    }
}

fn find(
    exe: &Path,
    interpreter: &[u8],
    root: &Root,
    environment: Environment,
    processor: Processor,
) -> Result<Libraries, String> {
    let interpreter = Path::new(OsStr::from_bytes(interpreter));
    let told = |why: &str| format!("its loader {} {why}", interpreter.display());
    let rules = Rules::of(interpreter).ok_or_else(|| told("is none that ctrace knows"))?;
    let mut files =
        Files { root, directory: &environment.directory, budget: SearchBudget::default() };
    let mut graph = Graph::default();
    let mut look = |path: &Path, graph: &mut Graph| match files.look(path.as_os_str().as_bytes()) {
        Ok(Some(candidate)) => graph.add(candidate, None).map_err(|why| why.to_string()),
        Ok(None) => Ok(None),
        Err(why) => Err(why.to_string()),
    };
    if look(exe, &mut graph)?.is_none() {
        return Err(UNREADABLE.to_owned());
    }
    if look(interpreter, &mut graph)? != Some(LOADER) {
        return Err(told("cannot be read"));
    }
    let loaded = match rules {
        Rules::Glibc => glibc::load(&mut graph, interpreter, &environment, processor, &mut files),
        Rules::Musl => musl::load(&mut graph, interpreter, &environment, &mut files),
    };
    loaded.map_err(|why| why.to_string())?;
    let loader = graph.nodes.get(LOADER);
    let libraries = graph.nodes.iter().skip(LOADER + 1).chain(loader);
    Ok(Libraries {
        paths: libraries.map(|library| library.path.clone()).collect(),
        missing: graph.missing.iter().map(|name| shown(name)).collect(),
        unknown: None,
    })
}

/// Shortens a name for messages. A file may have it thousands of bytes long.
fn shown(name: &[u8]) -> String {
    const LONGEST: usize = 200;
    let text = String::from_utf8_lossy(&name[..name.len().min(LONGEST)]).into_owned();
    if name.len() > LONGEST { text + "…" } else { text }
}
