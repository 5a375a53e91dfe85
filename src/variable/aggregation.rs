//! How the replicas of a strategy share a variable: [`VariableSynchronization`] and [`VariableAggregation`].

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;

/// When the values that the replicas of a strategy have of a variable become one (`tf.VariableSynchronization`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VariableSynchronization {
    /// When they are assigned, if there is an aggregation. Without one, trainable variables have equal values, which replicas cannot
    /// assign, and other variables are as with `OnRead` and the mean.
    #[default]
    Auto,
    /// When replicas assign them: all replicas make the call, and each gets the same value. Without an aggregation, each replica assigns
    /// its own value, and outside of the replicas the variable is that of the first one.
    OnWrite,
    /// When they are read outside of the replicas: each replica assigns its own value.
    OnRead,
}

/// How the values that the replicas of a strategy assign to a variable become one (`tf.VariableAggregation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VariableAggregation {
    /// In no way.
    #[default]
    None,
    /// Their sum. With several processes, a variable that is synchronized on read is the sum of this process's replicas.
    Sum,
    /// Their mean.
    Mean,
    /// The value of the first replica.
    OnlyFirstReplica,
}

options! {
    /// What [`Variable::with_options`](super::Variable::with_options) makes: a trainable variable, unless set otherwise.
    ///
    /// ```
    /// use wgrad::{VariableAggregation, VariableOptions};
    /// let options = VariableOptions::new().trainable(false).aggregation(VariableAggregation::Sum);
    /// ```
    #[derive(Debug, Clone, Copy)]
    pub struct VariableOptions {
        /// Whether tapes watch the variable, and optimizers change it: true unless set.
        trainable: bool = true,
        /// When the values of replicas become one: `Auto` unless set.
        synchronization: VariableSynchronization = VariableSynchronization::Auto,
        /// How the values of replicas become one: `None` unless set.
        aggregation: VariableAggregation = VariableAggregation::None,
    }
}

impl VariableOptions {
    pub(super) fn check(self, dtype: DType) -> Result<Self> {
        let is_float = matches!(dtype, DType::F32 | DType::F16);
        let lacks = match self.aggregation {
            VariableAggregation::None => {
                if self.synchronization == VariableSynchronization::OnRead {
                    return Err(Error::Check(message!(
                        "Variable: without an aggregation, the replicas' values do not become one when the variable is read. Use \
                         VariableAggregation::Sum, Mean or OnlyFirstReplica, or VariableSynchronization::OnWrite."
                    )));
                }
                false
            }
            VariableAggregation::Mean => !is_float,
            VariableAggregation::Sum => !is_float && !matches!(dtype, DType::I32 | DType::U32),
            VariableAggregation::OnlyFirstReplica => false,
        };
        if lacks {
            return Err(Error::DType(message!(
                "Variable: {dtype} values have no {}. Use VariableAggregation::OnlyFirstReplica, or a variable of {}.",
                if self.aggregation == VariableAggregation::Mean { "mean" } else { "sum" },
                if dtype == DType::Bool { "i32" } else { "f32" }
            )));
        }
        Ok(self)
    }

    /// How replicas assign the variable.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn writes(self) -> Writes {
        use VariableAggregation as Of;
        use VariableSynchronization::{Auto, OnRead};
        match (self.synchronization, self.aggregation) {
            (Auto, Of::None) if self.trainable => Writes::Equal,
            (Auto, Of::None) => Writes::Own(Of::Mean),
            (_, Of::None) => Writes::Own(Of::OnlyFirstReplica),
            (OnRead, aggregation) => Writes::Own(aggregation),
            (_, aggregation) => Writes::Joint(aggregation),
        }
    }
}

/// How replicas assign a variable.
#[cfg(not(target_family = "wasm"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// Not at all: only optimizers change it, alike in all.
    Equal,
    /// Each its own value; outside of the replicas they are aggregated.
    Own(VariableAggregation),
    /// All together, the aggregate of what they assign.
    Joint(VariableAggregation),
}
