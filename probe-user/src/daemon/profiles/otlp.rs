//! Encodes a profile for OTLP as `ExportProfilesServiceRequest` (`v1development`).
//!
//! The resource is the traced process, not ctrace. A profile has one kind of value, so there are two:
//! own time, and calls. Both use the dictionary beside them, whose tables begin with what stands for
//! none.

use super::{
    Profiled,
    labels::program,
    profile::{CALLS, PERIOD, Profile, ProfiledFunction, WALL},
    table::Table,
};
use crate::{
    daemon::{
        metrics::otlp::{
            Resource,
            encode::{attribute, number, request},
        },
        random_ids::Ids,
    },
    host_name::host_name,
};
use ctrace_core::formats::protobuf::Message;
use std::{collections::BTreeMap, iter::successors, sync::Arc};

/// The attribute of a profile's comments, which are a list.
const COMMENT: &str = "pprof.profile.comment";
/// The attribute of a program's or a library's build id.
const BUILD_ID: &str = "process.executable.build_id.gnu";

pub(super) fn encode(profiled: &Profiled, given: &Resource, ids: &mut Ids) -> Vec<u8> {
    let mut dictionary = Dictionary::new();
    let sums = dictionary.stacks(&profiled.profile);
    let profiles = [(WALL, 1), (CALLS, 0)].map(|(kind, at)| {
        let samples = (1..).zip(sums.iter().map(|values| values[at]));
        dictionary.profile(profiled, kind, &ids.trace(), samples)
    });
    let mut request = request(&resource(profiled, given), profiles.into_iter());
    request.message(2, &dictionary.finish());
    request.0
}

fn resource(profiled: &Profiled, given: &Resource) -> Message {
    let Profiled { origin, program: path, .. } = profiled;
    let (host, pid) = (host_name(), origin.pid.0);
    let text = |key, value: &str| (key, attribute(key, value));
    let version = origin.version.as_deref();
    let version =
        version.into_iter().flat_map(|id| [text("service.version", id), text(BUILD_ID, id)]);
    let own = [
        text("service.name", &origin.target),
        text("service.instance.id", &format!("{host}:{pid}")),
        text("host.name", &host),
        ("process.pid", number("process.pid", pid.into())),
        text("process.executable.name", &program(path)),
        text("ctrace.target", &origin.target),
    ];
    given.message(own.into_iter().chain(version))
}

/// What the profiles of a request refer to.
struct Dictionary {
    strings: Table<Arc<str>>,
    /// The key, and the value as a message.
    attributes: Table<(u64, Vec<u8>)>,
    /// The file's name and an attribute, or 0.
    mappings: Table<[u64; 2]>,
    /// The name, the file and the line.
    functions: Table<[u64; 3]>,
    /// The mapping, the function and the line.
    locations: Table<[u64; 3]>,
    /// The stack of the caller and a location: each is held once, however many are deeper.
    nodes: Table<[u64; 2]>,
    /// The nodes that are stacks of samples.
    stacks: Vec<u64>,
}

impl Dictionary {
    fn new() -> Self {
        Self {
            strings: Table::new(),
            attributes: Table::new(),
            mappings: Table::new(),
            functions: Table::new(),
            locations: Table::new(),
            nodes: Table::new(),
            stacks: Vec::new(),
        }
    }

    /// Returns the calls and the own time of each stack, in the order of their numbers from 1 on. Paths
    /// whose names are shown alike are one.
    fn stacks(&mut self, profile: &Profile) -> Vec<[u64; 2]> {
        let mut known = vec![None; profile.functions.len()];
        let mut nodes = Vec::with_capacity(profile.paths.len());
        let mut sums: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for path in &profile.paths {
            let place = path.function as usize;
            let function = &profile.functions[place];
            let location = *known[place].get_or_insert_with(|| self.location(profile, function));
            let caller = path.parent.map_or(0, |parent| nodes[parent as usize]);
            let node = self.nodes.place([caller, location]);
            nodes.push(node);
            if path.has_values() {
                let [calls, own] = sums.entry(node).or_default();
                *calls = calls.saturating_add(path.calls);
                *own = own.saturating_add(path.self_ns);
            }
        }
        let (stacks, sums) = sums.into_iter().unzip();
        self.stacks = stacks;
        sums
    }

