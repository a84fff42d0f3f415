//! A command that does not run yet: which program the kernel will really start, and which
//! libraries its dynamic loader will bring, so that probes are in place before main.

use super::elf::ElfError;
use super::maps::MappedObject;
use super::object::{Object, ObjectError};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

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
    /// Why the loader was not asked for the libraries.
    unasked: Option<String>,
}

impl Launch {
    /// What the user should know before the start, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let exe = self.exe.display();
        let script = (!self.scripts.is_empty()).then(|| {
            format!(
                "{} is a script: what is traced is {exe}, which runs it",
                self.command.display()
            )
        });
        let missing = (!self.missing.is_empty()).then(|| {
            format!("the dynamic loader of {exe} does not find {}", self.missing.join(", "))
        });
        let unasked = self.unasked.as_ref().map(|why| {
            format!(
                "the libraries of {exe} are not known before it runs, and are traced from when \
                 they are mapped: {why}"
            )
        });
        [script, missing, unasked].into_iter().flatten().collect()
    }
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
        Some(_) if object.layout().auditors => Loaded {
            unasked: Some("it has its loader run code of its own (DT_AUDIT)".to_owned()),
            ..Loaded::default()
        },
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
    Ok(Launch {
        command: found,
        exe,
        scripts,
        objects,
        missing: loaded.missing,
        unasked: loaded.unasked,
    })
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
    unasked: Option<String>,
}

/// Asks the program's dynamic loader what it would load, as ldd does. We may have more rights than
/// the program will: only a loader that root alone can change is run, and one whose name we do not
/// know is not, because it might just run the program.
fn libraries(loader: &Path, exe: &Path) -> Loaded {
    let unasked = |why: String| Loaded { unasked: Some(why), ..Loaded::default() };
    let file = match trusted(loader) {
        Ok(file) => file,
        Err(why) => return unasked(format!("its loader {} {why}", loader.display())),
    };
    // Libraries beside the program ($ORIGIN) are beside the file that a link leads to.
    let path = exe.canonicalize().unwrap_or_else(|_| exe.to_owned());
    // By descriptor: the path could by now be another file.
    let mut command = Command::new(format!("/proc/self/fd/{}", file.as_raw_fd()));
    command.arg0(loader).arg("--list").arg(path).env("LD_TRACE_LOADED_OBJECTS", "1");
    // LD_PRELOAD and LD_LIBRARY_PATH stay: the program will get them, too. These would run code,
    // or add to what is printed.
    for name in [
        "LD_AUDIT",
        "LD_DEBUG",
        "LD_DEBUG_OUTPUT",
        "LD_VERBOSE",
        "LD_WARN",
        "LD_BIND_NOW",
        "LD_PROFILE",
    ] {
        command.env_remove(name);
    }
    let Some(output) = output(command, PATIENCE) else {
        return unasked(format!("its loader {} does not answer", loader.display()));
    };
    let mut loaded = parse_list(&output);
    if !loaded.paths.iter().any(|path| path == loader) {
        loaded.paths.push(loader.to_owned());
    }
    loaded
}

/// A dynamic loader as systems install it, opened; or what is wrong with it.
fn trusted(loader: &Path) -> Result<File, String> {
    let is_known = |path: &Path, names: &[&str]| {
        let name = path.file_name().unwrap_or_default().as_bytes();
        names.iter().any(|known| name.starts_with(known.as_bytes()))
    };
    if !is_known(loader, &["ld-linux", "ld-musl", "ld.so"]) {
        return Err("is none that ctrace knows".to_owned());
    }
    let cannot_open = |error: io::Error| format!("cannot be opened: {error}");
    let real = loader.canonicalize().map_err(cannot_open)?;
    // Its link may lead to another program of root's. Old glibc has ld-2.31.so, musl libc.so.
    if !is_known(&real, &["ld-", "ld.so", "libc.so", "libc.musl"]) {
        return Err(format!("is {}, none that ctrace knows", real.display()));
    }
    // Asked before opening: opening a fifo would wait for a writer.
    if !real.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let file = File::open(&real).map_err(cannot_open)?;
    let meta = file.metadata().map_err(cannot_open)?;
    if meta.uid() != 0 || meta.mode() & 0o022 != 0 {
        return Err("can be changed by others than root".to_owned());
    }
    Ok(file)
}

/// How long a loader may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a command prints, errors too, unless it takes too long.
fn output(mut command: Command, patience: Duration) -> Option<Vec<u8>> {
    let (mut pipe, writer) = io::pipe().ok()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone().ok()?).stderr(writer);
    let mut child = command.spawn().ok()?;
    // Our own ends of the pipe would keep it open.
    drop(command);
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.read_to_end(&mut bytes);
        // Nobody waits for it any more when that took too long.
        let _ = send.send(read.ok().map(|_| bytes));
    });
    let bytes = receive.recv_timeout(patience).ok().flatten();
    // It has ended, or is to.
    let _ = child.kill();
    let _ = child.wait();
    bytes
}

/// Lines such as `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f…)`. When a library is
/// missing, glibc complains instead of listing, musl beside it.
fn parse_list(output: &[u8]) -> Loaded {
    let mut loaded = Loaded::default();
    for line in output.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii();
        if let Some(name) = complaint(line) {
            loaded.missing.push(String::from_utf8_lossy(name).into_owned());
            continue;
        }
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

/// The library that a line of glibc or musl complains of.
fn complaint(line: &[u8]) -> Option<&[u8]> {
    const MARKS: [&[u8]; 2] =
        [b"error while loading shared libraries: ", b"Error loading shared library "];
    let names = MARKS
        .iter()
        .find_map(|mark| memchr::memmem::find(line, mark).map(|at| &line[at + mark.len()..]))?;
    names.split(|byte| *byte == b':').next()
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
