//! The macros of `wgrad`, one file each.

mod attribute;
mod function;
mod item;
mod trackable;

use syn::DeriveInput;

/// Implements `wgrad::Trackable`: each field is a part with the field's name (in a tuple struct, its number).
///
/// A field may have an attribute:
/// - `#[track(skip)]`: the field has no variables and is left out;
/// - `#[track(rename = "name")]`: the part's name in files and messages;
/// - `#[track(flatten)]`: its parts are named as if they were this struct's own.
///
/// The struct or enum itself may have:
/// - `#[track(kind = "Name")]`: its name in tables and messages, instead of the Rust type's;
/// - `#[track(class = &CLASS)]`: the `wgrad::Class` by which file formats know it;
/// - `#[track(crate = path)]`: the path of `wgrad`, if it is not `::wgrad`.
#[proc_macro_derive(Trackable, attributes(track))]
pub fn trackable(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    trackable::implement(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `wgrad::data::Item` for a struct of items, and generates two structs with the same field names and the same
/// visibility: for a `struct Pet`, `PetBatch` holds a batch of each field, and `PetPadding` a padding value for each.
///
/// `#[item(crate = path)]` on the struct specifies the path of `wgrad` if it is not `::wgrad`.
#[proc_macro_derive(Item, attributes(item))]
pub fn item(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    item::implement(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// The fields of an op as attributes, for the crate `wgrad` itself.
#[doc(hidden)]
#[proc_macro_derive(Attribute, attributes(attribute, op))]
pub fn attribute(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    attribute::implement(input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a `wgrad::Function` of an `fn`: a static of the same name, which is called in the same way.
///
/// `#[function(crate = path)]` specifies the path of `wgrad` if it is not `::wgrad`.
#[proc_macro_attribute]
pub fn function(
    attribute: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    function::implement(attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
