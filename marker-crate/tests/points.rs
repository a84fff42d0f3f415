//! Tests messages, plots, frames and scopes with values: what is in the program, and what comes out.
#![allow(unsafe_code, reason = "the trap flag, and memory shared with its handler")]

mod support;

use ctrace_common::{Mark, SiteEntry};
use ctrace_marker::{frame, frame_scope, mark, message, plot, scope, thread_name};
use std::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use support::{
    On,
    entries::written_by,
    events_of, hook,
    image::{Site, own},
    on_thread,
};

fn site(name: &str) -> Site {
    own().named(name).remove(0)
}

#[test]
fn the_program_has_shapes_levels_and_lists_of_values() {
    let n = black_box(3_u8);
    message!("kept in the program");
    message!(level = Warn, group = "net", "kept {n} {:?}", "too");
    message!(group = "net", level = Error, "kept as well");
    message!(level = Trace, "kept once more");
    message!(group = "disk", "kept at last");
    plot!("kept plot", n);
    plot!("kept with a unit", 0.5, unit = "µs", group = "net");
    plot!("kept and signed", -7_i16, group = "net", unit = "°C");
    plot!("kept with a group", &1_u64, group = "net",);
    let _scope = scope!("kept scope", n = n, f = 0.5_f32, group = "net", b = true, i = -1_isize,);
    frame!("kept frames", group = "net");
    let check = |name: &str, flags, shape, level, group: &str, values: &str| {
        let site = site(name);
        assert_eq!((site.flags, site.shape, site.level), (flags, shape, level), "{name}");
        assert_eq!(site.group.as_deref().unwrap_or_default(), group, "{name}");
        assert_eq!(site.values.as_deref().unwrap_or_default(), values, "{name}");
        assert!(site.file.unwrap().ends_with("points.rs"));
    };
    let point = SiteEntry::POINT | SiteEntry::VALUES;
    let message = SiteEntry::MESSAGE;
    check("kept in the program", point, message, 0, "", "message:str");
    check("kept {n} {:?}", point, message, 4, "net", "message:str");
    check("kept as well", point, message, SiteEntry::HIGHEST_LEVEL, "net", "message:str");
    check("kept once more", point, message, 1, "", "message:str");
    check("kept at last", point, message, 0, "disk", "message:str");
    check("kept plot", point, SiteEntry::PLOT, 0, "", "value:u64");
    check("kept with a unit", point, SiteEntry::PLOT, 0, "net", "value[µs]:f64");
    check("kept and signed", point, SiteEntry::PLOT, 0, "net", "value[°C]:i64");
    check("kept with a group", point, SiteEntry::PLOT, 0, "net", "value:u64");
    check("kept scope", SiteEntry::VALUES, 0, 0, "net", "n:u64,f:f64,b:bool,i:i64");
    check("kept frames", SiteEntry::POINT, SiteEntry::FRAME, 0, "net", "");
}

#[mark(name = "red by the attribute", color = 0xff_00_00, group = "net")]
fn red() {}

