//! [`SavedSpec`]: the name, dtype and shape of what a saved function takes or returns.

use std::fmt;

use crate::host_array::HostDType;

/// An input or a result of a [`SavedFunction`](super::SavedFunction): its name, and what it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSpec {
    /// The name.
    pub name: String,
    /// The dtype in the file. A device has none of 64 bits: `int64` is `i32` there.
    pub dtype: HostDType,
    /// The sizes, of which `None` may differ from call to call; `None` if the rank may.
    pub shape: Option<Vec<Option<usize>>>,
}

impl fmt::Display for SavedSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.dtype)?;
        let Some(shape) = &self.shape else { return f.write_str("[...]") };
        let size = |size: &Option<usize>| size.map_or("?".to_string(), |size| size.to_string());
        write!(f, "[{}]", shape.iter().map(size).collect::<Vec<_>>().join(", "))
    }
}
