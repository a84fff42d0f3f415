use super::super::fixtures::{Built, MARKERS, compile, system_libc};
use super::super::object::symbols::Function;
use super::*;
use crate::target::markers::MarkerScope;
use std::sync::Arc;

impl Selection {
    /// Returns the functions with their objects.
    pub(crate) fn functions<'a>(
        &'a self,
        objects: &'a [Object],
    ) -> impl Iterator<Item = (&'a Object, &'a Function)> {
        self.functions.iter().filter_map(|selected| {
            let object = objects.get(selected.object)?;
            Some((object, object.functions().get(selected.index)?))
        })
    }

    /// Returns the marker scopes with their objects.
    pub(crate) fn markers<'a>(
        &'a self,
        objects: &'a [Object],
    ) -> impl Iterator<Item = (&'a Object, &'a MarkerScope)> {
        self.markers.iter().filter_map(|selected| {
            let object = objects.get(selected.object)?;
            Some((object, object.markers().scopes.get(selected.index)?))
        })
    }
}

const SOURCE: &str = r#"
    #define F(name) __attribute__((noinline)) int name(int x) { return x + __LINE__; }
    F(parse_header)
    F(parse_body)
    F(send_all)
    F(malloc_like)
    int main(int c, char **v) { return parse_header(c) + parse_body(c) + send_all(c) + malloc_like(c); }
"#;

fn objects() -> (Built, Vec<Object>) {
    let built = compile("gcc -O1", "c", SOURCE);
    let mut libc = system_libc();
    libc.set_main(false);
    let objects = vec![built.object(), libc];
    (built, objects)
}

fn selector(functions: &[&str], usdt: &[&str], exclude: &[&str]) -> Selector {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (functions, usdt, exclude) = (owned(functions), owned(usdt), owned(exclude));
    let asked =
        Patterns { functions: &functions, usdt: &usdt, exclude: &exclude, ..Patterns::default() };
    Selector::parse(asked).unwrap()
}

#[test]
fn functions_are_chosen_by_the_values_that_are_asked_for() {
    let (_built, objects) = objects();
    let functions = ["send_all".to_owned()];
    let values = &["parse_*", "/_body$/", "nothing"];
    let values = values.map(|pattern| ValuesOf { pattern, is_usdt: false });
    let asked = Patterns { functions: &functions, values: &values, ..Patterns::default() };
    let selection = Selector::parse(asked).unwrap().select(&objects, 100).unwrap();
    let mut chosen: Vec<_> = selection
        .functions
        .iter()
        .map(|it| (&**objects[it.object].functions()[it.index].name(), selection.values_of(it)))
        .collect();
    chosen.sort_unstable();
    let expected: [(&str, &[usize]); 3] =
        [("parse_body", &[0, 1]), ("parse_header", &[0]), ("send_all", &[])];
    assert_eq!(chosen, expected);
    assert_eq!(selection.unmatched.len(), 1);
}

#[test]
fn selects() {
    let (_built, objects) = objects();
    let check = |functions: &[&str], exclude: &[&str], expected: &[&str]| {
        let selection = selector(functions, &[], exclude).select(&objects, 100).unwrap();
        let names: Vec<String> = selection
            .functions(&objects)
            .map(|(object, function)| match object.is_main() {
                true => function.name().to_string(),
                false => format!("{}@libc", function.name()),
            })
            .collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{functions:?} {exclude:?}");
    };
    check(&["parse_*"], &[], &["parse_body", "parse_header"]);
    check(&["parse_*", "*_all"], &[], &["parse_body", "parse_header", "send_all"]);
    check(&["parse_*"], &["*_body"], &["parse_header"]);
    check(&["parse_*", "parse_body"], &[], &["parse_body", "parse_header"]);
    // The libraries are searched only when nothing matches in the program.
    check(&["malloc"], &[], &["malloc@libc"]);
    check(&["malloc*"], &[], &["malloc_like"]);
    check(&["malloc@libc.so.6"], &[], &["malloc@libc"]);
    check(&["malloc@libc", "main"], &[], &["main", "malloc@libc"]);
    check(&["/^parse_/"], &["/body$/"], &["parse_header"]);
    check(&["{main,malloc}@*"], &["main@libc*"], &["main", "malloc@libc"]);
}

#[test]
fn looks_in_late_libraries_for_what_the_program_has_not() {
    let (_built, mut objects) = objects();
    let late = objects.split_off(1);
    let check = |functions: &[&str], expected: &[&str]| {
        let selector = selector(functions, &[], &[]);
        let selection = selector.select(&objects, 100).unwrap();
        let selected = selector.for_late_objects(&selection).select(&late, 100);
        let selected = selected.unwrap_or_default();
        let names: Vec<&str> =
            selected.functions(&late).map(|(_, function)| &**function.name()).collect();
        assert_eq!(names, expected, "{functions:?}");
    };
    // `m*` would match in libc, too.
    check(&["m*"], &[]);
    check(&["main", "malloc"], &["malloc"]);
    check(&["m*", "malloc@libc*"], &["malloc"]);
    let selector = selector(&["main"], &[], &[]);
    let selection = selector.select(&objects, 100).unwrap();
    assert!(selector.for_late_objects(&selection).is_empty());
}

