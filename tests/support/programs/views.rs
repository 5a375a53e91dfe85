//! Calls that move elements: reshapes, permutations, slices, paddings, joins.

use wgrad::DType;

use super::Op;
use super::eval::Value;
use super::generate::Generator;

impl Generator {
    pub fn axes(&mut self, rank: usize) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..rank).filter(|_| self.rng.chance(0.5)).collect();
        if axes.is_empty() && rank > 0 {
            axes.push(self.rng.below(rank));
        }
        axes
    }

    pub fn view(&mut self) -> Option<usize> {
        let x = self.any_value();
        let shape = self.shape_of(x);
        let rank = shape.len();
        let op = match self.rng.below(13) {
            0 => Op::Reshape(self.regrouped(&shape)),
            1 => {
                let mut order: Vec<usize> = (0..rank).collect();
                for i in (1..rank).rev() {
                    order.swap(i, self.rng.below(i + 1));
                }
                if rank == 0 {
                    return None;
                }
                Op::Transpose(order)
            }
            2 | 3 => {
                let mut ranges = Vec::new();
                for &size in &shape {
                    let step = *self.rng.pick(&[1i64, 1, 1, 2, 3, -1, -2]);
                    if size == 0 || self.rng.chance(0.4) {
                        ranges.push((0, size, 1));
                        continue;
                    }
                    let from = self.rng.below(size);
                    let room = if step > 0 { size - 1 - from } else { from };
                    let most = room / step.unsigned_abs() as usize + 1;
                    ranges.push((from, 1 + self.rng.below(most), step));
                }
                Op::Slice(ranges)
            }
            4 => {
                let at = self.rng.below(rank + 1);
                let mut to = shape.clone();
                to.insert(at, 1);
                Op::Reshape(to)
            }
            5 => {
                let to: Vec<usize> = shape.iter().copied().filter(|&n| n != 1).collect();
                if to.len() == rank {
                    return None;
                }
                Op::Reshape(to)
            }
            6 => {
                let mut to = shape.clone();
                for size in &mut to {
                    if *size == 1 {
                        *size = *self.rng.pick(self.flavour.sizes);
                    }
                }
                if self.rng.chance(0.4) {
                    to.insert(0, *self.rng.pick(self.flavour.sizes));
                }
                Op::BroadcastTo(to)
            }
            7 => Op::Reverse(self.axes(rank)),
            8 => {
                let edges = shape.iter().map(|_| (self.rng.below(3), self.rng.below(3))).collect();
                let v = *self.rng.pick(&[0.0, 1.0, -2.0]);
                let v = if self.dtype(x) == DType::Bool { 1.0 } else { v };
                Op::Pad(edges, v)
            }
            11 if rank >= 1 => {
                let axis = self.rng.below(rank);
                Op::Roll(self.rng.below(9) as i64 - 4, axis)
            }
            9 if rank >= 2 => {
                let k = self.rng.below(4) as i64 - 2;
                Op::Band(k, k + self.rng.below(3) as i64)
            }
            9 | 10 if rank >= 1 => {
                let k = self.rng.below(4) as i64 - 2;
                let fits = |size: usize, by: i64| size as i64 > by;
                match rank >= 2 && fits(shape[rank - 2], -k) && fits(shape[rank - 1], k) {
                    true => Op::DiagPart(k),
                    // A matrix of the squared size is stored.
                    false if shape[rank - 1] > 8 => return None,
                    false => Op::Diag(k),
                }
            }
            _ => {
                if rank == 0 {
                    return None;
                }
                let axis = self.rng.below(rank);
                let mut parts = vec![x];
                for _ in 0..1 + self.rng.below(3) {
                    let (dtype, want) = (self.dtype(x), shape.clone());
                    let fits = |y: &Value| {
                        y.dtype == dtype
                            && y.shape.len() == rank
                            && (0..rank).all(|k| k == axis || y.shape[k] == want[k])
                    };
                    let part = self.find(fits);
                    parts.extend(part);
                }
                return self.push(Op::Concat(axis), &parts);
            }
        };
        self.push(op, &[x])
    }

    /// The same number of elements with other axes.
    fn regrouped(&mut self, shape: &[usize]) -> Vec<usize> {
        if self.rng.chance(0.4) || shape.is_empty() {
            return vec![shape.iter().product()];
        }
        // Merges two neighbouring axes, or splits one.
        let at = self.rng.below(shape.len());
        let mut to = shape.to_vec();
        if at + 1 < to.len() && self.rng.chance(0.6) {
            let n = to.remove(at);
            to[at] *= n;
        } else if let Some(d) =
            [2, 3, 5, 7].into_iter().find(|d| to[at] > 0 && to[at].is_multiple_of(*d))
        {
            to[at] /= d;
            to.insert(at + self.rng.below(2), d);
        }
        to
    }
}
