//! The functions of an object, from its symbol tables and those of its debug file.
//!
//! One function for each address: libc has four names at one `malloc`, and a probe sits at an
//! address, not at a name. Names are demangled when they are first asked for, because a C++
//! program has hundreds of thousands and a user asks for a few.

use super::demangle::{self, without_version};
use super::elf::{self, Layout};
use object::elf as constants;
use object::read::elf::SymbolTable;
use object::{LittleEndian, Object as _, ObjectSection as _, elf::FileHeader64};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A function of an object.
#[derive(Clone, Debug)]
pub struct Function {
    /// As the object's headers count, before it is loaded anywhere.
    pub address: u64,
    /// In bytes; where the symbol has none, up to the next function or the section's end.
    pub size: u64,
    pub file_offset: u64,
    /// The symbol itself has no size, as with much assembly: `size` is a guess.
    pub size_is_guessed: bool,
    /// All names at this address without versions, mangled, the best one first.
    raws: Box<[Box<str>]>,
    names: OnceLock<Names>,
    full: OnceLock<Arc<str>>,
}

#[derive(Clone, Debug)]
struct Names {
    short: Arc<str>,
    aliases: Box<[Arc<str>]>,
}

/// What the symbol tables of an object say.
#[derive(Debug, Default)]
pub struct Symbols {
    /// In the order of their addresses.
    pub functions: Vec<Function>,
    /// Functions that choose their implementation when the program is loaded (IFUNC), by name:
    /// the symbol is that of the chooser, which runs once, and is no place to trace the function.
    pub chosen_at_load: Vec<Box<str>>,
    /// The table could not be read, with the reason.
    pub broken: Option<String>,
}

/// One symbol before those at one address are merged.
struct Entry<'data> {
    address: u64,
    size: u64,
    name: &'data [u8],
    /// Lower is better.
    rank: u8,
}

impl Function {
    pub(super) fn new(address: u64, size: u64, file_offset: u64, raws: Vec<Box<str>>) -> Self {
        Self {
            address,
            size,
            file_offset,
            size_is_guessed: false,
            raws: raws.into(),
            names: OnceLock::new(),
            full: OnceLock::new(),
        }
    }

    /// The symbol as it stands in the file, without its version.
    pub fn raw(&self) -> &str {
        self.raws.first().map_or("", |raw| raw)
    }

    /// All symbols at this address, the best one first.
    pub fn raws(&self) -> impl Iterator<Item = &str> {
        self.raws.iter().map(|raw| &**raw)
    }

    /// Demangled, without hash, arguments and version: what globs match.
    pub fn name(&self) -> &Arc<str> {
        &self.names().short
    }

    /// Demangled with its arguments; the same as the name where it has none.
    pub fn full_name(&self) -> &Arc<str> {
        self.full.get_or_init(|| {
            let full = demangle::full(self.raw());
            let short = self.name();
            if full == **short { Arc::clone(short) } else { full.into() }
        })
    }

    /// Its other names, demangled.
    pub fn aliases(&self) -> &[Arc<str>] {
        &self.names().aliases
    }

    pub fn addresses(&self) -> Range<u64> {
        self.address..self.address.saturating_add(self.size)
    }

    fn names(&self) -> &Names {
        self.names.get_or_init(|| {
            let short: Arc<str> = demangle::short(self.raw()).into();
            let mut aliases: Vec<Arc<str>> = Vec::new();
            for raw in self.raws.iter().skip(1) {
                let name = demangle::short(raw);
                if name != *short && !aliases.iter().any(|alias| **alias == name) {
                    aliases.push(name.into());
                }
            }
            Names { short, aliases: aliases.into() }
        })
    }
}

impl Symbols {
    /// Reads the tables of an object, and of its debug file where there is one.
    pub(super) fn read(bytes: &[u8], layout: &Layout, debug: Option<&[u8]>) -> Self {
        let mut symbols = Self::default();
        let code = Code::new(layout);
        let mut entries = Vec::new();
        symbols.collect(bytes, &code, 0, &mut entries);
        if let Some(debug) = debug {
            // A prelinked object is moved against its debug file.
            let start = |layout: &Layout| {
                layout.segments.iter().find(|s| s.executable).map(|s| s.addresses.start)
            };
            let theirs = Layout::parse(debug, true).ok().and_then(|layout| start(&layout));
            let shift = start(layout).zip(theirs).map_or(0, |(our, their)| our.wrapping_sub(their));
            symbols.collect(debug, &code, shift, &mut entries);
        }
        symbols.chosen_at_load.sort();
        symbols.chosen_at_load.dedup();
        symbols.functions = merge(entries, &code, layout);
        symbols
    }

