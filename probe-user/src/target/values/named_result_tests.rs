use super::*;

fn result(built: &Built, name: &str) -> Result<Typed, NoValue> {
    let object = built.object();
    object.named_result(function(&object, name))
}

#[test]
fn results_have_their_types() {
    let built = compile("gcc -g -O1", "c", C);
    let of = |name| result(&built, name).map(|typed| typed.of);
    assert_eq!(of("handle"), Ok(Type::Integer { bytes: 8, signed: true }));
    assert_eq!(of("name"), Ok(Type::Text));
    let unread = of("make").unwrap_err().to_string();
    let readable = "types that are: i8 u8 i16 u16 i32 u32 i64 u64 bool char ptr str";
    assert_eq!(unread, format!("its result has a type that is not read; {readable}"));
    assert_eq!(of("nothing"), Err(NoValue::Nothing));
}

#[test]
fn results_are_where_functions_leave_them() {
    let found = |built, name| result(built, name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let cxx = &compile("g++ -g -O1", "cpp", CXX);
    assert_eq!(counted(found(cxx, "5first").source), [(RDX, 0, 0), (RAX, 0, 0)]);
    for (name, memory, of) in [
        ("6copied", 1, Type::Text),
        ("5title", 1, Type::Text),
        ("4same", 0, Type::Pointer),
        ("7counter", 1, Type::Integer { bytes: 4, signed: true }),
    ] {
        let typed = found(cxx, name);
        assert_eq!((typed.source.0.base, typed.source.0.memory, typed.of), (RAX, memory, of));
    }
    for name in ["5mixed", "6floats", "5longs", "5large", "5named"] {
        assert!(result(cxx, name).is_err(), "{name}");
    }
    let rust = &compile("rustc -g -O --crate-name program", "rs", RUST);
    assert_eq!(counted(found(rust, "half").source), [(RAX, 0, 0), (RDX, 0, 0)]);
    let [address, length] = counted(found(rust, "twice").source);
    assert_eq!((address.0, address.2, length.0, length.2), (RAX, 1, RAX, 1));
    assert_ne!(address.1, length.1);
    for name in ["maybe", "several", "bytes", "huge", "checked"] {
        assert!(result(rust, name).is_err(), "{name}");
    }
}
