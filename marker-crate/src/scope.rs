//! `scope!` and `frame_scope!`, the syntax of scopes. Their expansion is in `active/site.rs` or `inactive/mod.rs`.

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
/// ([`Value`](crate::Value)). `group`, `colour` and `color` are options, so no value has one of these names.
///
/// ```
/// # use ctrace_marker::scope;
/// fn read(bytes: &[u8]) {
///     let _scope = scope!("read", bytes = bytes.len(), is_last = false, group = "io");
/// }
/// # read(b"ab");
/// ```
///
/// `colour` (or `color`) gives the scope a colour in tables, on pages and in pictures: a constant `u32` such
/// as `0x33aaff`, red, green and blue. It costs nothing at run time.
///
/// ```
/// # use ctrace_marker::scope;
/// let _scope = scope!("parse", colour = 0x33aaff);
/// ```
///
/// **Cost:** see the crate's documentation. **Signals:** may be used in a handler.
///
/// Never write `let _ = scope!("x");`: it ends the scope immediately, without a warning.
#[macro_export]
macro_rules! scope {
    () => {
        $crate::__scope!(1, 0, ::core::option::Option::None, "", ::core::option::Option::None)
    };
    (group = $($options:tt)+) => {
        $crate::__scope_with!([1, ::core::option::Option::None] group = $($options)+)
    };
    (colour = $($options:tt)+) => {
        $crate::__scope_with!([1, ::core::option::Option::None] colour = $($options)+)
    };
    (color = $($options:tt)+) => {
        $crate::__scope_with!([1, ::core::option::Option::None] colour = $($options)+)
    };
    // The form that `#[mark]` writes: the whole function, by name.
    (@function $name:expr, $($options:tt)+) => {
        $crate::__scope_with!([1, ::core::option::Option::Some($name)] $($options)+)
    };
    ($name:expr $(,)?) => {
        $crate::__scope_with!([0, ::core::option::Option::Some($name)])
    };
    ($name:expr, $($options:tt)+) => {
        $crate::__values!($name, "", ::core::option::Option::None, [] $($options)+)
    };
}

/// Marks a frame that has a beginning and an end: the calls of this scope are frames.
///
/// ```
/// use ctrace_marker::frame_scope;
///
/// fn step() {
///     let _frame = frame_scope!("physics"); // until the guard is dropped, or its `end` is called
///     let audio = frame_scope!("audio", group = "sound", colour = 0x33aaff);
///     audio.end();
///     frame_scope!(group = "sound").end(); // named "frame"
/// }
/// # step();
/// ```
///
/// The time between two frames is in none of them. Where a frame begins when the one before ends, one
/// [`frame!`](crate::frame) between them is enough.
///
/// The name is a constant expression of type `&'static str`, "frame" without one. Options are those of
/// [`scope!`](crate::scope), and so are the cost and the use in signal handlers.
#[macro_export]
macro_rules! frame_scope {
    () => {
        $crate::frame_scope!("frame")
    };
    (group = $($options:tt)+) => {
        $crate::frame_scope!("frame", group = $($options)+)
    };
    (colour = $($options:tt)+) => {
        $crate::frame_scope!("frame", colour = $($options)+)
    };
    (color = $($options:tt)+) => {
        $crate::frame_scope!("frame", color = $($options)+)
    };
    ($name:expr $(, $($options:tt)*)?) => {
        $crate::__scope_with!([0, 3, ::core::option::Option::Some($name)] $($($options)*)?)
    };
}

/// Reads the options of a scope without values.
#[doc(hidden)]
#[macro_export]
macro_rules! __scope_with {
    ([$flags:expr, $name:expr] $($options:tt)*) => {
        $crate::__scope_with!([$flags, 0, $name] $($options)*)
    };
    ([$($scope:tt)+] $($options:tt)*) => {
        $crate::__scope_with!(@ [$($scope)+], "", ::core::option::Option::None; $($options)*)
    };
    (@ [$flags:expr, $shape:expr, $name:expr], $group:expr, $colour:expr;) => {
        $crate::__scope!($flags, $shape, $name, $group, $colour)
    };
    (@ $scope:tt, $none:expr, $colour:expr; group = $group:expr $(, $($rest:tt)*)?) => {
        $crate::__scope_with!(@ $scope, $group, $colour; $($($rest)*)?)
    };
    (@ $scope:tt, $group:expr, $none:expr; colour = $colour:expr $(, $($rest:tt)*)?) => {
        $crate::__scope_with!(
            @ $scope, $group, ::core::option::Option::Some($colour); $($($rest)*)?
        )
    };
    (@ $scope:tt, $group:expr, $none:expr; color = $($rest:tt)+) => {
        $crate::__scope_with!(@ $scope, $group, $none; colour = $($rest)+)
    };
}

/// Parts the values of a scope from its options.
#[doc(hidden)]
#[macro_export]
macro_rules! __values {
    ($name:expr, $none:expr, $colour:expr, $values:tt group = $group:expr $(, $($rest:tt)*)?) => {
        $crate::__values!($name, $group, $colour, $values $($($rest)*)?)
    };
    ($name:expr, $group:expr, $none:expr, $values:tt colour = $colour:expr $(, $($rest:tt)*)?) => {
        $crate::__values!(
            $name, $group, ::core::option::Option::Some($colour), $values $($($rest)*)?
        )
    };
    ($name:expr, $group:expr, $none:expr, $values:tt color = $($rest:tt)+) => {
        $crate::__values!($name, $group, $none, $values colour = $($rest)+)
    };
    (
        $name:expr, $group:expr, $colour:expr,
        [$($values:tt)*] $value:ident = $is:expr $(, $($rest:tt)*)?
    ) => {
        $crate::__values!($name, $group, $colour, [$($values)* ($value, $is)] $($($rest)*)?)
    };
    ($name:expr, $group:expr, $colour:expr, []) => {
        $crate::__scope!(0, 0, ::core::option::Option::Some($name), $group, $colour)
    };
    ($name:expr, $group:expr, $colour:expr, [$(($value:ident, $is:expr))+]) => {
        $crate::__valued_scope!($name, $group, $colour, [$(($value, $is))+])
    };
}
