//! Errors of random draws.

use super::{floats, ints, text, zeros};

use wgrad::random::{self, Generator};
use wgrad::{self as tf};

#[test]
fn parameters_that_do_not_fit() {
    let generator = Generator::from_seed(1);
    assert_eq!(
        text(generator.gamma([4], floats([1.0, 2.0]), 1.0)),
        "StatelessRandomGammaV3: alpha is [2] and cannot be broadcast to [4], the shape of the numbers. Give the whole \
         shape, whose last axes are those of alpha."
    );
    assert!(
        text(generator.gamma([2], floats([1.0, 2.0]), zeros([3])))
            .starts_with("Gamma: beta is [3] and cannot")
    );
    // A parameter with more axes than the result.
    assert!(
        text(generator.poisson([2], zeros([2, 2])))
            .starts_with("StatelessRandomPoisson: mean is [2, 2] and")
    );
    assert!(
        text(generator.binomial([2], 3, zeros([3])))
            .starts_with("StatelessRandomBinomial: probs is [3] and")
    );
    assert!(
        text(generator.bernoulli([2], zeros([3])))
            .starts_with("Bernoulli: probs is [3] and cannot")
    );
    assert!(
        text(generator.exponential([2], zeros([3])))
            .starts_with("Exponential: rate is [3] and cannot")
    );
    assert!(
        text(random::gamma([2], zeros([3]), zeros([2])))
            .starts_with("Gamma: a is [3] and b is [2]; they cannot")
    );
    assert_eq!(
        text(generator.dirichlet([], 1.0)),
        "Dirichlet: the shape is []; its last axis must be the classes, whose numbers add up to 1."
    );
    assert_eq!(
        text(generator.gamma([2], ints([1, 2]), 1.0)),
        "Gamma: the dtype i32 is not supported here; use f32, f16. Cast the tensor first."
    );
}

#[test]
fn logits_that_are_none() {
    assert_eq!(
        text(random::categorical(&zeros([3]), 2)),
        "Categorical: logits are [3]; they must be [B, N], N logits for each of B rows. Reshape them."
    );
    assert_eq!(
        text(random::categorical(&zeros([3, 0]), 2)),
        "Categorical: logits are [3, 0]; there must be a class to draw."
    );
    let whole = tf::constant([[1, 2]]).unwrap();
    assert!(
        text(random::categorical(&whole, 2))
            .starts_with("Categorical: the dtype i32 is not supported")
    );
    assert!(text(random::categorical(&zeros([1, 2]), 1 << 40)).contains("bytes"));
}

#[test]
fn ranges_without_an_integer() {
    let generator = Generator::from_seed(1);
    for (low, high) in [(3, 3), (i32::MAX, i32::MIN)] {
        assert_eq!(
            text(generator.uniform_int([2], low, high)),
            format!(
                "RandomUniformInt: there is no integer from {low} up to but excluding {high}; low must be below high."
            )
        );
    }
}
