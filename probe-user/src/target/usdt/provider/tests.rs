use super::*;

fn file(text: &str) -> ProviderFile {
    ProviderFile::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the arguments of a probe as `NAME: TYPE`, with a `?` for what is not known.
fn arguments(file: &ProviderFile, provider: &str, name: &str) -> String {
    let of = file.probes.get(&(provider.into(), name.into())).expect("a probe");
    let each = of.iter().map(|Declared { name, of }| {
        let of = of.map_or("?".to_owned(), |of| of.to_string());
        name.as_ref().map_or(of.clone(), |name| format!("{name}: {of}"))
    });
    each.collect::<Vec<_>>().join(", ")
}

#[test]
fn arguments_have_the_types_and_names_of_the_file() {
    let file = file(
        r##"
        /* As PostgreSQL has it. */
        #define Oid unsigned int
        #define LocalTransactionId unsigned int
          # define SPLIT \
            const char *
        typedef struct { int a; char *b; } pair_t;
        typedef unsigned long word_t, *other;
        struct args { int a; };
        provider postgresql { // a remark; provider nobody { probe none(); };
            probe transaction__start(LocalTransactionId);
            probe query__start(const char *text);
            probe sort-done(bool, long, unsigned long long disk, Oid relation, SPLIT);
            probe nothing();
            probe nothing_either(void);
            probe bare;
            probe mixed(struct args *a, char **argv, char name[16], pair_t *p, pair_t, enum kind k,
                        int (*call)(int, int), double, float f : info_t *f, string s);
        };
        #pragma D attributes Evolving/Evolving/Common provider postgresql provider
        provider other { probe one(uint8_t, int8_t b, signed char, unsigned short, int64_t, size_t) ; }
        "##,
    );
    let of = |name| arguments(&file, "postgresql", name);
    assert_eq!(of("transaction__start"), "u32");
    assert_eq!(of("query__start"), "text: str");
    assert_eq!(of("sort__done"), "bool, i64, disk: u64, relation: u32, str");
    assert_eq!([of("nothing"), of("nothing_either"), of("bare")], ["", "", ""]);
    let mixed = "a: ptr, argv: ptr, name: str, p: ptr, ?, k: ?, i32, f64, f: f32, s: str";
    assert_eq!(of("mixed"), mixed);
    assert_eq!(arguments(&file, "other", "one"), "u8, b: i8, i8, u16, i64, u64");
    assert_eq!(file.probes.len(), 8);
}

#[test]
fn names_differ_and_texts_have_a_limit() {
    let texts = vec!["char *"; MAX_VALUES + 3].join(", ");
    let file = file(&format!(
        "provider p {{ probe a(int x, int x, int arg0); probe b({texts}); probe b(int); }}"
    ));
    assert_eq!(arguments(&file, "p", "a"), "x: i32, i32, i32");
    let many = arguments(&file, "p", "b");
    assert_eq!(many.matches("str").count(), MAX_TEXTS);
    assert_eq!(many.matches("ptr").count(), MAX_VALUES - MAX_TEXTS);
}

#[test]
fn what_is_no_provider_file_is_refused_with_its_line() {
    for (text, error) in [
        ("", "declares no probe"),
        ("int main(void) { return 0; }", "declares no probe"),
        ("provider", "line 0: the name of a provider"),
        ("provider p", "line 0: `{`"),
        ("provider p {\n probe a(int);\n", "line 0: `probe` or `}`"),
        ("provider p {\n probe a(int)\n probe b(); }", "line 3: `;`"),
        ("provider p {\n prob a(int); }", "line 2: `probe` or `}`"),
        ("provider p { probe a(int }", "line 1: `)`"),
        ("provider p { probe (int); }", "line 1: the name of a probe"),
    ] {
        let found = ProviderFile::parse(text).expect_err("refused").to_string();
        assert!(found.starts_with(error), "{text}: {found}");
    }
    let many: String = (0..=MOST_PROBES).map(|n| format!("probe p{n}();")).collect();
    let found = ProviderFile::parse(&format!("provider p {{ {many} }}"));
    assert_eq!(found, Err(ProviderError::TooMany));
}

/// Such a file costs no more than its bytes.
#[test]
fn a_hostile_file_does_no_harm() {
    let circle = "#define A B\n#define B A\nprovider p { probe a(A, B *); }";
    assert_eq!(arguments(&file(circle), "p", "a"), "?, ?");
    let deep = format!("provider p {{ probe a({}", "(".repeat(100_000));
    assert!(ProviderFile::parse(&deep).is_err());
    assert!(ProviderFile::parse(&"{".repeat(100_000)).is_err());
    let defines: String = (0..100_000).map(|n| format!("#define T{n} T{}\n", n + 1)).collect();
    let long = format!("{defines}provider p {{ probe a(T0, {} x); }}", "int ".repeat(100_000));
    assert_eq!(arguments(&file(&long), "p", "a"), "?, i32");
    for text in ["/*", "//", "#", "#define", "/* *", "provider p { probe a(\u{1b}[2J \u{202e}x); }"]
    {
        let parsed = ProviderFile::parse(text);
        assert!(
            parsed.is_err() || arguments(&parsed.expect("a file"), "p", "a").is_ascii(),
            "{text}"
        );
    }
}

#[test]
fn a_file_of_another_kind_is_not_read_whole() {
    assert_eq!(ProviderFile::read("/dev/zero"), Err(ProviderError::TooLong));
    let missing = ProviderFile::read("/nowhere/probes.d").expect_err("refused").to_string();
    assert!(missing.starts_with("cannot be read: No such file"), "{missing}");
}

#[test]
fn a_site_is_described_by_both() {
    let arguments = "8@%rdi -4@%esi 8@%rdx".into();
    let site = UsdtSite { address: 0, file_offset: 0, semaphore: None, arguments };
    let declared = [
        Declared { name: Some("text".into()), of: Some(Type::Text) },
        Declared { name: Some("kind".into()), of: None },
    ];
    assert_eq!(described(&site, &declared), "text: str (8@%rdi), kind (-4@%esi), 8@%rdx");
}
