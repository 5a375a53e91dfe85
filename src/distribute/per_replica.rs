//! [`PerReplica`]: a value for each replica.

/// A value for each replica of a strategy, in the order of its devices: the parts of a batch, or what a step returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerReplica<T>(pub(super) Vec<T>);

impl<T> PerReplica<T> {
    /// A value for each replica, in the order of the replicas.
    pub fn new(values: Vec<T>) -> Self {
        PerReplica(values)
    }

    /// The values, in the order of the replicas (`strategy.experimental_local_results`).
    pub fn values(&self) -> &[T] {
        &self.0
    }

    /// The values, in the order of the replicas.
    pub fn into_values(self) -> Vec<T> {
        self.0
    }
}

/// What [`Strategy::run`](super::Strategy::run) passes to the step of each replica: of a [`PerReplica`] value its part, of a tuple
/// the parts of its members, of `()` nothing.
pub trait Local: Sync {
    /// What a replica receives.
    type Value;

    /// The part of the replica of this index.
    fn local(&self, replica: usize) -> Self::Value;

    /// The numbers of parts that this has; all must be the number of replicas.
    fn parts(&self) -> Vec<usize>;
}

impl<T: Clone + Sync> Local for PerReplica<T> {
    type Value = T;

    fn local(&self, replica: usize) -> T {
        self.0[replica].clone()
    }

    fn parts(&self) -> Vec<usize> {
        vec![self.0.len()]
    }
}

impl<A: Local> Local for &A {
    type Value = A::Value;

    fn local(&self, replica: usize) -> A::Value {
        A::local(self, replica)
    }

    fn parts(&self) -> Vec<usize> {
        A::parts(self)
    }
}

impl Local for () {
    type Value = ();

    fn local(&self, _: usize) {}

    fn parts(&self) -> Vec<usize> {
        Vec::new()
    }
}

macro_rules! tuples {
    ($($name:ident $at:tt),*) => {
        impl<$($name: Local),*> Local for ($($name,)*) {
            type Value = ($($name::Value,)*);

            fn local(&self, replica: usize) -> Self::Value {
                ($(self.$at.local(replica),)*)
            }

            fn parts(&self) -> Vec<usize> {
                [$(self.$at.parts()),*].concat()
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);
