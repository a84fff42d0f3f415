use super::super::layout::tests::{complete, put};
use super::super::objects::MarkerPlace;
use super::super::pieces::EntryValues;
use super::super::pieces::tests::put_name;
use super::tests::{BIAS, ID, SECTION, STACK, markers, reading, sample};
use super::*;
use crate::units::FuncId;

/// Numbers names from 100 on, up to `most` of them.
struct Named {
    names: Vec<Vec<u8>>,
    most: usize,
    events: Vec<(u32, Option<Kind>)>,
}

impl MarkerSink for Named {
    fn events(&mut self, _: usize, events: &[Event]) {
        self.events.extend(events.iter().map(|event| (event.func().0, event.kind())));
    }

    fn named(&mut self, scope: FuncId, name: &[u8]) -> Option<FuncId> {
        assert_eq!(scope, FuncId(7));
        let known = self.names.iter().position(|known| known == name);
        if known.is_none() && self.names.len() == self.most {
            return None;
        }
        let at = known.unwrap_or_else(|| {
            self.names.push(name.to_vec());
            self.names.len() - 1
        });
        Some(FuncId(100 + at as u32))
    }

    fn values(&mut self, event: &Event, values: Option<EntryValues<'_>>) {
        panic!("{event:?}: {values:?}");
    }
}

const SP: u64 = (STACK - 0x100) & !15;
const ENTER: Option<Kind> = Some(Kind::ScopeEnter);
const EXIT: Option<Kind> = Some(Kind::ScopeExit);

/// Makes the only scope of the object one that is named late.
fn named_markers() -> Markers {
    let mut markers = markers();
    let place = MarkerPlace { is_named_late: true, ..MarkerPlace::new(FuncId(7), 0) };
    let functions = [Some(place)].into();
    let object = markers.add_object(MarkerObject { section: SECTION - BIAS, functions });
    markers.map_object(ID.pid, object, BIAS, Nanos::ZERO);
    markers
}

fn take(markers: &mut Markers, most: usize) -> Named {
    let mut sink = Named { names: Vec::new(), most, events: Vec::new() };
    markers.sample(sample(10_000), Nanos::MAX, &mut sink);
    markers.release(Nanos::MAX, &mut sink);
    sink
}

#[test]
fn each_name_is_a_function() {
    let mut markers = named_markers();
    let mut read = reading(0, 0, &[]);
    // One whole call, and one with an exit of its own around it.
    let outer = put_name(&mut read.bytes, 0, b"an outer one");
    put(&mut read.bytes, outer, (100, SP, SECTION, false));
    let inner = put_name(&mut read.bytes, outer + 1, b"inner");
    put(&mut read.bytes, inner, (200, SP - 64, SECTION, false));
    complete(&mut read.bytes, inner, 20);
    put(&mut read.bytes, inner + 1, (300, SP, SECTION, true));
    markers.read(read);
    let sink = take(&mut markers, 9);
    assert_eq!(sink.names, [&b"an outer one"[..], b"inner"]);
    assert_eq!(sink.events, [(100, ENTER), (101, ENTER), (101, EXIT), (100, EXIT)]);
    assert_eq!((markers.lost(), markers.take_malformed()), (0, 0));
}

#[test]
fn a_call_without_a_whole_name_is_of_the_scope_itself() {
    let mut markers = named_markers();
    let mut read = reading(0, 0, &[]);
    let entry = put_name(&mut read.bytes, 0, b"in two pieces");
    read.bytes[64 + 8..64 + 16].fill(0);
    put(&mut read.bytes, entry, (100, SP, SECTION, false));
    put(&mut read.bytes, entry + 1, (300, SP, SECTION, true));
    markers.read(read);
    assert_eq!(take(&mut markers, 9).events, [(7, ENTER), (7, EXIT)]);
}

#[test]
fn so_is_one_whose_name_is_beyond_the_limit() {
    let mut markers = named_markers();
    let mut read = reading(0, 0, &[]);
    let mut at = 0;
    for (name, time) in [(&b"first"[..], 100), (b"second", 200)] {
        at = put_name(&mut read.bytes, at, name);
        put(&mut read.bytes, at, (time, SP, SECTION, false));
        put(&mut read.bytes, at + 1, (time + 50, SP, SECTION, true));
        at += 2;
    }
    markers.read(read);
    let events = take(&mut markers, 1).events;
    assert_eq!(events, [(100, ENTER), (100, EXIT), (7, ENTER), (7, EXIT)]);
}
