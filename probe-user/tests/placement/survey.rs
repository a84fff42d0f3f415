//! Places every function of an object and counts what came out.

use crate::objdump::Listing;
use ctrace_user::testing::target::{
    Candidate, CodeMap, ExitKind, ExitPlacement, Placement, Policy, Refusal, place,
};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) decision: Result<Placement, Refusal>,
}

/// Every function symbol of a file with the decision for it, aliases once.
pub(crate) fn decide(data: &[u8], policy: &Policy) -> Vec<Function> {
    let source = crate::source(data);
    let map = CodeMap::parse(&source).expect("the object parses");
    let file = object::File::parse(data).expect("the object parses");
    let mut seen = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() == SymbolKind::Text && symbol.is_definition() {
            let name = symbol.name().unwrap_or_default().to_owned();
            seen.entry(symbol.address()).or_insert((symbol.size(), name));
        }
    }
    let functions = seen.into_iter().map(|(address, (size, name))| {
        let decision = place(Candidate { address, size, name: &name }, &map, policy);
        Function { name, address, size, decision }
    });
    functions.collect()
}

/// Asserts that all sites are on objdump's instructions, and every way out is of its kind.
pub(crate) fn check_boundaries(data: &[u8], functions: &[Function], listing: &Listing) {
    let map = Offsets::of(data);
    for function in functions {
        let Ok(placement) = &function.decision else { continue };
        let entry = function.address + u64::from(placement.entry.skipped);
        assert!(listing.has(entry), "{} {entry:#x}: no instruction", function.name);
        assert_eq!(map.address(placement.entry.offset), Some(entry), "{}", function.name);
        if !listing.is_padding(function.address, entry) {
            let into = listing.branches(function.address + 1, entry).next();
            assert_eq!(into, None, "{}: a branch leads past the first instruction", function.name);
        }
        let ExitPlacement::Sites(sites) = &placement.exit else { continue };
        for site in sites {
            let address = map.address(site.offset).expect("a site is loaded");
            let text = listing.instructions.get(&address);
            let text = text.unwrap_or_else(|| panic!("{} {address:#x}: off", function.name));
            let fits = match site.kind {
                ExitKind::Ret => text.contains("ret"),
                ExitKind::Jump => text.contains("jmp"),
                ExitKind::ConditionalJump(_) => text.starts_with('j') || text.contains(" j"),
                ExitKind::IndirectJump(_) => text.contains("jmp") && text.contains('*'),
            };
            assert!(fits, "{} {address:#x}: {text} is no {:?}", function.name, site.kind);
            assert!(address != entry, "{}: entry and exit at one place", function.name);
        }
    }
}

/// The `ret`s within the functions that objdump sees and the placement does not, where it claims
/// to have seen all ways out.
pub(crate) fn missed_returns(
    data: &[u8],
    functions: &[Function],
    listing: &Listing,
) -> Vec<String> {
    let map = Offsets::of(data);
    let mut missed = Vec::new();
    for function in functions {
        let Ok(Placement { exit: ExitPlacement::Sites(sites), .. }) = &function.decision else {
            continue;
        };
        let found: Vec<_> = sites.iter().filter_map(|site| map.address(site.offset)).collect();
        let end = function.address + function.size;
        for address in listing.returns(function.address, end) {
            if !found.contains(&address) {
                missed.push(format!("{}@{address:#x}", function.name));
            }
        }
    }
    missed
}

/// The counts of functions that can be traced, and how.
pub(crate) struct Tally {
    pub(crate) total: usize,
    pub(crate) seen: usize,
    pub(crate) unseen: BTreeMap<String, Vec<String>>,
    pub(crate) refused: BTreeMap<String, Vec<String>>,
}

impl Tally {
    pub(crate) fn of(functions: &[Function]) -> Self {
        let mut tally = Self {
            total: functions.len(),
            seen: 0,
            unseen: BTreeMap::new(),
            refused: BTreeMap::new(),
        };
        for function in functions {
            let name = format!("{}@{:#x}", function.name, function.address);
            match &function.decision {
                Ok(Placement { exit: ExitPlacement::Unseen(why), .. }) => {
                    tally.unseen.entry(why.clone()).or_default().push(name);
                }
                Ok(_) => tally.seen += 1,
                Err(refusal) => tally.refused.entry(refusal.to_string()).or_default().push(name),
            }
        }
        tally
    }

    /// Percent of the traceable functions whose exits are seen.
    pub(crate) fn percent_seen(&self) -> f64 {
        let unseen: usize = self.unseen.values().map(Vec::len).sum();
        100.0 * self.seen as f64 / (self.seen + unseen).max(1) as f64
    }

    pub(crate) fn print(&self, path: &Path) {
        println!(
            "{}: {} functions, {} with exits ({:.2} % of the traceable)",
            path.display(),
            self.total,
            self.seen,
            self.percent_seen()
        );
        for (title, reasons) in [("unseen", &self.unseen), ("refused", &self.refused)] {
            for (why, names) in reasons {
                let shown: Vec<_> = names.iter().take(12).map(String::as_str).collect();
                println!("  {title} {:5} {why}: {}", names.len(), shown.join(" "));
            }
        }
    }
}

struct Offsets(Vec<(u64, u64, u64)>);

impl Offsets {
    fn of(data: &[u8]) -> Self {
        use object::ObjectSegment;
        let file = object::File::parse(data).expect("the object parses");
        Self(
            file.segments()
                .map(|segment| {
                    let (offset, size) = segment.file_range();
                    (offset, size, segment.address())
                })
                .collect(),
        )
    }

    fn address(&self, offset: u64) -> Option<u64> {
        self.0.iter().find_map(|&(from, size, address)| {
            (from..from + size).contains(&offset).then(|| address + (offset - from))
        })
    }
}

/// The server, which may not be there. Debian ships the very file in redis-tools under another name;
/// called by this name it is the server.
pub(crate) fn redis_server() -> PathBuf {
    let installed = PathBuf::from("/usr/bin/redis-server");
    if installed.exists() {
        return installed;
    }
    let link = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redis-server");
    // Another test may have made it.
    let _ = std::os::unix::fs::symlink("/usr/bin/redis-check-rdb", &link);
    link
}
