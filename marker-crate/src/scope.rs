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
/// A scope with a name may have one to four values. They are computed when it begins, and only while
/// somebody traces it. A value is an integer of up to 64 bits, a float or a `bool`
/// ([`Value`](crate::Value)).
///
/// ```
/// # use ctrace_marker::scope;
/// fn read(bytes: &[u8]) {
///     let _scope = scope!("read", bytes = bytes.len(), is_last = false, group = "io");
/// }
/// # read(b"ab");
/// ```
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
    ($name:expr, $($values:tt)+) => {
        $crate::__values!($name, "", [] $($values)+)
    };
}

/// Parts the values of a scope from its group.
#[doc(hidden)]
#[macro_export]
macro_rules! __values {
    ($name:expr, $none:expr, [$($values:tt)*] group = $group:expr $(, $($rest:tt)*)?) => {
        $crate::__values!($name, $group, [$($values)*] $($($rest)*)?)
    };
    ($name:expr, $group:expr, [$($values:tt)*] $value:ident = $is:expr $(, $($rest:tt)*)?) => {
        $crate::__values!($name, $group, [$($values)* ($value, $is)] $($($rest)*)?)
    };
    ($name:expr, $group:expr, [$(($value:ident, $is:expr))+]) => {
        $crate::__valued_scope!($name, $group, [$(($value, $is))+])
    };
}
