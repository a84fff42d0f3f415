//! Formats a message without `core::fmt` if all its placeholders are `{}`: integers and texts, which
//! most messages have, are then written three times as fast. Other arguments go to `core::fmt` one by
//! one, and so does every other format as a whole.

use super::text::Text;
use crate::value::Value;
use core::fmt::Display;

/// Appends the arguments of a message, formatted.
#[doc(hidden)]
#[macro_export]
macro_rules! __format {
    // An argument with a name.
    ($text:ident, $format:literal, [, $name:ident = $($rest:tt)*]) => {
        $text.format(::core::format_args!($format, $name = $($rest)*))
    };
    ($text:ident, $format:literal, [, $a:expr $(,)?]) => {
        match &$a {
            a => match const { $crate::__private::around::<2>($format) } {
                ::core::option::Option::Some([first, last]) => {
                    $text.add(first);
                    $crate::__add!($text, a);
                    $text.add(last);
                }
                _ => $text.format(::core::format_args!($format, *a)),
            },
        }
    };
    ($text:ident, $format:literal, [, $a:expr, $name:ident = $($rest:tt)*]) => {
        $text.format(::core::format_args!($format, $a, $name = $($rest)*))
    };
    ($text:ident, $format:literal, [, $a:expr, $b:expr $(,)?]) => {
        match (&$a, &$b) {
            (a, b) => match const { $crate::__private::around::<3>($format) } {
                ::core::option::Option::Some([first, between, last]) => {
                    $text.add(first);
                    $crate::__add!($text, a);
                    $text.add(between);
                    $crate::__add!($text, b);
                    $text.add(last);
                }
                _ => $text.format(::core::format_args!($format, *a, *b)),
            },
        }
    };
    ($text:ident, $format:literal, [$($arguments:tt)*]) => {
        $text.format(::core::format_args!($format $($arguments)*))
    };
}

/// Appends one argument, in the first of these ways that its type has.
#[doc(hidden)]
#[macro_export]
macro_rules! __add {
    ($text:ident, $argument:ident) => {{
        #[allow(unused_imports, reason = "one of them is used")]
        use $crate::__private::{ByFmt as _, Directly as _, Never as _};
        (&&&$crate::__private::Shown($argument)).add_to($text)
    }};
}

/// Returns the texts around the placeholders of a format, if it has one fewer of them, all of them `{}`,
/// and no other braces.
#[must_use]
pub const fn around<const N: usize>(format: &'static str) -> Option<[&'static str; N]> {
    let (mut texts, mut known, mut rest, mut at) = ([""; N], 0, format, 0);
    while at < rest.len() {
        match rest.as_bytes()[at] {
            b'{' => {
                if known + 1 >= N || at + 1 >= rest.len() || rest.as_bytes()[at + 1] != b'}' {
                    return None;
                }
                let (text, placeholder) = rest.split_at(at);
                texts[known] = text;
                known += 1;
                (_, rest) = placeholder.split_at(2);
                at = 0;
            }
            b'}' => return None,
            _ => at += 1,
        }
    }
    if known + 1 != N {
        return None;
    }
    texts[known] = rest;
    Some(texts)
}

/// An argument of `{}`.
pub struct Shown<'a, T: ?Sized>(pub &'a T);

/// Integers and texts.
pub trait Directly {
    fn add_to(&self, text: &mut Text<'_>);
}

macro_rules! directly {
    ($($type:ty)*, |$value:ident, $text:ident| $add:expr) => {$(
        impl Directly for &&Shown<'_, $type> {
            #[inline]
            fn add_to(&self, $text: &mut Text<'_>) {
                let $value = self.0;
                $add
            }
        }

        impl Directly for &&Shown<'_, &$type> {
            #[inline]
            fn add_to(&self, text: &mut Text<'_>) {
                (&&Shown(*self.0)).add_to(text);
            }
        }
    )*};
}
directly!(u8 u16 u32 u64 usize, |value, text| text.add_integer(value.bits(), false));
directly!(i8 i16 i32 i64 isize, |value, text| {
    text.add_integer((value.bits() as i64).unsigned_abs(), *value < 0)
});
// A literal may become one of these.
directly!(u128 i128, |value, text| text.format(format_args!("{value}")));
directly!(str, |value, text| text.add(value));

