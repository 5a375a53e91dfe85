//! What a pointer means: a variable, and where in it. Loads and stores are written here.

use anyhow::{Result, bail};
use naga::{ArraySize, Expression, Handle, TypeInner};

use super::{Compiler, Frame, Global, Value};
use crate::layout::{Kind, Layout, Run, Shape};
use crate::program::{Address, Bound, Op, Reg, Root};

/// The variable that a pointer points into.
#[derive(Debug, Clone, Copy)]
pub(super) enum Base {
    Buffer(u32),
    /// Words up to this one.
    Workgroup(u32),
    /// So many registers, and the first of those that say whether they were written.
    Registers {
        first: Reg,
        count: u32,
        written: Option<Reg>,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) base: Base,
    /// Bytes of a buffer, else words.
    pub(super) constant: u32,
    pub(super) dynamic: Option<Reg>,
    /// By its number in the program, for reports.
    pub(super) variable: u32,
}

impl Place {
    fn address(&self, line: u32) -> Result<Address> {
        let (root, end) = match self.base {
            Base::Buffer(binding) => (Root::Buffer(binding), u32::MAX),
            Base::Workgroup(end) => (Root::Workgroup, end),
            Base::Registers { .. } => {
                bail!("a variable of one invocation is used as if others shared it")
            }
        };
        Ok(Address {
            root,
            constant: self.constant,
            dynamic: self.dynamic,
            end,
            variable: self.variable,
            line,
        })
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn global_place(&mut self, handle: Handle<naga::GlobalVariable>) -> Place {
        let variable = handle.index() as u32;
        let (base, constant) = match self.globals[&handle] {
            Global::Buffer(binding) => (Base::Buffer(binding), 0),
            Global::Workgroup(first, end) => (Base::Workgroup(end), first),
            Global::Private { first, count, written } => {
                (Base::Registers { first, count, written }, 0)
            }
        };
        Place { base, constant, dynamic: None, variable }
    }

    /// The place that the expression points to.
    pub(super) fn place(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
    ) -> Result<Place> {
        match self.value(frame, pointer)? {
            Value::Place(place) => Ok(place),
            Value::Scalars(_) => bail!("{:?} is no pointer", frame.function.expressions[pointer]),
        }
    }

    /// A part of a place by a number that is known.
    pub(super) fn part_of_place(
        &mut self,
        place: Place,
        pointer: &'a TypeInner,
        index: u32,
    ) -> Result<Place> {
        let shape = Shape::behind(self.module, pointer)?;
        let (_, at) = shape.part(self.module, Self::layout(&place.base), index)?;
        Ok(Place { constant: place.constant + at, ..place })
    }

    /// A part of a place by an index that each invocation has of its own.
    pub(super) fn element_of_place(
        &mut self,
        place: Place,
        pointer: &'a TypeInner,
        index: Reg,
    ) -> Result<Place> {
        let shape = Shape::behind(self.module, pointer)?;
        let (_, part) = shape.elements(self.module, Self::layout(&place.base))?;
        let bound = match (part.count, place.base) {
            (Some(count), _) => Bound::Fixed(count),
            (None, Base::Buffer(binding)) => {
                Bound::Runtime { binding, offset: place.constant, stride: part.stride }
            }
            (None, _) => bail!("an array without a size lies outside of buffers"),
        };
        let d = self.fresh(1);
        self.emit(Op::Index { d, base: place.dynamic, index, stride: part.stride, bound });
        Ok(Place { dynamic: Some(d), ..place })
    }

    pub(super) fn array_length(&mut self, place: Place, pointer: &'a TypeInner) -> Result<Reg> {
        let shape = Shape::behind(self.module, pointer)?;
        let (
            Shape::Of(TypeInner::Array { size: ArraySize::Dynamic, stride, .. }),
            Base::Buffer(binding),
        ) = (shape, place.base)
        else {
            bail!("arrayLength of something else than an array at the end of a buffer");
        };
        let d = self.fresh(1);
        let bound = Bound::Runtime { binding, offset: place.constant, stride: *stride };
        self.emit(Op::ArrayLength { d, bound });
        Ok(d)
    }

    /// The scalars at a place.
    pub(super) fn load(
        &mut self,
        place: Place,
        pointer: &'a TypeInner,
        line: u32,
    ) -> Result<Vec<Reg>> {
        let shape = Shape::behind(self.module, pointer)?;
        let atomic = is_atomic(self.module, pointer);
        let layout = Self::layout(&place.base);
        let count = shape.scalars(self.module)?;
        let first = self.fresh(count);
        if let Base::Registers { first: from, written, .. } = place.base {
            for i in 0..count {
                let (d, at) = (first + i, place.constant + i);
                if let Some(written) = written {
                    let (written, variable) = (written + at, place.variable);
                    self.emit(Op::Written { written, index: place.dynamic, variable, line });
                }
                self.emit(match place.dynamic {
                    None => Op::Copy { d, a: from + at },
                    Some(index) => {
                        Op::Pick { d, first: from + at, index, variable: place.variable, line }
                    }
                });
            }
            return Ok((first..first + count).collect());
        }
        let mut d = first;
        for Run { at, count, kind } in shape.runs(self.module, layout)? {
            let address = Place { constant: place.constant + at, ..place }.address(line)?;
            self.emit(Op::Load { d, count, kind, atomic, address });
            d += count;
        }
        Ok((first..first + count).collect())
    }

    /// Writes the scalars of `values` to a place.
    pub(super) fn store(
        &mut self,
        place: Place,
        pointer: &'a TypeInner,
        values: &[Reg],
        line: u32,
    ) -> Result<()> {
        let shape = Shape::behind(self.module, pointer)?;
        let atomic = is_atomic(self.module, pointer);
        if let Base::Registers { first: to, count, written } = place.base {
            let one = self.constant(1);
            for (&a, i) in values.iter().zip(0..) {
                let at = place.constant + i;
                for (to, a) in
                    [Some((to, a)), written.map(|written| (written, one))].into_iter().flatten()
                {
                    self.emit(match place.dynamic {
                        None => Op::Set { d: to + at, a },
                        Some(index) => Op::Put {
                            first: to + at,
                            index,
                            a,
                            all: [to, to + count],
                            variable: place.variable,
                            line,
                        },
                    });
                }
            }
            return Ok(());
        }
        let layout = Self::layout(&place.base);
        let mut values = values.iter().copied();
        for run in shape.runs(self.module, layout)? {
            let own: Vec<Reg> = values.by_ref().take(run.count as usize).collect();
            let unit = if layout == Layout::Buffer { run.kind.bytes() } else { 1 };
            let mut at = place.constant + run.at;
            for part in own.chunk_by(|a, b| a + 1 == *b) {
                let (a, count) = (part[0], part.len() as u32);
                let address = Place { constant: at, ..place }.address(line)?;
                self.emit(Op::Store { a, count, kind: run.kind, atomic, address });
                at += unit * count;
            }
        }
        Ok(())
    }

    /// The address of one scalar, for atomics and small matrices.
    pub(super) fn address_of(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
        line: u32,
    ) -> Result<(Address, Kind)> {
        let place = self.place(frame, pointer)?;
        let shape = Shape::behind(self.module, self.type_of(frame, pointer))?;
        let kind = match shape.runs(self.module, Layout::Words)?.first() {
            Some(run) => run.kind,
            None => bail!("a pointer to nothing"),
        };
        Ok((place.address(line)?, kind))
    }
}

fn is_atomic(module: &naga::Module, pointer: &TypeInner) -> bool {
    matches!(*pointer, TypeInner::Pointer { base, .. }
        if matches!(module.types[base].inner, TypeInner::Atomic(_)))
}
