//! The types of the values that come with entries.

/// A value that [`scope!`](crate::scope) takes: an integer of up to 64 bits, a float or a `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value of a scope: values are numbers; texts go into message!",
    label = "not an integer of up to 64 bits, a float or a `bool`"
)]
pub trait Value {
    /// Its type in the list of values: `i64`, `u64`, `f64` or `bool`.
    #[doc(hidden)]
    const TYPE: &'static str;

    /// Returns the value as 64 bits of that type.
    #[doc(hidden)]
    fn bits(self) -> u64;
}

/// A value that [`plot!`](crate::plot) takes: an integer or a float.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number: a plot takes an integer of up to 64 bits or a float",
    label = "not a number"
)]
pub trait Number: Value {}

macro_rules! values {
    ($($kind:literal: $($type:ty)*, $value:ident => $bits:expr;)*) => {$($(
        impl Value for $type {
            const TYPE: &'static str = $kind;

            #[inline(always)]
            fn bits(self) -> u64 {
                let $value = self;
                $bits
            }
        }
    )*)*};
}
values! {
    "i64": i8 i16 i32 i64 isize, value => value as u64;
    "u64": u8 u16 u32 u64 usize, value => value as u64;
    "f64": f32, value => f64::from(value).to_bits();
    "f64": f64, value => value.to_bits();
    "bool": bool, value => u64::from(value);
}

macro_rules! numbers {
    ($($type:ty)*) => { $(impl Number for $type {})* };
}
numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

impl<V: Value + Copy> Value for &V {
    const TYPE: &'static str = V::TYPE;

    #[inline(always)]
    fn bits(self) -> u64 {
        (*self).bits()
    }
}

impl<N: Number + Copy> Number for &N {}

/// One to four values, as a tuple.
#[doc(hidden)]
pub trait Values {
    const TYPES: &'static [&'static str];
    type Bits: AsRef<[u64]>;

    fn bits(self) -> Self::Bits;
}

macro_rules! tuples {
    ($($count:literal $($value:ident $type:ident)*;)*) => {$(
        impl<$($type: Value),*> Values for ($($type,)*) {
            const TYPES: &'static [&'static str] = &[$($type::TYPE),*];
            type Bits = [u64; $count];

            #[inline(always)]
            fn bits(self) -> [u64; $count] {
                let ($($value,)*) = self;
                [$($value.bits()),*]
            }
        }
    )*};
}
tuples! {
    1 a A;
    2 a A b B;
    3 a A b B c C;
    4 a A b B c C d D;
}

/// Returns the number.
#[doc(hidden)]
#[inline(always)]
pub fn number<N: Number>(number: N) -> N {
    number
}

/// Takes values, where nothing is written.
#[doc(hidden)]
#[inline(always)]
pub fn values<V: Values>(_: V) {}

#[cfg(test)]
mod tests {
    use super::{Value, Values};

    fn of<V: Value>(value: V) -> (&'static str, u64) {
        (V::TYPE, value.bits())
    }

    #[test]
    fn values_have_types_and_bits() {
        assert_eq!(of(-2_i8), ("i64", u64::MAX - 1));
        assert_eq!(of(200_u8), ("u64", 200));
        assert_eq!(of(1.5_f32), ("f64", 1.5_f64.to_bits()));
        let in_a_list = [-0.25].iter().map(of).next();
        assert_eq!(in_a_list, Some(("f64", (-0.25_f64).to_bits())));
        assert_eq!((of(true), of(false)), (("bool", 1), ("bool", 0)));
        assert_eq!((3_u16, 4.0, true).bits(), [3, 4.0_f64.to_bits(), 1]);
    }

    #[test]
    fn tuples_have_the_types_in_order() {
        fn types<V: Values>(_: V) -> &'static [&'static str] {
            V::TYPES
        }
        assert_eq!(types((1, 2_usize, 0.5, false)), ["i64", "u64", "f64", "bool"]);
    }
}
