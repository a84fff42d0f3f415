//! The attribute `#[mark]` of `ctrace-marker`; use it from there.
//!
//! `options` reads the parentheses, `function` puts a scope into one function, `block` goes through
//! the methods of an `impl` or `trait`.

#[cfg(feature = "full")]
mod block;
#[cfg(feature = "full")]
mod full;
#[cfg(feature = "full")]
mod function;
#[cfg(not(feature = "full"))]
mod off;
#[cfg(feature = "full")]
mod options;

use proc_macro::TokenStream;

/// Puts a scope around a function, or around each method of an `impl` or `trait` block.
///
/// ```text
/// #[mark]
/// fn parse(text: &str) { … }                    // crate::module::parse
///
/// #[mark(name = "checkout", group = "prod")]
/// fn check_out() { … }                          // checkout
///
/// #[mark(colour = 0x33aaff)]                     // red, green and blue, for tables and pictures
/// fn draw() { … }
///
/// #[mark(group = "dev")]
/// impl Parser {
///     fn next(&mut self) { … }                  // crate::module::Parser::next
///     #[mark(skip)]
///     fn peek(&self) { … }                      // not marked
///     const fn new() -> Self { … }              // not marked: may run in the compiler
/// }
/// ```
///
/// A function is named by its module and name. A method in a marked block is also named by its
/// type. A method marked alone is not, since an attribute sees nothing around it.
///
/// A call of an async function lasts from its first poll to its completion, whichever threads poll it. Its
/// polls and the times between them are told apart (`docs/async.md`). Do not hold a guard of `scope!` across
/// an `await`.
///
/// `#[mark(crate = "path")]` gives another name of `ctrace_marker`.
#[proc_macro_attribute]
pub fn mark(arguments: TokenStream, item: TokenStream) -> TokenStream {
    #[cfg(feature = "full")]
    return full::mark(arguments, item);
    #[cfg(not(feature = "full"))]
    {
        let _ = arguments;
        off::mark(item)
    }
}
