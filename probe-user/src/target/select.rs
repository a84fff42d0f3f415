//! From what the user asked for to the functions that are to be traced.

use super::nearest::nearest;
use super::object::Object;
use super::pattern::{Pattern, PatternError};
use super::symbols::Function;
use super::usdt::UsdtProbe;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

/// How many functions are taken at most unless the user raises it.
pub const DEFAULT_LIMIT: usize = 10_000;

/// Why nothing can be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(
        "no function or probe was chosen; say which with -f GLOB or -u GLOB, `ctrace list` shows them"
    )]
    NothingAsked,
    #[error("{}", NotFound::line(.0))]
    NothingFound(Vec<NotFound>),
    #[error(
        "{found} functions match, more than the limit of {limit}; narrow the pattern, exclude some with -x GLOB, or raise the limit with --max-functions {found}"
    )]
    TooMany { found: usize, limit: usize },
}

/// A pattern that matched nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// As the user typed it.
    pub pattern: String,
    pub kind: Wanted,
    /// File names of the objects that were searched.
    pub searched: Vec<String>,
    /// How many functions, or USDT probes, these have.
    pub candidates: usize,
    /// The closest names.
    pub nearest: Vec<String>,
    /// What may explain it, each a short sentence.
    pub hints: Vec<String>,
}

/// What a pattern is to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Function,
    Usdt,
}

/// The parsed SELECT of a command line.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    functions: Vec<Pattern>,
    usdt: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// A function, by its object's place in the list that was searched, and its place in the object's
/// functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selected {
    pub object: usize,
    pub index: usize,
}

/// What was selected, in the order of objects and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub functions: Vec<Selected>,
    pub usdt: Vec<Selected>,
    /// Patterns that matched nothing, while others did: worth a warning.
    pub unmatched: Vec<NotFound>,
    /// What else the user should know, each a short sentence.
    pub notes: Vec<String>,
    /// Functions and probes that -x took away.
    pub excluded: usize,
}

impl Selection {
    /// The functions with their objects.
    pub fn functions<'a>(
        &'a self,
        objects: &'a [Object],
    ) -> impl Iterator<Item = (&'a Object, &'a Function)> {
        self.functions.iter().filter_map(|selected| {
            let object = objects.get(selected.object)?;
            Some((object, object.functions().get(selected.index)?))
        })
    }

    /// The USDT probes with their objects.
    pub fn usdt<'a>(
        &'a self,
        objects: &'a [Object],
    ) -> impl Iterator<Item = (&'a Object, &'a UsdtProbe)> {
        self.usdt.iter().filter_map(|selected| {
            let object = objects.get(selected.object)?;
            Some((object, object.usdt_probes().get(selected.index)?))
        })
    }
}

impl Selector {
    /// Parses `-f`, `-u` and `-x`.
    pub fn parse(
        functions: &[String],
        usdt: &[String],
        exclude: &[String],
    ) -> Result<Self, SelectError> {
        let parse = |texts: &[String]| -> Result<Vec<Pattern>, PatternError> {
            texts.iter().map(|text| Pattern::parse(text)).collect()
        };
        Ok(Self { functions: parse(functions)?, usdt: parse(usdt)?, exclude: parse(exclude)? })
    }

    /// Whether neither functions nor USDT probes are asked for.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.usdt.is_empty()
    }

    /// Looks everything up. `objects` are those of one process, with the program itself marked
    /// as main; at most `limit` functions and probe sites are taken.
    pub fn select(&self, objects: &[Object], limit: usize) -> Result<Selection, SelectError> {
        if self.is_empty() {
            return Err(SelectError::NothingAsked);
        }
        let mut selection = Selection::default();
        let mut functions = BTreeSet::new();
        for pattern in &self.functions {
            let (found, searched) = search(pattern, objects, matching_functions);
            if found.is_empty() {
                selection.unmatched.push(NotFound::function(pattern, objects, &searched));
            } else if pattern.is_literal() {
                // What was found is not all that goes by this name.
                let found_in = searched.iter().map(|object| &objects[*object]);
                selection.notes.extend(found_in.filter_map(|o| chosen_at_load(pattern, o)));
            }
            functions.extend(found);
        }
        let mut usdt = BTreeSet::new();
        for pattern in &self.usdt {
            let (found, searched) = search(pattern, objects, |pattern, object| {
                matching(object.usdt_probes(), |probe| pattern.matches_usdt(probe))
            });
            if found.is_empty() {
                selection.unmatched.push(NotFound::usdt(pattern, objects, &searched));
            }
            usdt.extend(found);
        }
        let before = functions.len() + usdt.len();
        if before == 0 {
            return Err(SelectError::NothingFound(selection.unmatched));
        }
        for exclude in &self.exclude {
            functions.retain(|selected: &Selected| {
                let object = &objects[selected.object];
                !(exclude.matches_object(object)
                    && exclude.matches_function(&object.functions()[selected.index]))
            });
            usdt.retain(|selected: &Selected| {
                let object = &objects[selected.object];
                !(exclude.matches_object(object)
                    && exclude.matches_usdt(&object.usdt_probes()[selected.index]))
            });
        }
        let found = functions.len() + usdt.len();
        selection.excluded = before - found;
        if found == 0 {
            let mut none = NotFound::all_excluded(&self.functions, &self.usdt, before);
            none.hints.push("-x took all of them away".to_owned());
            return Err(SelectError::NothingFound(vec![none]));
        }
        if found > limit {
            return Err(SelectError::TooMany { found, limit });
        }
        selection.functions = functions.into_iter().collect();
        selection.usdt = usdt.into_iter().collect();
        Ok(selection)
    }
}

