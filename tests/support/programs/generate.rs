//! Makes random programs. Each candidate for the next call is evaluated at once and accepted only if its values are certain:
//! inside the op's domain, of moderate size, and not jumping within their bounds.

use wgrad::DType;

use super::super::driver;
use super::eval::{Against, Evaluator, Value, broadcast_shape};
use super::flavours::Flavour;
use super::table::{BINARY, Fold, REDUCTIONS, UNARY, binary, reduction};
use super::{Node, Op, Program, Rng};

/// Tries to append one or several calls.
type Kind = fn(&mut Generator) -> Option<usize>;

pub struct Generator {
    pub rng: Rng,
    pub flavour: Flavour,
    pub program: Program,
    pub values: Vec<Value>,
    evaluator: Evaluator,
    /// Preferred shapes of new inputs.
    palette: Vec<Vec<usize>>,
}

/// A random program of a flavour; the same for the same seed.
pub fn generate(flavour: Flavour, seed: u64) -> Program {
    let mut g = Generator::new(flavour, seed);
    let mut tries = 0;
    while g.program.nodes.len() < flavour.calls && tries < 40 * flavour.calls {
        g.step();
        tries += 1;
    }
    g.choose_wanted();
    g.program
}

/// A random differentiable program whose last value is a scalar: the weighted sum of its outputs.
pub fn generate_loss(flavour: Flavour, seed: u64) -> Program {
    let mut g = Generator::new(flavour, seed);
    let mut tries = 0;
    while g.program.nodes.len() < flavour.calls && tries < 40 * flavour.calls {
        g.step();
        tries += 1;
    }
    g.choose_wanted();
    let last = g.program.last_readers();
    let ends: Vec<usize> =
        (0..last.len()).filter(|&i| last[i].is_none() && g.dtype(i) == DType::F32).collect();
    let mut loss = None;
    for end in ends {
        let weights = g.input(&g.shape_of(end), DType::F32);
        let axes = (0..g.values[end].shape.len()).collect();
        let sum = g.push(Op::Binary(binary("multiply")), &[end, weights]).and_then(|weighted| {
            g.push(Op::Reduce(reduction(Fold::Sum), axes, false), &[weighted])
        });
        if let Some(sum) = sum {
            let mut all = |loss| g.push(Op::Binary(binary("add")), &[loss, sum]);
            loss = loss.map_or(Some(sum), &mut all).or(loss);
        }
    }
    g.program.nodes.truncate(loss.map_or(0, |i| i + 1));
    if let Some(node) = g.program.nodes.last_mut() {
        node.wanted = true;
    }
    g.program
}

impl Generator {
    pub fn new(flavour: Flavour, seed: u64) -> Self {
        let rng = Rng(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ flavour.name.len() as u64);
        let mut g = Generator {
            rng,
            flavour,
            program: Program::default(),
            values: Vec::new(),
            evaluator: Evaluator::new(Against::Truth),
            palette: Vec::new(),
        };
        for _ in 0..2 {
            let shape = g.shape();
            g.palette.push(shape);
        }
        for k in 0..2 {
            let shape = g.palette[k].clone();
            g.input(&shape, DType::F32);
        }
        g
    }

    fn shape(&mut self) -> Vec<usize> {
        let rank = [0, 1, 1, 2, 2, 2, 3, 3, 4][self.rng.below(9)].min(self.flavour.most_axes);
        let mut shape: Vec<usize> = Vec::new();
        for _ in 0..rank {
            let size = *self.rng.pick(self.flavour.sizes);
            let so_far: usize = shape.iter().product();
            shape.push(if so_far * size > self.flavour.largest / 2 { 1 } else { size });
        }
        shape
    }

    pub fn dtype(&self, i: usize) -> DType {
        self.values[i].dtype
    }

    pub fn shape_of(&self, i: usize) -> Vec<usize> {
        self.values[i].shape.clone()
    }

    /// Appends a call if its values are certain.
    pub fn push(&mut self, op: Op, inputs: &[usize]) -> Option<usize> {
        let x: Vec<&Value> = inputs.iter().map(|&i| &self.values[i]).collect();
        if self.flavour.special && cancels(&op, &x) {
            return None;
        }
        let value = self.evaluator.apply(&op, &x)?;
        let most = if value.dtype == DType::F32 { 300.0 } else { 1e6 };
        let size = value.v.iter().filter(|v| v.is_finite()).fold(0.0, |m: f64, v| m.max(v.abs()));
        let certain = value.certain(!self.flavour.special)
            && size <= most
            && value.v.len() <= self.flavour.largest;
        // The gradient of a root at 0 is infinite.
        let steep = self.flavour.smooth
            && matches!(&op, Op::Reduce(row, ..) if matches!(row.fold, Fold::Std | Fold::Norm))
            && !value.all(|v| v > 0.05);
        if !certain || steep {
            return None;
        }
        let flush = self.rng.chance(0.01);
        self.program.nodes.push(Node { op, inputs: inputs.to_vec(), wanted: false, flush });
        self.values.push(value);
        Some(self.values.len() - 1)
    }

