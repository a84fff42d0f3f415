//! Names of addresses in processes: the variable or the function that is there.
//!
//! The memory maps of processes are kept, so addresses have names even if they are asked for when the
//! process has ended. The objects are kept as well: each is read once, within one budget for all.

use super::elf::Segment;
use super::names::cut;
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
pub(crate) struct AddressNames {
    limits: ObjectLimits,
    /// What all objects together may take.
    budget: Arc<Budget>,
    /// Each file by its device and inode. None if it cannot be read.
    objects: HashMap<(u64, u64), Option<Arc<Known>>>,
    processes: HashMap<Pid, Vec<Loaded>>,
    /// Addresses that have not been looked for since a map came in which they may be.
    new: Vec<(Pid, u64)>,
    /// Those in no object that is known.
    outside: HashMap<Pid, Vec<u64>>,
}

/// An object that is kept.
struct Known {
    object: Object,
    code: CodeSegments,
}

/// An object in the memory of a process.
struct Loaded {
    name: Arc<str>,
    is_main: bool,
    identity: (u64, u64),
    known: Arc<Known>,
    biases: Vec<u64>,
}

impl Loaded {
    /// Returns the address in the object's headers, and whether code is there.
    fn address(&self, address: u64) -> Option<(u64, bool)> {
        self.biases.iter().find_map(|bias| {
            let address = address.wrapping_sub(*bias);
            let is_in = |segment: &&Segment| segment.addresses.contains(&address);
            let segment = self.known.object.layout().segments.iter().find(is_in)?;
            Some((address, segment.executable))
        })
    }

    fn is_at_the_same_place(&self, other: &Self) -> bool {
        self.identity == other.identity && self.biases == other.biases
    }
}

impl AddressNames {
    pub(crate) fn within(limits: ObjectLimits) -> Self {
        Self {
            limits,
            budget: Budget::new(limits),
            objects: HashMap::new(),
            processes: HashMap::new(),
            new: Vec::new(),
            outside: HashMap::new(),
        }
    }

    /// Notes which objects a process has, and where.
    pub(crate) fn learn(&mut self, pid: Pid, objects: &[MappedObject]) {
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&pid) {
            return;
        }
        let loaded = objects.iter().filter_map(|mapped| {
            let identity = (mapped.dev, mapped.inode);
            let known = self.objects.entry(identity);
            let known = known.or_insert_with(|| open(mapped, self.limits, &self.budget)).clone()?;
            let biases = known.code.biases(mapped);
            let name = mapped.name.as_str().into();
            Some(Loaded { name, is_main: mapped.is_main, identity, known, biases })
        });
        let loaded: Vec<Loaded> = loaded.collect();
        let is_same = self.processes.get(&pid).is_some_and(|before| {
            before.len() == loaded.len()
                && before.iter().zip(&loaded).all(|(a, b)| a.is_at_the_same_place(b))
        });
        if !is_same {
            let outside = self.outside.remove(&pid).unwrap_or_default();
            self.new.extend(outside.into_iter().map(|address| (pid, address)));
            self.processes.insert(pid, loaded);
        }
    }

    /// Adds addresses to be named. Returns the processes in which some are in no object that is known.
    pub(crate) fn add(&mut self, new: Vec<(Pid, u64)>) -> BTreeSet<Pid> {
        let is_outside = |(pid, address): &&(Pid, u64)| self.find(*pid, *address).is_none();
        let outside = new.iter().filter(is_outside).map(|(pid, _)| *pid).collect();
        self.new.extend(new);
        outside
    }

    fn find(&self, pid: Pid, address: u64) -> Option<(&Loaded, (u64, bool))> {
        let loaded = self.processes.get(&pid).into_iter().flatten();
        loaded.filter_map(|of| Some((of, of.address(address)?))).next()
    }

    /// True if the objects have taken what they may take: what is not named yet stays a number.
    pub(crate) fn are_exhausted(&self) -> bool {
        self.budget.check().is_err()
    }

    /// Names what it can of those that were added, or that a new map may have. The rest is kept.
    pub(crate) fn name(&mut self) -> Vec<NamedAddress> {
        let mut wanted: HashMap<(u64, u64), Wanted> = HashMap::new();
        for (pid, address) in std::mem::take(&mut self.new) {
            let Some((of, (inside, is_code))) = self.find(pid, address) else {
                self.outside.entry(pid).or_default().push(address);
                continue;
            };
            let Loaded { name, is_main, known, .. } = of;
            let wanted = wanted.entry(of.identity).or_insert_with(|| Wanted {
                known: Arc::clone(known),
                object: (!is_main).then(|| Arc::clone(name)),
                addresses: Vec::new(),
            });
            wanted.addresses.push(Address { pid, address, inside, is_code });
        }
        wanted.values().flat_map(Wanted::names).collect()
    }
}

