//! Tests active scopes by their events.
#![allow(unsafe_code, reason = "fork, and memory that tests share with signal handlers")]

mod support;

use ctrace_marker::{Guard, mark, scope};
use std::hint::black_box;
use support::{Event, On, events_of, hook, image, on_thread};

/// Checks the events as a tree: an exit belongs to the entry with the same site and stack pointer.
fn check_nested(events: &[Event]) {
    let mut open = Vec::new();
    for event in events {
        if event.exit {
            let entry: Event = open.pop().expect("an exit without an entry");
            assert_eq!((entry.site, entry.sp), (event.site, event.sp));
        } else {
            open.push(*event);
        }
    }
    assert!(open.is_empty());
}

#[inline(never)]
fn fib(n: u32) -> u32 {
    let _scope = scope!("recursion");
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

#[test]
fn a_scope_that_is_off_writes_nothing() {
    hook::install();
    let sites = image::own().named("never on");
    let (tid, ()) = on_thread(|| {
        for _ in 0..1000 {
            let _scope = black_box(scope!("never on"));
        }
    });
    assert!(events_of(tid, &[sites[0].address]).is_empty());
    assert!(support::list().iter().all(|(_, page)| page.tid() != tid));
}

#[test]
fn nested_scopes_give_nested_events() {
    hook::install();
    let (_on, sites) = On::new("recursion");
    let (tid, _) = on_thread(|| fib(16));
    let events = events_of(tid, &sites);
    assert_eq!(events.len(), 2 * 3193);
    check_nested(&events);
    assert!(events.iter().all(|event| event.kind == 0));
    assert!(events.is_sorted_by(|a, b| a.time < b.time), "two events at the same time");
}

#[test]
fn batches_count_what_was_taken() {
    hook::install();
    let (_on, _) = On::new("recursion");
    let (tid, _) = on_thread(|| fib(14));
    let pages = hook::flushed(0, |of| of == tid);
    let mut events = pages[0].events();
    for (index, page) in pages.iter().enumerate() {
        assert_eq!(page.batch(), pages[0].batch() + index as u64);
        assert_eq!(page.events(), events);
        assert_eq!(page.slots().count() as u64, page.taken());
        assert!(page.flushing());
        events += page.taken();
    }
    assert_eq!(events - pages[0].events(), 2 * 1219);
}

#[test]
fn the_stack_pointer_is_that_of_the_function() {
    #[inline(never)]
    fn outer(inner: fn() -> u64) -> (u64, u64) {
        let local = 0_u64;
        let _scope = scope!("outer sp");
        (black_box(&raw const local) as u64, inner())
    }
    #[inline(never)]
    fn inner() -> u64 {
        let local = 0_u64;
        let _scope = scope!("inner sp");
        black_box(&raw const local) as u64
    }
    hook::install();
    let (_on, outer_site) = On::new("outer sp");
    let (_on, inner_site) = On::new("inner sp");
    let (tid, (a, b)) = on_thread(|| outer(black_box(inner)));
    let full = |event: &Event, near: u64| near >> 37 << 37 | event.sp;
    let outer = events_of(tid, &outer_site);
    let inner = events_of(tid, &inner_site);
    assert_eq!(outer.len(), 2);
    assert_eq!(outer[0].sp, outer[1].sp);
    assert!(a.abs_diff(full(&outer[0], a)) < 4096 && b.abs_diff(full(&inner[0], b)) < 4096);
    assert!(inner[0].sp < outer[0].sp);
}

#[test]
fn a_guard_ends_early_or_elsewhere() {
    #[inline(never)]
    fn begin() -> Guard {
        scope!("moved")
    }
    #[inline(never)]
    fn end(guard: Box<Guard>, depth: u32) -> u32 {
        if depth == 0 {
            drop(guard);
            1
        } else {
            black_box(end(guard, depth - 1)) + 1
        }
    }
    hook::install();
    let (_on, moved) = On::new("moved");
    let (_on, early) = On::new("early");
    let (_on, after) = On::new("after");
    let (tid, _) = on_thread(|| {
        let guard = scope!("early");
        guard.end();
        let _after = scope!("after");
        end(Box::new(begin()), 100)
    });
    let [early, after, moved] = [early, after, moved].map(|sites| events_of(tid, &sites));
    assert!(early[1].exit && early[1].time < after[0].time);
    assert_eq!(moved.len(), 2);
    assert_eq!(moved[0].sp, moved[1].sp);
}

#[test]
fn a_panic_leaves_its_scopes() {
    hook::install();
    let (_on, sites) = On::new("panics");
    fn deep(n: u32) {
        let _scope = scope!("panics");
        if n == 0 {
            std::panic::panic_any(());
        }
        deep(black_box(n - 1));
    }
    let (tid, caught) = on_thread(|| {
        std::panic::set_hook(Box::new(|_| ()));
        let caught = std::panic::catch_unwind(|| deep(20)).is_err();
        let _ = std::panic::take_hook();
        caught
    });
    assert!(caught);
    let events = events_of(tid, &sites);
    assert_eq!(events.len(), 42);
    check_nested(&events);
}

#[test]
fn generic_and_inlined_scopes_are_one_to_people() {
    #[inline(always)]
    fn inlined<T: Copy>(value: T) -> T {
        let _scope = scope!("generic");
        black_box(value)
    }
    hook::install();
    let (_on, sites) = On::new("generic");
    let (tid, _) = on_thread(|| (inlined(1_u8), inlined(1_u64), inlined("a"), inlined([1, 2, 3])));
    assert_eq!(events_of(tid, &sites).len(), 8);
}

struct Type;

#[mark(group = "marks")]
impl Type {
    fn method(&self, n: u64) -> u64 {
        black_box(n)
    }
    #[mark(skip)]
    fn skipped(&self) -> u64 {
        2
    }
    #[mark(name = "its own name")]
    fn named(&self) -> u64 {
        3
    }
    const fn constant() -> u64 {
        4
    }
}

#[mark]
fn whole<T: ?Sized>(text: &T) -> &T {
    if size_of_val(text) == 0 {
        return text;
    }
    black_box(text)
}

#[test]
fn marks_have_the_names_of_their_functions() {
    const CONSTANT: u64 = Type::constant();
    hook::install();
    let module = module_path!();
    let (_a, method) = On::new(&format!("{module}::Type::method"));
    let (_b, named) = On::new("its own name");
    let (_c, whole_sites) = On::new(&format!("{module}::whole"));
    let (tid, sum) = on_thread(|| {
        whole("text");
        Type.method(1) + Type.skipped() + Type.named() + CONSTANT
    });
    assert_eq!(sum, 10);
    for sites in [&method, &named, &whole_sites] {
        assert_eq!(events_of(tid, sites).len(), 2);
    }
    let own = image::own();
    let site = &own.named("its own name")[0];
    assert_eq!((site.group.as_deref(), site.flags), (Some("marks"), 1));
    assert!(own.named(&format!("{module}::Type::skipped")).is_empty());
    assert!(own.named(&format!("{module}::Type::constant")).is_empty());
}
