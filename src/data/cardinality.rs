//! [`Cardinality`]: how many elements a dataset has.

/// The number of elements in a pass through a dataset, as far as it is known in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// This number of elements.
    Known(usize),
    /// A pass never ends (`tf.data.INFINITE_CARDINALITY`).
    Infinite,
    /// A file, a filter or a generator determines it (`tf.data.UNKNOWN_CARDINALITY`).
    Unknown,
}

impl Cardinality {
    /// The number, if it is known.
    pub fn known(self) -> Option<usize> {
        match self {
            Cardinality::Known(count) => Some(count),
            _ => None,
        }
    }

    /// Applies `rule` to a known number.
    #[must_use]
    pub(crate) fn map(self, rule: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Cardinality::Known(count) => Cardinality::Known(rule(count)),
            other => other,
        }
    }

    /// For a stage that may make more or fewer elements of each, but none of nothing.
    #[must_use]
    pub(crate) fn varies(self) -> Self {
        match self {
            Cardinality::Known(0) => self,
            _ => Cardinality::Unknown,
        }
    }
}
