//! The functions that the loader of a running process has put into the tables of its objects. This reads
//! the process's memory: only there is the chosen one of several implementations.

use super::Match;
use crate::target::object::Object;
use crate::target::process::bias::CodeSegments;
use crate::target::process::maps::MappedObject;
use crate::target::process::{patience, proc_path};
use ctrace_core::units::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// An object, and the address in its headers of a word that the loader fills.
pub(super) type Slot = (usize, u64);

/// Slots that are read at once, at most.
const MOST: usize = 4_096;

/// The places of objects in a process.
pub(super) struct Loaded {
    pid: Pid,
    /// By object.
    places: Vec<Place>,
}

#[derive(Default)]
struct Place {
    biases: Vec<u64>,
    code: Vec<Range<u64>>,
}

impl Loaded {
    /// Returns `None` for a program that does not run yet.
    pub(super) fn of(mapped: &[MappedObject], objects: &[Object]) -> Option<Self> {
        let pid = mapped.iter().find_map(|object| object.pid)?;
        let place = |object: &Object| {
            let mapped = mapped.iter().find(|it| (it.dev, it.inode) == object.identity())?;
            let code = mapped.code.iter().map(|mapping| mapping.addresses.clone()).collect();
            Some(Place { biases: CodeSegments::of(object.layout()).biases(mapped), code })
        };
        let places = objects.iter().map(|object| place(object).unwrap_or_default()).collect();
        Some(Self { pid, places })
    }

    /// Returns the functions whose addresses are in these slots now. A slot has none before the first
    /// call, if the loader fills it then.
    pub(super) fn functions(
        &self,
        objects: &[Object],
        slots: &BTreeSet<Slot>,
    ) -> BTreeMap<Slot, Match> {
        let at =
            |slot: &Slot| Some((*slot, slot.1.wrapping_add(*self.places[slot.0].biases.first()?)));
        let words: Vec<(Slot, u64)> = slots.iter().filter_map(at).take(MOST).collect();
        let pid = self.pid;
        let read = move || {
            let memory = File::open(proc_path(pid.0, "mem")).ok()?;
            let read = |(slot, address): (Slot, u64)| {
                let mut word = [0; 8];
                memory.read_exact_at(&mut word, address).ok()?;
                Some((slot, u64::from_le_bytes(word)))
            };
            Some(words.into_iter().filter_map(read).collect::<Vec<_>>())
        };
        let read = patience::within(pid, read).ok().flatten().unwrap_or_default();
        let found = read.into_iter();
        found.filter_map(|(slot, word)| Some((slot, self.function_at(objects, word)?))).collect()
    }

    /// Returns the function that begins at an address of the process.
    fn function_at(&self, objects: &[Object], address: u64) -> Option<Match> {
        let object =
            self.places.iter().position(|it| it.code.iter().any(|code| code.contains(&address)))?;
        let functions = objects[object].functions();
        self.places[object].biases.iter().find_map(|bias| {
            let address = address.wrapping_sub(*bias);
            let index = functions.binary_search_by_key(&address, |it| it.address).ok()?;
            Some(Match { object, index })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Patterns, Selector};
    use super::*;
    use crate::target::fixtures::{Built, compile};
    use crate::target::process::maps;
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    /// A program that waits to be killed.
    struct Running(Child);

    impl Running {
        /// Starts it, and waits until it has written.
        fn start(built: &Built) -> Self {
            let mut child =
                Command::new(&built.program).stdout(Stdio::piped()).spawn().expect("it starts");
            let mut first = [0];
            let out = child.stdout.as_mut().expect("a pipe");
            let read = out.read_exact(&mut first);
            let running = Self(child);
            read.expect("it writes");
            running
        }
    }

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Functions of the program and of libc with several implementations.
    const SOURCE: &str = r#"
        #include <stdio.h>
        #include <string.h>
        #include <unistd.h>
        #define F __attribute__((noinline))
        F int fast(int x) { return x * 3; }
        F int slow(int x) { return x * 5; }
        F static int (*choose(void))(int) { return fast; }
        int picked(int) __attribute__((ifunc("choose")));
        F int start(int x) { return picked(x) + 1; }
        F void *copy(void *to, void const *from, size_t size) { return memcpy(to, from, size); }
        int main(int c, char **v) {
            char to[9];
            puts((copy(to, v[0], c) && start(c)) ? "1" : "0");
            fflush(stdout);
            for (;;) pause();
        }
    "#;

    /// Returns what is chosen with a function, and the notes.
    fn chosen(mapped: &[MappedObject], function: &str) -> (Vec<String>, String) {
        let objects: Vec<Object> =
            mapped.iter().filter_map(|mapped| Object::open_mapped(mapped).ok()).collect();
        let functions = [function.to_owned()];
        let asked = Patterns { functions: &functions, with_callees: 1, ..Patterns::default() };
        let selection = Selector::parse(asked).expect("a pattern");
        let selection = selection.select_mapped(mapped, &objects, 100).expect("it is there");
        let names = selection.functions(&objects).map(|(_, it)| it.name().to_string());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        (names, selection.notes.join("; "))
    }

    #[test]
    fn a_running_process_tells_which_implementation_it_has_chosen() {
        let built = compile("gcc -O2 -fno-builtin -Wl,-z,now", "c", SOURCE);
        let running = Running::start(&built);
        let mapped = maps::objects(running.0.id()).expect("its maps");
        let (names, _) = chosen(&mapped, "start");
        assert_eq!(names, ["fast", "start"]);
        // The names of libc's implementations need its debug symbols.
        let (names, notes) = chosen(&mapped, "copy");
        let is_told = notes.contains("--with-callees leaves out memcpy: ");
        assert_eq!(names.len(), 2 - usize::from(is_told), "{names:?}: {notes}");
        assert!(names.iter().all(|name| name == "copy" || name.contains("mem")), "{names:?}");
    }

    #[test]
    fn before_the_start_nothing_tells_it_and_a_note_says_what_to_trace() {
        let built = compile("gcc -O2 -fno-builtin", "c", SOURCE);
        let own = maps::objects(std::process::id()).expect("its maps");
        let libc = own.iter().find(|object| object.name.starts_with("libc.so")).expect("libc");
        let files = [(built.program.as_path(), true), (libc.path.as_path(), false)];
        let files = files.map(|(path, main)| MappedObject::from_file(path, main).expect("a file"));
        let (names, notes) = chosen(&files, "copy");
        assert_eq!(names, ["copy"], "no chooser is among them");
        let told = "; --with-callees leaves out memcpy: which implementation runs is chosen at \
                    start (IFUNC); ";
        assert!(notes.contains(told) && notes.contains("-f '*_memcpy_*"), "{notes}");
        assert_eq!(chosen(&files, "start").0, ["start"]);
    }
}
