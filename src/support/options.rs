//! The macro that writes every options struct of the crate: `#[non_exhaustive]`, with defaults and setters.

/// Makes a struct of options: `Default`, `new`, and for each field a method that sets it.
macro_rules! options {
    ($(#[$doc:meta])* pub struct $name:ident $(<$item:ident: $bound:path>)? {
        $($(#[$field_doc:meta])* $field:ident: $type:ty $(as $argument:ty)? = $default:expr,)*
    }) => {
        $(#[$doc])*
        #[non_exhaustive]
        pub struct $name $(<$item: $bound>)? {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $(<$item: $bound>)? Default for $name $(<$item>)? {
            fn default() -> Self {
                $name { $($field: $default,)* }
            }
        }

        impl $(<$item: $bound>)? $name $(<$item>)? {
            /// The defaults.
            pub fn new() -> Self {
                $name::default()
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: $crate::support::options::options!(@argument $type $(, $argument)?)) -> Self {
                    self.$field = $field.into();
                    self
                }
            )*
        }
    };
    (@argument $type:ty) => { $type };
    (@argument $type:ty, $argument:ty) => { $argument };
}
// `options! { pub struct MatmulOptions { transpose_a: bool = false, } }` becomes
// `pub struct MatmulOptions { pub transpose_a: bool }` whose default is `false`, with
// `MatmulOptions::new().transpose_a(true)`. The setter of a field `on_value: Scalar as impl Into<Scalar>` accepts
// everything that converts to it.

pub(crate) use options;