fn open(mapped: &MappedObject, limits: ObjectLimits, budget: &Arc<Budget>) -> Option<Arc<Known>> {
    let object = Object::open_one_of(mapped, limits, budget).ok()?;
    let code = CodeSegments::of(object.layout());
    Some(Arc::new(Known { object, code }))
}

/// Addresses in one object.
struct Wanted {
    known: Arc<Known>,
    /// The name of a library.
    object: Option<Arc<str>>,
    addresses: Vec<Address>,
}

struct Address {
    pid: Pid,
    address: u64,
    /// The same in the object's headers.
    inside: u64,
    is_code: bool,
}

impl Wanted {
    fn names(&self) -> Vec<NamedAddress> {
        let object = &self.known.object;
        let data = self.addresses.iter().filter(|it| !it.is_code).map(|it| it.inside);
        let variables = object.variables_around(data.collect());
        let name = |it: &Address| {
            let symbol = if it.is_code {
                // The address is behind the call, which may be the function's last instruction.
                let function = object.function_around(it.inside.wrapping_sub(1));
                function.map(|function| cut(function.name()).to_owned())
            } else {
                variables.get(&it.inside).cloned()
            };
            // A name can be as long as the file, and be wanted for any number of addresses.
            let has_room = |name: &String| object.source().budget().has_room(name.len() as u64);
            match (symbol.filter(has_room), &self.object) {
                (Some(symbol), None) => symbol,
                (Some(symbol), Some(object)) => format!("{symbol}@{object}"),
                (None, _) => format!("{}+{:#x}", object.name(), it.inside),
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
        let mut names = AddressNames::within(ObjectLimits::DEFAULT);
        let on_heap = Box::new(5_u64);
        let heap = &raw const *on_heap as u64;
        let code = this_very_program_has_names_for_its_addresses as *const () as u64 + 1;
        let data = &raw const LANDMARK as u64 + 8;
        // Before the map is known, all of them are outside.
        let outside = names.add([heap, code, data].map(|at| (Pid(pid), at)).into());
        assert_eq!((outside, names.name().len()), (BTreeSet::from([Pid(pid)]), 0));
        names.learn(Pid(pid), &maps::objects(pid).unwrap());
        let named = names.name();
        let name = |at: u64| named.iter().find(|it| it.address == at).map(|it| &*it.name);
        assert!(name(code).is_some_and(|it| it.ends_with("names_for_its_addresses")), "{code:x}");
        assert!(name(data).is_some_and(|it| it.ends_with("LANDMARK+0x8")), "{:?}", name(data));
        assert_eq!((name(heap), named.len()), (None, 2));
        assert_eq!(names.add(vec![(Pid(pid), code)]), BTreeSet::new());
        // What is outside is looked for once more only in another map.
        names.learn(Pid(pid), &maps::objects(pid).unwrap());
        assert_eq!(names.name().len(), 1);
        assert!(!names.are_exhausted());
    }
}
