//! `message!`, `plot!`, `frame!`, scopes with values and events of locks, without effect: everything is
//! checked, and nothing is computed.

#[doc(hidden)]
#[macro_export]
macro_rules! __message {
    ($level:expr, $group:expr, $colour:expr, $format:literal, [$($arguments:tt)*]) => {{
        const _: (u8, &'static str) = ($level, $group);
        const _: ::core::option::Option<u32> = $colour;
        if false {
            let _ = ::core::format_args!($format $($arguments)*);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __plot {
    ($name:expr, $unit:expr, $value:expr, $group:expr, $colour:expr) => {{
        const _: [&'static str; 3] = [$name, $unit, $group];
        const _: ::core::option::Option<u32> = $colour;
        if false {
            $crate::__private::number($value);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __frame {
    ($name:expr, $group:expr, $colour:expr) => {{
        const _: [&'static str; 2] = [$name, $group];
        const _: ::core::option::Option<u32> = $colour;
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __lock_event {
    ($name:expr, $lock:expr) => {{
        const _: &'static str = $name;
        let _: u64 = $lock;
        false
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __lock_name {
    ($lock:expr, $name:expr) => {{
        let _: (u64, &str) = ($lock, $name);
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __valued_scope {
    ($name:expr, $group:expr, $colour:expr, [$(($value:ident, $is:expr))+]) => {{
        const _: [&'static str; 2] = [$name, $group];
        const _: ::core::option::Option<u32> = $colour;
        if false {
            $crate::__private::values(($($is,)+));
        }
        $crate::__private::nothing()
    }};
}