    /// Returns the locations of a node, innermost first.
    fn locations(&self, at: u64) -> impl Iterator<Item = u64> {
        let node = |at: u64| self.nodes.get(at).filter(|_| at > 0).copied();
        successors(node(at), move |[caller, _]| node(*caller)).map(|[_, location]| location)
    }

    fn attribute(&mut self, key: &str, value: &Message) -> u64 {
        let key = self.strings.place(key.into());
        self.attributes.place((key, value.0.clone()))
    }

    fn location(&mut self, profile: &Profile, function: &ProfiledFunction) -> u64 {
        let mapping = profile.object(function).map_or(0, |object| {
            let id = object.build_id.as_ref();
            let attribute =
                id.map_or(0, |id| self.attribute(BUILD_ID, Message::default().text(1, id)));
            self.mappings.place([self.strings.place(Arc::clone(&object.name)), attribute])
        });
        let name = self.strings.place(Arc::clone(&function.name));
        let file = function.file.as_ref().map_or(0, |file| self.strings.place(Arc::clone(file)));
        let line = function.line.into();
        let function = self.functions.place([name, file, line]);
        self.locations.place([mapping, function, line])
    }

    fn value_type(&mut self, (name, unit): (&str, &str)) -> Message {
        let mut out = Message::default();
        out.number(1, self.strings.place(name.into())).number(2, self.strings.place(unit.into()));
        out
    }

    fn profile(
        &mut self,
        profiled: &Profiled,
        kind: (&str, &str),
        id: &[u8],
        samples: impl Iterator<Item = (u64, u64)>,
    ) -> Message {
        let origin = &profiled.origin;
        let mut out = Message::default();
        out.message(1, &self.value_type(kind));
        for (stack, value) in samples.filter(|(_, value)| *value > 0) {
            out.message(2, Message::default().number(1, stack).numbers(4, [value]));
        }
        out.fixed(3, origin.start_ns.max(0) as u64);
        out.number(4, origin.end_ns.saturating_sub(origin.start_ns).max(0) as u64);
        out.message(5, &self.value_type(PERIOD.0)).number(6, PERIOD.1).bytes(7, id);
        let mut list = Message::default();
        list.message(1, Message::default().text(1, &profiled.profile.comment));
        let comment = self.attribute(COMMENT, Message::default().message(5, &list));
        out.numbers(11, [comment]);
        out
    }

    fn finish(&self) -> Message {
        let mut out = Message::default();
        for [file, attribute] in self.mappings.iter() {
            let mut one = Message::default();
            put(&mut one, 4, *file);
            if *attribute > 0 {
                one.numbers(5, [*attribute]);
            }
            out.message(1, &one);
        }
        for [mapping, function, line] in self.locations.iter() {
            let mut one = Message::default();
            put(&mut one, 1, *mapping);
            if *function > 0 {
                let mut at = Message::default();
                put(&mut at, 1, *function);
                put(&mut at, 2, *line);
                one.message(3, &at);
            }
            out.message(2, &one);
        }
        for [name, file, line] in self.functions.iter() {
            let mut one = Message::default();
            put(&mut one, 1, *name);
            put(&mut one, 3, *file);
            put(&mut one, 4, *line);
            out.message(3, &one);
        }
        // No sample has a link, but the table must have the one that stands for none.
        out.message(4, &Message::default());
        for text in self.strings.iter() {
            out.text(5, text);
        }
        for (key, value) in self.attributes.iter() {
            let mut one = Message::default();
            if *key > 0 {
                one.number(1, *key).bytes(2, value);
            }
            out.message(6, &one);
        }
        out.message(7, &Message::default());
        for node in &self.stacks {
            out.message(7, Message::default().numbers(1, self.locations(*node)));
        }
        out
    }
}

/// Writes a number, unless it is 0: what stands for none is written as nothing.
fn put(message: &mut Message, field: u32, value: u64) {
    if value > 0 {
        message.number(field, value);
    }
}
