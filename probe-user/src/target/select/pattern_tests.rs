use super::*;
use crate::target::usdt::pairs::PairPart;

#[track_caller]
fn check(pattern: &str, names: &[&str], others: &[&str]) {
    let pattern = Pattern::parse(pattern).unwrap();
    for name in names {
        assert!(pattern.matches_name(name), "{} should match {name}", pattern.text);
    }
    for name in others {
        assert!(!pattern.matches_name(name), "{} should not match {name}", pattern.text);
    }
}

#[test]
fn matches_names() {
    check("main", &["main"], &["domain", "main2", "Main"]);
    check("*", &["a", "a::b", "<T as a::B>::c", "a/b"], &[]);
    check("ns::*", &["ns::a", "ns::a::b"], &["ns", "other::ns::a"]);
    check("h_?", &["h_1"], &["h_12", "h_"]);
    check("h_[12]", &["h_1", "h_2", "h_[12]"], &["h_3"]);
    check("{read,write}_all", &["read_all", "write_all"], &["all"]);
    check("A::operator[]", &["A::operator[]"], &["A::operator"]);
    check("*operator[]*", &["A::operator[]"], &["A::operator()"]);
    check("<impl Foo for [T]>::f", &["<impl Foo for [T]>::f"], &[]);
    // Brackets match both literally and as a class.
    check("<impl * for [T]>::*", &["<impl Foo for [T]>::f", "<impl Foo for T>::f"], &[]);
    check("f::{{closure}}", &["f::{{closure}}"], &["f::{{closure}}::x"]);
    check("*{{closure}}", &["f::{{closure}}"], &[]);
    check("twice", &["twice<int>", "twice", "twice::<u32>"], &["thrice<int>"]);
    check("twice<int>", &["twice<int>"], &["twice<long>"]);
    check("shop::label", &["shop::label[abi:cxx11]"], &["shop::labels"]);
    check("a::f", &["a::f[abi:cxx11]", "a::f[abi:cxx11]<int>", "a[abi:v2]::f"], &["a::f[x]"]);
    check("a::f[abi:cxx11]", &["a::f[abi:cxx11]"], &["a::f"]);
    check("f(int) [clone .part.0] [clone .cold]", &["f(int).part.0.cold"], &["f(int).part.0"]);
    check("f(int, char*)", &["f(int, char*)", "f<long>(int, char*)"], &["f(int)"]);
    check("f(*)", &["f(int, A::B<C> const&)", "f()"], &["f", "g()"]);
    let long = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
    let of = |name: &str| format!("{name}({long} const&)");
    check("f(std::string const&)", &[&of("f"), &of("f[abi:cxx11]")], &[&of("g"), "f(int)"]);
    check(r"/^f\(std::string const&\)$/", &[&of("f"), &of("f[abi:cxx11]")], &[&of("g"), "f(int)"]);
    check("std::vector<int>::size", &["std::vector<int, std::allocator<int> >::size"], &[]);
    check(&of("f"), &[&of("f")], &["f(std::wstring const&)"]);
    check("stat [shop.c:14]", &["stat"], &["stats", "stat 4"]);
    let cache = format!("Cache<{long}>::get.isra.0");
    check("Cache<std::string>::get", &[&cache], &["Cache<int>::get.isra.0"]);
    check("A::operator<", &["A::operator<", "A::operator< <int>"], &["A::operator<<"]);
    check(
        "f",
        &["f", "f.constprop.0", "f.isra.0.constprop.1"],
        &["f.cold", "f.part.0", "f.constprop.0.cold"],
    );
    check("/^a.*z$/", &["az", "abcz"], &["baz2"]);
    check("/a|b/", &["xxbxx"], &["c"]);
    check("memcpy@@GLIBC_2.14", &["memcpy"], &[]);
    check("caf\u{e9}*", &["caf\u{e9}s"], &[]);
}

