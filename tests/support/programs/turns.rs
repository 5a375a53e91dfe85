//! Makes the iteration of a recurrence from steps that preserve a shape. For each value the maximum magnitude and the
//! amplification of differences of the states are known, so that new states can be scaled back to the old ones' bounds.

use wgrad::DType;

use super::eval::broadcast_shape;
use super::table::{Fold, binary, reduction, unary};
use super::{Op, Rng};

/// Known bounds of a value of the iteration.
#[derive(Clone, Debug)]
struct Known {
    shape: Vec<usize>,
    /// The maximum magnitude.
    size: f64,
    /// The maximum difference here for a difference of at most 1 between the states.
    steep: f64,
}

pub struct Maker {
    pub rng: Rng,
    /// Only functions that are differentiable everywhere.
    smooth: bool,
    pub inputs: Vec<Op>,
    pub states: usize,
    pub turn: Vec<(Op, Vec<usize>)>,
    pub next: Vec<usize>,
    known: Vec<Known>,
    /// Indices of constants: rows, matrices for products with [..., n], choices.
    fixed: Vec<usize>,
    matrix: usize,
    mask: usize,
}

const SHAPES: &[&[usize]] =
    &[&[1], &[6], &[33], &[3, 4], &[4, 4], &[5, 1], &[2, 3, 4], &[2, 1, 5], &[130]];

impl Maker {
    pub fn new(rng: Rng, smooth: bool) -> Self {
        Maker {
            rng,
            smooth,
            inputs: Vec::new(),
            states: 0,
            turn: Vec::new(),
            next: Vec::new(),
            known: Vec::new(),
            fixed: Vec::new(),
            matrix: 0,
            mask: 0,
        }
    }

    pub fn make(&mut self) {
        let shape = self.rng.pick(SHAPES).to_vec();
        let mut shapes = vec![shape.clone(); 1 + self.rng.below(3)];
        if self.rng.chance(0.35) {
            // A state of another shape that broadcasts with the others.
            let mut other = shape.clone();
            let axis = self.rng.below(other.len());
            other[axis] = 1;
            shapes.push(other);
        }
        self.states = shapes.len();
        for shape in &shapes {
            self.input(shape, 1.0);
        }
        let wide = self.input(&shape, 1.0);
        let row = self.input(&shape[shape.len() - 1..], 1.0);
        self.fixed = vec![wide, row];
        let last = shape[shape.len() - 1];
        // The rows of this matrix sum to 1 at most.
        self.matrix = self.input(&[last, last], 1.0 / last as f64);
        let truth = (0..shape.iter().product()).map(|_| f64::from(self.rng.chance(0.5))).collect();
        self.mask = self.upload(truth, &shape, DType::Bool, 0.0);
        let first = self.known.len();
        for state in 0..self.states {
            let shape = self.known[state].shape.clone();
            let twin = (0..self.states).find(|&k| k != state && self.known[k].shape == shape);
            // a = b, but not for all states.
            if let (Some(twin), true) = (twin, state + 1 < self.states && self.rng.chance(0.4)) {
                self.next.push(twin);
                continue;
            }
            let mut x = self.some(&shape, first).unwrap_or(state);
            for _ in 0..1 + self.rng.below(3) {
                x = self.moved(x).unwrap_or(x);
            }
            let x = self.brought_back(x);
            self.next.push(x);
        }
    }

    fn upload(&mut self, values: Vec<f64>, shape: &[usize], dtype: DType, size: f64) -> usize {
        self.inputs.push(Op::Input { values, shape: shape.to_vec(), dtype, kept: false });
        let state = self.known.len() < self.states;
        let steep = if state { 1.0 } else { 0.0 };
        self.known.push(Known { shape: shape.to_vec(), size, steep });
        self.known.len() - 1
    }

    fn input(&mut self, shape: &[usize], size: f64) -> usize {
        let n: usize = shape.iter().product();
        let values = (0..n).map(|_| f64::from(self.rng.between(-size, size) as f32)).collect();
        self.upload(values, shape, DType::F32, size)
    }

    fn push(
        &mut self,
        op: Op,
        inputs: &[usize],
        shape: &[usize],
        (size, steep): (f64, f64),
    ) -> usize {
        self.turn.push((op, inputs.to_vec()));
        self.known.push(Known { shape: shape.to_vec(), size, steep });
        self.known.len() - 1
    }

    /// A state of this shape, or a value of the iteration.
    fn some(&mut self, shape: &[usize], first: usize) -> Option<usize> {
        let all = (0..self.states).chain(first..self.known.len());
        let all: Vec<usize> = all.filter(|&k| self.known[k].shape == shape).collect();
        (!all.is_empty()).then(|| *self.rng.pick(&all))
    }

    /// A float that can be combined with `x` without making it larger.
    fn partner(&mut self, x: usize) -> usize {
        let shape = self.shape(x);
        let fits = |k: &usize| {
            *k != self.mask
                && *k != self.matrix
                && broadcast_shape(&self.known[*k].shape, &shape).as_ref() == Some(&shape)
        };
        let mut all: Vec<usize> = (0..self.known.len()).filter(fits).collect();
        // Prefers states.
        let states: Vec<usize> = all.iter().copied().filter(|&k| k < self.states).collect();
        all.extend([&states[..], &states[..]].concat());
        *self.rng.pick(&all)
    }

