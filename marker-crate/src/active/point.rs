//! The code of points and of scopes with values: as a scope's, a comparison and a jump that is not
//! taken. At the jump's target the values are computed and written.
//!
//! The types of the values are part of the site, but only the compiler knows them. So each site has
//! a function of its own, generic over the source of its values, and inlined.

/// The function `run` of a site, which takes the source of its values. It reads `at`, the address of
/// the site's entry, and `sp`.
#[doc(hidden)]
#[macro_export]
macro_rules! __point_site {
    (
        $flags:expr, $shape:expr, $level:expr, $name:expr, $values:expr, $group:expr, $colour:expr,
        $result:ty, $off:expr, |$source:ident, $at:ident, $sp:ident| $on:expr
    ) => {{
        struct CtraceSite<S>(::core::marker::PhantomData<S>);

        impl<S: $crate::__private::Source> CtraceSite<S> {
            const TEXTS: $crate::__private::Texts = $crate::__private::Texts::with_values(
                ::core::option::Option::Some($name),
                $values,
                S::TYPES,
                ::core::file!(),
                $group,
                $colour,
            );
            const ID: u64 = $crate::__private::id(
                &Self::TEXTS,
                ::core::module_path!(),
                ::core::line!(),
                ::core::column!(),
            );
        }

        #[inline(always)]
        fn ctrace_run<S: $crate::__private::Source>($source: S) -> $result {
            if const { $crate::__private::is_off(::core::option_env!("CTRACE_MARKER_OFF"), $group) }
            {
                return $off;
            }
            let ($at, $sp): (u64, u64);
            // SAFETY: reads a word that the block below puts into writable data; leaves for that
            // block or goes on.
            unsafe {
                ::core::arch::asm!(
                    "cmp word ptr [rip + .Lctrace_semaphore_{id}], 0",
                    "jne {on}",
                    id = const CtraceSite::<S>::ID,
                    on = label {
                        $crate::__site!(
                            ["lea {site}, [rip + 772f]", "mov {stack}, rsp"],
                            [
                                site = out(reg) $at,
                                stack = out(reg) $sp,
                                options(nomem, nostack, preserves_flags),
                            ],
                            [$flags, $shape, $level],
                            CtraceSite::<S>::TEXTS,
                            CtraceSite::<S>::ID
                        );
                        return $on;
                    },
                    options(readonly, nostack),
                );
            }
            $off
        }

        ctrace_run
    }};
}

/// A point in time.
#[doc(hidden)]
#[macro_export]
macro_rules! __point {
    (
        $flags:expr, $shape:expr, $level:expr, $name:expr, $values:expr, $group:expr, $colour:expr,
        $source:expr
    ) => {
        $crate::__point_site!(
            $flags,
            $shape,
            $level,
            $name,
            $values,
            $group,
            $colour,
            (),
            (),
            |source, at, sp| { $crate::__private::Source::record(source, at, sp) }
        )($source)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __message {
    ($level:expr, $group:expr, $colour:expr, $format:literal, [$($arguments:tt)*]) => {
        $crate::__point!(
            12, 1, $level, $crate::__private::head($format, 64), &[("message", "")], $group, $colour,
            $crate::__private::formatted(const { $crate::__private::plain($format) }, |text| {
                $crate::__format!(text, $format, [$($arguments)*])
            })
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __plot {
    ($name:expr, $unit:expr, $value:expr, $group:expr, $colour:expr) => {
        $crate::__point!(
            12,
            2,
            0,
            $name,
            &[("value", $unit)],
            $group,
            $colour,
            $crate::__private::Sample(|| $crate::__private::number($value))
        )
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __frame {
    ($name:expr, $group:expr, $colour:expr) => {
        $crate::__point!(4, 3, 0, $name, &[], $group, $colour, $crate::__private::Nothing)
    };
}

/// An event of a lock, a point with its address. Returns whether it was written.
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_event {
    ($name:expr, $lock:expr) => {
        $crate::__point_site!(
            12,
            0,
            0,
            $name,
            &[("lock", "")],
            "locks",
            ::core::option::Option::None,
            bool,
            false,
            |source, at, sp| {
                $crate::__private::Source::record(source, at, sp);
                true
            }
        )($crate::__private::Lazy(|| ($lock,)))
    };
}

/// The name of a lock, a point with its address.
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_name {
    ($lock:expr, $name:expr) => {
        $crate::__point!(
            12,
            0,
            0,
            "lock name",
            &[("lock", ""), ("name", "")],
            "locks",
            ::core::option::Option::None,
            $crate::__private::Named($lock, $name)
        )
    };
}

/// A scope with values.
#[doc(hidden)]
#[macro_export]
macro_rules! __valued_scope {
    ($name:expr, $group:expr, $colour:expr, [$(($value:ident, $is:expr))+]) => {
        $crate::__point_site!(
            8, 0, 0, $name, &[$((::core::stringify!($value), "")),+], $group, $colour,
            $crate::Guard, $crate::__private::nothing(), |source, at, sp| {
                $crate::__private::Source::record(source, at, sp);
                let low = ::core::mem::MaybeUninit::new($crate::__private::low(sp));
                // SAFETY: the words of the entry that was just written.
                unsafe { $crate::__private::begun($crate::__private::tag(at, sp), low) }
            }
        )($crate::__private::Lazy(|| ($($is,)+)))
    };
}