#[test]
fn the_program_has_the_colours_of_scopes_and_scopes_that_are_frames() {
    const SEA: u32 = 0x00_aa_ff;
    let _a = scope!("blue", colour = 0x33aaff);
    let _b = scope!("blue in a group", color = SEA, group = "net");
    let _c = scope!("blue with values", n = black_box(3_u8), colour = SEA + 1, is = true,);
    let _d = scope!(group = "whole", colour = 0);
    let _e = frame_scope!("frames with ends");
    let frame = frame_scope!("blue frames", group = "net", colour = SEA);
    frame.end();
    message!(colour = SEA, "blue message");
    message!(group = "net", color = SEA, level = Warn, "blue {} in a group", 1);
    plot!("blue plot", black_box(3_u8), colour = SEA);
    plot!("blue plot in a group", 0.5, color = 0, unit = "%", group = "net");
    frame!("blue mark", colour = SEA);
    frame!("blue mark in a group", group = "net", color = SEA,);
    frame!(colour = SEA, group = "blue marks");
    frame_scope!(group = "frames").end();
    frame_scope!(colour = SEA, group = "blue frames").end();
    let _f = scope!("colourless", group = "net");
    red();
    let check = |name: &str, flags, shape, group: &str, colour| {
        let site = site(name);
        assert_eq!((site.flags, site.shape, site.level), (flags, shape, 0), "{name}");
        assert_eq!(site.group.as_deref().unwrap_or_default(), group, "{name}");
        assert_eq!(site.colour, colour, "{name}");
    };
    let coloured = SiteEntry::COLOURED;
    check("blue", coloured, 0, "", Some(0x33_aa_ff));
    check("blue in a group", coloured, 0, "net", Some(SEA));
    check("blue with values", coloured | SiteEntry::VALUES, 0, "", Some(SEA + 1));
    check("frames with ends", 0, SiteEntry::FRAME, "", None);
    check("blue frames", coloured, SiteEntry::FRAME, "net", Some(SEA));
    check("colourless", 0, 0, "net", None);
    let point = coloured | SiteEntry::POINT;
    let valued = point | SiteEntry::VALUES;
    check("blue message", valued, SiteEntry::MESSAGE, "", Some(SEA));
    check("blue plot", valued, SiteEntry::PLOT, "", Some(SEA));
    check("blue plot in a group", valued, SiteEntry::PLOT, "net", Some(0));
    check("blue mark", point, SiteEntry::FRAME, "", Some(SEA));
    check("blue mark in a group", point, SiteEntry::FRAME, "net", Some(SEA));
    let warning = site("blue {} in a group");
    assert_eq!((warning.level, warning.group.as_deref()), (4, Some("net")));
    assert_eq!((warning.flags, warning.colour), (valued, Some(SEA)));
    assert!(own().sites.iter().any(|it| it.group.as_deref() == Some("blue marks")));
    for (group, colour) in [("frames", None), ("blue frames", Some(SEA))] {
        let site = own().sites.iter().find(|site| site.group.as_deref() == Some(group));
        let site = site.expect("a scope without a name of its own");
        assert_eq!((site.name.as_deref(), site.shape), (Some("frame"), SiteEntry::FRAME));
        assert_eq!(site.colour, colour, "{group}");
    }
    let whole = coloured | SiteEntry::WHOLE_FUNCTION;
    check("red by the attribute", whole, 0, "net", Some(0xff_00_00));
    let whole_function = own().sites.iter().find(|site| site.group.as_deref() == Some("whole"));
    let whole_function = whole_function.expect("a scope without a name");
    assert_eq!((whole_function.flags, whole_function.colour), (whole, Some(0)));
}

#[test]
fn the_name_of_a_message_is_the_beginning_of_its_format() {
    message!("0123456789 123456789 123456789 123456789 123456789 123456789 12ä{}", 0);
    let name = "0123456789 123456789 123456789 123456789 123456789 123456789 12";
    assert_eq!(site(&format!("{name}…")[..name.len()]).shape, SiteEntry::MESSAGE);
}

#[test]
fn what_is_off_computes_nothing_and_writes_nothing() {
    fn never<T>() -> T {
        unreachable!("it is off")
    }
    hook::install();
    let (tid, ()) = on_thread(|| {
        for _ in 0..300 {
            message!("never {}", never::<u8>());
            plot!("never", never::<f64>());
            frame!("never");
            let _scope = scope!("never", n = never::<u64>());
        }
    });
    assert!(support::list().iter().all(|(_, page)| page.tid() != tid));
    assert!(hook::flushed(0, |of| of == tid).is_empty());
}

