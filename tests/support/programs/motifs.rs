//! Patterns of calls as in models, which a planner recognizes: written in single ops, and with the crate's own composed ones.

use wgrad::DType;

use super::generate::Generator;
use super::table::{Fold, binary, reduction, unary};
use super::{Op, eval::Value};

impl Generator {
    fn two(&mut self, name: &str, a: usize, b: usize) -> Option<usize> {
        self.push(Op::Binary(binary(name)), &[a, b])
    }

    fn one(&mut self, name: &str, x: usize) -> Option<usize> {
        self.push(Op::Unary(unary(name)), &[x])
    }

    fn with(&mut self, name: &str, x: usize, v: f64) -> Option<usize> {
        self.push(Op::Scalar(binary(name), v), &[x])
    }

    fn folded(&mut self, fold: Fold, x: usize, axis: usize, keep: bool) -> Option<usize> {
        self.push(Op::Reduce(reduction(fold), vec![axis], keep), &[x])
    }

    /// A float with at least one axis, and the axis of its rows.
    fn rows(&mut self) -> Option<(usize, usize)> {
        let x =
            self.find(|x: &Value| x.dtype == DType::F32 && !x.shape.is_empty() && !x.v.is_empty())?;
        let rank = self.values[x].shape.len();
        let axis = if self.rng.chance(0.7) { rank - 1 } else { self.rng.below(rank) };
        Some((x, axis))
    }

    fn activation(&mut self, x: usize) -> Option<usize> {
        let name = *self.rng.pick(&[
            "relu",
            "tanh",
            "sigmoid",
            "gelu_with(wgrad::GeluOptions::new().approximate(true))",
            "silu",
            "leaky_relu",
            "elu",
        ]);
        self.one(name, x)
    }

    pub fn motif(&mut self) -> Option<usize> {
        match self.rng.below(9) {
            0 => self.spelled_softmax(),
            1 => self.layer_norm(),
            2 => self.log_sum_exp(),
            3 => self.cross_entropy(),
            4 => self.dense(),
            5 => self.adam(),
            6 => self.side_by_side(),
            7 => self.two_readers(),
            _ => self.normalised(),
        }
    }

    fn spelled_softmax(&mut self) -> Option<usize> {
        let (x, axis) = self.rows()?;
        let max = self.folded(Fold::Max, x, axis, true)?;
        let shifted = self.two("subtract", x, max)?;
        let e = self.one("exp", shifted)?;
        let sum = self.folded(Fold::Sum, e, axis, true)?;
        if self.rng.chance(0.5) {
            return self.two("divide", e, sum);
        }
        let log = self.one("log", sum)?;
        let y = self.two("subtract", shifted, log)?;
        self.with("multiply", y, -0.5)
    }

    fn layer_norm(&mut self) -> Option<usize> {
        let (x, axis) = self.rows()?;
        let mean = self.folded(Fold::Mean, x, axis, true)?;
        let centred = self.two("subtract", x, mean)?;
        let variance = if self.rng.chance(0.5) {
            let square = self.one("square", centred)?;
            self.folded(Fold::Mean, square, axis, true)?
        } else {
            self.folded(Fold::Variance, x, axis, true)?
        };
        let safe = self.with("add", variance, 0.125)?;
        let scale = self.one("rsqrt", safe)?;
        let y = self.two("multiply", centred, scale)?;
        let size = self.values[x].shape[axis];
        let mut shape = vec![1; self.values[x].shape.len() - axis];
        shape[0] = size;
        let (gamma, beta) = (self.input(&shape, DType::F32), self.input(&shape, DType::F32));
        let y = self.two("multiply", y, gamma)?;
        self.two("add", y, beta)
    }

    fn log_sum_exp(&mut self) -> Option<usize> {
        let (x, axis) = self.rows()?;
        let y = self.push(Op::Reduce(reduction(Fold::LogSumExp), vec![axis], true), &[x])?;
        if self.rng.chance(0.5) { self.two("subtract", x, y) } else { self.activation(y) }
    }

