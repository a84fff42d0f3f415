//! `async_scope!`, the marker of a future. Its expansion is in `active/async_fn.rs` or `inactive/mod.rs`.

/// Marks a future, such as an `async` block, as `#[mark]` marks an async function.
///
/// ```
/// use ctrace_marker::async_scope;
///
/// async fn copy(bytes: &[u8]) -> usize {
///     async_scope!("send", async { bytes.len() }).await
///         + async_scope!("save", group = "disk", colour = 0x33aaff, async { bytes.len() }).await
/// }
/// # drop(copy(b"ab"));
/// ```
///
/// Its value is a future, which may be awaited or given to an executor. A call lasts from the first poll to the
/// completion, whichever threads poll it, and has no duration if the future is dropped before.
///
/// The name, the group and the colour are those of [`scope!`](crate::scope). Without markers it is the future
/// itself.
///
/// **Cost:** dormant, a comparison for each poll and one for the call. Active, a poll costs what a scope with a value does,
/// and the call as much again.
#[macro_export]
macro_rules! async_scope {
    ($name:expr, group = $group:expr, colour = $colour:expr, $future:expr $(,)?) => {
        $crate::__async_call!(0, $name, $group, ::core::option::Option::Some($colour), $future)
    };
    ($name:expr, group = $group:expr, $future:expr $(,)?) => {
        $crate::__async_call!(0, $name, $group, ::core::option::Option::None, $future)
    };
    ($name:expr, colour = $colour:expr, $future:expr $(,)?) => {
        $crate::__async_call!(0, $name, "", ::core::option::Option::Some($colour), $future)
    };
    ($name:expr, colour = $colour:expr, group = $group:expr, $future:expr $(,)?) => {
        $crate::async_scope!($name, group = $group, colour = $colour, $future)
    };
    ($name:expr, color = $($rest:tt)+) => {
        $crate::async_scope!($name, colour = $($rest)+)
    };
    ($name:expr, group = $group:expr, color = $($rest:tt)+) => {
        $crate::async_scope!($name, group = $group, colour = $($rest)+)
    };
    ($name:expr, $future:expr $(,)?) => {
        $crate::__async_call!(0, $name, "", ::core::option::Option::None, $future)
    };
}
