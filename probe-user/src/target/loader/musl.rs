//! Finds libraries as musl's loader does in `load_library` (ldso/dynlink.c).
//!
//! LD_LIBRARY_PATH comes first, then the search paths (DT_RUNPATH and DT_RPATH alike) of the object
//! that names it and of its ancestors, then the list in `/etc/ld-musl-x86_64.path` or the default.
//! The first file that can be opened wins, whatever it is for.

use super::budget::TooMuch;
use super::environment::Environment;
use super::graph::{Files, Graph, LOADER, LibraryCandidate, PROGRAM, Resolution, Rules};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The rules for one program.
struct Musl {
    environment: Vec<u8>,
    system: Vec<u8>,
    secure: bool,
}

/// The names of libraries that the loader itself contains.
const ITSELF: [&[u8]; 7] = [b"c", b"pthread", b"rt", b"m", b"dl", b"util", b"xnet"];
/// Loads the libraries of the program in `graph`.
pub(super) fn load(
    graph: &mut Graph,
    loader: &Path,
    environment: &Environment,
    files: &mut Files<'_>,
) -> Result<(), TooMuch> {
    let mut rules = Musl::new(loader, environment, files)?;
    graph.name(loader.as_os_str().as_bytes(), LOADER);
    graph.load(&mut rules, &preloaded(environment), files)
}

fn preloaded(environment: &Environment) -> Vec<Vec<u8>> {
    let list = environment.preload().unwrap_or_default();
    let names = list.split(|byte| byte.is_ascii_whitespace() || *byte == b':');
    names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect()
}

impl Musl {
    fn new(
        loader: &Path,
        environment: &Environment,
        files: &mut Files<'_>,
    ) -> Result<Self, TooMuch> {
        const LONGEST: usize = 1 << 20;
        // The file is beside the loader's directory.
        let prefix = loader.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let system = match files.root.open(&prefix.join("etc/ld-musl-x86_64.path")) {
            Ok(Some(file)) => files.budget.read(&file, 0, LONGEST)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                b"/lib:/usr/local/lib:/usr/lib".to_vec()
            }
            _ => Vec::new(),
        };
        Ok(Self {
            environment: environment.library_path().unwrap_or_default().to_vec(),
            system,
            secure: environment.secure,
        })
    }

    /// Returns the search path of an object with `$ORIGIN` replaced. Empty if it has other tokens.
    fn list(&self, node: usize, graph: &Graph) -> Vec<u8> {
        const LONGEST: usize = 1 << 20;
        const TOKENS: [&[u8]; 2] = [b"$ORIGIN", b"${ORIGIN}"];
        let dynamic = &graph.nodes[node].dynamic;
        let Some(text) = dynamic.runpath.as_ref().or(dynamic.rpath.as_ref()) else {
            return Vec::new();
        };
        let origin =
            graph.nodes[node].path.parent().map_or(&b"."[..], |it| it.as_os_str().as_bytes());
        let refused = self.secure && (node == PROGRAM || !origin.starts_with(b"/"));
        let mut list = Vec::new();
        let mut rest = text.as_slice();
        while let Some(at) = memchr::memchr(b'$', rest) {
            list.extend_from_slice(&rest[..at]);
            let after = TOKENS.iter().find_map(|token| rest[at..].strip_prefix(*token));
            match after {
                Some(after) if !refused && list.len() < LONGEST => rest = after,
                _ => return Vec::new(),
            }
            list.extend_from_slice(origin);
        }
        list.extend_from_slice(rest);
        list
    }

    fn search(
        name: &[u8],
        list: &[u8],
        files: &mut Files<'_>,
    ) -> Result<Option<LibraryCandidate>, TooMuch> {
        let directories = list.split(|byte| matches!(byte, b':' | b'\n' | 0));
        for directory in directories.filter(|directory| !directory.is_empty()) {
            if let Some(found) = files.look(&[directory, b"/", name].concat())? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Rules for Musl {
    const BY_SONAME: bool = false;

    fn find(
        &mut self,
        name: &[u8],
        needed_by: usize,
        graph: &Graph,
        files: &mut Files<'_>,
    ) -> Result<Resolution, TooMuch> {
        const LONGEST_NAME: usize = 255;
        let is_itself = |part: &&[u8]| {
            let rest = name.strip_prefix(b"lib").and_then(|rest| rest.strip_prefix(*part));
            rest.is_some_and(|rest| rest.starts_with(b"."))
        };
        if ITSELF.iter().any(is_itself) {
            return Ok(Resolution::Known(LOADER));
        }
        if let Some(known) = graph.known(name) {
            return Ok(Resolution::Known(known));
        }
        if name.contains(&b'/') {
            return Ok(files.look(name)?.map_or(Resolution::Nothing, Resolution::File));
        }
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Ok(Resolution::Nothing);
        }
        let mut found = Self::search(name, &self.environment, files)?;
        let mut at = Some(needed_by);
        while let (None, Some(node)) = (&found, at) {
            files.budget.time()?;
            found = Self::search(name, &self.list(node, graph), files)?;
            at = graph.nodes[node].needed_by;
        }
        if found.is_none() {
            found = Self::search(name, &self.system, files)?;
        }
        Ok(found.map_or(Resolution::Nothing, Resolution::File))
    }
}
