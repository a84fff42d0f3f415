//! The types of USDT probe arguments.

/// A value that [`usdt!`](crate::usdt) can pass: integers, `bool` and pointers, as 64 bits.
///
/// Signed integers are sign-extended; a tool that shows arguments unsigned needs a cast to `int64`.
pub trait ProbeArg {
    /// Returns the 64 bits that a tool reads.
    fn bits(self) -> u64;
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl ProbeArg for $integer {
            #[inline(always)]
            fn bits(self) -> u64 {
                self as u64
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize bool);

impl<T> ProbeArg for *const T {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.expose_provenance() as u64
    }
}

impl<T> ProbeArg for *mut T {
    #[inline(always)]
    fn bits(self) -> u64 {
        self.expose_provenance() as u64
    }
}
