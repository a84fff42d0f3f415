use super::*;
use crate::target::fixtures::{Built, compile};
use ctrace_core::function::ValueKind;
use std::process::Command;

#[path = "named_pointer_tests.rs"]
mod pointers;
#[path = "named_result_tests.rs"]
mod results;
#[path = "named_rust_tests.rs"]
mod rust;
#[path = "named_text_tests.rs"]
mod texts;

const C: &str = r#"
    #include <stdint.h>
    #include <stdbool.h>
    enum level { LOW, HIGH = 70 };
    struct head { char method[8]; const char *path; unsigned flags : 3; uint16_t port; };
    struct request {
        int32_t len;
        union { double weight; long bits; };
        struct head head;
        struct request *next;
    };
    struct pair { long a; double b; }; struct large { long all[5]; };
    typedef struct request *handle_t;
    #define F(name, ...) __attribute__((noinline)) long name(__VA_ARGS__)
    F(handle, handle_t req, double x, bool is_last, const char *key, enum level level, char c)
        { return req->len + (long)x + is_last + key[0] + level + c; }
    F(wide, struct pair p, struct large l, unsigned char n, __int128 big, short s)
        { return p.a + (long)p.b + l.all[1] + n + (long)big + s; }
    F(many, long a, long b, long c, long d, long e, long f, struct request *g, float h, int8_t i)
        { return a + b + c + d + e + f + g->len + (long)h + i; }
    struct bits { long a; unsigned b : 3; }; F(odd, struct bits b, int n) { return b.a + n; }
    __attribute__((noinline)) struct large make(int seed) { struct large l = {{seed}}; return l; }
    __attribute__((noinline)) const char *name(void) { return "x"; }
    __attribute__((noinline)) void nothing(int n) { __asm__ volatile("" :: "r"(n)); }
    int main(int argc, char **argv) {
        nothing(argc); struct request r = {.len = argc};
        struct pair p = {argc, argc}; r.next = &r;
        return handle(&r, argc, argc, argv[0], argc, argc) + make(argc).all[0] + name()[0]
            + odd((struct bits){argc, 1}, argc) + wide(p, make(argc), argc, argc, argc) + many(1, 2, 3, 4, 5, argc, &r, argc, argc);
    }
"#;

const CXX: &str = r#"
    #include <string>
    #include <string_view>
    struct Base { int id; };
    struct Named : Base { std::string title; int extra; };
    struct Cart {
        long owner;
        Named *first;
        __attribute__((noinline)) long total(const std::string &key, std::string by, int &count);
    };
    long Cart::total(const std::string &key, std::string by, int &count) {
        return owner + key.size() + by.size() + ++count;
    }
    __attribute__((noinline)) long show(Named &n, Cart *cart) { return n.id + cart->owner; }
    struct Point { int x, y; };
    __attribute__((noinline)) long plot(Point p, int after) { return p.x + after; }
    struct Letter { long stamps; std::string_view to; std::u16string_view wide; };
    __attribute__((noinline)) long post(std::string_view from, Letter *letter, std::string *paper, int n) {
        return from.size() + from[0] + letter->to.size() + letter->wide.size() + paper->size() + n;
    }
    struct Key { std::string_view text; };
    __attribute__((noinline)) long wrap(Key key, int n) { return key.text.size() + key.text[0] + n; }
    __attribute__((noinline)) long behind(long a, long b, long c, long d, long e, std::string_view text, int n) {
        return a + b + c + d + e + text.size() + text[0] + n;
    }
    __attribute__((noinline)) std::string_view first(std::string_view all) { return all.substr(0, all.size() / 2); }
    __attribute__((noinline)) std::string copied(std::string_view all) { return std::string(all); }
    __attribute__((noinline)) const std::string &title(const Named &n) { return n.title; }
    __attribute__((noinline)) Named &same(Named &n) { return n; }
    __attribute__((noinline)) int &counter(int &n) { return ++n, n; }
    struct Mixed { long a; double b; };
    struct Floats { float a, b; };
    struct Longs { long a, b; };
    struct Large { long a[3]; };
    __attribute__((noinline)) Mixed mixed(int n) { return {n, 1.5}; }
    __attribute__((noinline)) Floats floats(int n) { return {n * 0.5f, 1}; }
    __attribute__((noinline)) Longs longs(int n) { return {n, 2}; }
    __attribute__((noinline)) Large large(int n) { return {{n, 2, 3}}; }
    __attribute__((noinline)) Named named(int n) { Named it; it.id = n; return it; }
    struct Two { long a; const char *b; };
    __attribute__((noinline)) long both(int n, Two two, int after) { return n + two.a + two.b[0] + after; }
    __attribute__((noinline)) long given(Named n, int after) { return n.id + after; }
    int main(int argc, char **argv) {
        Cart cart = {argc, nullptr};
        Named n; n.id = argc; n.title = argv[0];
        Letter letter = {argc, argv[0], u"x"};
        long sum = 0;
        std::string paper = argv[0];
        sum += wrap({argv[0]}, argc) + behind(1, 2, 3, 4, argc, argv[0], argc) + first(argv[0]).size() + copied(argv[0]).size();
        sum += mixed(argc).a + (long)floats(argc).a + longs(argc).a + large(argc).a[0] + named(argc).id;
        sum += title(n).size() + same(n).id + counter(argc);
        sum += post(argv[0], &letter, &paper, argc) + both(argc, {argc, argv[0]}, argc);
        return sum + cart.total(argv[0], argv[0], argc) + show(n, &cart) + plot({argc, 1}, argc) + given(n, argc);
    }
