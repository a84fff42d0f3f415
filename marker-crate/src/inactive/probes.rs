//! `usdt!`, `usdt_enabled!` and `marker_fn!` without effect.

/// Emits nothing in this build; the arguments are checked but not computed.
#[macro_export]
macro_rules! usdt {
    ($provider:ident, $name:ident $(, $argument:expr)* $(,)?) => {
        if false {
            $( let _ = $crate::ProbeArg::bits($argument); )*
        }
    };
}

/// Is `false` in this build.
#[macro_export]
macro_rules! usdt_enabled {
    ($provider:ident, $name:ident) => {
        false
    };
}

/// Defines the exported function without the entry for probes.
#[macro_export]
macro_rules! marker_fn {
    ($(#[$attribute:meta])* $visibility:vis extern "C" fn $name:ident(
        $($argument:ident : $type:ty),* $(,)?
    ) $(-> $result:ty)? $body:block) => {
        $(#[$attribute])*
        #[unsafe(no_mangle)]
        $visibility extern "C" fn $name($($argument: $type),*) $(-> $result)? $body
    };
}
