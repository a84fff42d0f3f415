//! The same interface without effect: for other targets, Miri, and builds without the feature
//! `active`.

pub(crate) mod guard;
pub(crate) mod named;
mod points;
mod probes;
pub(crate) mod thread_name;

/// The expansion of the macros.
pub(crate) mod private {
    pub use super::guard::nothing;
    pub use super::thread_name::thread_name_of;
}

/// Checks the texts as the active macro does, and nothing more.
#[doc(hidden)]
#[macro_export]
macro_rules! __scope {
    ($flags:expr, $shape:expr, $name:expr, $group:expr, $colour:expr) => {{
        const _: (u8, u8, ::core::option::Option<&'static str>) = ($flags, $shape, $name);
        const _: (&'static str, ::core::option::Option<u32>) = ($group, $colour);
        $crate::__private::nothing()
    }};
}

/// Makes the future itself.
#[doc(hidden)]
#[macro_export]
macro_rules! __async_call {
    ($flags:expr, $name:expr, $group:expr, $colour:expr, $future:expr) => {{
        const _: (u8, &'static str, &'static str) = ($flags, $name, $group);
        const _: ::core::option::Option<u32> = $colour;
        $future
    }};
}
