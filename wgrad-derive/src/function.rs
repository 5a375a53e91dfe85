//! `#[function]`: an `fn` that is traced once for each signature.
//!
//! `fn add(x: Tensor) -> Result<Tensor> { .. }` becomes
//!
//! ```ignore
//! static add: LazyLock<Function<dyn Fn(Tensor) -> Result<Tensor> + Send + Sync>> =
//!     LazyLock::new(|| wgrad::function(|x: Tensor| -> Result<Tensor> { .. }));
//! ```

use proc_macro2::{Delimiter, Group, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Attribute, Ident, Path, Token, Type, Visibility};

/// An argument: `x: Tensor`.
struct Argument {
    mutable: Option<Token![mut]>,
    name: Ident,
    ty: Type,
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.peek(Token![self]) || input.peek(Token![&]) {
            let text = "function: a method is not a static; write `let step = tf::function({ let model = model.clone(); move |x: Tensor| .. })`";
            return Err(input.error(text));
        }
        let mutable = input.parse()?;
        let name = input.parse().map_err(|error| {
            syn::Error::new(error.span(), "function: an argument is a name and a type: `x: Tensor`")
        })?;
        input.parse::<Token![:]>()?;
        Ok(Argument { mutable, name, ty: input.parse()? })
    }
}

struct Item {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    name: Ident,
    arguments: Punctuated<Argument, Token![,]>,
    result: Type,
    body: Group,
}

impl Parse for Item {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        if input.peek(Token![async]) || input.peek(Token![unsafe]) || input.peek(Token![const]) {
            return Err(input.error("function: only a plain `fn` can be traced"));
        }
        input.parse::<Token![fn]>()?;
        let name = input.parse()?;
        if input.peek(Token![<]) {
            let text = "function: an `fn` with parameters is not one static; write one for each type, or call `tf::function` where the types are known";
            return Err(input.error(text));
        }
        let arguments;
        syn::parenthesized!(arguments in input);
        let arguments = arguments.parse_terminated(Argument::parse, Token![,])?;
        if !input.peek(Token![->]) {
            return Err(input.error("function: it returns a `Result`: `-> Result<Tensor>`"));
        }
        input.parse::<Token![->]>()?;
        let result = input.parse()?;
        let body: Group = input.parse()?;
        if body.delimiter() != Delimiter::Brace {
            return Err(syn::Error::new(body.span(), "function: an `fn` has a body in braces"));
        }
        Ok(Item { attributes, visibility, name, arguments, result, body })
    }
}

pub(crate) fn implement(attribute: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let home = |input: ParseStream| -> syn::Result<Path> {
        if input.is_empty() {
            return syn::parse_str("::wgrad");
        }
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        Path::parse_mod_style(input)
    };
    let wgrad = home.parse2(attribute)?;
    let Item { attributes, visibility, name, arguments, result, body } = syn::parse2(item)?;
    let types: Vec<&Type> = arguments.iter().map(|argument| &argument.ty).collect();
    let closure =
        arguments.iter().map(|Argument { mutable, name, ty }| quote!(#mutable #name: #ty));
    Ok(quote! {
        #(#attributes)*
        #[allow(non_upper_case_globals)]
        #visibility static #name: ::std::sync::LazyLock<
            #wgrad::Function<dyn Fn(#(#types),*) -> #result + Send + Sync>,
        > = ::std::sync::LazyLock::new(|| #wgrad::function(|#(#closure),*| -> #result #body));
    })
}