"#;

const RUST: &str = r#"
    // The compiler passes two numbers in place of the reference.
    #[inline(never)]
    fn promoted(order: &Order, times: u16) -> u64 { order.price * u64::from(order.count) + u64::from(times) }
    #[inline(never)]
    pub fn nameless(_: u64, n: u64) -> u64 { std::hint::black_box(n) + 1 }
    #[inline(never)]
    pub fn picked(from: Option<u32>, n: u8) -> u32 { from.unwrap_or(7) + u32::from(n) }
    pub struct Letter { pub to: String, pub seal: &'static str }
    #[no_mangle]
    #[inline(never)]
    pub fn post(n: u8, from: &str, letter: &Letter) -> usize {
        from.bytes().map(usize::from).sum::<usize>() + letter.to.len() + letter.seal.len() + usize::from(n)
    }
    #[no_mangle]
    #[inline(never)]
    pub fn parted(a: u64, b: u64, c: u64, d: u64, e: u64, text: &str, n: u64) -> u64 {
        a + b + c + d + e + text.bytes().map(u64::from).sum::<u64>() + n
    }
    #[no_mangle]
    #[inline(never)]
    pub fn half(text: &str) -> &str { &text[..text.len() / 2] }
    #[no_mangle]
    #[inline(never)]
    pub fn twice(text: &str) -> String { text.repeat(2) }
    #[no_mangle]
    #[inline(never)]
    pub fn maybe(text: &str) -> Option<&str> { text.get(1..2) }
    #[no_mangle]
    #[inline(never)]
    pub fn several(n: u64) -> (u64, u64) { (n, n + 1) }
    #[no_mangle]
    #[inline(never)]
    pub fn bytes(n: u64) -> [u8; 8] { n.to_ne_bytes() }
    #[no_mangle]
    #[inline(never)]
    pub fn huge(n: u64) -> u128 { u128::from(n) << 70 }
    #[no_mangle]
    #[inline(never)]
    pub fn checked(text: &str) -> Result<String, u32> { if text.is_empty() { Err(5) } else { Ok(text.to_owned()) } }
    pub struct Order { pub count: u32, pub price: u64, pub items: Vec<u8> }
    #[no_mangle]
    #[inline(never)]
    pub fn bill(order: &Order, times: u16) -> u64 { order.price * u64::from(order.count) + u64::from(times) }
    fn main() {
        let n = std::env::args().count() as u64;
        println!("{}", bill(&Order { count: n as u32, price: n, items: vec![] }, n as u16));
        println!("{}", nameless(n, n + 1));
        println!("{:?} {:?} {:?}", maybe(&"a text"[n as usize..]), several(n), bytes(n));
        println!("{} {:?}", huge(n), checked(&"a text"[n as usize..]));
        println!("{}", parted(n, 1, 2, 3, 4, &"a text"[n as usize..], n));
        println!("{} {}", half(&"a text"[n as usize..]), twice(&"a text"[n as usize..]));
        let all = "a text";
        let letter = Letter { to: all.to_owned(), seal: &all[n as usize..] };
        println!("{}", post(n as u8, &std::hint::black_box(all)[n as usize..], &letter));
        println!("{}", promoted(&Order { count: n as u32, price: n, items: vec![] }, n as u16));
        println!("{}", picked((n > 1).then_some(n as u32), n as u8));
    }
"#;

fn is_there(compiler: &str) -> bool {
    let name = compiler.split(' ').next().expect("a name");
    let is_there = Command::new(name).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no {name}");
    }
    is_there
}

