//! An op on all rows at once, as the same code with an additional axis.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::super::{Backward, Grads, Keep, KeptInput, Operation, inferred, unbroadcast};
use super::{Lane, Trace};
use crate::eager;
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Arg, Elementwise, Lowering, LoweringContext, Reduction};
use crate::graph::lower::{RuntimeOffset, Strided, View, ViewAxis};
use crate::graph::{Op, RuntimeScalars, Spec};
use crate::shape::Shape;
use crate::tensor::Tensor;

/// `op` on `rows` rows. An input with rows has them along its first axis, like the result.
#[derive(Attribute)]
#[op("RowsOf")]
pub(crate) struct RowsOf {
    op: Arc<dyn Operation>,
    rows: usize,
    carries: SmallVec<[bool; 3]>,
}

impl RowsOf {
    /// Calls `op` on all rows, if its code allows it.
    pub(super) fn call(
        op: &Arc<dyn Operation>,
        inputs: &[Lane],
        rows: usize,
    ) -> Result<Option<Tensor>> {
        let carries = inputs.iter().map(|input| matches!(input, Lane::Rows(_))).collect();
        let rows_of = RowsOf { op: op.clone(), rows, carries };
        let tensors: SmallVec<[&Tensor; 3]> =
            inputs.iter().map(|(Lane::One(x) | Lane::Rows(x))| x).collect();
        let specs: SmallVec<[&Spec; 3]> = tensors.iter().map(|x| x.spec()).collect();
        let (own, output) = rows_of.of_one_row(&specs)?;
        let own: SmallVec<[&Spec; 3]> = own.iter().collect();
        let Some(first) = tensors.first() else { return Ok(None) };
        let caps = first.device().caps();
        let cx = LoweringContext { inputs: &own, output: &output, caps, variant: None };
        let fits = match op.lower(&cx) {
            Lowering::Alias => rows_of.carries[0],
            Lowering::Elementwise(code) => {
                !code.args.iter().any(|(_, arg)| matches!(arg, Arg::Index | Arg::Quad))
            }
            Lowering::Reduce(_) => true,
            Lowering::Kernels(_) => false,
        };
        if fits { eager::call(Arc::new(rows_of), &tensors).map(Some) } else { Ok(None) }
    }

    /// The inputs and the result of one row.
    fn of_one_row(&self, inputs: &[&Spec]) -> Result<(SmallVec<[Spec; 3]>, Spec)> {
        let own = inputs.iter().zip(&self.carries).map(|(x, carries)| match carries {
            true => Spec::new(Shape::new(&x.shape[1..]), x.dtype),
            false => (*x).clone(),
        });
        let own: SmallVec<[Spec; 3]> = own.collect();
        let output = self.op.infer(&own.iter().collect::<SmallVec<[&Spec; 3]>>())?;
        Ok((own, output))
    }

    /// The view of all rows that corresponds to `view` of one row.
    fn view(&self, view: View, input: usize, x: &Spec) -> View {
        let first = if self.carries[input] { x.elements() as i64 } else { 0 };
        let (offset, of_row) = match view {
            View::Same if self.carries[input] => return View::Same,
            View::Same => {
                let strides = x.shape.strides();
                let axis = |&stride: &i64| ViewAxis { stride, window: None };
                (RuntimeOffset::default(), strides.iter().map(axis).collect())
            }
            View::Strided(Strided { offset, axes }) => (offset, axes),
        };
        let mut axes = vec![ViewAxis { stride: first, window: None }];
        axes.extend(of_row);
        View::Strided(Strided { offset, axes })
    }
}

impl Op for RowsOf {
    fn name(&self) -> &'static str {
        self.op.name()
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (_, one) = self.of_one_row(inputs)?;
        let mut shape = Shape::new(&[self.rows]);
        one.shape.iter().for_each(|&size| shape.push(size));
        Ok(Spec::new(shape, one.dtype))
    }

    fn runtime_scalars(&self) -> RuntimeScalars {
        self.op.runtime_scalars()
    }

    fn in_fours(&self) -> u32 {
        self.op.in_fours()
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let (own, output) = inferred(self.of_one_row(cx.inputs));
        let specs: SmallVec<[&Spec; 3]> = own.iter().collect();
        match self.op.lower(&LoweringContext { inputs: &specs, output: &output, ..*cx }) {
            Lowering::Elementwise(Elementwise { name, formula, args }) => {
                let args = args.into_iter().map(|(name, arg)| match arg {
                    Arg::Input { input, view } => {
                        (name, Arg::Input { input, view: self.view(view, input, &own[input]) })
                    }
                    other => (name, other),
                });
                Elementwise { name, formula, args: args.collect() }.into()
            }
            Lowering::Reduce(Reduction { name, axes, first, fold }) => {
                let axes = axes.into_iter().map(|axis| axis + 1).collect();
                Lowering::Reduce(Reduction { name, axes, first, fold })
            }
            other => other,
        }
    }
}

impl Operation for RowsOf {
    fn keep(&self) -> Keep {
        self.op.keep()
    }

    // The rule for one row, on all rows.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let device = back.dy.device();
        let stand_in = |x: &Spec| -> Result<Tensor> {
            device.scope(|| Tensor::zeros(x.shape.clone()))?.cast(x.dtype)
        };
        let specs: SmallVec<[&Spec; 3]> = back.inputs.iter().map(|x| &x.spec).collect();
        let (own, output) = self.of_one_row(&specs)?;
        let dy = stand_in(&output)?;
        let mut given = vec![(dy.clone(), back.dy.clone())];
        let mut inputs: Vec<KeptInput> = Vec::with_capacity(own.len());
        for ((x, own), carries) in back.inputs.iter().zip(own).zip(&self.carries) {
            let kept = match (&x.kept, carries) {
                (Some(rows), true) => {
                    let one = stand_in(&own)?;
                    given.push((one.clone(), rows.clone()));
                    Some(one)
                }
                (kept, _) => kept.clone(),
            };
            inputs.push(KeptInput { id: x.id, spec: own, kept });
        }
        let y = match back.output {
            Some(rows) => {
                let one = stand_in(&output)?;
                given.push((one.clone(), rows.clone()));
                Some(one)
            }
            None => None,
        };
        let one = Backward { inputs: &inputs, output: y.as_ref(), dy: &dy, needs: back.needs };
        let stand_ins: Vec<&Tensor> = given.iter().map(|(one, _)| one).collect();
        let (trace, grads) = Trace::record(&stand_ins, || {
            let mut grads = self.op.grad(&one)?;
            for (i, grad) in grads.iter_mut().enumerate() {
                if let Some(dx) = grad {
                    *dx = unbroadcast(dx, &inputs[i].spec.shape)?;
                }
            }
            Ok(grads)
        })?;
        let given: Vec<(&Tensor, Tensor)> =
            given.iter().map(|(one, rows)| (one, rows.clone())).collect();
        let wanted: Vec<&Tensor> = grads.iter().flatten().collect();
        let mut rows = trace.replay(self.rows, &given, &wanted)?.into_iter();
        Ok(grads.iter().map(|grad| grad.as_ref().and_then(|_| rows.next())).collect())
    }
}

impl fmt::Debug for RowsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} rows", self.op.name(), self.rows)
    }
}