    /// Cross-entropy of labels and logits, and its gradient in single ops.
    fn cross_entropy(&mut self) -> Option<usize> {
        let (x, _) = self.rows()?;
        let shape = self.shape_of(x);
        let (classes, lead) = shape.split_last()?;
        let (classes, n) = (*classes, lead.iter().product::<usize>());
        let labels = (0..n).map(|_| self.rng.below(classes) as f64).collect();
        let op = Op::Input { values: labels, shape: lead.to_vec(), dtype: DType::I32, kept: false };
        let labels = self.push(op, &[])?;
        let loss = self.push(Op::CrossEntropy, &[labels, x])?;
        let axes: Vec<usize> = (0..lead.len()).collect();
        let mean = self.push(Op::Reduce(reduction(Fold::Mean), axes, false), &[loss]);
        if self.flavour.smooth {
            return mean.or(Some(loss));
        }
        let p = self.push(Op::Softmax(shape.len() - 1), &[x])?;
        let places = self.push(Op::Range { start: 0, step: 1, n: classes }, &[])?;
        let column = self.push(Op::Reshape([lead, &[1]].concat()), &[labels])?;
        let hit = self.two("equal", column, places)?;
        let hit = self.push(Op::Cast(DType::F32), &[hit])?;
        let grad = self.two("subtract", p, hit)?;
        self.with("multiply", grad, 1.0 / 8.0)
    }

    /// `act(f(x) w + b)`, and often its gradient's products.
    fn dense(&mut self) -> Option<usize> {
        let x = self.find(|x: &Value| x.dtype == DType::F32 && x.shape.len() == 2)?;
        let x = if self.rng.chance(0.4) { self.activation(x)? } else { x };
        let [m, k] = self.shape_of(x)[..] else { return None };
        let units = *self.rng.pick(&[1, 3, 4, 5, 8, 10, 16]);
        let (turned, n) = (self.rng.chance(0.3), units);
        let w = self.input(&if turned { [n, k] } else { [k, n] }, DType::F32);
        let w = self.with("multiply", w, 0.25)?;
        let product = self.push(Op::MatMul { ta: false, tb: turned }, &[x, w])?;
        let b = self.input(&[n], DType::F32);
        let z = if self.rng.chance(0.8) { self.two("add", product, b)? } else { product };
        let y = self.activation(z)?;
        if self.rng.chance(0.4) && !self.flavour.smooth {
            let dy = self.input(&[m, n], DType::F32);
            let on = self.with("greater", z, 0.0)?;
            let zero = self.push(Op::Full { value: 0.0, shape: vec![], dtype: DType::F32 }, &[])?;
            let dz = self.push(Op::Select, &[on, dy, zero])?;
            let dw = self.push(Op::MatMul { ta: true, tb: false }, &[x, dz])?;
            let db = self.push(Op::Reduce(reduction(Fold::Sum), vec![0], false), &[dz])?;
            let step = self.with("multiply", dw, 0.125)?;
            let w = if turned { self.push(Op::Transpose(vec![1, 0]), &[w])? } else { w };
            self.two("subtract", w, step)?;
            let step = self.with("multiply", db, 0.125)?;
            self.two("subtract", b, step)?;
            self.push(Op::MatMul { ta: false, tb: !turned }, &[dz, w]);
        }
        Some(y)
    }