    fn collect<'data>(
        &mut self,
        bytes: &'data [u8],
        code: &Code,
        shift: u64,
        entries: &mut Vec<Entry<'data>>,
    ) {
        match elf::parse(bytes) {
            Ok(file) => {
                self.collect_table(file.elf_symbol_table(), &[], code, shift, entries);
                let versions = file.section_by_name(".gnu.version").and_then(|s| s.data().ok());
                let versions = versions.unwrap_or_default();
                self.collect_table(file.elf_dynamic_symbol_table(), versions, code, shift, entries);
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    fn collect_table<'data>(
        &mut self,
        table: &SymbolTable<'data, FileHeader64<LittleEndian>>,
        versions: &[u8],
        code: &Code,
        shift: u64,
        entries: &mut Vec<Entry<'data>>,
    ) {
        let endian = LittleEndian;
        entries.reserve(table.len() / 2);
        for (number, symbol) in table.iter().enumerate() {
            let kind = symbol.st_type();
            let is_choice = kind == constants::STT_GNU_IFUNC;
            if !(kind == constants::STT_FUNC || is_choice)
                || symbol.st_shndx.get(endian) == constants::SHN_UNDEF
            {
                continue;
            }
            let address = symbol.st_value.get(endian).wrapping_add(shift);
            if code.section_of(address).is_none() {
                continue;
            }
            let Ok(name) = table.symbol_name(endian, symbol) else {
                self.broken = Some("a symbol's name lies outside the table of names".to_owned());
                continue;
            };
            // A version that new programs are not linked with: `memcpy@GLIBC_2.2.5`.
            let mut is_old = versions.get(2 * number + 1).is_some_and(|high| high & 0x80 != 0);
            let versioned = name;
            let name = without_version(name);
            is_old |= versioned.len() > name.len() && !versioned[name.len()..].starts_with(b"@@");
            if name.is_empty() {
                continue;
            }
            if is_choice {
                self.chosen_at_load.push(String::from_utf8_lossy(name).into());
                continue;
            }
            let rank = match symbol.st_bind() {
                _ if is_old => 2,
                // Weak names are as good: libc's `puts` is weak, beside a global `_IO_puts`.
                constants::STB_GLOBAL | constants::STB_WEAK => 0,
                _ => 1,
            };
            entries.push(Entry { address, size: symbol.st_size.get(endian), name, rank });
        }
    }
}

/// The executable sections, where functions can be: not the linker's jump tables.
struct Code {
    sections: Vec<Range<u64>>,
}

impl Code {
    fn new(layout: &Layout) -> Self {
        let is_stubs = |name: &str| name.starts_with(".plt") || name.starts_with(".iplt");
        let sections = layout
            .sections
            .iter()
            .filter(|section| section.executable && section.in_file && !is_stubs(&section.name))
            .map(|section| section.addresses.clone())
            .collect();
        Self { sections }
    }

    fn section_of(&self, address: u64) -> Option<&Range<u64>> {
        self.sections.iter().find(|section| section.contains(&address))
    }
}

fn merge(mut entries: Vec<Entry<'_>>, code: &Code, layout: &Layout) -> Vec<Function> {
    entries.sort_unstable_by(|a, b| {
        a.address.cmp(&b.address).then_with(|| preference(a).cmp(&preference(b)))
    });
    let mut functions: Vec<Function> = Vec::new();
    let mut groups = entries.chunk_by(|a, b| a.address == b.address).peekable();
    while let Some(group) = groups.next() {
        let address = group[0].address;
        let (Some(section), Some(file_offset)) =
            (code.section_of(address), layout.file_offset(address))
        else {
            continue;
        };
        let given = group.iter().map(|entry| entry.size).find(|size| *size != 0);
        let next = groups.peek().map_or(section.end, |group| group[0].address).min(section.end);
        let size = given.unwrap_or(next - address).min(section.end - address);
        let mut raws: Vec<Box<str>> = Vec::new();
        for name in group.chunk_by(|a, b| a.name == b.name).map(|same| same[0].name) {
            let name = String::from_utf8_lossy(name);
            if !raws.iter().any(|raw| **raw == name) {
                raws.push(name.into());
            }
        }
        let mut function = Function::new(address, size, file_offset, raws);
        function.size_is_guessed = given.is_none();
        functions.push(function);
    }
    functions
}

/// The best name first: global before local before those for old programs only, then no leading
/// underscores, then short.
fn preference<'a>(entry: &Entry<'a>) -> (u8, usize, usize, &'a [u8]) {
    let name = entry.name;
    let is_mangled = name.starts_with(b"_Z") || name.starts_with(b"_R");
    let underscores = match is_mangled {
        true => 0,
        false => name.iter().take_while(|byte| **byte == b'_').count(),
    };
    (entry.rank, underscores, name.len(), name)
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{Built, compile, system_libc};
    use super::super::object::Object;

    /// Name and aliases of the function that is called `wanted` in the symbol table.
    #[track_caller]
    fn check(built: &Built, wanted: &str, name: &str, full: &str, aliases: &[&str]) {
        let object = built.object();
        let function = object.functions().iter().find(|f| f.raws().any(|raw| raw == wanted));
        let function = function.unwrap_or_else(|| panic!("{wanted} is missing"));
        assert_eq!((&**function.name(), &**function.full_name()), (name, full));
        let found: Vec<&str> = function.aliases().iter().map(|alias| &**alias).collect();
        assert_eq!(found, aliases);
        assert!(function.size > 0);
        check_places(&object);
    }

    /// What must hold for the functions of any object.
    fn check_places(object: &Object) {
        let functions = object.functions();
        assert!(functions.is_sorted_by(|a, b| a.address < b.address));
        for function in functions {
            assert_eq!(object.layout().file_offset(function.address), Some(function.file_offset));
            assert_eq!(object.layout().code_address(function.file_offset), Some(function.address));
            assert_eq!(
                object.function_at(function.address).map(|f| f.address),
                Some(function.address)
            );
            let section = object.layout().sections.iter().find(|section| {
                section.executable && section.addresses.contains(&function.address)
            });
            assert!(!section.unwrap().name.contains("plt"), "{}", function.name());
        }
    }

    #[test]
    fn c_with_aliases() {
        let built = compile(
            "gcc -O1",
            "c",
            r#"
            #include <stdio.h>
            int __deep(int x) { printf("%d", x); return x; }
            int deep(int x) __attribute__((alias("__deep")));
            int weak_deep(int x) __attribute__((weak, alias("__deep")));
            static __attribute__((noinline)) int local(int x) { return x * 3; }
            __asm__(".text; .globl sizeless; .type sizeless,@function; sizeless: nop; nop; ret");
            int main(int c, char **v) { return deep(local(c)); }
            "#,
        );
        check(&built, "deep", "deep", "deep", &["weak_deep", "__deep"]);
        check(&built, "local", "local", "local", &[]);
        check(&built, "sizeless", "sizeless", "sizeless", &[]);
        let object = built.object();
        let sizeless = object.functions().iter().find(|f| f.raw() == "sizeless").unwrap();
        assert!(sizeless.size_is_guessed && sizeless.size >= 3);
        assert!(!object.functions().iter().any(|f| f.raw() == "printf"));
        assert!(!object.is_stripped() && !object.is_go() && !object.uses_unwinder());
    }

    #[test]
    fn cpp_names() {
        let built = compile(
            "g++ -O1",
            "cpp",
            r#"
            namespace ns {
                struct Thing { int v; Thing(int); int operator[](int i) const; };
                Thing::Thing(int v) : v(v) {}
                int Thing::operator[](int i) const { return v + i; }
                template <class T> __attribute__((noinline)) T twice(T t) { return t + t; }
            }
            int main(int c, char **) { if (c > 9) throw c; return ns::Thing(c)[1] + ns::twice<long>(c); }
            "#,
        );
        check(&built, "_ZN2ns5ThingC1Ei", "ns::Thing::Thing", "ns::Thing::Thing(int)", &[]);
        check(
            &built,
            "_ZNK2ns5ThingixEi",
            "ns::Thing::operator[]",
            "ns::Thing::operator[](int) const",
            &[],
        );
        check(
            &built,
            "_ZN2ns5twiceIlEET_S1_",
            "ns::twice<long>",
            "long ns::twice<long>(long)",
            &[],
        );
        assert!(built.object().uses_unwinder());
    }

    #[test]
    fn rust_names() {
        let source = r#"
            pub struct Thing(u32);
            impl Thing { #[inline(never)] pub fn run(&self) -> u32 { std::process::id() + self.0 } }
            fn main() { std::process::exit((std::hint::black_box(Thing(1)).run() & 0) as i32) }
        "#;
        for mangling in ["v0", "legacy"] {
            let flags = format!("rustc -O -Zunstable-options -Csymbol-mangling-version={mangling}");
            let built = compile(&flags, "rs", source);
            let object = built.object();
            let names: Vec<&str> = object.functions().iter().map(|f| &**f.name()).collect();
            // An inherent method: v0 writes the type in brackets, and says so.
            let wanted = ["input::Thing::run", "<input::Thing>::run"];
            assert!(names.iter().any(|name| wanted.contains(name)), "{mangling}");
            assert!(object.uses_unwinder());
            check_places(&object);
        }
    }

    #[test]
    fn libc_as_it_is() {
        let object = system_libc();
        check_places(&object);
        let named =
            |name: &str| object.functions().iter().find(|f| f.raws().any(|raw| raw == name));
        assert_eq!(&**named("malloc").unwrap().name(), "malloc");
        assert_eq!(&**named("puts").unwrap().name(), "puts");
        assert!(object.symbols().chosen_at_load.iter().any(|name| &**name == "memcpy"));
        assert!(!object.functions().iter().any(|f| f.raws().any(|raw| raw.contains('@'))));
        assert_eq!(object.symbols().broken, None);
    }
}