    fn shape(&self, x: usize) -> Vec<usize> {
        self.known[x].shape.clone()
    }

    fn bounds(&self, x: usize) -> (f64, f64) {
        (self.known[x].size, self.known[x].steep)
    }

    fn one(&mut self, op: Op, x: usize, bounds: (f64, f64)) -> usize {
        let shape = self.shape(x);
        self.push(op, &[x], &shape, bounds)
    }

    fn number(&mut self, name: &str, x: usize, v: f64) -> usize {
        let (size, steep) = self.bounds(x);
        let bounds = match name {
            "multiply" => (size * v.abs(), steep * v.abs()),
            "add" => (size + v.abs(), steep),
            // Both ends of a range, one after the other.
            _ => (size.max(v.abs()), steep),
        };
        self.one(Op::Scalar(binary(name), v), x, bounds)
    }

    fn function(&mut self, name: &str, x: usize) -> usize {
        let (size, steep) = self.bounds(x);
        let bounds = match name {
            "tanh" | "softsign" => (size.min(1.0), steep),
            "sigmoid" => (1.0, steep / 4.0),
            _ => (size, steep),
        };
        self.one(Op::Unary(unary(name)), x, bounds)
    }

    fn two(&mut self, name: &str, a: usize, b: usize) -> usize {
        let ((p, s), (q, t)) = (self.bounds(a), self.bounds(b));
        let shape = broadcast_shape(&self.known[a].shape, &self.known[b].shape).expect("they fit");
        let bounds = match name {
            "multiply" => (p * q, p * t + q * s),
            "add" | "subtract" => (p + q, s + t),
            _ => (p.max(q), s.max(t)),
        };
        self.push(Op::Binary(binary(name)), &[a, b], &shape, bounds)
    }

    fn fold(&mut self, fold: Fold, x: usize, axis: usize) -> usize {
        let mut shape = self.shape(x);
        let n = shape[axis] as f64;
        shape[axis] = 1;
        let (size, steep) = self.bounds(x);
        let bounds = if fold == Fold::Sum { (n * size, n * steep) } else { (size, steep) };
        self.push(Op::Reduce(reduction(fold), vec![axis], true), &[x], &shape, bounds)
    }

    /// A value of the same shape, a few calls later.
    fn moved(&mut self, x: usize) -> Option<usize> {
        let shape = self.shape(x);
        let axis = self.rng.below(shape.len());
        let kinds = if self.smooth { 11 } else { 14 };
        let kind = self.rng.below(kinds);
        Some(match kind {
            0..=3 => self.calculated(x, kind)?,
            4 => {
                let name = *self.rng.pick(&["tanh", "sigmoid", "softsign", "negative"]);
                self.function(name, x)
            }
            5 => {
                let fold = *self.rng.pick(&[Fold::Mean, Fold::Sum]);
                let y = self.fold(fold, x, axis);
                let y = if self.rng.chance(0.3) { self.function("tanh", y) } else { y };
                let name = *self.rng.pick(&["add", "subtract"]);
                self.two(name, x, y)
            }
            6 => self.rolled(x, axis)?,
            7 => self.turned(x),
            8 => {
                if shape.len() < 2 || shape.last() != self.known[self.matrix].shape.last() {
                    return None;
                }
                // The rows of the matrix sum to at most 1.
                let (bounds, tb) = (self.bounds(x), self.rng.chance(0.5));
                let inputs = [x, self.matrix];
                self.push(Op::MatMul { ta: false, tb }, &inputs, &shape, bounds)
            }
            9 => {
                let y = self.partner(x);
                let gate = self.function("sigmoid", y);
                self.two("multiply", x, gate)
            }
            10 => {
                let (_, steep) = self.bounds(x);
                self.one(Op::Softmax(axis), x, (1.0, steep / 2.0))
            }
            11 => {
                let y = self.partner(x);
                let name = *self.rng.pick(&["maximum", "minimum"]);
                self.two(name, x, y)
            }
            12 => {
                let y = self.fold(Fold::Max, x, axis);
                self.two("subtract", x, y)
            }
            _ => self.chosen(x)?,
        })
    }

    /// Combined with another value, a number, or a constant.
    fn calculated(&mut self, x: usize, kind: usize) -> Option<usize> {
        Some(match kind {
            0 | 1 => {
                let y = self.partner(x);
                self.two(if kind == 0 { "add" } else { "subtract" }, x, y)
            }
            2 => {
                let v = *self.rng.pick(&[0.5, -0.75, 0.875, -1.0]);
                self.number("multiply", x, v)
            }
            _ => {
                let (u, shape) = (*self.rng.pick(&self.fixed.clone()), self.shape(x));
                let fits = broadcast_shape(&self.known[u].shape, &shape).as_ref() == Some(&shape);
                fits.then(|| self.two("multiply", x, u))?
            }
        })
    }

