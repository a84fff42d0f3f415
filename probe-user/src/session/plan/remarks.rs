//! Remarks on a selection for the user, before anything is traced.

use super::{Plan, Planner};
use crate::target::{
    object::Object,
    place::Returns,
    select::{Selection, not_found::flawed_markers},
    values::locks,
};
use ctrace_core::locks::LOCK;

/// Where Rust's standard library waits for a `Mutex` on Linux, as the two manglings name it.
const RUST_WAITS: [&str; 2] = [
    "std::sys::sync::mutex::futex::Mutex::lock_contended",
    "<std::sys::sync::mutex::futex::Mutex>::lock_contended",
];
/// How the names of the start of Rust programs begin.
const RUST_START: &str = "std::rt::lang_start";

/// Cautions a reader of durations, if functions of Go are among those selected.
pub(super) fn goroutines(objects: &[Object], selection: &Selection) -> Option<String> {
    const GO: &str = "calls of Go functions are those of goroutines, not of threads (Go 1.17 or newer): \
                      their time includes that in which the goroutine has no thread, and --thread \
                      knows them as `goroutine`";
    let is_go = |object: &Object| object.is_go();
    let has_go = selection.functions.iter().any(|it| objects.get(it.object).is_some_and(is_go));
    has_go.then(|| GO.to_owned())
}

/// Says that the locks of Rust's standard library are none of libc, if those of libc are followed in a
/// program of Rust.
pub(super) fn rust_locks(objects: &[Object], plan: &Plan) -> Option<String> {
    let is_lock_of_libc = |name: &str| locks::names().any(|known| known == name);
    let follows = plan.planned().any(|planned| {
        let info = &planned.info;
        is_lock_of_libc(&info.name) && info.values.iter().any(|value| &*value.name == LOCK)
    });
    let functions = || objects.iter().filter(|it| it.is_main()).flat_map(Object::functions);
    if !follows || !functions().any(|function| function.name().starts_with(RUST_START)) {
        return None;
    }
    let mut names = functions().map(|function| &**function.name());
    let waits = names.find(|name| RUST_WAITS.contains(name)).map_or_else(String::new, |name| {
        format!(", and the calls of -f '{name}' are the waits for a Mutex")
    });
    Some(format!(
        "--locks follows the locks of libc. Mutex, RwLock and Condvar of Rust's standard library use \
         futexes without libc and are not among them: --cpu shows how long each function was blocked on \
         futexes{waits}"
    ))
}

impl Planner {
    pub(super) fn remarks(&self, objects: &[Object], selection: &Selection) -> Vec<String> {
        let unmatched = selection.unmatched.iter();
        let mut remarks: Vec<String> = match self.awaits {
            Some(awaits) => unmatched.map(|one| one.until_later(awaits)).collect(),
            None => unmatched.map(ToString::to_string).collect(),
        };
        remarks.extend(selection.notes.iter().cloned());
        if self.selector.asks_for_markers() {
            remarks.extend(objects.iter().filter_map(flawed_markers));
        }
        let unwinds = self.guarding.may_unwind() && !self.guarding.guards();
        let by_force = self.returns == Returns::ReturnProbe && unwinds;
        if by_force && !selection.functions.is_empty() {
            remarks.push(
                "--returns uretprobe: an exception or a panic that passes through a traced function \
                 kills the program; --returns auto avoids it"
                    .to_owned(),
            );
        }
        if !selection.markers.is_empty() && !self.has_runtime {
            remarks.push(
                "the chosen marker scopes have no runtime in the program, so nothing will come of \
                 them: link it with ctrace-marker or ctrace.h as a whole"
                    .to_owned(),
            );
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{
        fixtures::compile,
        process::maps::MappedObject,
        select::{Patterns, Selector},
    };

    /// A reader of the report sees why nothing of the program is in it.
    #[test]
    fn a_glob_that_matches_only_ends_of_names_of_the_program_is_told_in_the_report() {
        let program = "
            namespace shop { __attribute__((noinline)) int handle_order(int x) { return x * 3; } }
            int main(int c, char **v) { return shop::handle_order(c); }
        ";
        let library = "int handle_amd(int x) { return x; }";
        let built = [compile("g++", "cpp", program), compile("gcc -shared -fPIC", "c", library)];
        let files = built.iter().enumerate();
        let mapped = files.map(|(n, file)| MappedObject::from_file(&file.program, n == 0).unwrap());
        let mapped: Vec<_> = mapped.collect();
        let plan = |pattern: &str| {
            let functions = [pattern.to_owned()];
            let asked = Patterns { functions: &functions, ..Patterns::default() };
            let selector = Selector::parse(asked).unwrap();
            Planner::new(selector, 100, Returns::Auto).plan(&mapped).unwrap()
        };
        let told = "`handle_*` matches only functions of libraries (1). In program, -f '*::handle_*' \
                    matches 1 function, such as shop::handle_order";
        let unseen = plan("handle_*");
        assert_eq!(unseen.notes, [told]);
        assert!(unseen.remarks.iter().any(|remark| remark == told), "{:?}", unseen.remarks);
        assert!(plan("*::handle_*").notes.is_empty());
    }
}
