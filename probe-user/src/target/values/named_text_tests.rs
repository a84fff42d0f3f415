//! Texts that know their length, and classes that are only declared.

use super::*;

const STRINGS: &str = r#"
    #include <string>
    #include <string_view>
    struct Named { long id; std::string title; };
    __attribute__((noinline)) long show(const std::string &key, Named *named, std::string_view view) {
        return key.size() + named->title.size() + view.size() + view[0];
    }
    int main(int argc, char **argv) {
        Named named{argc, argv[0]};
        return show(argv[0], &named, argv[0]);
    }
"#;

#[test]
fn a_string_has_a_length_and_an_end() {
    let built = &compile("g++ -std=c++17 -g -O1", "cpp", STRINGS);
    let of = |path| {
        let typed = value(built, "4show", path).unwrap_or_else(|why| panic!("{path}: {why}"));
        (counted(typed.source), typed.is_ended)
    };
    assert_eq!(of("key"), ([(RDI, 0, 1), (RDI, 8, 1)], true));
    assert_eq!(of("named->title"), ([(RSI, 8, 1), (RSI, 16, 1)], true));
    assert_eq!(of("view"), ([(RCX, 0, 0), (RDX, 0, 0)], false));
    // The older one has it elsewhere.
    let old = "g++ -std=c++17 -g -O1 -D_GLIBCXX_USE_CXX11_ABI=0";
    let key = value(&compile(old, "cpp", STRINGS), "4show", "key").expect("a text");
    assert_eq!((key.source.1, key.is_ended), (ValueForm::Text, true));
}

const DECLARED: &str = r#"
    template <class T> struct Box { T value; T get() const { return value; } };
    extern template struct Box<long>;
    struct Whole { long n; Box<long> box; };
    __attribute__((noinline)) long open(Whole &whole, Box<long> &box, Box<long> *other) {
        return whole.n + whole.box.value + box.value + other->value;
    }
    int main(int argc, char **) {
        Whole whole{argc, {1}};
        return open(whole, whole.box, &whole.box);
    }
"#;

#[test]
fn what_is_only_declared_has_a_remedy() {
    if !is_there("clang++") {
        return;
    }
    let built = &compile("clang++ -g -O0", "cpp", DECLARED);
    let of = |name: &str| {
        format!(
            "the type of `{name}` is only declared in the debug information; clang describes it with \
             -fstandalone-debug"
        )
    };
    for (path, declared) in [
        ("box", "box"),
        ("box.value", "box"),
        ("other->value", "*other"),
        ("whole.box", "whole.box"),
    ] {
        refused(built, "4open", path, &of(declared));
    }
    let partly = "the types of some parts of `whole` are only declared in the debug information; clang \
                  describes them with -fstandalone-debug; or name a member; there are n, box";
    refused(built, "4open", "whole", partly);
    assert!(value(built, "4open", "whole.n").is_ok());
    let whole = compile("clang++ -g -O0 -fstandalone-debug", "cpp", DECLARED);
    assert_eq!(source(&whole, "4open", "whole.box.value"), (RDI, 8, 1, 8, Signed));
}
