//! The attribute `#[mark]` of `ctrace-marker`; use it from there.
//!
//! `options` reads what is in the parentheses, `function` puts a scope into one function, `block`
//! goes through the methods of an `impl` or `trait`.

mod block;
mod function;
mod options;

use options::Options;
use proc_macro::TokenStream;
use quote::ToTokens;
use syn::{Error, Item, parse_macro_input};

/// Puts a scope around a function, or around each method of an `impl` or `trait` block.
///
/// ```ignore
/// #[mark]
/// fn parse(text: &str) { … }                    // crate::module::parse
///
/// #[mark(name = "checkout", group = "prod")]
/// fn check_out() { … }                          // checkout
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
/// A function is named by its module and name; a method within a marked block by its type as well,
/// alone by its module and name only, since an attribute does not see what is around it.
///
/// Async functions are refused: between its beginning and its end such a function lets others run,
/// on any thread, so it is no stretch of time. Put `scope!` around the parts between two `await`s,
/// or `#[mark(skip)]` on the method. `#[mark(crate = "path")]` names `ctrace_marker` if it goes by
/// another name.
#[proc_macro_attribute]
pub fn mark(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(arguments as Options);
    let marked = match parse_macro_input!(item as Item) {
        Item::Fn(function) => function::mark(&options, function),
        Item::Impl(block) => block::mark_impl(&options, block),
        Item::Trait(block) => block::mark_trait(&options, block),
        other => Err(Error::new_spanned(
            other,
            "`#[mark]` is for functions, methods, `impl` and `trait` blocks",
        )),
    };
    marked.unwrap_or_else(|error| error.to_compile_error().to_token_stream()).into()
}
