//! Shortens long names.
//!
//! Arguments go first, then template parameters, then characters in the middle. The start of a name
//! tells where the function lives, and the end what it does.

use ctrace_core::{
    function::{FunctionKind, qualified},
    names::as_written,
    report::{FunctionReport, render::clean::clean},
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns a function's name for tables: a marker with its group, a USDT probe with its provider.
pub(crate) fn bare(function: &FunctionReport) -> String {
    clean(&function.qualified()).into_owned()
}

/// Returns the same for a place that has no column of the armed share of the time: that follows if it is not
/// all, in brackets that no shortening takes for parameters.
pub(crate) fn label(function: &FunctionReport) -> String {
    let name = bare(function);
    match function.sampled {
        Some(sampled) => format!("{name} [armed {:.1} %]", sampled.armed_percent),
        None => name,
    }
}

/// Returns the name without the armed share, from its parts.
pub(crate) fn label_of(kind: FunctionKind, group: Option<&str>, name: &str) -> String {
    clean(&qualified(kind, group, name)).into_owned()
}

/// Returns the number of columns that `text` takes on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Shortens `name` to at most `room` columns.
pub(crate) fn shorten(name: &str, room: usize) -> String {
    if width(name) <= room {
        return name.to_owned();
    }
    let bare = without_parameters(name);
    if width(&bare) <= room {
        return bare;
    }
    let plain = plain(name);
    if width(&plain) <= room {
        return plain;
    }
    match without_import_path(&plain) {
        Some(short) if width(&short) <= room => short,
        _ => cut_middle(&plain, room),
    }
}

/// Shortens a name of debug information as the names of functions are: as it is written in the source, and to at
/// most `room` columns.
pub(crate) fn of_source(name: &str, room: usize) -> String {
    shorten(&as_written(name).unwrap_or_else(|| name.to_owned()), room)
}

/// Returns a name of Go without the path of its package: the last part says which one it is.
fn without_import_path(name: &str) -> Option<String> {
    let (_, own) = name.rsplit_once('/').filter(|(_, own)| own.contains('.'))?;
    Some(format!("…/{own}"))
}

/// Leaves out parameters. Those of types inside template arguments stay: the name would be another one.
pub(super) fn without_parameters(name: &str) -> String {
    without(name, '(', ')', "")
}

/// Returns the name without parameters and arguments of templates, which is that of all overloads
/// and instances.
pub(crate) fn plain(name: &str) -> String {
    without(&without_parameters(name), '<', '>', "<…>")
}

/// Returns the end of a file's path, in at most `room` columns.
pub(crate) fn cut_start(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    format!("…{}", tail(text, room.saturating_sub(1)))
}

/// Returns the beginning of `text`, in at most `room` columns.
pub(crate) fn cut_end(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    match room {
        0 => String::new(),
        _ => format!("{}…", head(text, room - 1)),
    }
}

/// Replaces the middle of `text` by `…`, to fit into `room` columns.
pub(crate) fn cut_middle(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let Some(left) = room.checked_sub(1) else { return String::new() };
    let (start, end) = (head(text, left / 2), tail(text, left - left / 2));
    format!("{}…{}", start.trim_end_matches('…'), end.trim_start_matches('…'))
}

pub(crate) fn head(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room {
            return &text[..at];
        }
    }
    text
}

fn tail(text: &str, room: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices().rev() {
        used += c.width().unwrap_or(0);
        if used > room {
            return &text[at + c.len_utf8()..];
        }
    }
    text
}

/// Replaces each outermost bracket after the first character of `name`. Names with unmatched
/// brackets, such as operators, stay unchanged.
fn without(name: &str, open: char, close: char, instead: &str) -> String {
    // The last is a receiver in Go.
    let protected = ["operator", "(anonymous namespace)", "{closure", "->", ".(*"];
    if protected.iter().any(|word| name.contains(word)) {
        return name.to_owned();
    }
    let mut out = String::with_capacity(name.len());
    let (mut depth, mut in_template, mut end) = (0_usize, 0_usize, 0);
    for (at, c) in name.char_indices() {
        if open != '<' && depth == 0 {
            match c {
                '<' => in_template += 1,
                '>' => in_template = in_template.saturating_sub(1),
                _ => {}
            }
        }
        if c == open && in_template == 0 && (at > 0 || depth > 0) {
            if depth == 0 {
                out.push_str(instead);
            }
            depth += 1;
        } else if c == close && depth > 0 {
            depth -= 1;
            end = at + 1 + if open == '(' { qualifiers(&name[at + 1..]) } else { 0 };
        } else if depth == 0 && at >= end {
            out.push(c);
        }
    }
    if depth == 0 && in_template == 0 { out } else { name.to_owned() }
}

