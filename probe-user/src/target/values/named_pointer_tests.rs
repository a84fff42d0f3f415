use super::*;

#[test]
fn two_pointers_are_followed() {
    let built = &compile("gcc -g -O1", "c", C);
    let behind = |near: i64, onward: i64| onward << 32 | near;
    for (path, displacement, size, of) in [
        ("req->next->len", behind(40, 0), 4, Signed),
        ("req->next->next", behind(40, 40), 8, Pointer),
        ("req->next->head.port", behind(40, 34), 2, Unsigned),
        ("req->next->head.path", behind(40, 24), 8, Text),
    ] {
        assert_eq!(source(built, "handle", path), (RDI, displacement, 3, size, of), "{path}");
    }
    // The address of an array is not read.
    assert_eq!(
        source(built, "handle", "req->next->head.method"),
        (RDI, behind(40, 16), 2, 8, Text)
    );
    // One that is on the stack.
    assert_eq!(source(built, "many", "g->len"), (RSP, 8, 3, 4, Signed));
}