/// Where a pattern matches, and the objects that were searched: those it names, else the main
/// executable, and the libraries only when nothing matches there.
fn search(
    pattern: &Pattern,
    objects: &[Object],
    matches: impl Fn(&Pattern, &Object) -> Vec<usize>,
) -> (Vec<Selected>, Vec<usize>) {
    let all = |pick: &dyn Fn(&Object) -> bool| -> Vec<usize> {
        (0..objects.len()).filter(|object| pick(&objects[*object])).collect()
    };
    let find = |places: &[usize]| -> Vec<Selected> {
        let in_object = |object: usize| {
            let found = matches(pattern, &objects[object]);
            found.into_iter().map(move |index| Selected { object, index })
        };
        places.iter().copied().flat_map(in_object).collect()
    };
    if pattern.names_object() {
        let named = all(&|object| pattern.matches_object(object));
        return (find(&named), named);
    }
    let main = all(&Object::is_main);
    let found = find(&main);
    if !found.is_empty() {
        return (found, main);
    }
    (find(&all(&|object| !object.is_main())), all(&|_| true))
}

fn matching<T>(items: &[T], matches: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..items.len()).filter(|index| matches(&items[*index])).collect()
}

/// Demangling is most of the work: large objects are shared out over two or more threads.
fn matching_functions(pattern: &Pattern, object: &Object) -> Vec<usize> {
    const WORTH_A_THREAD: usize = 20_000;
    let functions = object.functions();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    if threads == 1 || functions.len() < WORTH_A_THREAD {
        return matching(functions, |function| pattern.matches_function(function));
    }
    let share = functions.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = functions
            .chunks(share)
            .map(|part| scope.spawn(|| matching(part, |f| pattern.matches_function(f))))
            .collect();
        let parts = workers.into_iter().map(|worker| worker.join().unwrap_or_default());
        parts
            .enumerate()
            .flat_map(|(part, found)| found.into_iter().map(move |index| part * share + index))
            .collect()
    })
}

const NEAREST: usize = 5;

impl NotFound {
    fn function(pattern: &Pattern, objects: &[Object], searched: &[usize]) -> Self {
        let searched: Vec<&Object> = searched.iter().map(|object| &objects[*object]).collect();
        let names = searched.iter().flat_map(|object| {
            object.functions().iter().flat_map(|function| {
                std::iter::once(&**function.name()).chain(function.aliases().iter().map(|a| &**a))
            })
        });
        let mut hints = Vec::new();
        for object in &searched {
            hints.extend(chosen_at_load(pattern, object));
            if let Some(reason) = &object.symbols().broken {
                hints.push(format!("the symbols of {} are broken: {reason}", object.name()));
            }
            hints.extend(stripped_hint(object).filter(|_| object.is_main() || searched.len() == 1));
        }
        Self {
            pattern: pattern.text.clone(),
            kind: Wanted::Function,
            nearest: nearest(&pattern.stem, names, NEAREST),
            candidates: searched.iter().map(|object| object.functions().len()).sum(),
            searched: searched.iter().map(|object| object.name().to_string()).collect(),
            hints: hints.into_iter().chain(object_hint(pattern, objects, &searched)).collect(),
        }
    }

