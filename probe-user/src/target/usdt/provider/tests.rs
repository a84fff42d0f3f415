use super::*;

fn file(text: &str) -> ProviderFile {
    ProviderFile::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the arguments of a probe as `NAME: TYPE`, with a `?` for what is not known.
fn arguments(file: &ProviderFile, provider: &str, name: &str) -> String {
    let of = file.probes.get(&(provider.into(), name.into())).expect("a probe");
    let each = of.iter().map(|argument| match argument.of {
        Some(_) => argument.to_string(),
        None => argument.name.as_ref().map_or("?".to_owned(), |name| format!("{name}: ?")),
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
    let mixed = "a: ptr, argv: ptr, name: str, p: ptr, ?, k: ?, call: ptr, f64, f: f32, s: str";
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
fn a_pointer_to_a_function_is_an_address_and_a_truth_stays_one() {
    let file = file(
        "#define bool char
        #define Hook int (*)(void)
        typedef int (*callback_t)(const char *, void *);
        typedef void handler_t(int);
        provider p { probe a(callback_t c, void (**)(int), int (*const table)[4], char (x), bool done);
                     probe b(struct opaque); probe c( void ); }",
    );
    assert_eq!(arguments(&file, "p", "a"), "c: ptr, ptr, table: ptr, char, done: bool");
    assert_eq!(arguments(&file, "p", "b"), "?", "of an unknown type, but there");
    assert_eq!(arguments(&file, "p", "c"), "");
}

/// The constructs of the file that PostgreSQL has.
#[test]
fn a_file_such_as_that_of_a_database_is_understood() {
    let file = file(
        "/* ----------\n *\tProbes\n *\n *\t$App: probes.d,v 1.12 2010/01/02 16:57:53 a Exp $\n */
        #define LocalTransactionId unsigned int
        #define LWLockMode int
        #define BlockNumber unsigned int
        #define Oid unsigned int
        #define ForkNumber int
        #define bool unsigned char

        provider app {

        \tprobe transaction__start(LocalTransactionId);
        \tprobe lock__acquire(const char *, LWLockMode);
        \tprobe lock__wait__start(unsigned int, unsigned int, LWLockMode);
        \tprobe query__plan__start();
        \tprobe sort__done(bool, long);
        \tprobe read__done(ForkNumber, BlockNumber, Oid, Oid, Oid, int, bool, bool);
        \tprobe log__insert(unsigned char, unsigned char);
        };",
    );
    let of = |name| arguments(&file, "app", name);
    assert_eq!(of("transaction__start"), "u32");
    assert_eq!(of("lock__acquire"), "str, i32");
    assert_eq!(of("lock__wait__start"), "u32, u32, i32");
    assert_eq!(of("query__plan__start"), "");
    assert_eq!(of("sort__done"), "bool, i64");
    assert_eq!(of("read__done"), "i32, u32, u32, u32, u32, i32, bool, bool");
    assert_eq!(of("log__insert"), "u8, u8");
}

fn probe(provider: &str, name: &str, places: &[&str]) -> UsdtProbe {
    let site = |arguments: &&str| UsdtSite {
        address: 0,
        file_offset: 0,
        semaphore: None,
        arguments: (*arguments).into(),
    };
    let sites = places.iter().map(site).collect();
    UsdtProbe { provider: provider.into(), name: name.into(), sites, part: None }
}

/// Returns how `list -v` describes the first place of a probe.
fn first_described(file: &ProviderFile, probe: &UsdtProbe) -> String {
    let declared = declared(std::slice::from_ref(file), probe).expect("it is declared");
    described(&probe.sites[0], &declared)
}

#[test]
fn a_site_is_described_by_both() {
    let file = file("provider p { probe a(char *text, enum k kind, struct s); }");
    let of = |places: &[&str]| first_described(&file, &probe("p", "a", places));
    assert_eq!(of(&["8@%rdi -4@%esi 8@%rdx"]), "text: str (8@%rdi), kind (-4@%esi), 8@%rdx");
    // It is no text at one of its places, so it is none at all.
    assert_eq!(
        of(&["8@%rdi 4@$1 8@%rdx", "4@%edi 4@$1 8@%rdx"]),
        "text (8@%rdi), kind (4@$1), 8@%rdx"
    );
}

#[test]
fn a_number_of_another_size_than_the_note_has_is_not_believed() {
    let file =
        file("provider p { probe a(int n, float f, double d, bool b, char c, unsigned long *p); }");
    let of = |place| first_described(&file, &probe("p", "a", &[place]));
    let notes = "-8@%rdi 8f@(%rax) 4f@(%rax) 4@%esi 8@%rdi 4@%edi";
    let kept =
        "n (-8@%rdi), f (8f@(%rax)), d (4f@(%rax)), b: bool (4@%esi), c (8@%rdi), p (4@%edi)";
    assert_eq!(of(notes), kept);
    let notes = "4@%edi 4f@(%rax) 8f@(%rax) 1@%al -4@$65 8@%rdi";
    let kept = "n: i32 (4@%edi), f: f32 (4f@(%rax)), d: f64 (8f@(%rax)), b: bool (1@%al), c: char \
        (-4@$65), p: ptr (8@%rdi)";
    assert_eq!(of(notes), kept);
}

#[test]
fn a_file_of_another_version_is_ignored_with_a_remark() {
    let file = file("provider p { probe a(char *text, int n); probe b(); }");
    for (name, notes, numbers) in
        [("a", "8@%rdi", (2, 1)), ("a", "8@%rdi 8@%rsi 4@%edx", (2, 3)), ("b", "4@%edi", (0, 1))]
    {
        let probe = probe("p", name, &[notes]);
        let found = declared(std::slice::from_ref(&file), &probe).expect("it is declared");
        let (declared, noted) = numbers;
        assert_eq!(found, Err(fitting::OtherNumber { declared, noted }));
        let shown = first_described(&file, &probe);
        let remark = format!(
            "{} (the provider file has another number of arguments ({declared}, the program has {noted}), so ",
            notes.replace(' ', ", ")
        );
        assert!(shown.starts_with(&remark), "{shown}");
    }
    assert_eq!(declared(&[file], &probe("p", "c", &["8@%rdi"])), None);
}

#[test]
fn texts_of_java_have_their_lengths_behind_them() {
    let text = "probe m(int, char *, int, char*, uintptr_t, char*, double);";
    let files = ["hotspot", "other"].map(|name| file(&format!("provider {name} {{ {text} }};")));
    let shown = |place: usize, provider, notes| {
        first_described(&files[place], &probe(provider, "m", &[notes]))
    };
    let notes = "-4@%edi 8@%rsi -4@%edx 8@%rcx 8@%r8 8@%r9 8f@(%rax)";
    let expected = "i32 (-4@%edi), str[2] (8@%rsi), i32 (-4@%edx), str[4] (8@%rcx), u64 (8@%r8), str \
        (8@%r9), f64 (8f@(%rax))";
    assert_eq!(shown(0, "hotspot", notes), expected);
    assert!(!shown(1, "other", notes).contains("str["));
    // The size of a length does not matter. What is no number is none.
    let notes = "-4@%edi 8@%rsi 8f@(%rax) 8@%rcx -4@%r8 8@%r9 8f@(%rax)";
    let expected = "i32 (-4@%edi), ptr (8@%rsi), 8f@(%rax), str[4] (8@%rcx), -4@%r8, str (8@%r9), f64 \
        (8f@(%rax))";
    assert_eq!(shown(0, "hotspot", notes), expected);
}
