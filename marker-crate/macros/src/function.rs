//! A scope in one function.

use crate::options::Options;
use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, Error, Expr, ItemFn, Result, ReturnType, Signature, Stmt, Type, parse2,
};

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

/// Returns the body of an async function as a future that tells of its polls.
fn await_body(options: &Options, path: &str, signature: &Signature, block: &Block) -> Stmt {
    let statements = &block.stmts;
    // It tells the compiler the type of the body, for `return`, `?` and what is converted to that type. A body that never
    // ends has no value.
    let result = match &signature.output {
        ReturnType::Type(_, result) if matches!(**result, Type::Never(_)) => None,
        ReturnType::Type(_, result) if !is_opaque(&result.to_token_stream()) => {
            Some(quote!(#result))
        }
        ReturnType::Type(..) => Some(quote!(_)),
        ReturnType::Default => Some(quote!(())),
    };
    let told = result.map(|result| {
        quote!(
            #[allow(unknown_lints, unreachable_code, clippy::all, clippy::pedantic)]
            if false {
                let result: #result = loop {};
                return result;
            }
        )
    });
    let body = quote!(async move {
        #told
        #(#statements)*
    });
    Stmt::Expr(Expr::Verbatim(options.async_fn(path, &body)), None)
}

/// Returns whether a type has `impl` in it, so that it cannot be written again.
fn is_opaque(written: &TokenStream) -> bool {
    written.clone().into_iter().any(|token| match token {
        TokenTree::Ident(word) => word == "impl",
        TokenTree::Group(group) => is_opaque(&group.stream()),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// Puts the scope before the first statement, or an async function's body into a future with a marker.
pub(crate) fn insert(
    options: &Options,
    path: &str,
    attributes: &[Attribute],
    signature: &Signature,
    block: &mut Block,
) -> Result<()> {
    if signature.asyncness.is_some() {
        block.stmts = vec![await_body(options, path, signature, block)];
        return Ok(());
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
