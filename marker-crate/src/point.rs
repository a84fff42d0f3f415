//! `message!`, `plot!` and `frame!`: the syntax of points in time. Their expansion is in
//! `active/point.rs` or `inactive/mod.rs`. `thread_name!` names the thread that they are in.

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
/// message!(colour = 0x33aaff, "in blue");
/// ```
///
/// Write options before the text: `level`, one of the [`Level`](crate::Level)s, `group`, and `colour` (or
/// `color`), as for [`scope!`](crate::scope). The text is a literal. Its first 64 bytes are the message's
/// name, by which it is chosen.
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
    ($($message:tt)+) => {
        $crate::__message_with!([0, "", ::core::option::Option::None] $($message)+)
    };
}

/// Reads the options of a message, up to its text.
#[doc(hidden)]
#[macro_export]
macro_rules! __message_with {
    ([$none:expr, $group:expr, $colour:expr] level = $level:ident, $($rest:tt)+) => {
        $crate::__message_with!([$crate::Level::$level as u8, $group, $colour] $($rest)+)
    };
    ([$level:expr, $none:expr, $colour:expr] group = $group:expr, $($rest:tt)+) => {
        $crate::__message_with!([$level, $group, $colour] $($rest)+)
    };
    ([$level:expr, $group:expr, $none:expr] colour = $colour:expr, $($rest:tt)+) => {
        $crate::__message_with!(
            [$level, $group, ::core::option::Option::Some($colour)] $($rest)+
        )
    };
    ($options:tt color = $($rest:tt)+) => {
        $crate::__message_with!($options colour = $($rest)+)
    };
    ([$level:expr, $group:expr, $colour:expr] $format:literal $($arguments:tt)*) => {
        $crate::__message!($level, $group, $colour, $format, [$($arguments)*])
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
/// plot!("free", 7_u64, unit = "MiB", group = "memory", colour = 0x33aaff);
/// ```
///
/// The name, the unit and the group are constant expressions of type `&'static str`, and `colour` (or `color`)
/// is as for [`scope!`](crate::scope). A unit has none of the characters `,:[]`. The value is an integer of up to 64 bits or a float; it is
/// computed only while somebody traces the plot.
///
/// **Cost:** dormant, that of a dormant scope; active, about that of two `rdtsc`, and less for an
/// integer of less than 16 bits, also as a float. **Signals:** may be used in a handler.
#[macro_export]
macro_rules! plot {
    ($name:expr, $value:expr $(, $($options:tt)*)?) => {
        $crate::__plot_with!(
            [$name, $value], "", "", ::core::option::Option::None; $($($options)*)?
        )
    };
}

/// Reads the options of a plot.
#[doc(hidden)]
#[macro_export]
macro_rules! __plot_with {
    ([$name:expr, $value:expr], $unit:expr, $group:expr, $colour:expr;) => {
        $crate::__plot!($name, $unit, $value, $group, $colour)
    };
    ($of:tt, $none:expr, $group:expr, $colour:expr; unit = $unit:expr $(, $($rest:tt)*)?) => {
        $crate::__plot_with!($of, $unit, $group, $colour; $($($rest)*)?)
    };
    ($of:tt, $unit:expr, $none:expr, $colour:expr; group = $group:expr $(, $($rest:tt)*)?) => {
        $crate::__plot_with!($of, $unit, $group, $colour; $($($rest)*)?)
    };
    ($of:tt, $unit:expr, $group:expr, $none:expr; colour = $colour:expr $(, $($rest:tt)*)?) => {
        $crate::__plot_with!(
            $of, $unit, $group, ::core::option::Option::Some($colour); $($($rest)*)?
        )
    };
    ($of:tt, $unit:expr, $group:expr, $none:expr; color = $($rest:tt)+) => {
        $crate::__plot_with!($of, $unit, $group, $none; colour = $($rest)+)
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
/// frame!("audio", group = "sound", colour = 0x33aaff);
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
        $crate::frame!("frame")
    };
    (group = $($options:tt)+) => {
        $crate::frame!("frame", group = $($options)+)
    };
    (colour = $($options:tt)+) => {
        $crate::frame!("frame", colour = $($options)+)
    };
    (color = $($options:tt)+) => {
        $crate::frame!("frame", color = $($options)+)
    };
    ($name:expr $(, $($options:tt)*)?) => {
        $crate::__frame_with!($name, "", ::core::option::Option::None; $($($options)*)?)
    };
}

/// Reads the options of a frame mark.
#[doc(hidden)]
#[macro_export]
macro_rules! __frame_with {
    ($name:expr, $group:expr, $colour:expr;) => {
        $crate::__frame!($name, $group, $colour)
    };
    ($name:expr, $none:expr, $colour:expr; group = $group:expr $(, $($rest:tt)*)?) => {
        $crate::__frame_with!($name, $group, $colour; $($($rest)*)?)
    };
    ($name:expr, $group:expr, $none:expr; colour = $colour:expr $(, $($rest:tt)*)?) => {
        $crate::__frame_with!(
            $name, $group, ::core::option::Option::Some($colour); $($($rest)*)?
        )
    };
    ($name:expr, $group:expr, $none:expr; color = $($rest:tt)+) => {
        $crate::__frame_with!($name, $group, $none; colour = $($rest)+)
    };
}

/// Names this thread, as tools and ctrace show it from now on: a text with arguments, as
/// [`message!`](crate::message) has one.
///
/// ```
/// use ctrace_marker::thread_name;
///
/// let number = 3;
/// thread_name!("worker {number}");
/// ```
///
/// Of the name, 15 bytes count. This is no marker: the arguments are computed, and the system call is made,
/// whether or not somebody traces.
#[macro_export]
macro_rules! thread_name {
    ($($text:tt)+) => {
        $crate::__private::thread_name_of(::core::format_args!($($text)+))
    };
}