    pub fn input(&mut self, shape: &[usize], dtype: DType) -> usize {
        let n: usize = shape.iter().product();
        let rng = &mut self.rng;
        let kind = if self.flavour.smooth { 3 + rng.below(3) } else { rng.below(6) };
        // Few enough that some values are not NaN after several calls.
        let odd = if self.flavour.special { 1.5 / n.max(4) as f64 } else { 0.0 };
        let values = (0..n).map(|_| match (dtype, kind) {
            (DType::F32, _) if rng.chance(odd) => {
                let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
                *rng.pick(&all[usize::from(driver::takes_nan_for_numbers())..])
            }
            (DType::I32, _) => rng.below(19) as f64 - 9.0,
            (DType::Bool, _) => f64::from(rng.chance(0.5)),
            // Eighths, whose sums and products are exact.
            (_, 0..=2) => (rng.below(49) as f64 - 24.0) / 8.0,
            (_, 3 | 4) => f64::from(rng.between(-2.0, 2.0) as f32),
            _ => f64::from(rng.between(0.5, 2.0) as f32),
        });
        let values = values.collect();
        let kept = self.rng.chance(0.3);
        let op = Op::Input { values, shape: shape.to_vec(), dtype, kept };
        self.push(op, &[]).expect("an input has moderate values")
    }