#[test]
fn values_come_through() {
    hook::install();
    let (_on, signed) = On::new("signed");
    let (_on, unsigned) = On::new("unsigned");
    let (_on, float) = On::new("float");
    let (_on, four) = On::new("four");
    let (tid, ()) = on_thread(|| {
        for n in [i64::MIN, -1, 0, 0x1234_5678_9abc_def0] {
            plot!("signed", n);
        }
        for n in [u64::MAX, 1 << 15, 1 << 16, 1 << 63] {
            plot!("unsigned", n);
        }
        for x in [0.1, -0.0, f64::INFINITY, 32_767.0, -3.0, 32_768.0] {
            plot!("float", x, unit = "ms");
        }
        for n in 0..2 {
            let _scope = scope!("four", a = n, b = n == 1, c = -1_i8, d = 2.5_f32);
        }
    });
    let read = written_by(tid);
    let bits = |values: &[u64]| values.iter().map(|value| vec![*value]).collect::<Vec<_>>();
    assert_eq!(read.values(&signed), bits(&[1 << 63, u64::MAX, 0, 0x1234_5678_9abc_def0]));
    assert_eq!(read.values(&unsigned), bits(&[u64::MAX, 1 << 15, 1 << 16, 1 << 63]));
    let floats = [0.1_f64, -0.0, f64::INFINITY, 32_767.0, -3.0, 32_768.0].map(f64::to_bits);
    assert_eq!(read.values(&float), bits(&floats));
    let half = 2.5_f64.to_bits();
    assert_eq!(read.values(&four), [[0, 0, u64::MAX, half], [1, 1, u64::MAX, half]]);
    assert!(read.entries.iter().all(|entry| entry.text.is_none()));
    assert_eq!(read.samples, 5, "-1 twice, 0, and two floats");
}

#[test]
fn a_small_value_is_in_the_entry_where_the_stack_pointer_is_near() {
    #[inline(never)]
    fn near() {
        let _scope = scope!("near");
        plot!("near or far", 2);
    }
    #[inline(never)]
    fn far() {
        let room = [1_u8; 700_000];
        let _scope = scope!("far");
        plot!("near or far", black_box(&room)[699_999] + 2);
    }
    hook::install();
    let (_plots, plots) = On::new("near or far");
    let (_near, near_sites) = On::new("near");
    let (_far, far_sites) = On::new("far");
    let (tid, ()) = on_thread(|| {
        near();
        far();
        near();
    });
    let read = written_by(tid);
    assert_eq!(read.values(&plots).concat(), [2, 3, 2]);
    assert_eq!(read.samples, 2);
    let sps = |sites: &[u64]| {
        let of = read.entries.iter().filter(|entry| sites.contains(&entry.event.site));
        of.map(|entry| entry.event.sp).collect::<Vec<_>>()
    };
    let [first, far, last] = sps(&plots)[..] else { panic!("three plots") };
    assert_eq!([vec![first, last], vec![far]], [sps(&near_sites), sps(&far_sites)]);
}

#[test]
fn a_scope_with_values_ends_like_any_other() {
    #[inline(never)]
    fn valued(n: u64) -> u64 {
        let _scope = scope!("valued", n = n);
        if n == 0 { 0 } else { black_box(valued(n - 1)) + 1 }
    }
    hook::install();
    let (_on, sites) = On::new("valued");
    let (tid, _) = on_thread(|| valued(299));
    let events = events_of(tid, &sites);
    assert_eq!(events.len(), 600);
    let (entries, exits): (Vec<_>, Vec<_>) = events.into_iter().partition(|event| !event.exit);
    let sps = |events: &[support::Event]| events.iter().map(|event| event.sp).collect::<Vec<_>>();
    assert!(sps(&entries).into_iter().eq(sps(&exits).into_iter().rev()));
    // The innermost one is a whole call, behind its value.
    let pages = hook::flushed(0, |of| of == tid);
    assert_eq!(pages.iter().map(|page| page.whole()).sum::<u64>(), 1);
    let values = written_by(tid).values(&sites).concat();
    assert_eq!(values, (0..300).rev().collect::<Vec<_>>());
}

