//! `setters!`: the numbers of a formula that optimizers set alike, with the same bounds.

/// Writes a setter for each number of the optimizer's that is named.
macro_rules! setters {
    ($optimizer:ident: $($name:ident),*) => {
        impl $optimizer {
            $(setters!(@ $name);)*
        }
    };
    (@ beta_1) => {
        setters! {
            /// Sets how slowly the mean of gradients forgets, from 0 to below 1.
            beta_1 in Share
        }
    };
    (@ beta_2) => {
        setters! {
            /// Sets how slowly the mean of squared gradients forgets, from 0 to below 1.
            beta_2 in Share
        }
    };
    (@ rho) => {
        setters! {
            /// Sets how slowly the means forget, from 0 to below 1.
            rho in Share
        }
    };
    (@ momentum) => {
        setters! {
            /// Sets how much of the last step the next one repeats, from 0 to 1.
            momentum in Unit
        }
    };
    (@ epsilon) => {
        setters! {
            /// Sets the number that keeps the division from blowing up where gradients are tiny.
            epsilon in NotNegative
        }
    };
    ($(#[$doc:meta])* $name:ident in $bounds:ident) => {
        $(#[$doc])*
        pub fn $name(mut self, $name: f64) -> Self {
            self.state.require(stringify!($name), $name, $crate::keras::optimizers::options::Within::$bounds);
            self.$name = $name;
            self
        }
    };
}
// `setters!(Lamb: beta_1, epsilon);` becomes `impl Lamb { pub fn beta_1(mut self, beta_1: f64) -> Self {..} .. }`.

pub(super) use setters;
