use super::super::Object;
use crate::target::fixtures::{Built, compile, system_libc};

/// Checks name and aliases of the function that the symbol table calls `wanted`.
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

/// Checks what must hold for the functions of any object.
fn check_places(object: &Object) {
    let functions = object.functions();
    assert!(functions.is_sorted_by(|a, b| a.address < b.address));
    for function in functions {
        assert_eq!(object.layout().file_offset(function.address), Some(function.file_offset));
        assert_eq!(object.layout().code_address(function.file_offset), Some(function.address));
        assert_eq!(object.function_at(function.address).map(|f| f.address), Some(function.address));
        let section =
            object.layout().sections.iter().find(|section| {
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
    assert!(sizeless.size >= 3);
    assert!(!object.functions().iter().any(|f| f.raw() == "printf"));
    assert!(!object.is_stripped() && !object.is_go() && object.unwinder().is_none());
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
    check(&built, "_ZN2ns5twiceIlEET_S1_", "ns::twice<long>", "ns::twice<long>(long)", &[]);
    assert!(built.object().unwinder().is_some());
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
        // An inherent method: v0 writes the type in brackets.
        let wanted = ["input::Thing::run", "<input::Thing>::run"];
        assert!(names.iter().any(|name| wanted.contains(name)), "{mangling}");
        assert!(object.unwinder().is_some());
        check_places(&object);
    }
}

#[test]
fn libc_as_it_is() {
    let object = system_libc();
    check_places(&object);
    let named = |name: &str| object.functions().iter().find(|f| f.raws().any(|raw| raw == name));
    assert_eq!(&**named("malloc").unwrap().name(), "malloc");
    assert_eq!(&**named("puts").unwrap().name(), "puts");
    assert!(object.symbols().chosen_at_load.iter().any(|name| &**name == "memcpy"));
    assert!(!object.functions().iter().any(|f| f.raws().any(|raw| raw.contains('@'))));
    assert_eq!(object.symbols().broken, None);
}
