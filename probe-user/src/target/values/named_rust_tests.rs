use super::*;

#[test]
fn structures_of_rust_are_read_behind_references() {
    let built = &compile("rustc -g -O --crate-name program", "rs", RUST);
    let offset = |path| {
        let typed = value(built, "bill", path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!((typed.source.0.base, typed.source.0.memory), (RDI, 1), "{path}");
        (typed.source.0.size, typed.of.kind())
    };
    assert_eq!(offset("order.count"), (4, Unsigned));
    assert_eq!(offset("order.price"), (8, Unsigned));
    let counted = |name, path| {
        let text = value(built, name, path).unwrap_or_else(|error| panic!("{path}: {error}"));
        counted(text.source)
    };
    assert_eq!(counted("post", "from"), [(RSI, 0, 0), (RDX, 0, 0)]);
    for path in ["letter.to", "letter.seal"] {
        let [address, length] = counted("post", path);
        assert_eq!((address.0, address.2, length.0, length.2), (RCX, 1, RCX, 1), "{path}");
    }
    assert_eq!(source(built, "bill", "times"), (RSI, 0, 0, 2, Unsigned));
    // Nothing has its address any more.
    let told = NoValue::Nowhere("order".to_owned()).to_string();
    refused(built, "promoted", "order.count", &told);
}

/// Structures in registers, options, and what is behind them.
const PASSED: &str = r#"
    use std::hint::black_box as seen;
    #[derive(Clone, Copy)]
    pub struct Pair { pub small: u32, pub large: u64 }
    #[derive(Clone, Copy)]
    pub struct Halves { pub low: u32, pub high: u16 }
    #[derive(Clone, Copy)]
    pub struct Mixed { pub number: u64, pub weight: f64 }
    pub struct Order { pub id: u64, pub name: String }
    #[inline(never)]
    pub fn pair(it: Pair, n: u8) -> u64 { seen(it.large) + u64::from(seen(it.small)) + u64::from(n) }
    #[inline(never)]
    pub fn halves(it: Halves, n: u8) -> u64 { u64::from(seen(it.low)) + u64::from(seen(it.high)) + u64::from(n) }
    #[inline(never)]
    pub fn mixed(it: Mixed, n: u8) -> u64 { seen(it.number) + seen(it.weight) as u64 + u64::from(n) }
    #[inline(never)]
    pub fn maybe(it: Option<&Order>, n: u8) -> u64 { if let Some(it) = it { seen(it.id) } else { u64::from(n) } }
    #[inline(never)]
    pub fn slice(it: &[u8], n: u8) -> u64 { let mut all = u64::from(n); for byte in it { all += u64::from(*byte); } all }
    #[inline(never)]
    pub fn owned(it: String, n: u8) -> usize { seen(it.len()) + usize::from(n) }
    #[inline(never)]
    pub fn shown(key: &str, it: Pair, n: u8) { println!("{key} {} {} {n}", it.small, it.large) }
    #[inline(never)]
    pub fn real(x: f64, it: Option<u32>, n: u8) -> u64 { seen(x) as u64 + it.map_or(7, u64::from) + u64::from(seen(n)) }
    #[inline(never)]
    fn ignores(_: &Order, unused: u64, n: u8) -> u64 { seen(u64::from(n)) }
    fn main() {
        let n = std::env::args().count() as u8;
        let order = Order { id: n.into(), name: "x".into() };
        let it = seen(Pair { small: n.into(), large: 5 });
        let maybe_it = seen((n > 1).then_some(&order));
        println!("{}", pair(it, n) + halves(seen(Halves { low: 1, high: n.into() }), n) + maybe(maybe_it, n));
        println!("{}", mixed(seen(Mixed { number: 1, weight: 2.5 }), n) + slice(seen(b"abc"), n));
        println!("{} {}", owned(seen("abc".to_owned()), n), order.name);
        println!("{}", real(seen(2.5), seen(Some(3)), n) + ignores(&order, 7, n));
        shown(seen("abc"), it, n);
    }
"#;

fn built(level: &str) -> Built {
    compile(&format!("rustc -g -C opt-level={level} --crate-name program"), "rs", PASSED)
}

#[test]
fn parts_of_parameters_of_rust_are_where_debug_information_says() {
    for level in ["0", "1", "2", "3"] {
        let built = &built(level);
        let of = |name: &str, path| {
            let (base, displacement, memory, size, kind) = source(built, &symbol(name), path);
            assert_eq!((displacement, memory), (0, 0), "{level} {name} {path}");
            (base, size, kind)
        };
        // Rust puts the large one first.
        assert_eq!(of("pair", "it.large"), (RDI, 8, Unsigned), "{level}");
        assert_eq!(of("pair", "it.small"), (RSI, 4, Unsigned), "{level}");
        assert_eq!(of("pair", "n"), (RDX, 1, Unsigned), "{level}");
        assert_eq!(of("halves", "it.low"), (RDI, 4, Unsigned), "{level}");
        assert_eq!(of("halves", "it.high"), (RSI, 2, Unsigned), "{level}");
        assert_eq!(of("maybe", "it"), (RDI, 8, Pointer), "{level}");
        assert_eq!(of("maybe", "n"), (RSI, 1, Unsigned), "{level}");
        assert_eq!(of("mixed", "it.number"), (RDI, 8, Unsigned), "{level}");
        assert_eq!(of("real", "n"), (RDX, 1, Unsigned), "{level}");
        assert_eq!(of("shown", "it.large").0, RDX, "{level}");
        assert_eq!(of("shown", "n").0, R8, "{level}");
        let texts = ["slice", "shown"].map(|name| {
            let path = if name == "slice" { "it" } else { "key" };
            let typed = value(built, &symbol(name), path).unwrap_or_else(|why| panic!("{why}"));
            counted(typed.source)
        });
        assert_eq!(texts, [[(RDI, 0, 0), (RSI, 0, 0)]; 2], "{level}");
        // It is passed by its address.
        let [address, length] =
            counted(value(built, &symbol("owned"), "it").expect("a text").source);
        assert_eq!((address.0, address.2, length.0, length.2), (RDI, 1, RDI, 1), "{level}");
        assert_eq!(source(built, &symbol("maybe"), "it->id").0, RDI, "{level}");
    }
}

#[test]
fn what_rust_passes_elsewhere_says_why() {
    for level in ["2", "3"] {
        let built = &built(level);
        let vector = "is in a vector register or in several registers, which are not read";
        refused(built, &symbol("real"), "x", &format!("`x` {vector}"));
        refused(built, &symbol("mixed"), "it.weight", &format!("`it.weight` {vector}"));
        // The compiler does not pass what is not used.
        let nowhere = NoValue::Nowhere("unused".into()).to_string();
        refused(built, &symbol("ignores"), "unused", &nowhere);
        assert_eq!(source(built, &symbol("ignores"), "n").0, RDI, "{level}");
        let told = "`it` is a structure: it has no member that can be read";
        refused(built, &symbol("real"), "it", told);
    }
}

/// Returns what the symbol of a function of the program contains.
fn symbol(name: &str) -> String {
    format!("program{}{name}", name.len())
}

/// Frames and parameters whose places debug information tells in other ways, or not at all.
const HARD: &str = r#"
    use std::hint::black_box as seen;
    #[derive(Clone, Copy)]
    pub struct Two { pub first: u64, pub second: u64 }
    #[derive(Clone, Copy)]
    pub struct Large { pub first: u64, pub second: u64, pub third: u64 }
    #[repr(align(64))]
    pub struct Aligned([u8; 64]);
    #[inline(never)]
    pub fn roomy(x: u64, y: u64) -> u64 {
        let room = [x as u8; 8192];
        println!("{x} {y} {}", seen(&room)[3]);
        x
    }
    #[inline(never)]
    pub fn aligned(x: u64, y: u64) -> u64 {
        let room = Aligned([x as u8; 64]);
        println!("{x} {y} {}", seen(&room).0[3]);
        x
    }
    #[inline(never)]
    pub fn behind(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, it: Large, n: u64) -> u64 {
        println!("{} {} {n}", it.first, it.third);
        seen(a + b + c + d + e + f)
    }
    #[inline(never)]
    pub fn late(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) -> u64 {
        if a == 0 { return 7 }
        println!("{g} {h}");
        seen(a + b + c + d + e + f)
    }
    #[inline(never)]
    pub fn swapped(mut x: u64, mut y: u64) -> u64 { std::mem::swap(&mut x, &mut y); println!("{x} {y}"); x }
    #[inline(never)]
    pub fn rebuilt(mut it: Two, n: u64) -> u64 {
        it = Two { first: it.second, second: it.first };
        println!("{} {} {n}", it.first, it.second);
        n
    }
    #[inline(never)]
    pub fn replaced(mut x: u64, from: &Large, n: u64) -> u64 { x = from.first; seen(&mut x); println!("{x} {n}"); x }
    #[inline(never)]
    pub fn parted(mut x: u64, (y, _): (u64, u64)) -> u64 { x = y; println!("{x}"); x }
    fn main() {
        let n = seen(std::env::args().count() as u64);
        let large = seen(Large { first: n, second: 2, third: 3 });
        let sum = roomy(n, seen(2)) + aligned(n, seen(2)) + behind(n, n, n, n, n, n, large, seen(7))
            + late(n, n, n, n, n, n, n, seen(3)) + swapped(n, seen(3));
        println!("{}", sum + rebuilt(seen(Two { first: n, second: 2 }), n));
        println!("{}", replaced(n, &large, seen(9)) + parted(n, seen((n, 5))));
    }
"#;

#[test]
fn places_of_rust_are_right_or_refused() {
    let mut read = Vec::new();
    for level in ["0", "1", "2", "3", "s", "z"] {
        let flags = format!("rustc -g -C opt-level={level} --crate-name program");
        let built = &compile(&flags, "rs", HARD);
        let mut check = |name: &'static str, path: &'static str, right: Option<(u8, i64, u8)>| {
            let Ok(typed) = value(built, &symbol(name), path) else { return };
            let found = typed.source.0;
            let found = (found.base, found.displacement, found.memory);
            assert_eq!(Some(found), right, "{level} {name} {path}");
            read.push((level, name, path));
        };
        for name in ["roomy", "aligned", "swapped"] {
            check(name, "x", Some((RDI, 0, 0)));
            check(name, "y", Some((RSI, 0, 0)));
        }
        // The address of the structure is on the stack.
        check("behind", "it.first", None);
        check("behind", "it.third", None);
        check("behind", "a", Some((RDI, 0, 0)));
        check("behind", "f", Some((R9, 0, 0)));
        check("behind", "n", Some((RSP, 16, 1)));
        check("late", "g", Some((RSP, 8, 1)));
        check("late", "h", Some((RSP, 16, 1)));
        check("rebuilt", "it.first", Some((RDI, 0, 0)));
        check("rebuilt", "it.second", Some((RSI, 0, 0)));
        check("rebuilt", "n", Some((RDX, 0, 0)));
        // From level 2 on the compiler may pass `from.first` there, and a number of the pair.
        let own = ["0", "1"].contains(&level).then_some((RDI, 0, 0));
        check("replaced", "x", own);
        check("parted", "x", own);
    }
    // Without optimization, frames that are not aligned and not large tell all of them.
    for (name, path) in [("late", "h"), ("behind", "n"), ("swapped", "x"), ("rebuilt", "it.first")]
    {
        assert!(read.contains(&("0", name, path)), "{name} {path}: {read:?}");
    }
    assert!(read.contains(&("z", "behind", "f")), "{read:?}");
}
