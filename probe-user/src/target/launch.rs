//! Resolves a command before it runs: the program that the kernel will start and the libraries that
//! its loader will bring. So probes are in place before main.

use super::elf::ElfError;
use super::loader::{self, Libraries};
use super::object::{Object, ObjectError};
use super::process::maps::MappedObject;
use super::process::{Process, proc_path};
use super::read::regular::open_regular;
use crate::user::{Identity, UserError};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The reason why a command cannot be launched, in one line.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("command not found: {0}")]
    NotFound(String),
    #[error("{}, the interpreter of {}, does not exist", interpreter.display(), script.display())]
    NoInterpreter { script: PathBuf, interpreter: PathBuf },
    #[error("{} cannot be executed: {reason}", path.display())]
    NotExecutable { path: PathBuf, reason: String },
    #[error("{} is neither an ELF program nor a script that starts with #!", path.display())]
    NoProgram { path: PathBuf },
    #[error("{}: a chain of more than {LONGEST_CHAIN} interpreters", path.display())]
    TooDeep { path: PathBuf },
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    User(#[from] UserError),
}

impl LaunchError {
    /// Returns the exit code of `env` and shells: 127 for not found, 126 for not executable.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) | Self::NoInterpreter { .. } => 127,
            Self::User(_) => 125,
            _ => 126,
        }
    }
}

/// The program and libraries that a command will start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The file that the command names.
    pub command: PathBuf,
    /// The ELF program that the kernel will run: the command itself, or the last interpreter.
    pub exe: PathBuf,
    /// The scripts from the command on, each started by the next. Empty for an ELF program.
    pub scripts: Vec<PathBuf>,
    /// The program first, then the libraries that will be loaded with it.
    pub objects: Vec<MappedObject>,
    /// Libraries that the loader will not find.
    pub missing: Vec<String>,
    /// The reason why the libraries are unknown.
    unknown: Option<String>,
}

impl Launch {
    /// Returns notes for the user before the start, one line each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let exe = self.exe.display();
        let script = (!self.scripts.is_empty()).then(|| {
            format!(
                "{} is a script: what is traced is {exe}, which runs it",
                self.command.display()
            )
        });
        let missing = (!self.missing.is_empty()).then(|| {
            let more = self.missing.len().saturating_sub(MOST_TOLD);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let told = &self.missing[..self.missing.len().min(MOST_TOLD)];
            format!("the dynamic loader of {exe} does not find {}{more}", told.join(", "))
        });
        let unknown = self.unknown.as_ref().map(|why| {
            format!(
                "the libraries of {exe} are not known before it runs, and are traced from when \
                 they are mapped: {why}"
            )
        });
        [script, missing, unknown].into_iter().flatten().collect()
    }
}

/// Limit of missing libraries that are named.
const MOST_TOLD: usize = 20;

/// The kernel's limit.
const LONGEST_CHAIN: usize = 5;

/// Resolves `command` with our own PATH and environment.
pub fn resolve(command: &OsStr) -> Result<Launch, LaunchError> {
    resolve_for(command, &Identity::Ours)
}

/// Resolves a command that runs as `user`, who may not execute all that we may.
pub(crate) fn resolve_for(command: &OsStr, user: &Identity) -> Result<Launch, LaunchError> {
    let found = user.on_behalf(|| find(command, std::env::var_os("PATH")))??;
    let mut exe = found.clone();
    let mut scripts = Vec::new();
    while let Some(interpreter) = interpreter(&exe)? {
        if !interpreter.exists() {
            return Err(LaunchError::NoInterpreter { script: exe, interpreter });
        }
        user.on_behalf(|| check_executable(&interpreter))??;
        scripts.push(std::mem::replace(&mut exe, interpreter));
        if scripts.len() > LONGEST_CHAIN {
            return Err(LaunchError::TooDeep { path: found });
        }
    }
    let object = Object::open(&exe, &exe).map_err(|error| match error {
        ObjectError::Elf { path, error: ElfError::NotElf } => LaunchError::NoProgram { path },
        error => error.into(),
    })?;
    // The user's rights decide: the loader has no others.
    let libraries = user
        .on_behalf(|| libraries(&object, |loader| loader::libraries(&exe, loader, user.ids())))?;
    let mut objects = mapped(std::iter::once(&exe).chain(&libraries.paths));
    if let Some(program) = objects.first_mut() {
        program.is_main = true;
    }
    Ok(Launch {
        command: found,
        exe,
        scripts,
        objects,
        missing: libraries.missing,
        unknown: libraries.unknown,
    })
}

