//! The input numbers of all engines: generated on the host from fixed seeds, in wgrad's layouts (`NHWC` images, `HWIO`
//! filters). Other layouts are permutations of these.

use wgrad::data::drawn_digits::draw_digits;

use crate::cases::Model;

/// Images in a batch.
pub const BATCH: usize = 50;
/// Batches that training cycles through.
const BATCHES: usize = 8;
/// Pixels of an image.
pub const PIXELS: usize = 28 * 28;
/// Learning rate and epsilon of Adam, the same everywhere.
pub const LEARNING_RATE: f32 = 1e-3;
pub const EPSILON: f32 = 1e-7;

/// `len` numbers, uniform in [-1, 1).
pub fn uniform(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.f32() * 2.0 - 1.0).collect()
}

/// The numbers of a layer's kernel: uniform in [-0.1, 0.1).
pub fn kernel(len: usize, seed: u64) -> Vec<f32> {
    uniform(len, seed).into_iter().map(|x| x * 0.1).collect()
}

/// `len` numbers, uniform in [0, 1), so that their sum does not cancel.
pub fn positive(len: usize, seed: u64) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.f32()).collect()
}

/// `len` integers from 0 to below `below`.
pub fn indices(len: usize, below: usize, seed: u64) -> Vec<i32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.usize(..below) as i32).collect()
}

/// Batches of digits and their labels, in a cycle.
pub struct Batches {
    images: Vec<Vec<f32>>,
    labels: Vec<Vec<i32>>,
    next: usize,
}

impl Batches {
    pub fn new() -> Self {
        let digits = draw_digits(BATCH * BATCHES, 1);
        let pixels = |i| digits.image(i).iter().map(|&p| f32::from(p) / 255.0);
        let batch = |b: usize| b * BATCH..(b + 1) * BATCH;
        Self {
            images: (0..BATCHES).map(|b| batch(b).flat_map(pixels).collect()).collect(),
            labels: (0..BATCHES)
                .map(|b| batch(b).map(|i| i32::from(digits.labels[i])).collect())
                .collect(),
            next: 0,
        }
    }

    /// Images `[50,28,28,1]` and labels `[50]`.
    pub fn next(&mut self) -> (&[f32], &[i32]) {
        let i = self.next % BATCHES;
        self.next += 1;
        (&self.images[i], &self.labels[i])
    }
}

/// One weight: its shape and values.
pub struct Weight {
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// The initial weights, alternately the kernel and the bias of each layer: Glorot's uniform distribution, and zeros.
pub fn weights(model: Model) -> Vec<Weight> {
    let kernels: &[&[usize]] = match model {
        Model::Mlp => &[&[PIXELS, 100], &[100, 10]],
        Model::Cnn => &[&[5, 5, 1, 32], &[5, 5, 32, 64], &[7 * 7 * 64, 1024], &[1024, 10]],
    };
    let mut weights = Vec::new();
    for (seed, shape) in kernels.iter().enumerate() {
        let (outer, inner) = shape.split_at(shape.len() - 2);
        let window: usize = outer.iter().product();
        let limit = (6.0 / (window * (inner[0] + inner[1])) as f32).sqrt();
        let len = shape.iter().product();
        let values = uniform(len, seed as u64).into_iter().map(|x| limit * x).collect();
        weights.push(Weight { shape: shape.to_vec(), values });
        weights.push(Weight { shape: vec![inner[1]], values: vec![0.0; inner[1]] });
    }
    weights
}

/// `values` of `shape` with its axes in the order `axes`, like NumPy's `transpose`.
#[cfg(any(feature = "burn", test))]
pub fn transposed(values: &[f32], shape: &[usize], axes: &[usize]) -> Vec<f32> {
    let strides: Vec<usize> =
        (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect();
    let mut at = vec![0; shape.len()];
    let mut result = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        result
            .push(values[axes.iter().zip(&at).map(|(&axis, i)| strides[axis] * i).sum::<usize>()]);
        for place in (0..at.len()).rev() {
            at[place] += 1;
            if at[place] < shape[axes[place]] {
                break;
            }
            at[place] = 0;
        }
    }
    result
}

/// Numbers for comparing two engines' results independently of their layout: the mean, the mean magnitude and the root mean
/// square.
pub fn summary(values: &[f32]) -> [f64; 3] {
    let n = values.len().max(1) as f64;
    let sum = |f: fn(f64) -> f64| values.iter().map(|&x| f(f64::from(x))).sum::<f64>() / n;
    [sum(|x| x), sum(f64::abs), sum(|x| x * x).sqrt()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_permuted_as_numpy_does() {
        let values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(transposed(&values, &[2, 3], &[1, 0]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        // np.arange(6).reshape(1, 2, 3).transpose(2, 0, 1)
        assert_eq!(transposed(&values, &[1, 2, 3], &[2, 0, 1]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(transposed(&values, &[1, 2, 3], &[0, 1, 2]), values);
    }

    #[test]
    fn a_summary_does_not_depend_on_the_order() {
        // mean 0.5, mean magnitude 3.5, mean square 25/2
        assert_eq!(summary(&[4.0, -3.0]), [0.5, 3.5, 12.5f64.sqrt()]);
        assert_eq!(summary(&[-3.0, 4.0]), summary(&[4.0, -3.0]));
    }

    #[test]
    fn weights_fill_their_shapes() {
        for model in [Model::Mlp, Model::Cnn] {
            for weight in weights(model) {
                assert_eq!(weight.shape.iter().product::<usize>(), weight.values.len());
            }
        }
        assert_eq!(weights(Model::Cnn).len(), 8);
    }
}