/// Returns how many bytes behind parameters say on which objects a method of C++ can be called.
fn qualifiers(rest: &str) -> usize {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let strip = |rest| {
        let mut all = [" const", " volatile", " &&", " &"].into_iter();
        all.find_map(|word| str::strip_prefix(rest, word)).filter(|rest| is_end(rest))
    };
    let mut behind = rest;
    while let Some(shorter) = strip(behind) {
        behind = shorter;
    }
    rest.len() - behind.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "std::vector<int, std::allocator<int>>::push_back(int const&)";

    #[test]
    fn what_matters_least_goes_first() {
        assert_eq!(shorten(LONG, 60), LONG);
        assert_eq!(shorten(LONG, 50), "std::vector<int, std::allocator<int>>::push_back");
        assert_eq!(shorten(LONG, 30), "std::vector<…>::push_back");
        assert_eq!(shorten(LONG, 13), "std::v…h_back");
    }

    /// What is printed can be given to `-f`.
    #[test]
    fn qualifiers_go_with_the_parameters() {
        let method = "app::v1::Reader::parse(std::string const&) const volatile &";
        assert_eq!(shorten(method, 30), "app::v1::Reader::parse");
        assert_eq!(
            shorten("app::Reader::parse(int) const.isra.0", 30),
            "app::Reader::parse.isra.0"
        );
        assert_eq!(
            shorten("app::Reader::parse(int) constants", 28),
            "app::Reader::parse constants"
        );
    }

    #[test]
    fn types_of_functions_stay_whole() {
        let thread = "std::thread::thread<void (&)(int), int&, void>(void (&)(int), int&)";
        assert_eq!(shorten(thread, 60), "std::thread::thread<void (&)(int), int&, void>");
        assert_eq!(shorten(thread, 30), "std::thread::thread<…>");
        let dropped = "core::ptr::drop_in_place::<(alloc::string::String, u8)>";
        assert_eq!(shorten(dropped, 50), "core::ptr::drop_in_place::<…>");
    }

    #[test]
    fn the_armed_share_stays_when_a_name_is_cut() {
        let name = "shop::priceOfEverythingInTheCart(int) [armed 19.2 %]";
        assert_eq!(shorten(name, 47), "shop::priceOfEverythingInTheCart [armed 19.2 %]");
        assert_eq!(shorten(name, 30), "shop::priceOfE… [armed 19.2 %]");
    }

    #[test]
    fn brackets_that_do_not_match_stay() {
        assert_eq!(shorten("bool operator<(A const&, B const&)", 15), "bool op…const&)");
        assert_eq!(shorten("<a::B as c::D>::eeeeeeeeee", 20), "<a::B as …eeeeeeeeee");
        assert_eq!(shorten("broken<name::without_end", 12), "broke…ut_end");
    }

    #[test]
    fn a_receiver_is_no_parameter() {
        assert_eq!(shorten("net/http.(*conn).serveHTTP", 20), "net/http.….serveHTTP");
        let long = "example.org/shop/v2/modules/orders.(*Book).Find";
        assert_eq!(shorten(long, 30), "…/orders.(*Book).Find");
        assert_eq!(shorten(long, 15), "example…k).Find");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(width("漢字"), 4);
        assert_eq!(cut_middle("漢字漢字漢字", 7), "漢…字");
        assert_eq!(cut_start("src/very/deep/main.cpp", 12), "…ep/main.cpp");
    }

    #[test]
    fn no_room_at_all() {
        for room in 0..4 {
            assert!(width(&shorten(LONG, room)) <= room.max(1));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_name_fits_any_room(name in "[ a-z:<>()…漢→\\-]{0,60}", room in 1_usize..70) {
            let short = shorten(&name, room);
            assert!(width(&short) <= room, "{short}");
            assert!(width(&cut_start(&name, room)) <= room);
        }
    }
}
