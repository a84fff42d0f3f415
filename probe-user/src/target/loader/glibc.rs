//! Finds libraries as glibc's loader does in `_dl_map_object` (elf/dl-load.c).
//!
//! A name without a slash is searched in this order: DT_RPATH of the object that names it and of
//! its ancestors, unless that object has a DT_RUNPATH; LD_LIBRARY_PATH; its DT_RUNPATH; the cache;
//! the default directories. glibc never reads /etc/ld.so.conf: ldconfig writes the cache from it.

use super::budget::TooMuch;
use super::build::Build;
use super::cache::Cache;
use super::directories::{Directories, List, split};
use super::dynamic::FileKind;
use super::environment::Environment;
use super::graph::{Files, Graph, LOADER, LibraryCandidate, PROGRAM, Resolution, Rules};
use super::processor::Processor;
use super::tokens::Tokens;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Loads the libraries of the program in `graph`.
pub(super) fn load(
    graph: &mut Graph,
    loader: &Path,
    environment: &Environment,
    processor: Processor,
    files: &mut Files<'_>,
) -> Result<(), TooMuch> {
    let build = match files.root.open(&files.directory.join(loader)) {
        Ok(Some(file)) => Build::read(&file, &mut files.budget)?,
        _ => Build::default(),
    };
    for node in [PROGRAM, LOADER] {
        if let Some(soname) = graph.nodes.get(node).and_then(|node| node.dynamic.soname.clone()) {
            graph.name(&soname, node);
        }
    }
    graph.name(loader.as_os_str().as_bytes(), LOADER);
    let mut rules = Glibc::new(build, environment, processor, graph, files)?;
    let preloaded = rules.preloaded(environment, files)?;
    graph.load(&mut rules, &preloaded, files)
}

/// The rules for one program.
struct Glibc {
    build: Build,
    processor: Processor,
    cache: Option<Cache>,
    /// LD_LIBRARY_PATH.
    environment: List,
    default: List,
    secure: bool,
    /// The search paths of objects, as far as they were needed.
    lists: HashMap<(usize, Tag), List>,
    directories: Directories,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Tag {
    Rpath,
    Runpath,
}

/// The kernel's shared object, which is mapped before all others.
const VDSO: &[u8] = b"linux-vdso.so.1";

impl Glibc {
    /// The program is the first object of `graph`.
    fn new(
        build: Build,
        environment: &Environment,
        processor: Processor,
        graph: &Graph,
        files: &mut Files<'_>,
    ) -> Result<Self, TooMuch> {
        let cache = match files.root.open(Path::new(OsStr::from_bytes(&build.cache))) {
            Ok(Some(file)) => Cache::read(&file, &mut files.budget)?,
            _ => None,
        };
        let mut rules = Self {
            directories: Directories::new(processor.subdirectories(build.version)),
            default: build.directories.as_slice().into(),
            build,
            processor,
            cache,
            environment: List::default(),
            secure: environment.secure,
            lists: HashMap::new(),
        };
        if let Some(list) = environment.library_path() {
            rules.environment =
                split(list, b":;", files, |entry| rules.replace(entry, PROGRAM, graph))?;
        }
        Ok(rules)
    }

    /// Returns the names of libraries to load first: the environment's, then the machine's.
    fn preloaded(
        &self,
        environment: &Environment,
        files: &mut Files<'_>,
    ) -> Result<Vec<Vec<u8>>, TooMuch> {
        const LONGEST: usize = 1 << 20;
        let split = |list: &[u8], separators: &[u8]| -> Vec<Vec<u8>> {
            let names = list.split(|byte| separators.contains(byte));
            names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
        };
        let mut names = split(environment.preload().unwrap_or_default(), b" :");
        if let Ok(Some(file)) = files.root.open(Path::new(OsStr::from_bytes(&self.build.preload))) {
            let list = files.budget.read(&file, 0, LONGEST)?;
            for line in list.split(|byte| *byte == b'\n') {
                let line = line.split(|byte| *byte == b'#').next().unwrap_or_default();
                names.extend(split(line, b": \t\0"));
            }
        }
        Ok(names)
    }