    fn usdt(pattern: &Pattern, objects: &[Object], searched: &[usize]) -> Self {
        let searched: Vec<&Object> = searched.iter().map(|object| &objects[*object]).collect();
        let probes: Vec<&UsdtProbe> =
            searched.iter().flat_map(|object| object.usdt_probes()).collect();
        let names: Vec<String> = probes.iter().map(|probe| probe.full_name()).collect();
        let broken: usize = searched.iter().map(|object| object.broken_usdt_notes()).sum();
        let broken = (broken > 0).then(|| format!("{broken} notes of probes are broken"));
        let wanted = pattern.stem.rsplit(':').next().unwrap_or_default();
        let mut close = nearest(wanted, probes.iter().map(|probe| &*probe.name), NEAREST);
        for name in &mut close {
            if let Some(full) = names.iter().find(|full| full.ends_with(&format!(":{name}"))) {
                name.clone_from(full);
            }
        }
        Self {
            pattern: pattern.text.clone(),
            kind: Wanted::Usdt,
            nearest: close,
            candidates: probes.len(),
            searched: searched.iter().map(|object| object.name().to_string()).collect(),
            hints: broken.into_iter().chain(object_hint(pattern, objects, &searched)).collect(),
        }
    }

    fn all_excluded(functions: &[Pattern], usdt: &[Pattern], candidates: usize) -> Self {
        let texts: Vec<&str> = functions.iter().chain(usdt).map(|p| p.text.as_str()).collect();
        Self {
            pattern: texts.join("`, `"),
            kind: if functions.is_empty() { Wanted::Usdt } else { Wanted::Function },
            searched: Vec::new(),
            candidates,
            nearest: Vec::new(),
            hints: Vec::new(),
        }
    }

    fn line(all: &[Self]) -> String {
        all.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Wanted::Function => "function",
            Wanted::Usdt => "USDT probe",
        };
        write!(f, "no {kind} matches `{}`", self.pattern)?;
        if !self.searched.is_empty() {
            const SHOWN: usize = 5;
            let mut shown =
                self.searched.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
            if self.searched.len() > SHOWN {
                write!(shown, " and {} more", self.searched.len() - SHOWN)?;
            }
            write!(f, " (searched {} in {shown})", count(self.candidates, kind))?;
        }
        if !self.nearest.is_empty() {
            write!(f, "; close to it: {}", self.nearest.join(", "))?;
        }
        for hint in &self.hints {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A pattern that names an object which is not there.
fn object_hint(pattern: &Pattern, objects: &[Object], searched: &[&Object]) -> Option<String> {
    if !(pattern.names_object() && searched.is_empty()) {
        return None;
    }
    let names: Vec<&str> = objects.iter().map(|object| &**object.name()).collect();
    Some(format!("no object has this name; there are {}", names.join(", ")))
}

/// A function whose code is chosen when the program starts, so that its name leads nowhere.
fn chosen_at_load(pattern: &Pattern, object: &Object) -> Option<String> {
    let name = object.symbols().chosen_at_load.iter().find(|name| pattern.matches_name(name))?;
    Some(format!(
        "{name} of {} is chosen among several implementations at start (IFUNC): trace these, \
         they have other names, such as *{name}*",
        object.name()
    ))
}

fn stripped_hint(object: &Object) -> Option<String> {
    if !object.is_stripped() || object.debug_file().path().is_some() {
        return None;
    }
    let paths: Vec<String> =
        object.debug_file().looked_at.iter().map(|(path, _)| path.display().to_string()).collect();
    let looked = match paths.as_slice() {
        [] => "it names no debug file".to_owned(),
        paths => format!("looked for its debug file at {}", paths.join(", ")),
    };
    Some(format!(
        "{} is stripped, its own functions have no names left: install its debug symbols (-dbgsym \
         or -debuginfo package) or use an unstripped build; {looked}",
        object.name()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Built, compile, system_libc};
    use super::*;

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
        let owned =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Selector::parse(&owned(functions), &owned(usdt), &owned(exclude)).unwrap()
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
        // In the libraries only when nothing matches in the program.
        check(&["malloc"], &[], &["malloc@libc"]);
        check(&["malloc*"], &[], &["malloc_like"]);
        check(&["malloc@libc.so.6"], &[], &["malloc@libc"]);
        check(&["malloc@libc", "main"], &[], &["main", "malloc@libc"]);
        check(&["/^parse_/"], &["/body$/"], &["parse_header"]);
        check(&["{main,malloc}@*"], &["main@libc*"], &["main", "malloc@libc"]);
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
        assert!(line.contains("stripped") && line.contains(".build-id"), "{line}");
    }
}