    /// Two slices in reverse order.
    fn rolled(&mut self, x: usize, axis: usize) -> Option<usize> {
        let shape = self.shape(x);
        let n = shape[axis];
        if n < 2 {
            return None;
        }
        let (at, bounds) = (1 + self.rng.below(n - 1), self.bounds(x));
        let mut part = |from: usize, count: usize| {
            let mut ranges: Vec<(usize, usize, i64)> = shape.iter().map(|&n| (0, n, 1)).collect();
            ranges[axis] = (from, count, 1);
            let sizes: Vec<usize> = ranges.iter().map(|range| range.1).collect();
            self.push(Op::Slice(ranges), &[x], &sizes, bounds)
        };
        let (head, tail) = (part(0, at), part(at, n - at));
        Some(self.push(Op::Concat(axis), &[tail, head], &shape, bounds))
    }

    /// Reversed, transposed, or changed in a transposed or flat view.
    fn turned(&mut self, x: usize) -> usize {
        let shape = self.shape(x);
        let bounds = self.bounds(x);
        let rank = shape.len();
        match self.rng.below(4) {
            0 => self.one(Op::Reverse(vec![self.rng.clone().below(rank)]), x, bounds),
            1 if rank == 2 && shape[0] == shape[1] => {
                self.one(Op::Transpose(vec![1, 0]), x, bounds)
            }
            2 => {
                let order: Vec<usize> = (0..rank).rev().collect();
                let other: Vec<usize> = order.iter().map(|&k| shape[k]).collect();
                let y = self.push(Op::Transpose(order.clone()), &[x], &other, bounds);
                let y = self.function("tanh", y);
                let bounds = self.bounds(y);
                self.push(Op::Transpose(order), &[y], &shape, bounds)
            }
            3 => {
                // The mean of all elements, from a flat view, broadcast again.
                let all = shape.iter().product();
                let y = self.push(Op::Reshape(vec![all]), &[x], &[all], bounds);
                let y = self.fold(Fold::Mean, y, 0);
                let y = self.push(Op::BroadcastTo(shape.clone()), &[y], &shape, bounds);
                self.two("subtract", x, y)
            }
            _ => {
                let all = shape.iter().product();
                let y = self.push(Op::Reshape(vec![all]), &[x], &[all], bounds);
                let y = self.one(Op::Reverse(vec![0]), y, bounds);
                self.push(Op::Reshape(shape.clone()), &[y], &shape, bounds)
            }
        }
    }

    /// Selected by a constant, or by the sign; the latter is a kink but not a jump.
    fn chosen(&mut self, x: usize) -> Option<usize> {
        let shape = self.shape(x);
        if self.known[self.mask].shape == shape && self.rng.chance(0.5) {
            let y = self.partner(x);
            let ((p, s), (q, t)) = (self.bounds(x), self.bounds(y));
            let bounds = (p.max(q), s.max(t));
            return Some(self.push(Op::Select, &[self.mask, x, y], &shape, bounds));
        }
        let bounds = self.bounds(x);
        let test = self.one(Op::Scalar(binary("greater"), 0.0), x, (1.0, 0.0));
        let less = self.number("multiply", x, 0.25);
        let y = self.push(Op::Select, &[test, x, less], &shape, bounds);
        // The condition is not a float and must not be picked.
        self.known[test].shape = vec![usize::MAX];
        Some(y)
    }

    /// Scaled back to a state's bounds: 1 and 1.
    fn brought_back(&mut self, x: usize) -> usize {
        let mut y = x;
        let (_, steep) = self.bounds(y);
        let fits = |wanted: f64| 0.5f64.powi((1.0 / wanted).log2().ceil().max(0.0) as i32);
        if steep > 1.0 {
            y = self.number("multiply", y, fits(1.0 / steep));
        }
        let (size, _) = self.bounds(y);
        let roomy = self.rng.chance(0.7);
        if roomy {
            // A state that converges gets another value to converge to.
            let shape = self.shape(y);
            let y2 = if size > 0.75 { self.number("multiply", y, fits(0.75 / size)) } else { y };
            let fits =
                |k: &usize| broadcast_shape(&self.known[*k].shape, &shape).as_ref() == Some(&shape);
            let fixed: Vec<usize> = self.fixed.iter().copied().filter(fits).collect();
            if self.rng.chance(0.5) || fixed.is_empty() {
                return self.number("add", y2, 0.25);
            }
            let u = *self.rng.pick(&fixed);
            let quarter = self.number("multiply", u, 0.25);
            return self.two("add", y2, quarter);
        }
        match self.rng.below(if self.smooth { 2 } else { 3 }) {
            _ if size <= 1.0 && y >= self.states => y,
            0 => self.function("tanh", y),
            1 => self.number("multiply", y, fits(1.0 / size.max(1.0))),
            _ => {
                let low = self.number("maximum", y, -1.0);
                let y = self.number("minimum", low, 1.0);
                self.known[y].size = 1.0;
                y
            }
        }
    }
}
