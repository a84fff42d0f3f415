//! Any file is an object or a clear error: all that `ctrace list -v` asks of a file, with little
//! memory and time allowed. libFuzzer's limits of both tell what is not counted.
//!
//! The file lies beside itself: a debug link to `input` makes it its own debug file.

use ctrace_user::testing::target::{
    Budget, Candidate, CodeMap, Object, ObjectLimits, Patterns, Policy, Selector, guards,
    list_functions, place,
};
use std::path::Path;
use std::time::Duration;

const LIMITS: ObjectLimits = ObjectLimits { memory: 32 << 20, time: Duration::from_secs(1) };

pub fn check(folder: &Path, bytes: &[u8]) {
    let path = folder.join("input");
    std::fs::write(&path, bytes).expect("the file is written");
    let Ok(object) = Object::open_within(&path, &path, Budget::new(LIMITS)) else { return };
    let objects = [object];
    let all = ["*".to_owned()];
    let asked = Patterns { functions: &all, usdt: &all, markers: &all, ..Patterns::default() };
    let selector = Selector::parse(asked).expect("patterns");
    if let Ok(mut selection) = selector.select(&objects, usize::MAX) {
        selection.functions.truncate(300);
        list_functions(&objects, &selection, true);
    }
    let [object] = &objects;
    let _ = CodeMap::stack_switch(object.source());
    if let Ok(found) = guards(object) {
        assert!(found.sites.is_sorted_by(|a, b| a.offset < b.offset));
        assert!(found.sites.last().is_none_or(|site| site.offset < bytes.len() as u64));
    }
    let Ok(mut map) = CodeMap::parse(object.source()) else { return };
    map.learn(object.functions().iter().map(|it| (it.address, it.size, it.raw())));
    for function in object.functions().iter().take(300) {
        let (address, size, name) = (function.address, function.size, function.raw());
        for guarded in [false, true] {
            let policy = Policy { guarded, ..Policy::default() };
            if let Ok(placement) = place(Candidate { address, size, name }, &map, &policy) {
                assert!(placement.entry.offset < bytes.len() as u64);
            }
        }
    }
}