/// Returns the libraries that a process held before its program's first instruction will have, as
/// far as they can be known.
pub(crate) fn libraries_of(process: &Process) -> Vec<MappedObject> {
    let Ok(object) = Object::open(process.exe(), &proc_path(process.pid(), "exe")) else {
        return Vec::new();
    };
    let find = |loader: &[u8]| loader::libraries_of(process.pid(), process.exe(), loader);
    mapped(libraries(&object, find).paths.iter())
}

fn libraries(object: &Object, find: impl FnOnce(&[u8]) -> Libraries) -> Libraries {
    match object.interpreter() {
        Some(_) if object.layout().auditors => Libraries {
            unknown: Some("it has its loader run code of its own (DT_AUDIT)".to_owned()),
            ..Libraries::default()
        },
        Some(loader) => find(loader),
        None => Libraries::default(),
    }
}

/// Returns each file once. A file that vanished between two looks will not be loaded either.
fn mapped<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Vec<MappedObject> {
    let mut seen = HashSet::new();
    let objects = paths.filter_map(|path| MappedObject::from_file(path, false).ok());
    objects.filter(|object| seen.insert((object.dev, object.inode))).collect()
}

/// Looks a command up as execvp does.
fn find(command: &OsStr, path: Option<OsString>) -> Result<PathBuf, LaunchError> {
    let not_found = || LaunchError::NotFound(command.to_string_lossy().into_owned());
    if command.is_empty() {
        return Err(not_found());
    }
    if command.as_bytes().contains(&b'/') {
        let path = PathBuf::from(command);
        return match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found()),
            Err(error) => Err(LaunchError::NotExecutable { path, reason: error.to_string() }),
            Ok(_) => check_executable(&path).map(|()| path),
        };
    }
    let path = path.unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = None;
    for directory in std::env::split_paths(&path) {
        // An empty entry is the current directory.
        let candidate = Path::new(".").join(directory).join(command);
        let candidate = candidate.strip_prefix("./").map(Path::to_owned).unwrap_or(candidate);
        if !candidate.is_file() {
            continue;
        }
        match check_executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or_else(not_found))
}

/// Returns whether a word names a program, as a file or by our PATH.
pub(crate) fn is_program(word: &Path) -> bool {
    find(word.as_os_str(), std::env::var_os("PATH")).is_ok()
}

fn check_executable(path: &Path) -> Result<(), LaunchError> {
    let refuse = |reason: String| Err(LaunchError::NotExecutable { path: path.to_owned(), reason });
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) => return refuse(error.to_string()),
    };
    if meta.is_dir() {
        return refuse("it is a directory".to_owned());
    }
    if !meta.is_file() {
        return refuse("it is not a regular file".to_owned());
    }
    // Root may do anything but execute a file without any x bit. The rights are those of an exec,
    // not those of the real ids.
    if meta.permissions().mode() & 0o111 == 0
        || accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_err()
    {
        return refuse("permission denied (chmod +x makes it executable)".to_owned());
    }
    Ok(())
}

/// Returns the interpreter that a script's first line names.
fn interpreter(path: &Path) -> Result<Option<PathBuf>, LaunchError> {
    // The kernel reads this many bytes.
    let mut head = Vec::with_capacity(256);
    let io = |error| ObjectError::Io { path: path.to_owned(), error };
    let Some(file) = open_regular(path).map_err(io)? else {
        return Err(ObjectError::NotAFile { path: path.to_owned() }.into());
    };
    file.take(256).read_to_end(&mut head).map_err(io)?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let name = line.split(is_blank).find(|word| !word.is_empty());
    match name {
        Some(name) => Ok(Some(PathBuf::from(OsString::from_vec(name.to_owned())))),
        None => Err(LaunchError::NoProgram { path: path.to_owned() }),
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