#[test]
fn a_name_stands_for_the_last_part_of_names() {
    let last = |text: &str| Pattern::parse(text).unwrap().by_last_part();
    let format = last("format").expect("a bare name");
    assert_eq!((&*format.text, &*format.stem), ("format", "format"));
    for name in ["shop::format", "a::b::format", "shop::format<int>", "<A as B>::format"] {
        assert!(format.matches_name(name), "{name}");
    }
    for name in ["format", "shop::reformat", "format::shop", "shop::format::{{closure}}"] {
        assert!(!format.matches_name(name), "{name}");
    }
    assert!(last("twice<int>").expect("bare").matches_name("ns::twice<int>"));
    assert!(last("run(a::b)").expect("bare").matches_name("ns::run(a::b)"));
    assert!(last("run@libx*").expect("bare").matches_object_name("libx.so.1", "/libx.so.1"));
    let path = last("Cart::total").expect("a path");
    assert!(path.matches_name("shop::Cart::total") && !path.matches_name("shop::MyCart::total"));
    for text in ["::format", "form*", "forma?", "{a,b}", "/format/", "<A as B>::f"] {
        assert!(last(text).is_none(), "{text}");
    }
    assert!(Pattern::parse("format").unwrap().found_whole().by_last_part().is_none());
    assert!(format.by_last_part().is_none());
}

#[test]
fn a_name_that_a_table_cut_is_a_pattern() {
    let cut = Pattern::parse("std::vec‹…>::push_b…@program").unwrap();
    assert!(cut.matches_name("std::vec<int, std::allocator<int> >::push_back"));
    assert!(!cut.matches_name("std::vector<int>::push_back") && !cut.is_literal());
    assert!(cut.matches_object_name("program", "/tmp/program"));
}

#[track_caller]
fn check_object(pattern: &str, stem: &str, matching: &[&str], others: &[&str]) {
    let pattern = Pattern::parse(pattern).unwrap();
    assert_eq!(pattern.stem, stem);
    for name in matching {
        assert!(pattern.matches_object_name(name, &format!("/usr/lib/{name}")), "{name}");
    }
    for name in others {
        assert!(!pattern.matches_object_name(name, &format!("/usr/lib/{name}")), "{name}");
    }
}

#[test]
fn a_program_has_the_name_of_its_link_and_of_its_file() {
    for object in ["redis-server", "redis-check-rdb", "/usr/bin/redis-check-rdb"] {
        let pattern = Pattern::parse(&format!("call@{object}")).unwrap();
        assert!(
            pattern.matches_object_name("redis-server", "/usr/bin/redis-check-rdb"),
            "{object}"
        );
    }
    let other = Pattern::parse("call@redis-check-aof").unwrap();
    assert!(!other.matches_object_name("redis-server", "/usr/bin/redis-check-rdb"));
}

#[test]
fn splits_objects() {
    check_object("malloc", "malloc", &["libc.so.6", "x"], &[]);
    check_object("malloc@libc.so.6", "malloc", &["libc.so.6"], &["libc.so"]);
    check_object("malloc@libc", "malloc", &["libc.so.6", "libc-2.31.so"], &["libcap.so.2"]);
    check_object("*@lib*.so*", "*", &["libc.so.6"], &["prog"]);
    check_object("f@/usr/lib/*.so", "f", &["a.so"], &["b"]);
    check_object("memcpy@@GLIBC_2.14", "memcpy", &["x"], &[]);
    check_object("memcpy@GLIBC_2.2.5", "memcpy", &["x"], &[]);
    check_object("memcpy@@GLIBC_2.14@libc.so.6", "memcpy", &["libc.so.6"], &["x"]);
    check_object("/^a@b/@x", "^a@b", &["x"], &["y"]);
    check_object("/a/b/", "a/b", &["x"], &[]);
    check_object("/a/@/usr/lib/x", "a", &["x"], &["y"]);
}

#[test]
fn refuses_what_is_no_pattern() {
    for text in ["", "@libc", "f@", "/abc", "//", "/(/", "/a/x", "f@[", "/[/@x"] {
        let error = Pattern::parse(text).unwrap_err().to_string();
        assert!(!error.contains('\n') && !error.is_empty(), "{text}: {error}");
    }
}

