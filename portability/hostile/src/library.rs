//! The functions that stand in place of a driver's own operations, as a module of naga's IR.
//!
//! `operations.rs` writes their text, for one driver, and for vectors of one to four lanes.

use std::collections::HashMap;

use naga::{Function, GlobalVariable, Handle, Module};

use crate::builder::Numbers;
use crate::error::{Error, Result};
use crate::latitude::Driver;
use crate::operations;

/// All names of ours begin so.
pub(crate) const PREFIX: &str = "hostile_";

/// The variable that is 0, as only the host knows.
const ZERO: &str = "hostile_zero";

pub(crate) struct Library {
    pub(crate) module: Module,
    functions: HashMap<String, Handle<Function>>,
}

impl Library {
    /// The library of a driver, with more functions in WGSL.
    pub(crate) fn new(driver: &Driver, more: &str) -> Result<Self> {
        let text = operations::text(driver) + more;
        let module = naga::front::wgsl::parse_str(&text).map_err(|error| {
            Error::new(format!("the library is wrong: {}", error.emit_to_string(&text)))
        })?;
        let named = module.functions.iter().filter_map(|(handle, function)| {
            Some((function.name.as_ref()?.strip_prefix(PREFIX)?.to_string(), handle))
        });
        Ok(Library { functions: named.collect(), module })
    }

    /// The function that computes `operation` on such numbers, unless the driver's own does.
    pub(crate) fn find(&self, operation: &str, numbers: Numbers) -> Option<Handle<Function>> {
        let half = if numbers.scalar.width == 2 { "h" } else { "" };
        self.functions.get(&format!("{operation}{}{half}", numbers.lanes)).copied()
    }

    /// The function with this name, without the prefix.
    pub(crate) fn named(&self, name: &str) -> Option<Handle<Function>> {
        self.functions.get(name).copied()
    }

    /// The variable that is 0.
    pub(crate) fn zero(module: &Module) -> Option<Handle<GlobalVariable>> {
        let mut all = module.global_variables.iter();
        all.find(|(_, variable)| variable.name.as_deref() == Some(ZERO)).map(|(handle, _)| handle)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::latitude::Latitude;

    #[test]
    fn the_library_of_every_driver_is_valid() {
        let single = Latitude::all().map(|latitude| Driver::new([latitude], 1).unwrap());
        for driver in single.chain((0..40).map(Driver::drawn)) {
            let library = Library::new(&driver, "").unwrap_or_else(|e| panic!("{driver}: {e}"));
            let mut validator = naga::valid::Validator::new(
                naga::valid::ValidationFlags::all(),
                naga::valid::Capabilities::all(),
            );
            let valid = validator.validate(&library.module);
            assert!(valid.is_ok(), "{driver}: {:?}", valid.err());
        }
    }
}