#[test]
fn a_point_has_the_stack_pointer_of_its_function() {
    #[inline(never)]
    fn around() {
        let _scope = scope!("around points");
        message!("within");
        frame!("within too");
    }
    hook::install();
    let on = ["around points", "within", "within too"].map(On::new);
    let (tid, ()) = on_thread(around);
    let [around, message, frame] = on.each_ref().map(|(_, sites)| events_of(tid, sites));
    assert_eq!((around.len(), message.len(), frame.len()), (2, 1, 1));
    assert_eq!([message[0].sp, frame[0].sp], [around[0].sp; 2]);
    let times = [around[0], message[0], frame[0], around[1]].map(|event| event.time);
    assert!(times.is_sorted());
}

#[test]
fn messages_come_through() {
    hook::install();
    let (_on, plain) = On::new("plain text: 100 %, \"quoted\" \\ ü");
    let (_on, formatted) = On::new("{number} of {:>3}{{}}{}");
    let (_on, empty) = On::new("{}");
    let (tid, ()) = on_thread(|| {
        message!("plain text: 100 %, \"quoted\" \\ ü");
        for number in [-5, 1234] {
            message!("{number} of {:>3}{{}}{}", 'ß', "…");
        }
        for text in ["", "1234567", "12345678"] {
            message!(level = Info, "{}", text);
        }
    });
    let read = written_by(tid);
    assert_eq!(read.texts(&plain), ["plain text: 100 %, \"quoted\" \\ ü"]);
    assert_eq!(read.texts(&formatted), ["-5 of   ß{}…", "1234 of   ß{}…"]);
    assert_eq!(read.texts(&empty), ["", "1234567", "12345678"]);
    let taken =
        support::hook::flushed(0, |of| of == tid).iter().map(|page| page.taken()).sum::<u64>();
    // Pieces: 3, 1 and 1 (12 and 14 bytes), 1, 1 and 1; an entry each.
    let bytes = ["plain text: 100 %, \"quoted\" \\ ü", "-5 of   ß{}…", "1234 of   ß{}…"];
    let pieces = bytes.iter().map(|text| text.len().div_ceil(15) as u64).sum::<u64>() + 3;
    assert_eq!(taken, pieces + 6, "each slot counts");
}

#[test]
fn a_long_message_is_cut_between_characters() {
    hook::install();
    let (_on, sites) = On::new("long: {}");
    let (tid, ()) = on_thread(|| {
        for (character, count) in [('x', 1002), ('x', 1003), ('ä', 600), ('日', 1000)] {
            message!("long: {}", character.to_string().repeat(count));
        }
    });
    let read = written_by(tid);
    let texts = read.texts(&sites);
    assert_eq!(texts[0], format!("long: {}", "x".repeat(1002)));
    assert_eq!(texts[0].len(), Mark::LONGEST_TEXT);
    assert_eq!(texts[1], format!("long: {}…", "x".repeat(999)));
    assert_eq!(texts[2], format!("long: {}…", "ä".repeat(499)));
    assert_eq!(texts[3], format!("long: {}…", "日".repeat(333)));
}

#[test]
fn what_does_not_fit_is_written_whole_into_the_emptied_buffer() {
    hook::install();
    let (_on, message) = On::new("{:0>1$}");
    let (_on, plots) = On::new("between");
    let (tid, ()) = on_thread(|| {
        for length in 0..1008 {
            message!("{:0>1$}", length, length);
            plot!("between", length);
        }
    });
    let read = written_by(tid);
    let texts = read.texts(&message);
    assert_eq!(texts.len(), 1008);
    for (length, text) in texts.iter().enumerate() {
        assert_eq!(**text, format!("{length:0>length$}"));
    }
    assert_eq!(read.values(&plots).concat(), (0..1008).collect::<Vec<_>>());
    let pages = hook::flushed(0, |of| of == tid);
    assert!(read.fillers > pages.len(), "{} fillers in {} pages", read.fillers, pages.len());
    // Counted is what was taken.
    let first = pages[0].events();
    let counted = pages.last().map(|page| page.events() + page.taken() - first);
    let slots = pages.iter().map(|page| page.taken()).sum::<u64>();
    assert_eq!(counted, Some(slots));
}

