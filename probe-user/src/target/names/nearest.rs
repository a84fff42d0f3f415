//! Finds the names closest to one that was not found.

/// Names that are farther than the closest by more wrong letters than this are no guesses.
const FAR_OFF: usize = 6;

/// Returns the `limit` names most like `wanted`, the best first.
pub(crate) fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<String> {
    nearest_of(wanted, names.into_iter().map(|name| (name, 0)), limit)
}

/// Does the same for names that are farther than they look, each by its number of wrong letters.
pub(crate) fn nearest_of<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = (&'a str, usize)>,
    limit: usize,
) -> Vec<String> {
    let needle: String =
        wanted.chars().filter(|c| !matches!(c, '*' | '?')).collect::<String>().to_lowercase();
    if needle.len() < 2 {
        return Vec::new();
    }
    let last = last_part(&needle).to_owned();
    let mut best: Vec<(usize, &str)> = Vec::new();
    for (name, farther) in names {
        let Some(distance) = distance(&needle, &last, name) else { continue };
        let entry = (distance + farther, name);
        let at = best.partition_point(|seen| *seen < entry);
        if best[..at].iter().any(|(_, known)| *known == name) {
            continue;
        }
        if at < limit {
            best.retain(|(_, known)| *known != name);
            best.insert(at, entry);
            best.truncate(limit);
        }
    }
    let closest = best.first().map_or(0, |(distance, _)| *distance);
    best.retain(|(distance, _)| *distance <= closest + FAR_OFF);
    best.into_iter().map(|(_, name)| name.to_owned()).collect()
}

/// Returns the distance of a name, `None` when it is too far to be meant.
fn distance(needle: &str, last: &str, name: &str) -> Option<usize> {
    let lower = name.to_lowercase();
    let tail = last_part(&lower);
    let head = without_parameters(&lower);
    // The right function with the wrong namespace, or none.
    if tail == last {
        return Some(0);
    }
    let longest = needle.len().max(last.len());
    // `comma` is no typo of `format`.
    let tolerated = 1 + longest / 6;
    let near = |a: &str, b: &str| {
        (a.len().abs_diff(b.len()) <= tolerated)
            .then(|| strsim::damerau_levenshtein(a, b))
            .filter(|distance| *distance <= tolerated)
    };
    let typo = near(needle, head).into_iter().chain(near(last, tail)).min();
    // A part of the name: the more is left over, the greater the distance.
    let part = |wanted: &str| {
        let is_part = wanted.len() >= 3 && lower.contains(wanted);
        is_part.then(|| 2 + (lower.len() - wanted.len()) / 4)
    };
    typo.into_iter().chain(part(needle)).chain(part(last)).min()
}

/// Returns whether `wanted` is surely a name with a typing error: one letter, or two in the wrong order. Names
/// that differ in a number are different names.
pub(crate) fn is_typo(wanted: &str, name: &str) -> bool {
    const LEAST: usize = 6;
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    let (wanted, name) = (last_part(&wanted), last_part(&name));
    let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
    wanted.len() >= LEAST
        && digits(wanted) == digits(name)
        && strsim::damerau_levenshtein(wanted, name) == 1
}

/// Returns the name without its parameters and the compiler's tag before them.
fn without_parameters(name: &str) -> &str {
    let end = ["[abi:", "("].iter().filter_map(|begin| name.find(begin)).min();
    end.filter(|end| *end > 0).map_or(name, |end| &name[..end])
}

/// Returns the name without namespaces and arguments.
fn last_part(name: &str) -> &str {
    let name = without_parameters(name);
    let head = name.split(['(', '<']).find(|part| !part.is_empty()).unwrap_or(name);
    head.trim_end_matches(':').rsplit("::").next().unwrap_or(head)
}

#[cfg(test)]
mod tests {
    use super::{is_typo, nearest, nearest_of};

    const NAMES: [&str; 7] =
        ["main", "ns::compute", "compute_all", "parse_header", "parse_body", "x", "Parser::run"];

    #[track_caller]
    fn check(wanted: &str, expected: &[&str]) {
        assert_eq!(nearest(wanted, NAMES, 3), expected, "{wanted}");
    }

    #[test]
    fn finds_what_was_meant() {
        check("compute", &["ns::compute", "compute_all"]);
        check("other::compute", &["ns::compute", "compute_all"]);
        check("comptue", &["ns::compute"]);
        check("Main", &["main"]);
        check("parse_haeder", &["parse_header"]);
        check("*parse*", &["Parser::run", "parse_body", "parse_header"]);
        check("zzzzzz", &[]);
        check("mian", &["main"]);
        check("moan", &[]);
        check("*", &[]);
    }

    #[test]
    fn one_letter_is_a_typing_error_and_a_number_is_none() {
        for (wanted, name, is_one) in [
            ("sortComand", "sortCommand", true),
            ("app::wrok_it", "work_it", true),
            ("parse_v2", "parse_v1", false),
            ("lock_it", "unlock_it", false),
            ("main", "mian", false),
        ] {
            assert_eq!(is_typo(wanted, name), is_one, "{wanted}");
        }
    }

    #[test]
    fn parameters_do_not_hide_a_name() {
        let names =
            ["fromfp", "std::string::front", "shop::format[abi:cxx11](int)", "shop::comma(long)"];
        for wanted in ["shop::fromat", "shop::formt", "shop::format(long)"] {
            let found = nearest(wanted, names, 3);
            assert_eq!(found.first().map(String::as_str), Some(names[2]), "{wanted}");
        }
        assert_eq!(nearest("operator()", ["operator()", "operation"], 1), ["operator()"]);
    }

    #[test]
    fn names_that_are_farther_come_later_and_once() {
        let names =
            [("lib::total", 3), ("totals", 0), ("std::total", 3), ("total", 3), ("total", 0)];
        assert_eq!(nearest_of("x::total", names, 3), ["total", "totals", "lib::total"]);
    }
}