#[test]
fn matches_probes() {
    let probe = UsdtProbe {
        provider: "libc".into(),
        name: "memory_sbrk_more".into(),
        sites: vec![],
        part: None,
    };
    let check = |text: &str, expected: bool| {
        assert_eq!(Pattern::parse(text).unwrap().matches_usdt(&probe), expected, "{text}");
    };
    check("memory_*", true);
    check("libc:memory_*", true);
    check("lib*:*", true);
    check("other:*", false);
    check("libc", false);
    check("/^libc:mem/", true);
    check("query*", false);
}

#[test]
fn matches_probes_as_documentation_spells_them_and_by_their_calls() {
    let part = PairPart { call: "query__parse".into(), is_start: true };
    let (provider, name) = ("postgresql".into(), "query__parse__start".into());
    let probe = UsdtProbe { provider, name, sites: vec![], part: Some(part) };
    let check = |text: &str, expected: bool| {
        assert_eq!(Pattern::parse(text).unwrap().matches_usdt(&probe), expected, "{text}");
    };
    check("query__parse__start", true);
    check("query-parse-start", true);
    check("postgresql:query-parse-start", true);
    check("query-*", true);
    check("query__parse", true);
    check("postgresql:query-parse", true);
    check("query-parse-done", false);
    check("query", false);
    check("query_parse", false);
    check("/query-parse$/", true);
}

#[test]
fn matches_markers() {
    let check = |group: Option<&str>, name: &str, text: &str, expected: bool| {
        let scope = MarkerScope {
            name: name.into(),
            group: group.map(Into::into),
            file: None,
            line: None,
            is_whole_function: false,
            is_named_late: false,
            point: None,
            is_frame: false,
            is_async: false,
            colour: None,
            values: Vec::new(),
            sites: vec![],
        };
        let pattern = Pattern::parse(text).unwrap();
        assert_eq!(pattern.matches_marker(&scope), expected, "{text} {group:?} {name}");
    };
    let prod = Some("prod");
    for text in ["parse", "prod/parse", "pro?/*", "prod/*", "p*", "*", "/^prod/", "/parse$/"] {
        check(prod, "parse", text, true);
    }
    for text in ["prod", "dev/*", "prod/", "/^parse/", "prod*"] {
        check(prod, "parse", text, false);
    }
    check(None, "parse", "prod/*", false);
    check(None, "load/file", "load/*", true);
    check(prod, "load/file", "load/*", true);
    check(prod, "max<int>", "max", true);
    check(prod, "max<int>", "prod/max", true);
    check(None, "/etc", "/etc/", true);
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "[a-z@/:*?{}()<>\\[\\]\\\\ ]{0,20}", name in "\\PC{0,20}") {
        if let Ok(pattern) = Pattern::parse(&text) {
            pattern.matches_name(&name);
            pattern.matches_object_name(&name, &name);
        }
    }

    /// Any name matches itself as a pattern.
    #[test]
    fn a_name_matches_itself(name in "[a-z:<>,&*\\[\\](){}~= ]{1,20}") {
        if let Ok(pattern) = Pattern::parse(&name) {
            proptest::prop_assert!(pattern.matches_name(&name));
        }
    }
}

#[test]
fn methods_of_rust_are_in_the_path_of_their_type() {
    let matches = |pattern: &str, name: &str| {
        let function = ctrace_core::function::FunctionInfo::new(name, "shop");
        Pattern::parse(pattern).unwrap().matches_recorded(&function)
    };
    for name in [
        "<shop::Cart as shop::Sum>::total",
        "<shop::Cart>::total",
        "<&shop::Cart as shop::Sum>::total",
        "<&mut shop::Cart as shop::Sum>::total",
    ] {
        assert!(matches("shop::*", name) && matches("shop::Cart*::total", name), "{name}");
        assert!(!matches("Sum*", name) && !matches("store::*", name), "{name}");
    }
    assert!(!matches("/^shop::/", "<shop::Cart>::total"));
}
