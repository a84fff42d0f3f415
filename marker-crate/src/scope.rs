//! `scope!`, the syntax of a scope. Its expansion is in `active/site.rs` or `inactive/mod.rs`.

/// Begins a scope; it ends when the guard is dropped or [`Guard::end`](crate::Guard::end) is called.
///
/// ```
/// use ctrace_marker::scope;
///
/// fn parse(text: &str) -> usize {
///     let _scope = scope!(); // named as the function is
///     let _inner = scope!("count", group = "prod");
///     text.len()
/// }
/// # assert_eq!(parse("ab"), 2);
/// ```
///
/// The name and the group are constant expressions of type `&'static str`. Without a name the scope
/// stands for its whole function and gets the name of the function's symbol. If the function was
/// inlined, that is the function it was inlined into. `#[mark]` does not have this problem.
///
/// **Cost:** see the crate's documentation. **Signals:** may be used in a handler.
///
/// Never write `let _ = scope!("x");`: it ends the scope immediately, without a warning.
#[macro_export]
macro_rules! scope {
    () => {
        $crate::__scope!(1, ::core::option::Option::None, "")
    };
    (group = $group:expr $(,)?) => {
        $crate::__scope!(1, ::core::option::Option::None, $group)
    };
    // The form that `#[mark]` writes: the whole function, by name.
    (@function $name:expr, $group:expr) => {
        $crate::__scope!(1, ::core::option::Option::Some($name), $group)
    };
    ($name:expr $(,)?) => {
        $crate::__scope!(0, ::core::option::Option::Some($name), "")
    };
    ($name:expr, group = $group:expr $(,)?) => {
        $crate::__scope!(0, ::core::option::Option::Some($name), $group)
    };
}
