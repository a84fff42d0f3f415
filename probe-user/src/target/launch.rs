//! A command that does not run yet: which program the kernel will really start, and which
//! libraries its dynamic loader will bring, so that probes are in place before main.

use super::elf::ElfError;
use super::maps::MappedObject;
use super::object::{Object, ObjectError};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why a command cannot be launched; each is one line.
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
    #[error("{}: more than {LONGEST_CHAIN} interpreters stand behind each other", path.display())]
    TooDeep { path: PathBuf },
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl LaunchError {
    /// The exit code that `env` and a shell give: 127 not found, 126 found but not to be run.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound(_) | Self::NoInterpreter { .. } => 127,
            _ => 126,
        }
    }
}

/// What a command will start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The file the command names.
    pub command: PathBuf,
    /// The ELF program that the kernel will run: the command itself, or the last interpreter.
    pub exe: PathBuf,
    /// The scripts from the command on, each started by the next; empty for an ELF program.
    pub scripts: Vec<PathBuf>,
    /// The program first, then the libraries that will be loaded with it.
    pub objects: Vec<MappedObject>,
    /// Libraries the loader will not find.
    pub missing: Vec<String>,
}

/// As many as the kernel follows.
const LONGEST_CHAIN: usize = 5;

/// Finds out what `command` will start, with our own PATH and environment.
pub fn resolve(command: &OsStr) -> Result<Launch, LaunchError> {
    let found = find(command, std::env::var_os("PATH"))?;
    let mut exe = found.clone();
    let mut scripts = Vec::new();
    while let Some(interpreter) = interpreter(&exe)? {
        if !interpreter.exists() {
            return Err(LaunchError::NoInterpreter { script: exe, interpreter });
        }
        check_executable(&interpreter)?;
        scripts.push(std::mem::replace(&mut exe, interpreter));
        if scripts.len() > LONGEST_CHAIN {
            return Err(LaunchError::TooDeep { path: found });
        }
    }
    let object = Object::open(&exe, &exe).map_err(|error| match error {
        ObjectError::Elf { path, error: ElfError::NotElf } => LaunchError::NoProgram { path },
        error => error.into(),
    })?;
    let loaded = match object.interpreter() {
        Some(loader) => libraries(Path::new(OsStr::from_bytes(loader)), &exe),
        None => Loaded::default(),
    };
    let mut objects: Vec<MappedObject> = Vec::new();
    for path in std::iter::once(&exe).chain(&loaded.paths) {
        // What vanished between two looks will not be loaded either.
        let Ok(mapped) = MappedObject::from_file(path, objects.is_empty()) else { continue };
        if !objects.iter().any(|o| (o.dev, o.inode) == (mapped.dev, mapped.inode)) {
            objects.push(mapped);
        }
    }
    Ok(Launch { command: found, exe, scripts, objects, missing: loaded.missing })
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
    // Root may do anything but execute what nobody may.
    if meta.permissions().mode() & 0o111 == 0
        || rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_err()
    {
        return refuse("permission denied (chmod +x makes it executable)".to_owned());
    }
    Ok(())
}

/// The interpreter that a script asks for in its first line.
fn interpreter(path: &Path) -> Result<Option<PathBuf>, LaunchError> {
    // As much as the kernel looks at.
    let mut head = Vec::with_capacity(256);
    File::open(path)
        .and_then(|file| file.take(256).read_to_end(&mut head))
        .map_err(|error| ObjectError::Io { path: path.to_owned(), error })?;
    let Some(line) = head.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    let name = line.split(is_blank).find(|word| !word.is_empty());
    match name {
        Some(name) => Ok(Some(PathBuf::from(OsString::from_vec(name.to_owned())))),
        None => Err(LaunchError::NoProgram { path: path.to_owned() }),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Loaded {
    paths: Vec<PathBuf>,
    missing: Vec<String>,
}

/// Asks the program's own dynamic loader what it would load, as ldd does. The loader comes from
/// the program, which is about to be run with it anyway; a loader we do not know is not asked,
/// because it might just run the program.
fn libraries(loader: &Path, exe: &Path) -> Loaded {
    let name = loader.file_name().unwrap_or_default().as_bytes();
    if !(name.starts_with(b"ld-linux")
        || name.starts_with(b"ld-musl")
        || name.starts_with(b"ld.so"))
    {
        return Loaded::default();
    }
    let path = std::path::absolute(exe).unwrap_or_else(|_| exe.to_owned());
    let output = Command::new(loader)
        .arg("--list")
        .arg(path)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let mut loaded = output.map(|output| parse_list(&output.stdout)).unwrap_or_default();
    if !loaded.paths.iter().any(|path| path == loader) {
        loaded.paths.push(loader.to_owned());
    }
    loaded
}

/// Lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`.
fn parse_list(output: &[u8]) -> Loaded {
    let mut loaded = Loaded::default();
    for line in output.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        let (name, place) = match memchr::memmem::find(line, b" => ") {
            Some(at) => (&line[..at], &line[at + 4..]),
            None => (line, line),
        };
        if place.starts_with(b"not found") {
            loaded.missing.push(String::from_utf8_lossy(name).into_owned());
            continue;
        }
        let end = memchr::memmem::rfind(place, b" (0x").unwrap_or(place.len());
        let path = &place[..end];
        if path.contains(&b'/') {
            loaded.paths.push(PathBuf::from(OsStr::from_bytes(path)));
        }
    }
    loaded
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