const NAMESPACES: &str = r#"
    #define F(name) __attribute__((noinline)) int name(int x) { return x + __LINE__; }
    namespace shop { F(format) F(total) F(malloc) }
    namespace log { F(format) struct Sink { static F(flush) }; }
    F(total)
    int main(int c, char **v) {
        return shop::format(c) + shop::total(c) + shop::malloc(c) + log::format(c) + total(c)
            + log::Sink::flush(c);
    }
"#;

#[test]
fn a_bare_name_stands_for_names_that_end_in_it() {
    let built = compile("g++ -O1", "cpp", NAMESPACES);
    let mut libc = system_libc();
    libc.set_main(false);
    let objects = [built.object(), libc];
    let check = |functions: &[&str], exclude: &[&str], expected: &[&str], note: &str| {
        let selection = selector(functions, &[], exclude).select(&objects, 100).unwrap();
        let mut names: Vec<String> = selection
            .functions(&objects)
            .map(|(_, function)| function.name().to_string())
            .collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{functions:?} {exclude:?}");
        assert_eq!(selection.notes.join("; "), note, "{functions:?}");
    };
    let note = "no function has the whole name `format`: it stands for *::format, here \
        shop::format, log::format";
    check(&["format"], &[], &["log::format", "shop::format"], note);
    check(&["flush@program"], &[], &["log::Sink::flush"], "");
    // A whole name wins, in the program and in its libraries.
    check(&["total"], &[], &["total"], "");
    check(&["malloc"], &[], &["malloc"], "");
    // The same for what is left out.
    check(&["shop::*"], &["format"], &["shop::malloc", "shop::total"], "");
    check(
        &["*total", "log::*"],
        &["total"],
        &["log::Sink::flush", "log::format", "shop::total"],
        "",
    );
    let error = selector(&["reformat"], &[], &[]).select(&objects[..1], 9).unwrap_err().to_string();
    assert!(error.contains("shop::format"), "the whole name is proposed: {error}");
}

#[test]
fn a_whole_name_that_was_found_stands_for_no_other_later() {
    let built = compile("g++ -O1", "cpp", NAMESPACES);
    let mut late = built.object();
    late.set_main(false);
    let late = [late];
    let (_built, objects) = objects();
    // libc has malloc, and nothing has format.
    for (function, expected) in [("malloc", 0), ("format", 2)] {
        let selector = selector(&["main", function], &[], &[]);
        let selection = selector.select(&objects, 100).unwrap();
        let selected = selector.for_late_objects(&selection).select(&late, 100);
        assert_eq!(selected.unwrap_or_default().functions.len(), expected, "{function}");
    }
}

