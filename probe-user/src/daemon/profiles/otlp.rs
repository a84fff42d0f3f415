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
use std::sync::Arc;

/// The attribute of a program's or a library's build id.
const BUILD_ID: &str = "process.executable.build_id.gnu";

pub(super) fn encode(profiled: &Profiled, given: &Resource, ids: &mut Ids) -> Vec<u8> {
    let mut dictionary = Dictionary::new();
    let stacks = dictionary.stacks(&profiled.profile);
    let profiles = [(WALL, 1), (CALLS, 0)].map(|(kind, at)| {
        let samples = (1..).zip(stacks.iter().map(|values| values[at]));
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
    /// The key and the value.
    attributes: Table<(u64, Arc<str>)>,
    /// The file's name and an attribute, or 0.
    mappings: Table<[u64; 2]>,
    /// The name, the file and the line.
    functions: Table<[u64; 3]>,
    /// The mapping, the function and the line.
    locations: Table<[u64; 3]>,
    stacks: Table<Vec<u64>>,
}

impl Dictionary {
    fn new() -> Self {
        Self {
            strings: Table::new(),
            attributes: Table::new(),
            mappings: Table::new(),
            functions: Table::new(),
            locations: Table::new(),
            stacks: Table::new(),
        }
    }

    /// Returns the calls and the own time of each stack, in the order of their numbers from 1 on. Paths
    /// whose names are shown alike are one.
    fn stacks(&mut self, profile: &Profile) -> Vec<[u64; 2]> {
        let mut known = vec![None; profile.functions.len()];
        let mut sums: Vec<[u64; 2]> = Vec::new();
        for path in profile.samples() {
            let stack = profile.stack(path).map(|place| {
                let place = place as usize;
                let function = &profile.functions[place];
                *known[place].get_or_insert_with(|| self.location(profile, function))
            });
            let stack = stack.collect();
            let stack = self.stacks.place(stack) as usize;
            sums.resize(sums.len().max(stack), [0; 2]);
            let [calls, own] = &mut sums[stack - 1];
            *calls = calls.saturating_add(path.calls);
            *own = own.saturating_add(path.self_ns);
        }
        sums
    }

    fn location(&mut self, profile: &Profile, function: &ProfiledFunction) -> u64 {
        let mapping = profile.object(function).map_or(0, |object| {
            let attribute = object.build_id.as_ref().map_or(0, |id| {
                let key = self.strings.place(BUILD_ID.into());
                self.attributes.place((key, Arc::clone(id)))
            });
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
        // No sample has a link, but the table must have the one that stands for none. Some readers want
        // ids of full length.
        out.message(4, Message::default().bytes(1, &[0; 16]).bytes(2, &[0; 8]));
        for text in self.strings.iter() {
            out.text(5, text);
        }
        for (key, value) in self.attributes.iter() {
            let mut one = Message::default();
            if *key > 0 {
                one.number(1, *key).message(2, Message::default().text(1, value));
            }
            out.message(6, &one);
        }
        for stack in self.stacks.iter() {
            let mut one = Message::default();
            if !stack.is_empty() {
                one.numbers(1, stack.iter().copied());
            }
            out.message(7, &one);
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
