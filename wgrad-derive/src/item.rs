//! `#[derive(Item)]`: a struct as an element of a dataset, each field holds an array or several.
//!
//! For
//!
//! ```ignore
//! #[derive(Clone, Item)]
//! struct Pet {
//!     age: f32,
//!     name: String,
//! }
//! ```
//!
//! it writes the structs `PetBatch { age: <f32 as Item>::Batch, .. }` and `PetPadding { age: <f32 as Item>::Padding, .. }`, and
//! `Item` for `Pet` and for `PetBatch`, whose batch is itself. Each method calls the same method of every field.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Data, DeriveInput, Fields, Ident, Member, Path};

pub(crate) fn implement(input: DeriveInput) -> syn::Result<TokenStream> {
    let refused = |span, text: &str| Err(syn::Error::new(span, text));
    let wgrad = home(&input.attrs)?;
    let Data::Struct(data) = &input.data else {
        let text = "Item: only a struct has arrays that all its values share; use a struct, or a number for the variant";
        return refused(input.ident.span(), text);
    };
    if !input.generics.params.is_empty() {
        let text =
            "Item: the batch of a struct with parameters cannot be named; write a struct for each";
        return refused(input.ident.span(), text);
    }
    if data.fields.is_empty() {
        return refused(input.ident.span(), "Item: a struct without fields has nothing to batch");
    }
    let (name, vis) = (&input.ident, &input.vis);
    let (batch, padding) = (format_ident!("{name}Batch"), format_ident!("{name}Padding"));
    let item = quote!(#wgrad::data::Item);
    let own: Vec<TokenStream> =
        data.fields.iter().map(|field| &field.ty).map(|ty| quote!(#ty)).collect();
    let associated = |of: &str| -> Vec<TokenStream> {
        let of = format_ident!("{of}");
        own.iter().map(|ty| quote!(<#ty as #item>::#of)).collect()
    };
    let (batches, paddings) = (associated("Batch"), associated("Padding"));
    let batch_doc = format!("A batch of [`{name}`]: each field's arrays along a new first axis.");
    let padding_doc = format!("What fills up the fields of a padded batch of [`{name}`].");
    let batch_struct =
        declare(&batch_doc, &batch, vis, &data.fields, &batches, quote!(Clone, Debug));
    let defaults = quote!(Clone, Debug, Default);
    let padding_struct = declare(&padding_doc, &padding, vis, &data.fields, &paddings, defaults);
    let for_self = items(&wgrad, name, &batch, &padding, &data.fields, &own);
    let for_batch = items(&wgrad, &batch, &batch, &padding, &data.fields, &batches);
    Ok(quote!(#batch_struct #padding_struct #for_self #for_batch))
}

/// A struct with the names and the visibilities of other fields.
fn declare(
    doc: &str,
    name: &Ident,
    vis: &syn::Visibility,
    fields: &Fields,
    types: &[TokenStream],
    derives: TokenStream,
) -> TokenStream {
    let field = |(field, ty): (&syn::Field, &TokenStream)| {
        let (vis, doc) = (&field.vis, "The field of this name.");
        match &field.ident {
            Some(name) => quote!(#[doc = #doc] #vis #name: #ty),
            None => quote!(#[doc = #doc] #vis #ty),
        }
    };
    let all = fields.iter().zip(types).map(field);
    let body = match fields {
        Fields::Named(_) => quote!({ #(#all),* }),
        _ => quote!(( #(#all),* );),
    };
    quote!(#[doc = #doc] #[derive(#derives)] #vis struct #name #body)
}

/// `impl Item`, for a struct whose fields have these types.
fn items(
    wgrad: &Path,
    name: &Ident,
    batch: &Ident,
    padding: &Ident,
    fields: &Fields,
    types: &[TokenStream],
) -> TokenStream {
    let members: Vec<Member> = fields.members().collect();
    let columns: Vec<Ident> = (0..members.len()).map(|at| format_ident!("field_{at}")).collect();
    let labels: Vec<String> = members.iter().map(label).collect();
    let text = name.to_string();
    let (item, result) = (quote!(#wgrad::data::Item), quote!(#wgrad::Result));
    let codec = quote!(#wgrad::data::codec);
    let spec =
        |specs: TokenStream| quote!(#wgrad::data::ItemSpec::Struct(#text, ::std::vec![#specs]));
    let type_spec = spec(quote!(#((#labels, <#types as #item>::type_spec())),*));
    let own_spec = spec(quote!(#((#labels, <#types as #item>::spec(&self.#members))),*));
    let split = quote! {
        #(let mut #columns = ::std::vec::Vec::with_capacity(items.len());)*
        for item in items {
            #(#columns.push(item.#members);)*
        }
    };
    quote! {
        #[automatically_derived]
        impl #item for #name {
            type Batch = #batch;
            type Padding = #padding;
            const ON_DEVICE: bool = false #(|| <#types as #item>::ON_DEVICE)*;

            fn type_spec() -> #wgrad::data::ItemSpec {
                #type_spec
            }

            fn spec(&self) -> #wgrad::data::ItemSpec {
                #own_spec
            }

            fn stack(items: ::std::vec::Vec<Self>) -> #result<#batch> {
                #split
                ::std::result::Result::Ok(#batch { #(#members: <#types as #item>::stack(#columns)?),* })
            }

            fn pad(
                items: ::std::vec::Vec<Self>,
                to: &mut #wgrad::data::PadTo<'_>,
                padding: &#padding,
            ) -> #result<#batch> {
                #split
                ::std::result::Result::Ok(#batch {
                    #(#members: <#types as #item>::pad(#columns, to, &padding.#members)?),*
                })
            }

            fn rows(&self) -> #result<usize> {
                #wgrad::data::same_rows(&[#(<#types as #item>::rows(&self.#members)?),*])
            }

            fn row(&self, at: usize) -> #result<#batch> {
                ::std::result::Result::Ok(#batch { #(#members: <#types as #item>::row(&self.#members, at)?),* })
            }

            fn write(&self, out: &mut #codec::Writer) -> #result<()> {
                #(<#types as #item>::write(&self.#members, out)?;)*
                ::std::result::Result::Ok(())
            }

            fn read(from: &mut #codec::Reader<'_>) -> #result<Self> {
                ::std::result::Result::Ok(#name { #(#members: <#types as #item>::read(from)?),* })
            }
        }
    }
}

/// A field's name, with `type` for `r#type`; in a tuple struct, its number.
fn label(member: &Member) -> String {
    match member {
        Member::Named(name) => {
            let name = name.to_string();
            name.strip_prefix("r#").unwrap_or(&name).to_string()
        }
        Member::Unnamed(index) => index.index.to_string(),
    }
}

/// Where the crate is: `::wgrad`, or the path in `#[item(crate = path)]`.
fn home(attributes: &[Attribute]) -> syn::Result<Path> {
    let mut home: Path = syn::parse_quote!(::wgrad);
    for attribute in attributes.iter().filter(|a| a.path().is_ident("item")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error("item: a struct may have crate = path alone"));
            }
            home = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        })?;
    }
    Ok(home)
}
