//! The options in the parentheses of `#[mark(…)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{
    Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result, Token,
    parse::{Parse, ParseStream},
};

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    pub(crate) group: Option<LitStr>,
    /// A constant expression.
    colour: Option<Expr>,
    pub(crate) skip: bool,
    krate: Option<Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Options> {
        let mut options = Options::default();
        // `crate` is a keyword: no `Meta` begins with it.
        while !input.is_empty() {
            if input.peek(Token![crate]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                options.krate = Some(input.parse::<LitStr>()?.parse()?);
            } else {
                options.take(input.parse()?)?;
            }
            if input.is_empty() {
                break;
            }
            input.parse::<Token![,]>()?;
        }
        Ok(options)
    }
}

impl Options {
    fn take(&mut self, meta: Meta) -> Result<()> {
        if matches!(&meta, Meta::Path(path) if path.is_ident("skip")) {
            self.skip = true;
            return Ok(());
        }
        let known = "expected `name = \"…\"`, `group = \"…\"`, `colour = 0x33aaff`, `crate = \"…\"` or \
                     `skip`";
        let Meta::NameValue(pair) = &meta else {
            return Err(Error::new_spanned(&meta, known));
        };
        let is = |name: &str| pair.path.is_ident(name);
        let given = match () {
            () if is("name") => self.name.replace(text(&pair.value)?).is_some(),
            () if is("group") => self.group.replace(text(&pair.value)?).is_some(),
            () if is("colour") || is("color") => self.colour.replace(pair.value.clone()).is_some(),
            () => return Err(Error::new_spanned(&pair.path, known)),
        };
        if given {
            return Err(Error::new_spanned(&pair.path, "given twice"));
        }
        Ok(())
    }

    /// Returns the expression that awaits the body of an async function.
    pub(crate) fn async_fn(&self, path: &str, body: &TokenStream) -> TokenStream {
        let (krate, name, group) = self.texts(path);
        let colour = match &self.colour {
            Some(colour) => quote!(::core::option::Option::Some(#colour)),
            None => quote!(::core::option::Option::None),
        };
        quote!(#krate::__async_call!(1, #name, #group, #colour, #body).await)
    }

    /// Returns the path of the crate, the name and the group.
    fn texts(&self, path: &str) -> (TokenStream, TokenStream, TokenStream) {
        let krate = match &self.krate {
            Some(path) => quote!(#path),
            None => quote!(::ctrace_marker),
        };
        let name = match &self.name {
            Some(name) => quote!(#name),
            None => quote!(::core::concat!(::core::module_path!(), "::", #path)),
        };
        let group = self.group.as_ref().map_or_else(|| quote!(""), |group| quote!(#group));
        (krate, name, group)
    }

    /// Returns the statement that begins the scope, for the function `path` of its module.
    pub(crate) fn scope(&self, path: &str) -> TokenStream {
        let (krate, name, group) = self.texts(path);
        let colour = self.colour.as_ref().map(|colour| quote!(, colour = #colour));
        quote!(let _ctrace_scope = #krate::scope!(@function #name, group = #group #colour);)
    }

    /// Returns the options of a method in a block: its own, and the block's where it has none.
    pub(crate) fn within(self, block: &Options) -> Options {
        Options {
            name: self.name,
            group: self.group.or_else(|| block.group.clone()),
            colour: self.colour.or_else(|| block.colour.clone()),
            skip: self.skip,
            krate: self.krate.or_else(|| block.krate.clone()),
        }
    }
}

fn text(value: &Expr) -> Result<LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(text.clone()),
        other => Err(Error::new_spanned(other, "expected a string literal")),
    }
}

/// Parses the options of a `#[mark]` or `#[mark(…)]` on a method.
pub(crate) fn of_attribute(meta: &Meta) -> Result<Options> {
    match meta {
        Meta::Path(_) => Ok(Options::default()),
        Meta::List(list) => syn::parse2(list.tokens.clone()),
        Meta::NameValue(pair) => Err(Error::new_spanned(pair, "expected `#[mark(…)]`")),
    }
}
