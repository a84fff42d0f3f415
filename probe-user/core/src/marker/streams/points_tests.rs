use super::super::layout::tests::put;
use super::super::objects::MarkerPlace;
use super::super::pieces::tests::put_value;
use super::super::pieces::{Carried, EntryValues};
use super::tests::{BIAS, ID, SECTION, STACK, events, markers, reading, sample};
use super::*;
use crate::units::FuncId;

fn markers_with_a_plot() -> Markers {
    let carried = Carried { numbers: 1, has_text: false };
    markers_with(MarkerPlace { is_point: true, carried, ..MarkerPlace::new(FuncId(7), 0) })
}

fn markers_with(place: MarkerPlace) -> Markers {
    let mut markers = markers();
    let object = MarkerObject { section: SECTION - BIAS, functions: [Some(place)].into() };
    let object = markers.add_object(object);
    markers.map_object(ID.pid, object, BIAS, Nanos::ZERO);
    markers
}

/// Takes the values of all entries, with their times and stack pointers.
#[derive(Default)]
struct Values(Vec<(u64, u64, Option<u64>)>);

impl MarkerSink for Values {
    fn named(&mut self, _: FuncId, _: &[u8]) -> Option<FuncId> {
        None
    }

    fn values(&mut self, event: &Event, values: Option<EntryValues<'_>>) {
        self.0.push((event.ts(), event.sp(), values.map(|values| values.numbers[0])));
    }

    fn events(&mut self, _: usize, _: &[Event]) {}
}

#[test]
fn a_sample_is_a_point_with_its_value() {
    let mut markers = markers_with_a_plot();
    // The stack pointer's high bits are those of the buffer's, and in their place is the value.
    let sample_of = |time, value: u64| (time, 0, SECTION | 7 << 2 | value << 47, false);
    let mut reading = reading(0, 0, &[sample_of(1000, 41 << 1), sample_of(3000, 41 << 1 | 1)]);
    let stack = (STACK - 0x1230) & !15;
    for slot in 0..2 {
        let at = ctrace_common::HEADER_LEN + slot * ctrace_common::MARK_LEN;
        reading.bytes[at + 6..at + 8].copy_from_slice(&((stack >> 4) as u16).to_le_bytes());
    }
    reading.bytes[56..64].copy_from_slice(&STACK.to_le_bytes());
    markers.read(reading);
    let mut values = Values::default();
    markers.sample(sample(4000), Nanos::MAX, &mut values);
    markers.release(Nanos::MAX, &mut values);
    assert_eq!(values.0, [(500, stack, Some(41)), (1500, stack, Some(41.0_f64.to_bits()))]);
    assert_eq!((markers.lost(), markers.take_malformed()), (0, 0));
}

/// The values of a point are found by its time, and a buffer may be read between two points that the clock
/// does not tell apart.
#[test]
fn points_with_values_have_times_of_their_own() {
    let mut markers = markers_with_a_plot();
    let point = (1000, STACK, SECTION, false);
    markers.read(reading(0, 0, &[point, point]));
    markers.read(reading(1, 2, &[point, (3000, STACK, SECTION, false)]));
    let times: Vec<u64> = events(&mut markers, 4000).iter().map(Event::ts).collect();
    assert_eq!(times, [500, 501, 502, 1500]);
    assert_eq!((markers.lost(), markers.take_malformed()), (0, 0));
}

/// Takes requests, and nothing else.
#[derive(Default)]
struct Requests(Vec<Request>);

impl MarkerSink for Requests {
    fn named(&mut self, _: FuncId, _: &[u8]) -> Option<FuncId> {
        None
    }

    fn values(&mut self, _: &Event, _: Option<EntryValues<'_>>) {
        panic!("a request is no event");
    }

    fn events(&mut self, _: usize, events: &[Event]) {
        assert_eq!(events.len(), 0);
    }

    fn asked(&mut self, request: Request) {
        self.0.push(request);
    }
}

#[test]
fn a_request_is_told_and_is_no_event() {
    let mut markers = markers_with(MarkerPlace::request());
    let mut reading = reading(0, 0, &[]);
    for (index, cleared) in [(0, 0), (3, 600)] {
        put_value(&mut reading.bytes, index, u64::MAX);
        put_value(&mut reading.bytes, index + 1, cleared);
        put(&mut reading.bytes, index + 2, (1000, STACK, SECTION, false));
    }
    // This one lacks its values, and an exit is none.
    put(&mut reading.bytes, 6, (1200, STACK, SECTION, false));
    put(&mut reading.bytes, 7, (1400, STACK, SECTION, true));
    markers.read(reading);
    let mut requests = Requests::default();
    markers.sample(sample(4000), Nanos::MAX, &mut requests);
    markers.release(Nanos::MAX, &mut requests);
    let request = Request { pid: ID.pid, time: Nanos(500), file: u64::MAX, cleared: None };
    assert_eq!(requests.0, [request, Request { cleared: Some(Nanos(300)), ..request }]);
    assert_eq!(markers.take_malformed(), 2);
}

/// Returns the kinds of events, with their times and their stack pointers or calls.
fn kinds(markers: &mut Markers) -> Vec<(Option<Kind>, u64, u64)> {
    let events = events(markers, 9000);
    events.iter().map(|event| (event.kind(), event.ts(), event.sp())).collect()
}

#[test]
fn polls_of_async_functions_tell_their_call_and_its_end() {
    use ctrace_common::{AsyncCall, AsyncStep};
    let mut markers = markers_with(MarkerPlace::of_async(FuncId(7), 0));
    let stack = STACK & !15;
    let entry = |time, exit| (time, stack, SECTION, exit);
    let slots =
        [false, false, true, false, false, false, false, false].map(|exit| entry(2000, exit));
    let mut reading = reading(0, 0, &slots);
    let [begun, ended] =
        [AsyncStep::Begun, AsyncStep::Completed].map(|step| AsyncCall::new(9, step).0);
    put_value(&mut reading.bytes, 0, begun);
    put(&mut reading.bytes, 1, entry(1000, false));
    put_value(&mut reading.bytes, 3, ended);
    put(&mut reading.bytes, 4, entry(2000, false));
    // A call that began before, and a poll whose value is not there.
    put_value(&mut reading.bytes, 5, 0);
    put(&mut reading.bytes, 6, entry(3000, false));
    put(&mut reading.bytes, 7, entry(4000, false));
    markers.read(reading);
    let (enter, exit, call) = (Kind::PollEnter, Kind::PollExit, Kind::AsyncCall);
    let expected = [
        (enter, 500, stack),
        (call, 500, begun),
        (exit, 1000, stack),
        (call, 1000, ended),
        (enter, 1500, stack),
        (enter, 2000, stack),
    ];
    assert_eq!(kinds(&mut markers), expected.map(|(kind, ts, sp)| (Some(kind), ts, sp)));
    assert_eq!(markers.take_malformed(), 1);
}