    /// An optimizer's step; the old values are dropped, the new ones are held.
    fn adam(&mut self) -> Option<usize> {
        let g = self.some(DType::F32);
        let shape = self.shape_of(g);
        let (p, m, v) = (
            self.input(&shape, DType::F32),
            self.input(&shape, DType::F32),
            self.input(&shape, DType::F32),
        );
        let (a, b) = (self.with("multiply", m, 0.875)?, self.with("multiply", g, 0.125)?);
        let m = self.two("add", a, b)?;
        let (v2, g2) = (self.one("square", v)?, self.one("square", g)?);
        let (a, b) = (self.with("multiply", v2, 0.75)?, self.with("multiply", g2, 0.25)?);
        let v = self.two("add", a, b)?;
        self.program.nodes[m].wanted = true;
        let safe = self.with("add", v, 0.125)?;
        let root = self.one("sqrt", safe)?;
        let step = self.two("divide", m, root)?;
        let step = self.with("multiply", step, 0.1f32 as f64)?;
        self.two("subtract", p, step)
    }

    /// Small computations on several unrelated tensors: the same for all, or different ones.
    fn side_by_side(&mut self) -> Option<usize> {
        const NAMES: [&str; 4] = ["tanh", "abs", "sigmoid", "square"];
        let shape = self.shape_of(0);
        let (name, alike) = (*self.rng.pick(&NAMES), self.rng.chance(0.4));
        // One number that some of them read, like the norm of all gradients in an optimizer's step.
        let scale = self.input(&[], DType::F32);
        let mut y = None;
        for k in 0..2 + self.rng.below(7) {
            let mut shape = shape.clone();
            if let (Some(size), true) = (shape.first_mut(), k > 1) {
                *size += k;
            }
            let x = self.input(&shape, DType::F32);
            let name = if alike { name } else { *self.rng.pick(&NAMES) };
            let z = self.one(name, x)?;
            y = match self.rng.below(if alike { 1 } else { 6 }) {
                0 | 1 => self.with("add", z, 0.5),
                2 => self.two("multiply", z, scale),
                3 => {
                    let rank = shape.len();
                    let turned = self.push(Op::Transpose((0..rank).rev().collect()), &[z])?;
                    self.with("multiply", turned, 0.5)
                }
                4 if !shape.is_empty() => {
                    let axis = self.rng.below(shape.len());
                    self.folded(Fold::Sum, z, axis, false)
                }
                _ => {
                    let axes = (0..shape.len()).collect();
                    let sum = self.push(Op::Reduce(reduction(Fold::Sum), axes, false), &[z])?;
                    self.two("subtract", x, sum)
                }
            };
        }
        y
    }

    /// A value read element by element, transposed, and summed.
    fn two_readers(&mut self) -> Option<usize> {
        let x = self.find(|x: &Value| x.dtype == DType::F32 && x.shape.len() >= 2)?;
        let y = self.activation(x)?;
        let rank = self.values[y].shape.len();
        let turned = self.push(Op::Transpose((0..rank).rev().collect()), &[y])?;
        let sum = self.folded(Fold::Sum, turned, 0, false)?;
        let scaled = self.with("multiply", y, 0.5)?;
        self.two("add", scaled, sum).or_else(|| self.one("abs", sum))
    }

    /// A tensor divided by its own norm, which is one number.
    fn normalised(&mut self) -> Option<usize> {
        let x = self.some(DType::F32);
        let axes: Vec<usize> = (0..self.values[x].shape.len()).collect();
        let norm = self.push(Op::Reduce(reduction(Fold::Norm), axes, false), &[x])?;
        let safe = self.with("add", norm, 1.0)?;
        let y = self.two("divide", x, safe)?;
        self.two("subtract", y, x)
    }