#[test]
fn frames_are_points_without_values() {
    hook::install();
    let (_on, frames) = On::new("frame");
    let (_on, physics) = On::new("physics");
    let (tid, ()) = on_thread(|| {
        for n in 0..400 {
            frame!();
            if n % 4 == 0 {
                frame!("physics");
            }
        }
    });
    assert_eq!(events_of(tid, &frames).len(), 400);
    assert_eq!(events_of(tid, &physics).len(), 100);
    let read = written_by(tid);
    assert!(read.entries.iter().all(|entry| entry.values.is_empty() && entry.text.is_none()));
}

#[test]
fn a_thread_has_the_name_that_it_gives_itself() {
    let (_, name) = on_thread(|| {
        thread_name("a worker of yörk");
        std::fs::read_to_string("/proc/thread-self/comm").unwrap()
    });
    assert_eq!(name, "a worker of yö\n");
    let (_, names) = on_thread(|| {
        let (number, name) = (12, "yö");
        let named = || std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        thread_name!("worker {number}");
        let first = named();
        // The second character of "yö" does not fit, and what comes behind it is not taken, either.
        thread_name!("{:>13}{}{number}", number, name);
        [first, named()]
    });
    assert_eq!(names, ["worker 12\n", "           12y\n"]);
}

/// The calls that are interrupted: each takes more than a thousand signals.
const ROUNDS: u64 = 6;

static HANDLED: AtomicU64 = AtomicU64::new(0);
static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_trap(_: i32) {
    let n = SIGNALS.fetch_add(1, Relaxed);
    // Now and then one overfills the buffer.
    let count = if n.is_multiple_of(61) { 40 } else { 1 };
    for _ in 0..count {
        let n = HANDLED.fetch_add(1, Relaxed);
        message!("handled {:>1$}", n, (n % 50) as usize);
        plot!("handled", n);
    }
}

/// The CPU's trap flag sends a signal after every instruction of points and of flushes.
#[test]
fn a_signal_after_every_instruction() {
    hook::install();
    let on = ["handled {:>1$}", "handled", "trapped {n}", "trapped", "trapped scope"].map(On::new);
    // SAFETY: a handler that formats numbers and writes them.
    unsafe { libc::signal(libc::SIGTRAP, on_trap as *const () as usize) };
    let (tid, ()) = on_thread(|| {
        // SAFETY: sets the trap flag, whose signal has a handler, and clears it again.
        unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
        for n in 0..ROUNDS {
            let _scope = scope!("trapped scope", a = n, b = -1);
            message!("trapped {n}");
            plot!("trapped", n);
        }
        // SAFETY: likewise.
        unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    });
    let read = written_by(tid);
    let [handled_text, handled, text, plots, scopes] = on.each_ref().map(|(_, sites)| &sites[..]);
    let all = HANDLED.load(Relaxed);
    let mut found = read.values(handled).concat();
    found.sort_unstable();
    assert!(found.iter().copied().eq(0..all), "{} of {all}", found.len());
    let mut texts = read.texts(handled_text);
    let number = |text: &&str| text["handled ".len()..].trim().parse::<u64>().unwrap();
    texts.sort_by_key(number);
    assert!(texts.iter().map(number).eq(0..all), "{} of {all}", texts.len());
    let expected = (0..ROUNDS).map(|n| format!("trapped {n}")).collect::<Vec<_>>();
    assert_eq!(read.texts(text), expected);
    assert_eq!(read.values(plots).concat(), (0..ROUNDS).collect::<Vec<_>>());
    let expected = (0..ROUNDS).map(|n| [n, u64::MAX]).collect::<Vec<_>>();
    assert_eq!(read.values(scopes), expected);
    assert_eq!(events_of(tid, scopes).len() as u64, 2 * ROUNDS);
    let pages = hook::flushed(0, |of| of == tid);
    assert!(pages.len() > 50 && SIGNALS.load(Relaxed) > 1000, "{} flushes", pages.len());
}
