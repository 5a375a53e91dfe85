//! [`Cardinality`]: how many elements a dataset has.

/// How many elements a pass through a dataset gives, as far as that is known before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// So many.
    Known(usize),
    /// A pass never ends (`tf.data.INFINITE_CARDINALITY`).
    Infinite,
    /// A file, a filter or a generator decides (`tf.data.UNKNOWN_CARDINALITY`).
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

    /// A known number changed by a rule.
    #[must_use]
    pub(crate) fn map(self, rule: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Cardinality::Known(count) => Cardinality::Known(rule(count)),
            other => other,
        }
    }
}
