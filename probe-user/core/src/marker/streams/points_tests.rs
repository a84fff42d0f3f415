use super::super::objects::MarkerPlace;
use super::super::pieces::Carried;
use super::tests::{BIAS, ID, SECTION, STACK, events, markers, reading};
use super::*;
use crate::units::FuncId;

/// The values of a point are found by its time, and a buffer may be read between two points that the clock
/// does not tell apart.
#[test]
fn points_with_values_have_times_of_their_own() {
    let mut markers = markers();
    let carried = Carried { numbers: 1, has_text: false };
    let place = MarkerPlace { is_point: true, carried, ..MarkerPlace::new(FuncId(7), 0) };
    let object = MarkerObject { section: SECTION - BIAS, functions: [Some(place)].into() };
    let object = markers.add_object(object);
    markers.map_object(ID.pid, object, BIAS, Nanos::ZERO);
    let point = (1000, STACK, SECTION, false);
    markers.read(reading(0, 0, &[point, point]));
    markers.read(reading(1, 2, &[point, (3000, STACK, SECTION, false)]));
    let times: Vec<u64> = events(&mut markers, 4000).iter().map(Event::ts).collect();
    assert_eq!(times, [500, 501, 502, 1500]);
    assert_eq!((markers.lost(), markers.take_malformed()), (0, 0));
}