/// Finds the function whose symbol contains `name`.
#[track_caller]
fn function<'a>(object: &'a Object, name: &str) -> &'a Function {
    object.functions().iter().find(|f| f.raw().contains(name)).expect(name)
}

/// Finds a value of the function whose symbol contains `name`.
fn value(built: &Built, name: &str, path: &str) -> Result<Typed, NoValue> {
    value_as(built, name, path, None)
}

fn value_as(built: &Built, name: &str, path: &str, of: Option<Type>) -> Result<Typed, NoValue> {
    let object = built.object();
    let path = NamedPath::parse(path).expect("a path");
    object.named_value(function(&object, name), &path, of)
}

/// Returns the base, displacement and memory of a text's address and of its length.
#[track_caller]
fn counted((address, form): (Operand, ValueForm)) -> [(u8, i64, u8); 2] {
    let ValueForm::Counted(length) = form else { panic!("{form:?}") };
    [address, length].map(|it| (it.base, it.displacement, it.memory))
}

/// Returns the base, displacement, memory and size of a source, and its kind.
#[track_caller]
fn source(built: &Built, name: &str, path: &str) -> (u8, i64, u8, u8, ValueKind) {
    let typed = value(built, name, path).unwrap_or_else(|error| panic!("{name} {path}: {error}"));
    let operand = typed.source.0;
    (operand.base, operand.displacement, operand.memory, operand.size, typed.of.kind())
}

#[track_caller]
fn refused(built: &Built, name: &str, path: &str, told: &str) {
    let error = value(built, name, path).expect_err(path).to_string();
    assert_eq!(error, told, "{name} {path}");
}

const RAX: u8 = 0;
const RDI: u8 = 7;
const RSI: u8 = 6;
const RDX: u8 = 2;
const RCX: u8 = 1;
const R8: u8 = 8;
const R9: u8 = 9;
const RSP: u8 = 4;

use ValueKind::{Bool, Char, Float, Pointer, Signed, Text, Unsigned};

