//! A scope in one function.

use crate::options::Options;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Block, Error, ItemFn, Result, Signature, Stmt, parse2};

/// Marks a function, or a method that stands alone.
pub(crate) fn mark(options: &Options, mut function: ItemFn) -> Result<TokenStream> {
    if options.skip {
        return Ok(function.into_token_stream());
    }
    if let Some(constness) = &function.sig.constness {
        return Err(Error::new_spanned(
            constness,
            "a `const fn` cannot be marked: it may run in the compiler, where there is no time",
        ));
    }
    let path = name(&function.sig);
    insert(options, &path, &function.attrs, &function.sig, &mut function.block)?;
    Ok(function.into_token_stream())
}

/// Puts the scope before the first statement.
pub(crate) fn insert(
    options: &Options,
    path: &str,
    attributes: &[Attribute],
    signature: &Signature,
    block: &mut Block,
) -> Result<()> {
    if let Some(asyncness) = &signature.asyncness {
        return Err(Error::new_spanned(
            asyncness,
            "an `async fn` cannot be marked: it is no stretch of time on one thread. \
             Put `scope!` around what lies between two `await`s, or `#[mark(skip)]` on the function",
        ));
    }
    if let Some(naked) = attributes.iter().find(|attribute| is_naked(attribute)) {
        return Err(Error::new_spanned(naked, "a naked function cannot be marked"));
    }
    let scope: Stmt = parse2(options.scope(path))?;
    // It goes after inner attributes, which syn keeps elsewhere, and before everything else.
    block.stmts.insert(0, scope);
    Ok(())
}

/// Returns the name without `r#`.
pub(crate) fn name(signature: &Signature) -> String {
    let name = signature.ident.to_string();
    name.strip_prefix("r#").map_or_else(|| name.clone(), str::to_owned)
}

fn is_naked(attribute: &Attribute) -> bool {
    let tokens = attribute.meta.to_token_stream().to_string();
    tokens == "naked" || tokens == quote!(unsafe(naked)).to_string()
}
