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
use ctrace_core::{
    engine::LeftAddresses,
    units::{Nanos, Pid},
};
use std::collections::HashMap;
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

/// The known places of objects, and the addresses without a name so far.
pub(crate) struct AddressNames {
    limits: ObjectLimits,
    /// The memory and time that all objects together may take.
    budget: Arc<Budget>,
    /// Each file by its device and inode. None if it cannot be read.
    objects: HashMap<(u64, u64), Option<Arc<Known>>>,
    /// The maps, with the time at which they were looked at.
    processes: HashMap<Pid, (Map, Nanos)>,
    /// The maps of programs whose processes have executed another one, until all of their addresses have
    /// come.
    former: HashMap<Pid, Map>,
    /// Addresses in objects, by file.
    wanted: HashMap<(u64, u64), Wanted>,
    /// Addresses in no object that is known.
    outside: HashMap<Pid, Vec<u64>>,
}

/// The objects in the memory of a process.
type Map = Arc<[Loaded]>;

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
            former: HashMap::new(),
            wanted: HashMap::new(),
            outside: HashMap::new(),
        }
    }

    /// Notes which objects a process has, and where, as it was looked at at this time.
    pub(crate) fn learn(&mut self, pid: Pid, time: Nanos, objects: &[MappedObject]) {
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
        let loaded: Map = loaded.collect();
        match self.processes.get_mut(&pid) {
            Some((before, looked)) if are_same(before, &loaded) => *looked = time,
            _ => {
                self.processes.insert(pid, (loaded, time));
                let outside = self.outside.remove(&pid).unwrap_or_default();
                self.add(pid, outside);
            }
        }
    }

    /// Notes that a process has begun with the memory of another one.
    pub(crate) fn inherit(&mut self, parent: Pid, child: Pid) {
        let Some((map, time)) = self.processes.get(&parent).cloned() else { return };
        if let Some(former) = self.former.get_mut(&child) {
            // It has executed a program already.
            *former = map;
        } else if self.processes.len() < MOST_PROCESSES {
            self.processes.entry(child).or_insert((map, time));
        }
    }

    /// Notes that a process has executed another program at this time. Addresses of the former one may be
    /// still to come, until it is [left](Self::leave).
    pub(crate) fn execute(&mut self, pid: Pid, time: Nanos) {
        let is_former = self.processes.get(&pid).is_some_and(|(_, looked)| *looked < time);
        let former = is_former.then(|| self.processes.remove(&pid)).flatten();
        let former = former.map_or_else(|| Arc::new([]) as Map, |(map, _)| map);
        if self.former.len() < MOST_PROCESSES {
            self.former.entry(pid).or_insert(former);
        }
    }

    /// Adds the last addresses of programs that their process runs no more.
    pub(crate) fn leave(&mut self, pid: Pid, LeftAddresses { former, last }: &LeftAddresses) {
        self.outside.remove(&pid);
        let map = self.former.remove(&pid);
        if let Some((map, addresses)) = map.zip(former.as_ref()) {
            addresses.iter().for_each(|address| _ = self.want(pid, *address, &map));
        }
        if let Some(addresses) = last
            && let Some((map, _)) = self.processes.remove(&pid)
        {
            addresses.iter().for_each(|address| _ = self.want(pid, *address, &map));
        }
    }

    /// Adds addresses to be named. Returns true if some are in no object that is known.
    pub(crate) fn add(&mut self, pid: Pid, addresses: Vec<u64>) -> bool {
        let map = self.processes.get(&pid).map_or_else(|| Arc::new([]) as Map, |of| of.0.clone());
        let outside: Vec<u64> =
            addresses.into_iter().filter(|address| !self.want(pid, *address, &map)).collect();
        let some = !outside.is_empty();
        if some {
            self.outside.entry(pid).or_default().extend(outside);
        }
        some
    }

    /// Puts an address to those of its object. Returns false if it is in none.
    fn want(&mut self, pid: Pid, address: u64, map: &Map) -> bool {
        let mut inside = map.iter().filter_map(|of| Some((of, of.address(address)?)));
        let Some((of, (inside, is_code))) = inside.next() else { return false };
        let Loaded { name, is_main, known, .. } = of;
        let wanted = self.wanted.entry(of.identity).or_insert_with(|| Wanted {
            known: Arc::clone(known),
            object: (!is_main).then(|| Arc::clone(name)),
            addresses: Vec::new(),
        });
        wanted.addresses.push(Address { pid, address, inside, is_code });
        true
    }

    /// True if the objects have taken what they may take: what is not named yet stays a number.
    pub(crate) fn are_exhausted(&self) -> bool {
        self.budget.check().is_err()
    }

    /// Names those that were added and are in an object.
    pub(crate) fn name(&mut self) -> Vec<NamedAddress> {
        std::mem::take(&mut self.wanted).values().flat_map(Wanted::names).collect()
    }
}

fn are_same(a: &[Loaded], b: &[Loaded]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_at_the_same_place(b))
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
                // The address says more than a name that is another one.
                let function = function.filter(|function| !function.is_named_by_address());
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
        assert!(names.add(Pid(pid), vec![heap, code, data]));
        assert_eq!(names.name().len(), 0);
        names.learn(Pid(pid), Nanos(1), &maps::objects(pid).unwrap());
        let named = names.name();
        let name = |at: u64| named.iter().find(|it| it.address == at).map(|it| &*it.name);
        assert!(name(code).is_some_and(|it| it.ends_with("names_for_its_addresses")), "{code:x}");
        assert!(name(data).is_some_and(|it| it.ends_with("LANDMARK+0x8")), "{:?}", name(data));
        assert_eq!((name(heap), named.len()), (None, 2));
        assert!(!names.add(Pid(pid), vec![code]));
        // An address outside is looked for once more only in another map.
        names.learn(Pid(pid), Nanos(1), &maps::objects(pid).unwrap());
        assert_eq!(names.name().len(), 1);
        assert!(!names.are_exhausted());
    }

    /// Addresses may come when their program is gone. They are those of its map, and of no other.
    #[test]
    fn a_program_that_is_left_has_its_own_map() {
        let (this, child) = (Pid(std::process::id()), Pid(u32::MAX));
        let mut names = AddressNames::within(ObjectLimits::DEFAULT);
        let data = &raw const LANDMARK as u64 + 16;
        let [executed, ended] = [(Some(vec![data]), None), (None, Some(vec![data]))]
            .map(|(former, last)| LeftAddresses { former, last });
        names.learn(this, Nanos(5), &maps::objects(this.0).unwrap());
        // The child is known to have executed a program before it is known to have begun.
        names.execute(child, Nanos(7));
        names.inherit(this, child);
        names.leave(child, &executed);
        let named = names.name();
        assert!(named.iter().any(|it| it.pid == child && it.name.ends_with("LANDMARK+0x10")));
        assert!(names.add(child, vec![data]), "the map of what it has executed is not known");
        // A process that ends has its map until then.
        names.inherit(this, child);
        names.leave(child, &ended);
        assert_eq!(names.name().len(), 1);
        names.leave(child, &ended);
        assert_eq!(names.name().len(), 0);
        // It was looked at after it had executed the program in which it has ended.
        names.learn(child, Nanos(9), &maps::objects(this.0).unwrap());
        names.execute(child, Nanos(8));
        let both = LeftAddresses { former: Some(vec![data + 8]), ..ended };
        names.leave(child, &both);
        let named = names.name();
        assert_eq!(named.iter().map(|it| it.address).collect::<Vec<_>>(), [data]);
    }
}