    /// An existing value with this property, preferably a recent one.
    pub fn find(&mut self, fits: impl Fn(&Value) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.values.len()).filter(|&i| fits(&self.values[i])).collect();
        if all.is_empty() {
            return None;
        }
        // Sometimes an early one, which extends its lifetime.
        let far = if self.rng.chance(0.3) { 1.0 } else { self.rng.unit() };
        let back = (self.rng.unit() * far * all.len() as f64) as usize;
        Some(all[all.len() - 1 - back.min(all.len() - 1)])
    }

    /// A value of this dtype; makes one if there is none.
    pub fn some(&mut self, dtype: DType) -> usize {
        if let (Some(i), false) = (self.find(|x| x.dtype == dtype), self.rng.chance(0.04)) {
            return i;
        }
        let shape =
            if self.rng.chance(0.7) { self.rng.pick(&self.palette).clone() } else { self.shape() };
        self.input(&shape, dtype)
    }

    /// A shape that broadcasts with `shape`: the same, with axes of size 1, or without leading axes.
    fn beside(&mut self, shape: &[usize]) -> Vec<usize> {
        let mut other = shape.to_vec();
        if self.rng.chance(0.3) {
            other.drain(..self.rng.below(shape.len() + 1));
        }
        for size in &mut other {
            if self.rng.chance(0.25) {
                *size = 1;
            }
        }
        other
    }

    /// A value that broadcasts with `x`: an existing or a new one.
    pub fn partner(&mut self, x: usize) -> usize {
        let (shape, dtype, most) = (self.shape_of(x), self.dtype(x), self.flavour.largest);
        let found = self.find(|y| {
            y.dtype == dtype
                && broadcast_shape(&y.shape, &shape)
                    .is_some_and(|s| s.iter().product::<usize>() <= most)
        });
        match found {
            Some(y) if self.rng.chance(0.75) => y,
            _ => {
                let shape = self.beside(&shape);
                self.input(&shape, dtype)
            }
        }
    }

    /// Whether the op's results for NaN and infinities are documented, if they matter.
    fn known(&self, name: &str) -> bool {
        const KNOWN: &[&str] = &[
            "abs",
            "negative",
            "exp",
            "log",
            "sqrt",
            "square",
            "tanh",
            "sigmoid",
            "relu",
            "elu",
            "is_nan",
            "is_finite",
            "atan",
            "sign",
            "clip_by_value",
            "add",
            "subtract",
            "multiply",
            "maximum",
            "minimum",
            "divide",
        ];
        !self.flavour.special || KNOWN.contains(&name)
    }

    fn numeric(&mut self) -> DType {
        if !self.flavour.smooth && self.rng.chance(0.12) { DType::I32 } else { DType::F32 }
    }

    fn step(&mut self) {
        let f = self.flavour;
        let kinds: [(usize, Kind); 12] = [
            (f.unary, Self::unary),
            (f.binary, Self::binary),
            (f.scalar, Self::scalar),
            (f.choose, Self::choose),
            (f.view, Self::view),
            (f.reduce, Self::reduction),
            (f.softmax, Self::softmax),
            (f.motif, Self::motif),
            (f.matmul, Self::product),
            (f.image, Self::image),
            (f.index, Self::index),
            (f.constant, Self::constant),
        ];
        let mut at = self.rng.below(kinds.iter().map(|(weight, _)| weight).sum());
        for (weight, kind) in kinds {
            if at < weight {
                let before = self.program.nodes.len();
                let made = kind(self);
                // The same call again, for a planner that merges equal calls.
                if let (Some(i), true) = (made, self.rng.chance(0.06)) {
                    let node = self.program.nodes[i].clone();
                    if !matches!(node.op, Op::Input { .. }) && before <= i {
                        self.push(node.op, &node.inputs);
                    }
                }
                return;
            }
            at -= weight;
        }
    }

    pub fn unary(&mut self) -> Option<usize> {
        let dtype = self.numeric();
        let x = self.some(dtype);
        let smooth = self.flavour.smooth;
        for _ in 0..6 {
            let row = self.rng.pick(UNARY);
            if self.known(row.name) && row.takes.contains(&self.dtype(x)) && (row.smooth || !smooth)
            {
                if let Some(y) = self.push(Op::Unary(row), &[x]) {
                    return Some(y);
                }
            }
        }
        None
    }

    pub fn binary(&mut self) -> Option<usize> {
        let dtype = self.numeric();
        let x = self.some(dtype);
        let y = if self.rng.chance(0.08) { x } else { self.partner(x) };
        let (x, y) = if self.rng.chance(0.5) { (x, y) } else { (y, x) };
        let smooth = self.flavour.smooth;
        for _ in 0..4 {
            // Half of all are basic arithmetic.
            let row = if self.rng.chance(0.5) {
                &BINARY[self.rng.below(4)]
            } else {
                self.rng.pick(BINARY)
            };
            let fits = row.takes.contains(&dtype)
                && !row.test
                && (row.smooth || !smooth)
                && self.known(row.name);
            if fits {
                if let Some(z) = self.push(Op::Binary(row), &[x, y]) {
                    return Some(z);
                }
            }
        }
        None
    }

    fn scalar(&mut self) -> Option<usize> {
        let dtype = self.numeric();
        let x = self.some(dtype);
        let smooth = self.flavour.smooth;
        let row =
            if self.rng.chance(0.6) { &BINARY[self.rng.below(4)] } else { self.rng.pick(BINARY) };
        let fits = row.takes.contains(&dtype) && self.known(row.name);
        if !fits || row.test || (smooth && !row.smooth) {
            return None;
        }
        let v = *self.rng.pick(&[2.0, 0.5, -1.0, 1.0, 3.0, -0.25, 0.1f32 as f64, 0.0]);
        let v = if dtype == DType::I32 { v.round() } else { v };
        self.push(Op::Scalar(row, v), &[x])
    }

    /// Comparisons, choices, casts.
    fn choose(&mut self) -> Option<usize> {
        let smooth = self.flavour.smooth;
        let condition = match self.find(|x| x.dtype == DType::Bool) {
            Some(c) if self.rng.chance(0.6) => c,
            _ => {
                let dtype = self.numeric();
                let x = self.some(dtype);
                let y = self.partner(x);
                let tests: Vec<_> =
                    BINARY.iter().filter(|r| r.test && r.takes.contains(&DType::I32)).collect();
                let row = *self.rng.pick(&tests);
                if self.rng.chance(0.5) {
                    self.push(Op::Binary(row), &[x, y])?
                } else {
                    self.push(Op::Scalar(row, 0.0), &[x])?
                }
            }
        };
        match self.rng.below(if smooth { 1 } else { 5 }) {
            0 | 1 => {
                let shape = self.shape_of(condition);
                let dtype = self.numeric();
                let a = match self
                    .find(|x| x.dtype == dtype && broadcast_shape(&x.shape, &shape).is_some())
                {
                    Some(a) => a,
                    None => self.input(&shape, dtype),
                };
                let b = self.partner(a);
                self.push(Op::Select, &[condition, a, b])
            }
            2 => {
                let to = *self.rng.pick(&[DType::F32, DType::I32]);
                self.push(Op::Cast(to), &[condition])
            }
            3 => {
                let from = *self.rng.pick(&[DType::F32, DType::I32]);
                let from = self.some(from);
                let to = *self.rng.pick(&[DType::I32, DType::Bool, DType::U8, DType::U8]);
                let y = self.push(Op::Cast(to), &[from])?;
                let back = *self.rng.pick(&[DType::I32, DType::F32]);
                if to == back { Some(y) } else { self.push(Op::Cast(back), &[y]) }
            }
            _ => {
                let other = self.partner(condition);
                let rows: Vec<_> =
                    BINARY.iter().filter(|r| r.takes.contains(&DType::Bool)).collect();
                let row = *self.rng.pick(&rows);
                self.push(Op::Binary(row), &[condition, other])
            }
        }
    }

    pub fn any_value(&mut self) -> usize {
        let dtype = match self.rng.below(if self.flavour.smooth { 1 } else { 10 }) {
            8 => DType::I32,
            9 => DType::Bool,
            _ => DType::F32,
        };
        self.some(dtype)
    }

    pub fn reduction(&mut self) -> Option<usize> {
        let x = self.any_value();
        let (dtype, rank) = (self.dtype(x), self.values[x].shape.len());
        let rows: Vec<_> = REDUCTIONS.iter().filter(|r| r.takes.contains(&dtype)).collect();
        let row = *self.rng.pick(&rows);
        // Equal maxima share a gradient, which finite differences do not show.
        if self.flavour.smooth && matches!(row.fold, Fold::Prod) {
            return None;
        }
        let axes = self.axes(rank);
        let keep = self.rng.chance(0.5);
        let y = self.push(Op::Reduce(row, axes, keep), &[x])?;
        if keep && dtype == DType::F32 && self.rng.chance(0.6) {
            // Combines it with the elements that it was computed from.
            let row = &BINARY[self.rng.below(4)];
            return self.push(Op::Binary(row), &[x, y]).or(Some(y));
        }
        Some(y)
    }

    fn softmax(&mut self) -> Option<usize> {
        let x = self.find(|x| x.dtype == DType::F32 && !x.shape.is_empty())?;
        let rank = self.values[x].shape.len();
        let axis = if self.rng.chance(0.6) { rank - 1 } else { self.rng.below(rank) };
        let op = if self.rng.chance(0.5) { Op::Softmax(axis) } else { Op::LogSoftmax(axis) };
        self.push(op, &[x])
    }

    fn constant(&mut self) -> Option<usize> {
        let shape = self.rng.pick(&self.palette).clone();
        let shape = if self.rng.chance(0.5) { Vec::new() } else { shape };
        if self.rng.chance(0.2) && !self.flavour.smooth {
            let step = *self.rng.pick(&[1, 2, -1]);
            let n = shape.iter().product();
            let op = Op::Range { start: self.rng.below(5) as i64 - 2, step, n };
            return self.push(op, &[]);
        }
        let dtype = self.numeric();
        let value = *self.rng.pick(&[0.0, 1.0, -2.0, 3.0]);
        self.push(Op::Full { value, shape, dtype }, &[])
    }

    /// Marks results that no other call reads, and some others, as held and read; a few outputs stay unused.
    fn choose_wanted(&mut self) {
        let last = self.program.last_readers();
        for (i, last) in last.into_iter().enumerate() {
            let input = matches!(self.program.nodes[i].op, Op::Input { .. });
            let p = match (last.is_none(), input) {
                (_, true) => 0.0,
                (true, _) => 0.85,
                (false, _) => 0.12,
            };
            self.program.nodes[i].wanted = self.rng.chance(p);
        }
        if let Some(node) = self.program.nodes.last_mut() {
            node.wanted = true;
        }
    }
}

/// Whether the result for non-finite inputs is undefined, as for a value minus itself: WGSL permits a driver to compute 0 for
/// `x - x` and 1 for `x / x` for every `x`, if it detects that both are the same.
pub(super) fn cancels(op: &Op, x: &[&Value]) -> bool {
    match op {
        Op::Binary(row) if ["subtract", "divide"].contains(&row.name) => {
            !x[0].all(f64::is_finite) && !x[1].all(f64::is_finite)
        }
        Op::Softmax(axis) | Op::LogSoftmax(axis) => x[0].shape[*axis] == 1,
        // A comparison of NaN with 0 is undefined.
        Op::Cast(DType::Bool) => !x[0].all(f64::is_finite),
        Op::CrossEntropy => x[1].shape.last() == Some(&1),
        Op::Reduce(row, axes, _) => {
            let n: usize = axes.iter().map(|&axis| x[0].shape[axis]).product();
            n == 1 && matches!(row.fold, Fold::Variance | Fold::Std | Fold::LogSumExp)
        }
        _ => false,
    }
}