#[test]
fn explains_what_it_did_not_find() {
    let (_built, objects) = objects();
    let error = |functions: &[&str], exclude: &[&str], limit| {
        let error = selector(functions, &[], exclude).select(&objects, limit).unwrap_err();
        let line = error.to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let line = error(&["parse_haeder@program"], &[], 10);
    assert!(line.contains("parse_header") && line.contains("in program"), "{line}");
    let line = error(&["f@nosuch.so"], &[], 10);
    assert!(line.contains("no object") && line.contains("libc.so.6"), "{line}");
    let line = error(&["parse_*"], &["*"], 10);
    assert!(line.contains("-x"), "{line}");
    let line = error(&["*"], &[], 3);
    assert!(line.contains("limit of 3") && line.contains("--max-functions"), "{line}");
    assert!(selector(&[], &[], &[]).select(&objects, 10).is_err());
    let line = error(&["memmove"], &[], 10);
    assert!(line.contains("IFUNC"), "{line}");
}

#[test]
fn keeps_what_matched_beside_what_did_not() {
    let (_built, objects) = objects();
    let selection = selector(&["main", "mian"], &["no:such"], &[]).select(&objects, 9).unwrap();
    assert_eq!(selection.functions.len(), 1);
    let unmatched: Vec<&str> = selection.unmatched.iter().map(|n| n.pattern.as_str()).collect();
    assert_eq!(unmatched, ["mian", "no:such"]);
    assert!(selection.unmatched[0].nearest.contains(&"main".to_owned()));
}

#[test]
fn says_that_a_program_is_stripped() {
    let built = compile("gcc -O1 -s", "c", SOURCE);
    let objects = [built.object()];
    let line = selector(&["parse_*"], &[], &[]).select(&objects, 9).unwrap_err().to_string();
    assert!(line.len() < 600, "{line}");
    assert!(line.contains("stripped") && line.contains(".build-id"), "{line}");
}

const MARKED: &str = r#"
    int step(int x) { SCOPE("step", "prod", 0); return x + 1; }
    int debug(int x) { SCOPE("debug", "dev", 0); return x + 1; }
    int both(int x) { SCOPE("step", "dev", 0); return x + 1; }
    int alone(int x) { SCOPE(NONE, NONE, 1); return x + 1; }
    int main(int c, char **v) { return 0; }
    RUNTIME
"#;

/// A program and a library, both with markers.
fn marked() -> (Vec<Built>, Vec<Object>) {
    let library = r#"int decode(int x) { SCOPE("decode", "prod", 0); return x; }"#;
    let built = vec![
        compile("gcc", "c", &format!("{MARKERS}{MARKED}")),
        compile("gcc -shared -fPIC", "c", &format!("{MARKERS}{library}")),
    ];
    let mut objects: Vec<Object> = built.iter().map(Built::object).collect();
    objects[1].set_main(false);
    (built, objects)
}

fn marker_selector(markers: &[&str], exclude: &[&str]) -> Selector {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (markers, exclude) = (owned(markers), owned(exclude));
    let asked = Patterns { markers: &markers, exclude: &exclude, ..Patterns::default() };
    Selector::parse(asked).unwrap()
}

#[test]
fn selects_markers() {
    let (_built, objects) = marked();
    let check = |markers: &[&str], exclude: &[&str], expected: &[&str]| {
        let selection = marker_selector(markers, exclude).select(&objects, 100).unwrap();
        let names: Vec<Arc<str>> =
            selection.markers(&objects).map(|(_, scope)| scope.full_name()).collect();
        let mut names: Vec<&str> = names.iter().map(|name| &**name).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{markers:?} {exclude:?}");
    };
    let all = ["alone", "dev/debug", "dev/step", "prod/decode", "prod/step"];
    check(&["*"], &[], &all);
    // The library is searched too, although the program has matches.
    check(&["prod/*"], &[], &["prod/decode", "prod/step"]);
    check(&["step"], &[], &["dev/step", "prod/step"]);
    check(&["prod/*", "alone"], &[], &["alone", "prod/decode", "prod/step"]);
    check(&["*"], &["dev/*", "alone"], &["prod/decode", "prod/step"]);
    check(&["*"], &["step"], &["alone", "dev/debug", "prod/decode"]);
    check(&["/step$/"], &["/^dev/"], &["prod/step"]);
}

#[test]
fn looks_for_markers_in_late_libraries_too() {
    let (_built, mut objects) = marked();
    let late = objects.split_off(1);
    let selector = marker_selector(&["prod/*"], &[]);
    let selection = selector.select(&objects, 100).unwrap();
    let selected = selector.for_late_objects(&selection).select(&late, 100).unwrap();
    assert_eq!(selected.markers.len(), 1);
}

#[test]
fn the_name_of_a_namespace_is_met_with_its_functions() {
    let built = compile("g++ -O1", "cpp", NAMESPACES);
    let objects = [built.object()];
    let line =
        |name: &str| selector(&[name], &[], &[]).select(&objects, 10).unwrap_err().to_string();
    let told = "is a namespace or a type: choose its functions with";
    assert!(line("log::Sink").contains(&format!("`log::Sink` {told} 'log::Sink::*'")));
    assert!(!line("log::Sin").contains(told));
}

#[test]
fn explains_what_markers_it_did_not_find() {
    let (_built, objects) = marked();
    let error = |selector: Selector, limit| {
        let line = selector.select(&objects, limit).unwrap_err().to_string();
        assert!(!line.contains('\n'), "{line}");
        line
    };
    let line = error(marker_selector(&["setp"], &[]), 10);
    assert!(line.contains("5 marker scopes") && line.contains("prod/step"), "{line}");
    let line = error(marker_selector(&["prdo/*"], &[]), 10);
    assert!(line.contains("close to it: prod/*"), "{line}");
    let line = error(marker_selector(&["*"], &["*"]), 10);
    assert!(line.contains("-x") && line.contains("marker"), "{line}");
    let line = error(marker_selector(&["*"], &[]), 4);
    assert!(
        line.contains("5 functions and scopes") && line.contains("--max-functions 5"),
        "{line}"
    );
    // No function has this name.
    let line = error(selector(&["prod/decode", "decode_"], &[], &[]), 10);
    assert!(line.contains("marker scope prod/decode") && line.contains("-m"), "{line}");
    let plain = [compile("gcc", "c", SOURCE).object()];
    let line = marker_selector(&["*"], &[]).select(&plain, 9).unwrap_err().to_string();
    assert!(line.contains("none of them has markers"), "{line}");
}

const OVERLOADS: &str = r#"
    #include <string>
    #define F __attribute__((noinline))
    namespace shop {
        F int format(int v) { return v + 1; }
        F int format(char *v) { return *v; }
        F int format(char const *v) { return *v + 1; }
        F int format(int v, char *const *w) { return v + *w[0]; }
        template <class T> F T twice(T v) { return v + v; }
        F std::string label(int v) { return std::string(v, 'x'); }
    }
    int main(int c, char **v) {
        return shop::format(c) + shop::format(*v) + shop::format((char const *)*v) + shop::format(c, v)
            + shop::twice(c) + shop::twice((long)c) + shop::label(c).size();
    }
"#;

/// Returns the names that a selection is shown by.
fn shown(objects: &[Object], functions: &[&str], exclude: &[&str]) -> Vec<String> {
    let selection = selector(functions, &[], exclude).select(objects, 100).unwrap();
    let rows = crate::target::list::list_functions(objects, &selection, false);
    let mut names: Vec<String> = rows.iter().map(|row| row.name.to_string()).collect();
    names.sort();
    names
}

#[test]
fn overloads_are_chosen_by_what_is_shown() {
    let built = compile("g++ -O1", "cpp", OVERLOADS);
    let objects = [built.object()];
    let all = [
        "shop::format(char const*)",
        "shop::format(char*)",
        "shop::format(int)",
        "shop::format(int, char* const*)",
    ];
    assert_eq!(shown(&objects, &["shop::format"], &[]), all);
    assert_eq!(shown(&objects, &["shop::format(*)"], &[]), all);
    // Each name means one function, although `char*` matches `char const*` as a glob.
    for name in all {
        assert_eq!(shown(&objects, &[name], &[]), [name]);
        let others: Vec<&str> = all.into_iter().filter(|other| *other != name).collect();
        assert_eq!(shown(&objects, &["shop::format"], &[name]), others);
    }
    assert_eq!(shown(&objects, &["*(char*)"], &[]), [all[0], all[1]]);
    assert_eq!(shown(&objects, &["*format*, *"], &[]), [all[3]]);
    assert_eq!(shown(&objects, &[r"/format\(int/"], &[]), [all[2], all[3]]);
}

#[test]
fn names_that_are_different_anyway_stay_short() {
    let built = compile("g++ -O1", "cpp", OVERLOADS);
    let objects = [built.object()];
    let expected = ["shop::twice<int>", "shop::twice<long>"];
    assert_eq!(shown(&objects, &["shop::twice"], &[]), expected);
    // As gdb and perf write it, and without the arguments of the template.
    for name in ["int shop::twice<int>(int)", "shop::twice<int>(int)", "shop::twice(int)"] {
        assert_eq!(shown(&objects, &[name], &[]), ["shop::twice<int>(int)"], "{name}");
    }
    assert_eq!(shown(&objects, &["shop::label"], &[]), ["shop::label"]);
    assert_eq!(shown(&objects, &["shop::label(int)"], &[]), ["shop::label(int)"]);
}

/// Functions that call each other, and libc.
const CALLS: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #define F(name, body) __attribute__((noinline)) int name(int x) { body; return x + __LINE__; }
    int (*volatile hook)(int);
    F(deepest, x += puts("deep"); x += malloc(x) == 0)
    F(deeper, x += deepest(x) * 3)
    F(middle, x += deeper(x) * 5)
    F(only_hooked, x *= 2)
    F(other, x *= 7)
    __attribute__((noinline)) int last(int x) { return middle(x + 11); }
    F(start, x += middle(x) * hook(x); x += start == 0; x += other(x) - 1)
    int main(int c, char **v) { hook = only_hooked; return start(c) + last(c); }
"#;

/// Returns what is chosen with a function among these, and the notes.
pub(super) fn chosen(
    function: &str,
    exclude: &[&str],
    ask: impl for<'a> FnOnce(Patterns<'a>) -> Patterns<'a>,
) -> (Vec<String>, Vec<String>) {
    let built = compile("gcc -O2", "c", CALLS);
    let mut libc = system_libc();
    libc.set_main(false);
    let objects = [built.object(), libc];
    let exclude: Vec<String> = exclude.iter().map(|it| (*it).to_owned()).collect();
    let functions = [function.to_owned()];
    let asked = Patterns { functions: &functions, exclude: &exclude, ..Patterns::default() };
    let selection = Selector::parse(ask(asked)).unwrap().select(&objects, 100_000).unwrap();
    let names = selection.functions(&objects).map(|(_, it)| it.name().to_string());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    (names, selection.notes)
}