    fn replace(&self, text: &[u8], node: usize, graph: &Graph) -> Option<Vec<u8>> {
        if !text.contains(&b'$') {
            return Some(text.to_vec());
        }
        let origin = graph.nodes[node].path.parent().map(|path| path.as_os_str().as_bytes());
        let tokens = Tokens {
            origin,
            lib: self.build.lib(),
            platform: self.processor.platform().as_bytes(),
            secure: self.secure,
        };
        let path = tokens.replace(text)?;
        // Anybody may have put a library beside a program that has more rights than its caller.
        let suspect =
            self.secure && node == PROGRAM && memchr::memmem::find(text, b"ORIGIN").is_some();
        let normal = || normalized(Path::new(OsStr::from_bytes(&path))).join("x");
        (!suspect || self.build.is_default(&normal())).then_some(path)
    }

    fn list(
        &mut self,
        node: usize,
        tag: Tag,
        graph: &Graph,
        files: &mut Files<'_>,
    ) -> Result<List, TooMuch> {
        if let Some(list) = self.lists.get(&(node, tag)) {
            return Ok(list.clone());
        }
        let dynamic = &graph.nodes[node].dynamic;
        let text = match tag {
            // With both, DT_RPATH is ignored.
            Tag::Rpath if dynamic.runpath.is_some() => &None,
            Tag::Rpath => &dynamic.rpath,
            Tag::Runpath => &dynamic.runpath,
        };
        let list = match text.as_ref().filter(|text| !text.is_empty()) {
            Some(text) => split(text, b":", files, |entry| self.replace(entry, node, graph))?,
            None => List::default(),
        };
        self.lists.insert((node, tag), list.clone());
        Ok(list)
    }

    fn cached(
        &self,
        name: &[u8],
        no_default: bool,
        files: &mut Files<'_>,
    ) -> Result<Option<LibraryCandidate>, TooMuch> {
        files.budget.path()?;
        let cache = self.cache.as_ref();
        let found = cache.and_then(|it| it.find(name, self.processor, self.build.version));
        let Some(path) = found else { return Ok(None) };
        if no_default && self.build.is_default(Path::new(OsStr::from_bytes(path))) {
            return Ok(None);
        }
        let found = files.look(path)?;
        Ok(found.filter(|candidate| candidate.kind != FileKind::Foreign))
    }

    fn without_slash(
        &mut self,
        name: &[u8],
        needed_by: usize,
        graph: &Graph,
        files: &mut Files<'_>,
    ) -> Result<Option<LibraryCandidate>, TooMuch> {
        if graph.nodes[needed_by].dynamic.runpath.is_none() {
            let mut at = Some(needed_by);
            // The program's DT_RPATH applies to all, even to libraries not loaded for it.
            let mut program = false;
            while let Some(node) = at.or((!program).then_some(PROGRAM)) {
                files.budget.time()?;
                program |= node == PROGRAM;
                let list = self.list(node, Tag::Rpath, graph, files)?;
                if let Some(found) = self.directories.search(name, &list, files)? {
                    return Ok(Some(found));
                }
                at = graph.nodes[node].needed_by;
            }
        }
        if let Some(found) = self.directories.search(name, &self.environment, files)? {
            return Ok(Some(found));
        }
        let list = self.list(needed_by, Tag::Runpath, graph, files)?;
        if let Some(found) = self.directories.search(name, &list, files)? {
            return Ok(Some(found));
        }
        let no_default = graph.nodes[needed_by].dynamic.no_default;
        if let Some(found) = self.cached(name, no_default, files)? {
            return Ok(Some(found));
        }
        if no_default {
            return Ok(None);
        }
        self.directories.search(name, &self.default, files)
    }
}

impl Rules for Glibc {
    const BY_SONAME: bool = true;

    fn find(
        &mut self,
        name: &[u8],
        needed_by: usize,
        graph: &Graph,
        files: &mut Files<'_>,
    ) -> Result<Resolution, TooMuch> {
        let Some(name) = self.replace(name, needed_by, graph) else {
            return Ok(Resolution::Nothing);
        };
        // An empty name means the program.
        if name.is_empty() || name == VDSO {
            return Ok(Resolution::Known(PROGRAM));
        }
        if let Some(known) = graph.known(&name) {
            return Ok(Resolution::Known(known));
        }
        let found = match name.contains(&b'/') {
            true => files.look(&name)?.filter(|candidate| candidate.kind != FileKind::Foreign),
            false => self.without_slash(&name, needed_by, graph, files)?,
        };
        Ok(found.map_or(Resolution::Nothing, Resolution::File))
    }
}

/// Removes `.` and `..` from a path, by its text alone.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