#[test]
fn parameters_of_c_are_where_the_abi_puts_them() {
    for compiler in
        ["gcc -g -O0", "gcc -g -O2", "gcc -gdwarf-4 -O1", "clang -g -O0", "clang -g -O2"]
    {
        if !is_there(compiler) {
            continue;
        }
        let built = &compile(compiler, "c", C);
        if compiler == "clang -g -O2" {
            // It does not describe where all of them are, and never wrongly.
            let level = value(built, "handle", "level").map(|typed| typed.source.0.base);
            assert!([Ok(RCX), Err(NoValue::Unknown("level".into()))].contains(&level));
            continue;
        }
        let of = |path| source(built, "handle", path);
        assert_eq!(of("req"), (RDI, 0, 0, 8, Pointer), "{compiler}");
        assert_eq!(of("is_last"), (RSI, 0, 0, 1, Bool), "{compiler}");
        assert_eq!(of("key"), (RDX, 0, 0, 8, Text), "{compiler}");
        assert_eq!(of("level"), (RCX, 0, 0, 4, Unsigned), "{compiler}");
        let names = value(built, "handle", "level").expect("it is there").names;
        let names: Vec<_> = names.iter().map(|one| (one.number, &*one.name)).collect();
        assert_eq!(names, [(0, "LOW"), (70, "HIGH")], "{compiler}");
        assert!(value(built, "handle", "req->len").expect("it is there").names.is_empty());
        assert_eq!(of("c"), (R8, 0, 0, 1, Char), "{compiler}");
        assert_eq!(of("req->len"), (RDI, 0, 1, 4, Signed), "{compiler}");
        assert_eq!(of("req->weight"), (RDI, 8, 1, 8, Float), "{compiler}");
        assert_eq!(of("req.bits"), (RDI, 8, 1, 8, Signed), "{compiler}");
        // A text in the structure, and one whose address is there.
        assert_eq!(of("req->head.method"), (RDI, 16, 0, 8, Text), "{compiler}");
        assert_eq!(of("req->head.path"), (RDI, 24, 1, 8, Text), "{compiler}");
        assert_eq!(of("req->head.port"), (RDI, 34, 1, 2, Unsigned), "{compiler}");
        assert_eq!(of("req->next"), (RDI, 40, 1, 8, Pointer), "{compiler}");
        // The pair takes rdi and xmm0, and the large one the stack.
        assert_eq!(source(built, "wide", "n"), (RSI, 0, 0, 1, Unsigned), "{compiler}");
        let many = |path| source(built, "many", path);
        assert_eq!(many("f"), (R9, 0, 0, 8, Signed), "{compiler}");
        assert_eq!(many("g"), (RSP, 8, 1, 8, Pointer), "{compiler}");
        assert_eq!(many("i"), (RSP, 16, 1, 1, Signed), "{compiler}");
        // The address of the result takes rdi.
        assert_eq!(source(built, "make", "seed"), (RSI, 0, 0, 4, Signed), "{compiler}");
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let built = &compile("gcc -g -O1", "c", C);
    let vector = "is in a vector register or in several registers, which are not read";
    let unknown = |name: &str| NoValue::Unknown(name.to_owned()).to_string();
    for (name, path, told) in [
        ("handle", "x", format!("`x` {vector}")),
        (
            "handle",
            "len",
            "it has no parameter `len`; there are req, x, is_last, key, level, c".into(),
        ),
        (
            "handle",
            "req->x",
            "`req` has no member `x`; there are len, weight, bits, head, next".into(),
        ),
        ("handle", "key->a", "`key` is no structure and points to none".into()),
        (
            "handle",
            "req->next->next->len",
            "`req.next.next->len` lies behind a third pointer, and only two are followed".into(),
        ),
        ("handle", "req->head.flags", "`req.head.flags` is a bit field, which is not read".into()),
        (
            "handle",
            "req->head",
            "`req.head` is a structure: name a member; there are method, path, flags, port".into(),
        ),
        ("wide", "p", format!("`p` {vector}")),
        ("wide", "p.a", format!("`p` {vector}")),
        ("wide", "big", unknown("big")),
        ("wide", "s", unknown("s")),
        ("odd", "n", unknown("n")),
        (
            "many",
            "g->next->len",
            "`g.next->len` lies behind a third pointer, and only two are followed".into(),
        ),
    ] {
        refused(built, name, path, &told);
    }
    let stripped = compile("gcc -O1", "c", C);
    refused(&stripped, "handle", "req", &NoValue::NotDescribed.to_string());
}

#[test]
fn strings_references_and_base_classes_of_cxx_are_looked_through() {
    for compiler in ["g++ -g -O0", "g++ -g -O2", "clang++ -std=c++17 -g -O1"] {
        if !is_there(compiler) {
            continue;
        }
        let built = &compile(compiler, "cpp", CXX);
        let total = |path| source(built, "Cart5total", path);
        assert_eq!(total("this"), (RDI, 0, 0, 8, Pointer), "{compiler}");
        assert_eq!(total("this->owner"), (RDI, 0, 1, 8, Signed), "{compiler}");
        assert_eq!(total("key"), (RSI, 0, 1, 8, Text), "{compiler}");
        // A string by value is passed by its address.
        assert_eq!(total("by"), (RDX, 0, 1, 8, Text), "{compiler}");
        assert_eq!(total("count"), (RCX, 0, 1, 4, Signed), "{compiler}");
        assert_eq!(source(built, "4show", "n.id"), (RDI, 0, 1, 4, Signed), "{compiler}");
        assert_eq!(source(built, "4show", "n.title"), (RDI, 8, 1, 8, Text), "{compiler}");
        assert_eq!(source(built, "4plot", "after"), (RSI, 0, 0, 4, Signed), "{compiler}");
        // Its address takes rdi.
        assert_eq!(source(built, "5given", "after"), (RSI, 0, 0, 4, Signed), "{compiler}");
        // The length comes first.
        let counted_of = |function, path| {
            let typed = value(built, function, path).unwrap_or_else(|why| panic!("{path}: {why}"));
            counted(typed.source)
        };
        let counted = |path| counted_of("4post", path);
        assert_eq!(counted("from"), [(RSI, 0, 0), (RDI, 0, 0)], "{compiler}");
        assert_eq!(counted("letter->to"), [(RDX, 16, 1), (RDX, 8, 1)], "{compiler}");
        assert_eq!(source(built, "4post", "paper"), (RCX, 0, 1, 8, Text), "{compiler}");
        assert_eq!(source(built, "4post", "from._M_len"), (RDI, 0, 0, 8, Unsigned), "{compiler}");
        assert!(value(built, "4post", "letter->wide").is_err(), "{compiler}");
        assert_eq!(source(built, "4both", "two.b"), (RDX, 0, 0, 8, Text), "{compiler}");
        assert_eq!(source(built, "4both", "after"), (RCX, 0, 0, 4, Signed), "{compiler}");
        // Both are in one register. Optimized by clang, debug information takes them apart.
        if compiler.starts_with('g') {
            let shift = |path| value(built, "4plot", path).expect(path).source.0.shift;
            assert_eq!((shift("p.x"), shift("p.y")), (0, 32), "{compiler}");
            let told = "`p` is a structure: name a member; there are x, y";
            refused(built, "4plot", "p", told);
        }
        // A view in a structure is still in two registers.
        assert_eq!(counted_of("4wrap", "key.text"), [(RSI, 0, 0), (RDI, 0, 0)], "{compiler}");
        // There is one register left, and six others are before.
        assert_eq!(counted_of("6behind", "text"), [(RSP, 16, 1), (RSP, 8, 1)], "{compiler}");
        assert_eq!(source(built, "6behind", "n"), (R9, 0, 0, 4, Signed), "{compiler}");
        // The address of a text, and what looks like none.
        let typed = |path, of: &str| {
            let typed = value_as(built, "4post", path, of.parse().ok());
            typed.unwrap_or_else(|why| panic!("{path}: {why}")).source.0
        };
        assert_eq!(typed("from", "ptr").base, RSI, "{compiler}");
        assert_eq!(typed("letter->to", "ptr").displacement, 16, "{compiler}");
        let own = value_as(built, "5given", "n", Some(Type::Text)).expect("its first bytes");
        assert_eq!((own.source.0.memory, own.source.1), (1, ValueForm::Text), "{compiler}");
        assert_eq!(source(built, "4show", "cart->first->id"), (RSI, 8, 3, 4, Signed), "{compiler}");
        let title = 8 << 32 | 8;
        assert_eq!(
            source(built, "4show", "cart->first->title"),
            (RSI, title, 3, 8, Text),
            "{compiler}"
        );
    }
}

#[test]
fn what_does_not_fit_into_a_register_is_refused() {
    let built = &compile("g++ -g -O1", "cpp", CXX);
    let of = |path, of: &str| value_as(built, "4plot", path, of.parse().ok());
    assert_eq!(of("p.y", "u16").expect("two of its four bytes").source.0.shift, 32);
    for kind in ["i64", "str", "ptr"] {
        assert_eq!(of("p.y", kind), Err(NoValue::Split("p.y".into())), "{kind}");
    }
    // An array of characters has an address, and none in a register.
    let c = &compile("gcc -g -O1", "c", C);
    let method = value_as(c, "handle", "req->head.method", Some(Type::Pointer));
    let source = method.expect("it is in memory").source.0;
    assert_eq!((source.base, source.displacement, source.memory), (RDI, 16, 0));
}

#[test]
fn parameters_are_listed() {
    let built = compile("gcc -g -O1", "c", C);
    let object = built.object();
    let of = |name: &str| {
        let function = object.functions().iter().find(|f| f.raw() == name).expect(name);
        object.parameters(function).join(", ")
    };
    assert_eq!(
        of("handle"),
        "req: ptr, x (not read), is_last: bool, key: str, level: u32 (LOW, HIGH), c: char"
    );
    assert_eq!(of("wide"), "p (not read), l: a structure, n: u8, big (not read), s (not read)");
    assert_eq!(of("name"), "");
}

#[test]
fn a_type_can_be_given() {
    let built = compile("gcc -g -O1", "c", C);
    let object = built.object();
    let function = object.functions().iter().find(|f| f.raw() == "handle").expect("it is there");
    let of = |path: &str, of: &str| {
        let path = NamedPath::parse(path).expect("a path");
        object.named_value(function, &path, Some(of.parse().expect("a type")))
    };
    let typed = of("req->len", "u16").expect("it can be read");
    assert_eq!((typed.source.0.size, typed.of.kind()), (2, Unsigned));
    assert_eq!(of("req", "u64").expect("it can be read").of.kind(), Unsigned);
    assert!(of("is_last", "f32").is_err());
}
