//! The attribute in builds with markers.

use super::{block, function, options::Options};
use proc_macro::TokenStream;
use quote::ToTokens;
use syn::{Error, Item, parse_macro_input};

pub(super) fn mark(arguments: TokenStream, item: TokenStream) -> TokenStream {
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

#[cfg(test)]
mod tests {
    use super::{Options, block, function};
    use quote::quote;
    use syn::{Item, parse_quote, parse2};

    /// Returns the marked item, or the error, as text without blanks.
    fn mark(options: proc_macro2::TokenStream, item: Item) -> String {
        let marked = parse2::<Options>(options).and_then(|options| match item {
            Item::Fn(function) => function::mark(&options, function),
            Item::Impl(block) => block::mark_impl(&options, block),
            Item::Trait(block) => block::mark_trait(&options, block),
            _ => unreachable!("not in these tests"),
        });
        match marked {
            Ok(tokens) => tokens.to_string().replace(' ', ""),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_function_gets_a_scope_first() {
        let marked = mark(
            quote!(),
            parse_quote!(
                pub fn r#try(n: u8) -> u8 {
                    n + 1
                }
            ),
        );
        let scope = "let_ctrace_scope=::ctrace_marker::scope!(@function\
                     ::core::concat!(::core::module_path!(),\"::\",\"try\"),group=\"\");";
        assert_eq!(marked, format!("pubfnr#try(n:u8)->u8{{{scope}n+1}}"));
    }

    #[test]
    fn options_are_taken() {
        let options = quote!(crate = "my::own", name = "n", group = "g",);
        let marked = mark(
            options,
            parse_quote!(
                fn f() {}
            ),
        );
        assert_eq!(marked, "fnf(){let_ctrace_scope=my::own::scope!(@function\"n\",group=\"g\");}");
        for colour in [quote!(colour = 0x33aaff), quote!(color = 0x33aaff)] {
            let marked = mark(
                colour,
                parse_quote!(
                    fn f() {}
                ),
            );
            assert!(marked.contains(",group=\"\",colour=0x33aaff);}"), "{marked}");
        }
        for (options, error) in [
            (quote!(name = 1), "expected a string literal"),
            (quote!(nam = "a"), "expected `name = \"…\"`"),
            (quote!(group), "expected `name = \"…\"`"),
            (quote!(name = "a", name = "b"), "given twice"),
            (quote!(colour = 1, color = 2), "given twice"),
        ] {
            assert!(
                mark(
                    options,
                    parse_quote!(
                        fn f() {}
                    )
                )
                .starts_with(error)
            );
        }
    }

    #[test]
    fn what_cannot_be_marked_is_refused() {
        for (item, error) in [
            (
                parse_quote!(
                    const fn f() {}
                ),
                "a `const fn` cannot be marked",
            ),
            (
                parse_quote!(
                    #[unsafe(naked)]
                    extern "C" fn f() {}
                ),
                "a naked function",
            ),
            (parse_quote!(impl T { #[mark] const fn f() {} }), "a `const fn` cannot be marked"),
        ] {
            assert!(mark(quote!(), item).starts_with(error));
        }
        assert!(mark(quote!(name = "a"), parse_quote!(impl T {})).starts_with("a block has many"));
    }

    #[test]
    fn an_async_function_awaits_its_body() {
        let body = "asyncmove{#[allow(unknown_lints,unreachable_code,clippy::all,clippy::pedantic)]\
                    iffalse{letresult:RESULT=loop{};returnresult;}n+1}";
        for (item, result) in [
            (
                quote!(
                    async fn f(n: u8) -> u8 {
                        n + 1
                    }
                ),
                "u8",
            ),
            (
                quote!(
                    async fn f(n: u8) -> Vec<impl Copy> {
                        n + 1
                    }
                ),
                "_",
            ),
            (
                quote!(
                    async fn f(n: u8) {
                        n + 1
                    }
                ),
                "()",
            ),
        ] {
            let marked = mark(quote!(colour = 7), syn::parse2(item.clone()).unwrap());
            let body = body.replace("RESULT", result);
            let awaits = format!(
                "{{::ctrace_marker::__async_call!(1,::core::concat!(::core::module_path!(),\"::\",\"f\"),\
                 \"\",::core::option::Option::Some(7),{body}).await}}"
            );
            assert!(marked.ends_with(&awaits), "{marked}");
            let method: Item = parse_quote!(impl T { #[mark(name = "n")] #item });
            let marked = mark(quote!(), method);
            assert!(marked.contains("__async_call!(1,\"n\",\"\",::core::option::Option::None,"));
        }
    }

    #[test]
    fn a_block_marks_its_methods() {
        let marked = mark(
            quote!(group = "g", colour = 7),
            parse_quote! {
                impl<'a> Clone for &'a some::Type<u8> {
                    fn f(&self) {}
                    const fn c() {}
                    #[mark(skip)]
                    async fn s() {}
                    #[ctrace_marker::mark(group = "h", colour = 8)]
                    fn g() {}
                }
            },
        );
        assert_eq!(marked.matches("scope!(").count(), 2);
        assert!(
            marked.contains("\"Type::f\"),group=\"g\",colour=7)")
                && marked.contains("\"Type::g\"),group=\"h\",colour=8)")
        );
        assert!(!marked.contains("#["));
        let marked = mark(
            quote!(),
            parse_quote!(
                trait Tr {
                    fn a();
                    fn b() {}
                }
            ),
        );
        assert!(marked.contains("fna();") && marked.contains("\"Tr::b\"),group=\"\")"));
    }
}