    pub fn product(&mut self) -> Option<usize> {
        let a = self.find(|x: &Value| x.dtype == DType::F32 && x.shape.len() >= 2)?;
        let shape = self.shape_of(a);
        let rank = shape.len();
        let (ta, tb) = (self.rng.chance(0.3), self.rng.chance(0.3));
        let k = if ta { shape[rank - 2] } else { shape[rank - 1] };
        let there = self.find(|x: &Value| {
            let r = x.shape.len();
            x.dtype == DType::F32 && r >= 2 && x.shape[if tb { r - 1 } else { r - 2 }] == k
        });
        let b = match there {
            Some(b) if self.rng.chance(0.5) => b,
            _ => {
                let n = *self.rng.pick(self.flavour.sizes);
                let lead =
                    if self.rng.chance(0.4) { shape[..rank - 2].to_vec() } else { Vec::new() };
                let own = if tb { [n, k] } else { [k, n] };
                self.input(&[&lead[..], &own].concat(), DType::F32)
            }
        };
        let y = self.push(Op::MatMul { ta, tb }, &[a, b])?;
        if self.rng.chance(0.6) {
            let other = self.partner(y);
            let z = self.two("add", y, other)?;
            return self.activation(z).or(Some(z));
        }
        Some(y)
    }

    pub fn image(&mut self) -> Option<usize> {
        let there = self.find(|x: &Value| {
            x.dtype == DType::F32 && x.shape.len() == 4 && x.shape[1] > 2 && x.shape[2] > 2
        });
        let x = match there {
            Some(x) if self.rng.chance(0.7) => x,
            _ => {
                let sizes = if self.flavour.smooth { [2, 4, 3, 2] } else { [2, 7, 8, 3] };
                let x = self.input(&sizes, DType::F32);
                if self.rng.chance(0.5) { self.activation(x)? } else { x }
            }
        };
        let c = self.values[x].shape[3];
        let same = self.rng.chance(0.5);
        let strides = [1 + self.rng.below(2), 1 + self.rng.below(2)];
        if self.rng.chance(0.4) {
            let window = [1 + self.rng.below(3), 1 + self.rng.below(3)];
            let op = Op::Pool { max: self.rng.chance(0.5), window, strides, same };
            let y = self.push(op, &[x])?;
            return self.activation(y);
        }
        let (kh, kw) = (1 + self.rng.below(3), 1 + self.rng.below(3));
        let o = *self.rng.pick(&[1, 2, 3, 4, 8]);
        let w = self.input(&[kh, kw, c, o], DType::F32);
        let w = self.with("multiply", w, 0.25)?;
        let dilations = if strides == [1, 1] && self.rng.chance(0.2) { [2, 1] } else { [1, 1] };
        let y = self.push(Op::Conv { strides, same, dilations }, &[x, w])?;
        let b = self.input(&[o], DType::F32);
        let y = self.two("add", y, b)?;
        self.activation(y)
    }

    pub fn index(&mut self) -> Option<usize> {
        let smooth = self.flavour.smooth;
        let x = self.find(|x: &Value| {
            !x.shape.is_empty()
                && !x.v.is_empty()
                && x.dtype != DType::U8
                && (x.dtype == DType::F32 || !smooth)
        })?;
        let (shape, dtype) = (self.shape_of(x), self.dtype(x));
        let axis = self.rng.below(shape.len());
        match self.rng.below(if smooth { 2 } else { 4 }) {
            0 => {
                let n = 1 + self.rng.below(5);
                let values = (0..n).map(|_| self.rng.below(shape[axis] + 1) as f64).collect();
                let op = Op::Input { values, shape: vec![n], dtype: DType::I32, kept: false };
                let ids = self.push(op, &[])?;
                self.push(Op::Gather(axis), &[x, ids])
            }
            1 if dtype != DType::Bool => {
                let n = shape[0];
                let values = (0..n).map(|_| self.rng.below(4) as f64).collect();
                let op = Op::Input { values, shape: vec![n], dtype: DType::I32, kept: false };
                let ids = self.push(op, &[])?;
                self.push(Op::SegmentSum(3), &[x, ids])
            }
            2 | 3 if dtype != DType::Bool => {
                let largest = self.rng.chance(0.5);
                let y = self.push(Op::ArgMax { axis, largest }, &[x])?;
                if self.rng.chance(0.5) { self.push(Op::Cast(DType::F32), &[y]) } else { Some(y) }
            }
            _ => None,
        }
    }
}
