//! Implements [`Trackable`] for variables, generators, containers, and types that own no variables.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use super::class::{Class, Role};
use super::parts::HostState;
use super::{Parts, Slot, Trackable};
use crate::error::Result;
use crate::host_array::HostDType;
use crate::random::Generator;
use crate::variable::Variable;

/// The class of what tables show as a value of the part that holds it.
pub(crate) static VALUE: Class = Class::new("").role(Role::Value);

/// In the `impl Trackable` of such a value.
macro_rules! value {
    () => {
        fn class(&self) -> Option<&'static $crate::trackable::Class> {
            Some(&$crate::trackable::VALUE)
        }
    };
}
pub(crate) use value;

impl Trackable for Variable {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.variable(self);
    }

    value!();
}

impl Trackable for Slot {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.slot(self);
    }

    value!();
}

impl Trackable for Generator {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.state_here(self);
    }

    value!();
}

impl HostState for Generator {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U64, Some(&[3]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok(self.state().map(u64::to_le_bytes).concat())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().unwrap_or_default());
        self.reset(std::array::from_fn(|_| u64::from_le_bytes(words.next().unwrap_or_default())));
        Ok(())
    }
}

/// A number that changes, such as a count of steps.
impl Trackable for AtomicU64 {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.state_here(self);
    }

    value!();
}

impl HostState for AtomicU64 {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U64, Some(&[]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok(self.load(Ordering::Relaxed).to_le_bytes().into())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        self.store(u64::from_le_bytes(bytes.try_into().unwrap_or_default()), Ordering::Relaxed);
        Ok(())
    }
}

// ---- pointers and cells, whose parts are those of their contents -----------------------------------------------

macro_rules! inner {
    ($($pointer:ty $(=> $identity:ident)?),*) => {$(
        impl<T: Trackable + ?Sized> Trackable for $pointer {
            fn track(&self, parts: &mut Parts<'_>) {
                parts.once(&**self);
            }

            fn kind(&self) -> &'static str {
                (**self).kind()
            }

            fn class(&self) -> Option<&'static Class> {
                (**self).class()
            }

            fn title(&self) -> String {
                (**self).title()
            }

            fn makes_mask(&self) -> bool {
                (**self).makes_mask()
            }

            $(fn $identity(&self) -> (usize, usize) {
                (**self).identity()
            })?
        }
    )*};
}
// These two may point to a shared part.
inner!(&T => identity, Box<T>, Arc<T> => identity);

impl<T: Trackable> Trackable for Option<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.iter().for_each(|part| part.track(parts));
    }

    fn kind(&self) -> &'static str {
        self.as_ref().map_or("", T::kind)
    }

    fn class(&self) -> Option<&'static Class> {
        self.as_ref().and_then(T::class)
    }
}

impl<T: Trackable> Trackable for OnceLock<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.get().into_iter().for_each(|part| part.track(parts));
    }
}

impl<T: Trackable> Trackable for Mutex<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.lock().unwrap_or_else(PoisonError::into_inner).track(parts);
    }
}

impl<T: Trackable> Trackable for RwLock<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.read().unwrap_or_else(PoisonError::into_inner).track(parts);
    }
}

// ---- collections, whose parts are named by index or key -------------------------------------------------------

impl<T: Trackable> Trackable for [T] {
    fn track(&self, parts: &mut Parts<'_>) {
        self.iter().enumerate().for_each(|(i, part)| parts.add(&i.to_string(), part));
    }

    fn kind(&self) -> &'static str {
        "list"
    }
}

impl<T: Trackable, const N: usize> Trackable for [T; N] {
    fn track(&self, parts: &mut Parts<'_>) {
        self[..].track(parts);
    }

    fn kind(&self) -> &'static str {
        "list"
    }
}

impl<T: Trackable> Trackable for Vec<T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self[..].track(parts);
    }

    fn kind(&self) -> &'static str {
        "list"
    }
}

impl<T: Trackable> Trackable for BTreeMap<String, T> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.iter().for_each(|(key, part)| parts.add(key, part));
    }
}

impl<T: Trackable, S: Send + Sync> Trackable for HashMap<String, T, S> {
    fn track(&self, parts: &mut Parts<'_>) {
        // The map's own order differs from process to process.
        let mut sorted: Vec<(&String, &T)> = self.iter().collect();
        sorted.sort_by_key(|(key, _)| *key);
        sorted.into_iter().for_each(|(key, part)| parts.add(key, part));
    }
}

macro_rules! tuple {
    ($($part:ident $at:literal),*) => {
        impl<$($part: Trackable),*> Trackable for ($($part,)*) {
            #[allow(non_snake_case)] // A part is called as its type.
            fn track(&self, parts: &mut Parts<'_>) {
                let ($($part,)*) = self;
                $(parts.add($at, $part);)*
            }

            fn kind(&self) -> &'static str {
                "tuple"
            }
        }
    };
}
tuple!(A "0");
tuple!(A "0", B "1");
tuple!(A "0", B "1", C "2");
tuple!(A "0", B "1", C "2", D "3");

// ---- types that own no variables --------------------------------------------------------------------------------

/// `Trackable` for types without parts.
macro_rules! plain {
    ($($plain:ty),* $(,)?) => {$(
        impl $crate::trackable::Trackable for $plain {
            fn track(&self, _parts: &mut $crate::trackable::Parts<'_>) {}

            /// A summary does not list it.
            fn kind(&self) -> &'static str {
                ""
            }
        }
    )*};
}
pub(crate) use plain;

plain!(
    (),
    bool,
    char,
    u8,
    u16,
    u32,
    u64,
    u128,
    usize,
    i8,
    i16,
    i32,
    i64,
    i128,
    isize,
    f32,
    f64,
    half::f16,
    str,
    String,
    std::time::Duration,
    std::path::PathBuf,
    crate::ops::Conv1dOptions,
    crate::ops::Conv1dTransposeOptions,
    crate::ops::Conv2dOptions,
    crate::ops::Conv2dTransposeOptions,
    crate::ops::Conv3dOptions,
    crate::ops::Conv3dTransposeOptions,
    crate::dtype::DType,
    crate::runtime::Device,
    crate::ops::PadMode,
    crate::ops::Padding,
    crate::ops::Pool1dOptions,
    crate::ops::Pool2dOptions,
    crate::ops::Pool3dOptions,
    crate::ops::PoolOptions,
    crate::ops::PoolingType,
    crate::ops::ConvolutionOptions,
    crate::shape::Axes,
    crate::shape::Axis,
    crate::shape::Shape,
    crate::tensor::Tensor,
);

impl<T: ?Sized + Send + Sync> Trackable for PhantomData<T> {
    fn track(&self, _parts: &mut Parts<'_>) {}

    fn kind(&self) -> &'static str {
        ""
    }
}
