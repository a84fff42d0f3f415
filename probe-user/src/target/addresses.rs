//! Names of addresses in processes: the variable or the function that is there.
//!
//! The memory maps of processes are kept, so addresses have names even if they are asked for when the
//! process has ended.

use super::elf::Segment;
use super::object::Object;
use super::process::bias::CodeSegments;
use super::process::maps::MappedObject;
use super::read::budget::{Budget, ObjectLimits};
use ctrace_core::units::Pid;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Processes whose memory maps are kept, at most.
const MOST_PROCESSES: usize = 1_024;

/// An address in a process, and what is there.
pub(crate) struct NamedAddress {
    pub(crate) pid: Pid,
    pub(crate) address: u64,
    /// The symbol, with the name of the object unless that is the program.
    pub(crate) name: String,
}

/// What is known of the places of objects, and the addresses without a name so far.
#[derive(Default)]
pub(crate) struct AddressNames {
    /// The segments of each file, by its device and inode. None if it cannot be read.
    segments: HashMap<(u64, u64), Option<Arc<Segments>>>,
    processes: HashMap<Pid, Vec<Loaded>>,
    nameless: Vec<(Pid, u64)>,
}

struct Segments {
    code: CodeSegments,
    all: Vec<Segment>,
}

/// An object in the memory of a process.
struct Loaded {
    mapped: MappedObject,
    segments: Arc<Segments>,
    biases: Vec<u64>,
}

impl Loaded {
    /// Returns the address in the object's headers, and whether code is there.
    fn address(&self, address: u64) -> Option<(u64, bool)> {
        self.biases.iter().find_map(|bias| {
            let address = address.wrapping_sub(*bias);
            let is_in = |segment: &&Segment| segment.addresses.contains(&address);
            let segment = self.segments.all.iter().find(is_in)?;
            Some((address, segment.executable))
        })
    }
}

impl AddressNames {
    /// Notes which objects a process has, and where.
    pub(crate) fn learn(&mut self, pid: Pid, objects: &[MappedObject]) {
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            return;
        }
        let loaded = objects.iter().filter_map(|mapped| {
            let segments = self.segments.entry((mapped.dev, mapped.inode));
            let segments = segments.or_insert_with(|| segments_of(mapped)).clone()?;
            let biases = segments.code.biases(mapped);
            Some(Loaded { mapped: mapped.clone(), segments, biases })
        });
        let loaded = loaded.collect();
        self.processes.insert(pid, loaded);
    }

    pub(crate) fn knows(&self, pid: Pid) -> bool {
        self.processes.contains_key(&pid)
    }

    /// Names what it can. The rest is kept for another time.
    pub(crate) fn name(&mut self, new: Vec<(Pid, u64)>) -> Vec<NamedAddress> {
        self.nameless.extend(new);
        let all = std::mem::take(&mut self.nameless);
        let mut wanted: HashMap<(u64, u64), Wanted<'_>> = HashMap::new();
        let mut nameless = Vec::new();
        for (pid, address) in all {
            let loaded = self.processes.get(&pid).into_iter().flatten();
            let mut found = loaded.filter_map(|of| Some((of, of.address(address)?)));
            let Some((of, (inside, is_code))) = found.next() else {
                nameless.push((pid, address));
                continue;
            };
            let key = (of.mapped.dev, of.mapped.inode);
            let wanted = wanted.entry(key).or_insert(Wanted { of, addresses: Vec::new() });
            wanted.addresses.push(Address { pid, address, inside, is_code });
        }
        let named = wanted.values().flat_map(Wanted::names).collect();
        self.nameless = nameless;
        named
    }
}

fn segments_of(mapped: &MappedObject) -> Option<Arc<Segments>> {
    let object = open(mapped)?;
    let layout = object.layout();
    Some(Arc::new(Segments { code: CodeSegments::of(layout), all: layout.segments.clone() }))
}

fn open(mapped: &MappedObject) -> Option<Object> {
    let limits = ObjectLimits::DEFAULT;
    Object::open_one_of(mapped, limits, &Budget::of_all(limits)).ok()
}

/// Addresses in one object.
struct Wanted<'a> {
    of: &'a Loaded,
    addresses: Vec<Address>,
}

struct Address {
    pid: Pid,
    address: u64,
    /// The same in the object's headers.
    inside: u64,
    is_code: bool,
}

impl Wanted<'_> {
    fn names(&self) -> Vec<NamedAddress> {
        let mapped = &self.of.mapped;
        let object = open(mapped);
        let data = self.addresses.iter().filter(|it| !it.is_code).map(|it| it.inside);
        let data: BTreeSet<u64> = data.collect();
        let variables = object.as_ref().map(|it| it.variables_around(data)).unwrap_or_default();
        let name = |it: &Address| {
            let symbol = match (&object, it.is_code) {
                // The address is behind the call, which may be the function's last instruction.
                (Some(object), true) => {
                    let function = object.function_around(it.inside.wrapping_sub(1));
                    function.map(|function| function.name().to_string())
                }
                _ => variables.get(&it.inside).cloned(),
            };
            match symbol {
                Some(symbol) if mapped.is_main => symbol,
                Some(symbol) => format!("{symbol}@{}", mapped.name),
                None => format!("{}+{:#x}", mapped.name, it.inside),
            }
        };
        let named = self.addresses.iter().map(|it| NamedAddress {
            pid: it.pid,
            address: it.address,
            name: name(it),
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::process::maps;

    static LANDMARK: [u64; 4] = [7; 4];

    #[test]
    fn this_very_program_has_names_for_its_addresses() {
        let pid = std::process::id();
        let mut names = AddressNames::default();
        names.learn(Pid(pid), &maps::objects(pid).unwrap());
        let on_heap = Box::new(5_u64);
        let heap = &raw const *on_heap as u64;
        let code = this_very_program_has_names_for_its_addresses as *const () as u64 + 1;
        let data = &raw const LANDMARK as u64 + 8;
        let named = names.name([heap, code, data].map(|at| (Pid(pid), at)).into());
        let name = |at: u64| named.iter().find(|it| it.address == at).map(|it| &*it.name);
        assert!(name(code).is_some_and(|it| it.ends_with("names_for_its_addresses")), "{code:x}");
        assert!(name(data).is_some_and(|it| it.ends_with("LANDMARK+0x8")), "{:?}", name(data));
        assert_eq!((name(heap), named.len()), (None, 2));
    }
}