/// All else that can be shown.
pub trait ByFmt {
    fn add_to(&self, text: &mut Text<'_>);
}

impl<T: Display + ?Sized> ByFmt for &Shown<'_, T> {
    #[inline]
    fn add_to(&self, text: &mut Text<'_>) {
        text.format(format_args!("{}", self.0));
    }
}

/// What another format shows: not with `{}`.
pub trait Never {
    fn add_to(&self, text: &mut Text<'_>);
}

impl<T: ?Sized> Never for Shown<'_, T> {
    fn add_to(&self, _: &mut Text<'_>) {}
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{super::text::Room, *};
    use std::string::{String, ToString};

    #[test]
    fn only_plain_placeholders_have_texts_around_them() {
        assert_eq!(around::<2>("{}"), Some(["", ""]));
        assert_eq!(around::<2>("ä {} b"), Some(["ä ", " b"]));
        assert_eq!(around::<3>("{}{} c"), Some(["", "", " c"]));
        for other in ["", "a", "{} {}", "{0}", "{:?}", "{a}", "{{}}", "{", "}", "{}}}", "{{ {}"] {
            assert_eq!(around::<2>(other), None, "{other}");
        }
        assert_eq!(around::<3>("{} {:?}"), None);
    }

    /// Formats as a message does.
    macro_rules! formatted {
        ($format:literal $($arguments:tt)*) => {{
            let mut room = Room::uninit();
            let mut text = Text::new(&mut room);
            let to = &mut text;
            __format!(to, $format, [$($arguments)*]);
            String::from_utf8(text.as_bytes().to_vec()).unwrap()
        }};
    }

    #[test]
    fn arguments_are_shown_as_everywhere() {
        for n in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1]).chain([u64::MAX, 1_000_007])
        {
            assert_eq!(formatted!("n {}!", n), std::format!("n {n}!"));
            let negative = (n as i64).wrapping_neg();
            assert_eq!(formatted!("{}", negative), negative.to_string());
        }
        for exponent in 0..20 {
            let n = 10_u64.pow(exponent);
            assert_eq!(formatted!("{} {}", n, &(n - 1)), std::format!("{} {}", n, n - 1));
        }
        assert_eq!(formatted!("{} {}", i64::MIN, -128_i8), "-9223372036854775808 -128");
        assert_eq!(formatted!("{}{},", "ab", &&"ä"), "abä,");
        assert_eq!(formatted!("{}", String::from("owned")), "owned");
        assert_eq!(formatted!("{} {}", 0.5, true), "0.5 true");
        assert_eq!(formatted!("{} {}", 5, 'x'), "5 x");
        let mut large = 7;
        assert_eq!(formatted!("{}", large), "7");
        large += u128::MAX - 7;
        assert_eq!(formatted!("{}", large), u128::MAX.to_string());
    }

    #[test]
    fn other_formats_are_as_everywhere() {
        let (a, width) = (7, 4);
        assert_eq!(formatted!("{a} {}", 8), "7 8");
        assert_eq!(formatted!("{:1$}|{0}", 8, width), "   8|8");
        assert_eq!(formatted!("{:?} {{{}}}", Some(1), "b"), "Some(1) {b}");
        assert_eq!(formatted!("{:?}", [1, 2]), "[1, 2]");
        assert_eq!(formatted!("{b} {}", a, b = 9), "9 7");
        assert_eq!(formatted!("{b}", b = a == 7), "true");
        assert_eq!(formatted!("{} {} {}", 1, "b", 2.5), "1 b 2.5");
        let pointer = &raw const a;
        assert_eq!(formatted!("{:p}", pointer), std::format!("{pointer:p}"));
    }

    #[test]
    fn an_integer_is_cut_like_a_text() {
        let long = "x".repeat(1000);
        assert_eq!(formatted!("{}{}", &long[..], 12_345_678), long.clone() + "12345678");
        assert_eq!(formatted!("{}{}", &long[..], -12_345_678), long.clone() + "-1234…");
    }
}
