//! `message!`, `plot!` and `frame!`: the syntax of points in time. Their expansion is in
//! `active/point.rs` or `inactive/mod.rs`.

/// Writes a message, a formatted text of up to 1008 bytes.
///
/// ```
/// use ctrace_marker::message;
///
/// let (client, retries) = ("shop", 3);
/// message!("connected");
/// message!("{client} retries, {} times", retries);
/// message!(level = Warn, "slow: {:.1} ms", 12.34);
/// message!(level = Error, group = "net", "connection of {client} lost");
/// ```
///
/// Write options before the text: `level`, one of the [`Level`](crate::Level)s, and `group`. The
/// text is a literal. Its first 64 bytes are the message's name, by which it is chosen.
///
/// The arguments are computed, and the text is formatted, only while somebody traces the message.
/// That happens on the stack; nothing is allocated, unless an argument's own formatting does so. A
/// longer text is cut, and ends in "…".
///
/// **Stack:** active and with placeholders, about 1.1 KiB, and what the formatting needs. Leave
/// messages out of code on tiny stacks, or put them into a group that is not chosen.
///
/// Where one or two arguments follow the text and all placeholders are `{}`, integers and `&str` are
/// written without `core::fmt`, which is faster. The types of such arguments must be known at the
/// message: write that of a closure's parameter (`|n: u32| message!("{}", n)`).
///
/// **Cost:** dormant, that of a dormant scope. Active, about that of two `rdtsc`, some 5 ns for each
/// 15 bytes, and that of formatting: some 10 ns for an integer, or 25 ns by `core::fmt`. A text
/// without placeholders needs no formatting. **Signals:** may be used in a handler, if the arguments may be formatted there.
#[macro_export]
macro_rules! message {
    (level = $level:ident, group = $group:expr, $format:literal $($arguments:tt)*) => {
        $crate::__message!($crate::Level::$level as u8, $group, $format, [$($arguments)*])
    };
    (group = $group:expr, level = $level:ident, $format:literal $($arguments:tt)*) => {
        $crate::__message!($crate::Level::$level as u8, $group, $format, [$($arguments)*])
    };
    (level = $level:ident, $format:literal $($arguments:tt)*) => {
        $crate::__message!($crate::Level::$level as u8, "", $format, [$($arguments)*])
    };
    (group = $group:expr, $format:literal $($arguments:tt)*) => {
        $crate::__message!(0, $group, $format, [$($arguments)*])
    };
    ($format:literal $($arguments:tt)*) => {
        $crate::__message!(0, "", $format, [$($arguments)*])
    };
}

/// Writes a value of a plot: a number that changes over time, such as the length of a queue.
///
/// ```
/// use ctrace_marker::plot;
///
/// let queue = vec![1, 2, 3];
/// plot!("queue", queue.len());
/// plot!("latency", 2.5, unit = "ms");
/// plot!("free", 7_u64, unit = "MiB", group = "memory");
/// ```
///
/// The name, the unit and the group are constant expressions of type `&'static str`. A unit has
/// none of the characters `,:[]`. The value is an integer of up to 64 bits or a float; it is
/// computed only while somebody traces the plot.
///
/// **Cost:** dormant, that of a dormant scope; active, about that of two `rdtsc`, and less for an
/// integer of less than 16 bits, also as a float. **Signals:** may be used in a handler.
#[macro_export]
macro_rules! plot {
    ($name:expr, $value:expr $(,)?) => {
        $crate::__plot!($name, "", $value, "")
    };
    ($name:expr, $value:expr, unit = $unit:expr $(,)?) => {
        $crate::__plot!($name, $unit, $value, "")
    };
    ($name:expr, $value:expr, group = $group:expr $(,)?) => {
        $crate::__plot!($name, "", $value, $group)
    };
    ($name:expr, $value:expr, unit = $unit:expr, group = $group:expr $(,)?) => {
        $crate::__plot!($name, $unit, $value, $group)
    };
    ($name:expr, $value:expr, group = $group:expr, unit = $unit:expr $(,)?) => {
        $crate::__plot!($name, $unit, $value, $group)
    };
}

/// Marks where a frame ends and the next one begins.
///
/// ```
/// use ctrace_marker::frame;
///
/// for _ in 0..3 {
///     // … draw …
///     frame!();
/// }
/// frame!("physics"); // frames of another kind, with another rhythm
/// frame!("audio", group = "sound");
/// ```
///
/// ctrace counts frame marks, and shows them in lines and as instants in Perfetto. `ctrace report --frame` takes
/// the times between them as frames. Where time passes between frames, use
/// [`frame_scope!`](crate::frame_scope).
///
/// **Cost:** dormant, that of a dormant scope; active, about that of two `rdtsc`. **Signals:** may
/// be used in a handler.
#[macro_export]
macro_rules! frame {
    () => {
        $crate::__frame!("frame", "")
    };
    (group = $group:expr $(,)?) => {
        $crate::__frame!("frame", $group)
    };
    ($name:expr $(,)?) => {
        $crate::__frame!($name, "")
    };
    ($name:expr, group = $group:expr $(,)?) => {
        $crate::__frame!($name, $group)
    };
}
