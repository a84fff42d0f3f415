//! Explains why a pattern matched nothing: what else of its name there is, and how that is chosen.

use super::pattern::Pattern;
use crate::target::names::demangle::is_part;
use crate::target::object::{Object, symbols::Function};
use crate::ui::text;

/// Returns the ways to what was probably meant by the name of a function.
pub(super) fn of_function(pattern: &Pattern, searched: &[&Object]) -> Vec<String> {
    let chosen = searched.iter().find_map(|object| chosen_at_load(pattern, object));
    let ways = [
        chosen,
        case_hint(pattern, searched),
        comma_hint(pattern, searched),
        namespace_hint(pattern, searched),
        marker_hint(pattern, searched),
        usdt_hint(pattern, searched),
    ];
    ways.into_iter().flatten().collect()
}

/// Returns all names of functions.
pub(super) fn names_of<'a>(
    objects: impl IntoIterator<Item = &'a Object>,
) -> impl Iterator<Item = &'a str> {
    objects.into_iter().flat_map(Object::functions).flat_map(names)
}

/// Returns the name of a function, and its other names.
pub(super) fn names(function: &Function) -> impl Iterator<Item = &str> {
    std::iter::once(&**function.name()).chain(function.aliases().iter().map(|alias| &**alias))
}

/// Explains a function whose implementation is chosen at load, so that its name leads nowhere.
pub(crate) fn chosen_at_load(pattern: &Pattern, object: &Object) -> Option<String> {
    let name = object.symbols().chosen_at_load.iter().find(|name| pattern.matches_name(name))?;
    Some(format!(
        "{name} of {} is chosen among several implementations at start (IFUNC): trace these, \
         they have other names, such as *{name}*",
        object.name()
    ))
}

/// Explains a pattern that names an absent object.
pub(super) fn object_hint(
    pattern: &Pattern,
    objects: &[Object],
    searched: &[&Object],
) -> Option<String> {
    if !(pattern.names_object() && searched.is_empty()) {
        return None;
    }
    let names: Vec<String> = objects.iter().map(|object| object.name().to_string()).collect();
    Some(format!(
        "no object has this name; there are {} (--wait awaits libraries that are loaded later)",
        text::first_few(10, &names)
    ))
}

/// Explains a pattern that differs from a name in upper and lower case only.
fn case_hint(pattern: &Pattern, searched: &[&Object]) -> Option<String> {
    let lower = Pattern::parse(&pattern.text.to_lowercase()).ok()?;
    let mut functions = searched.iter().flat_map(|object| object.functions());
    let function =
        functions.find(|it| !is_part(it.raw()) && lower.matches_name(&it.name().to_lowercase()))?;
    Some(format!("`{}` matches but for upper and lower case", function.name()))
}

/// Explains names that are joined by commas.
fn comma_hint(pattern: &Pattern, searched: &[&Object]) -> Option<String> {
    let names: Vec<&str> = pattern.text.split(',').map(str::trim).collect();
    let is_there = |name: &&str| {
        let of = Pattern::parse(name).ok();
        of.is_some_and(|of| names_of(searched.iter().copied()).any(|name| of.matches_name(name)))
    };
    (names.len() > 1 && names.iter().all(is_there))
        .then(|| format!("a comma joins no names: give {} an option each", names.join(" and ")))
}

/// Explains the name of a namespace or a class.
fn namespace_hint(pattern: &Pattern, searched: &[&Object]) -> Option<String> {
    let begin = format!("{}::", pattern.stem);
    let within = |name: &str| pattern.is_literal() && name.starts_with(&begin);
    names_of(searched.iter().copied()).any(within).then(|| {
        format!("`{}` is a namespace or a type: choose its functions with '{begin}*'", pattern.stem)
    })
}

/// Explains a name of the source that no function of the program has.
pub(super) fn inlined_hint(pattern: &Pattern, object: &Object) -> Option<String> {
    let last = pattern.by_last_part();
    let matches = |name: &str| {
        pattern.matches_name(name) || last.as_ref().is_some_and(|last| last.matches_name(name))
    };
    let (name, into) = object.inlined_like(matches)?;
    Some(format!(
        "`{name}` is there, but inlined into {into}: trace that, keep the compiler from inlining it \
         (noinline), or mark it"
    ))
}

/// Explains a scope's name where a function's was expected.
fn marker_hint(pattern: &Pattern, searched: &[&Object]) -> Option<String> {
    let mut scopes = searched.iter().flat_map(|object| &object.markers().scopes);
    let scope = scopes.find(|scope| pattern.matches_marker(scope))?;
    Some(format!("there is a marker scope {}: choose those with -m", scope.full_name()))
}

/// Explains the name of a USDT probe, or of a call of such probes, where a function's was expected.
fn usdt_hint(pattern: &Pattern, searched: &[&Object]) -> Option<String> {
    let mut probes = searched.iter().flat_map(|object| object.usdt_probes());
    let probe = probes.find(|probe| pattern.matches_usdt(probe))?;
    let call = probe.part.as_ref().filter(|_| !pattern.matches_usdt_itself(probe));
    let name = match call {
        Some(part) => format!("{}:{}", probe.provider, part.call),
        None => probe.full_name(),
    };
    let (what, choice) = match call {
        _ if !pattern.is_literal() => ("matches as a USDT probe", &pattern.text),
        Some(_) => ("is a pair of USDT probes", &name),
        None => ("is a USDT probe", &name),
    };
    let values = match pattern.values {
        Some(_) => format!(
            ", and read its arguments with --arg '{choice}: …' (--ret and --where are for functions)"
        ),
        None => String::new(),
    };
    Some(format!("{name} {what}: choose it with -u '{choice}'{values}"))
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::{compile, has_sdt_header};
    use crate::target::select::{Patterns, Selector, ValuesOf};

    #[test]
    fn a_usdt_probe_in_place_of_a_function_is_told_with_its_provider() {
        if !has_sdt_header() {
            return;
        }
        let source = "
            #include <sys/sdt.h>
            int main(int c, char **v) {
                DTRACE_PROBE1(shop, query__start, v[0]);
                DTRACE_PROBE1(shop, query__done, c);
                DTRACE_PROBE1(shop, idle, c);
            }
        ";
        let objects = [compile("gcc -O1 -s", "c", source).object()];
        let told = |patterns: Patterns<'_>| {
            let selector = Selector::parse(patterns).expect("patterns");
            selector.select(&objects, 9).expect_err("no function has this name").to_string()
        };
        let of_values = |pattern| {
            let values = [ValuesOf { pattern, is_usdt: false }];
            told(Patterns { values: &values, ..Patterns::default() })
        };
        let of_functions = |pattern: &str| {
            told(Patterns { functions: &[pattern.to_owned()], ..Patterns::default() })
        };
        let query = of_values("query");
        let pair = "; shop:query is a pair of USDT probes: choose it with -u 'shop:query', and read its \
                    arguments with --arg 'shop:query: …' (--ret and --where are for functions)";
        assert!(query.ends_with(pair), "{query}");
        assert!(!query.contains("is stripped"), "{query}");
        let idle = of_functions("idle");
        assert!(
            idle.ends_with("; shop:idle is a USDT probe: choose it with -u 'shop:idle'"),
            "{idle}"
        );
        let glob = of_functions("query*");
        assert!(glob.ends_with("as a USDT probe: choose it with -u 'query*'"), "{glob}");
        assert!(of_functions("nothing").contains("is stripped"));
    }
}
