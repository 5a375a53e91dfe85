//! Where the scalars of a type lie: in a buffer, by WGSL's rules of alignment, and in memory that only kernels see, one
//! word for each.

use anyhow::{Result, bail};
use naga::{ArraySize, Handle, Module, Scalar, ScalarKind, Type, TypeInner};

/// The types that a register or a word of memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    F32,
    F16,
    I32,
    U32,
    Bool,
}

impl Kind {
    pub(crate) fn of(scalar: Scalar) -> Result<Kind> {
        Ok(match (scalar.kind, scalar.width) {
            (ScalarKind::Float, 4) => Kind::F32,
            (ScalarKind::Float, 2) => Kind::F16,
            (ScalarKind::Sint, 4) => Kind::I32,
            (ScalarKind::Uint, 4) => Kind::U32,
            (ScalarKind::Bool, _) => Kind::Bool,
            (kind, width) => bail!("scalars of kind {kind:?} with {width} bytes are not supported"),
        })
    }

    /// Bytes in a buffer.
    pub(crate) fn bytes(self) -> u32 {
        if self == Kind::F16 { 2 } else { 4 }
    }
}

/// Scalars of one kind that follow on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// From the begin of the type: bytes in a buffer, else words.
    pub(crate) at: u32,
    pub(crate) count: u32,
    pub(crate) kind: Kind,
}

/// What lies where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Bytes, as WGSL aligns them.
    Buffer,
    /// One word for each scalar.
    Words,
}

/// A part of a type: its place, and the step from one such part to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Units (bytes or words) from one part to the next; for a member of a struct, where it begins.
    pub(crate) stride: u32,
    /// How many there are; `None` for an array that is as long as its buffer.
    pub(crate) count: Option<u32>,
}

/// A type that may stand in an arena, or be a vector or scalar that a pointer names without one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    Of(&'a TypeInner),
    Vector(u32, Scalar),
    Scalar(Scalar),
}

impl<'a> Shape<'a> {
    pub(crate) fn new(module: &'a Module, ty: Handle<Type>) -> Self {
        match &module.types[ty].inner {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => Shape::Scalar(*scalar),
            TypeInner::Vector { size, scalar } => Shape::Vector(*size as u32, *scalar),
            inner => Shape::Of(inner),
        }
    }

    /// What a pointer of this type points to.
    pub(crate) fn behind(module: &'a Module, pointer: &TypeInner) -> Result<Self> {
        Ok(match *pointer {
            TypeInner::Pointer { base, .. } => Shape::new(module, base),
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                Shape::Vector(size as u32, scalar)
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => Shape::Scalar(scalar),
            ref other => bail!("a pointer of type {other:?} is not supported"),
        })
    }

    /// The elements of an array, a vector or a matrix (its columns): the first one's type, and the steps.
    pub(crate) fn elements(self, module: &'a Module, layout: Layout) -> Result<(Self, Part)> {
        let words = |shape: Shape| shape.scalars(module);
        Ok(match self {
            Shape::Vector(size, scalar) => {
                let stride = if layout == Layout::Buffer { Kind::of(scalar)?.bytes() } else { 1 };
                (Shape::Scalar(scalar), Part { stride, count: Some(size) })
            }
            Shape::Of(TypeInner::Matrix { columns, rows, scalar }) => {
                let column = Shape::Vector(*rows as u32, *scalar);
                let stride = match layout {
                    Layout::Buffer => column_stride(*rows as u32, *scalar)?,
                    Layout::Words => *rows as u32,
                };
                (column, Part { stride, count: Some(*columns as u32) })
            }
            Shape::Of(TypeInner::Array { base, size, stride }) => {
                let element = Shape::new(module, *base);
                let stride = if layout == Layout::Buffer { *stride } else { words(element)? };
                let count = match size {
                    ArraySize::Constant(count) => Some(count.get()),
                    ArraySize::Dynamic => None,
                    ArraySize::Pending(_) => {
                        bail!("sizes of arrays by `override` are not supported")
                    }
                };
                (element, Part { stride, count })
            }
            other => bail!("{other:?} has no elements that an index could choose"),
        })
    }

    /// Member `index` of a struct, or element `index` of anything else: its type and where it begins.
    pub(crate) fn part(
        self,
        module: &'a Module,
        layout: Layout,
        index: u32,
    ) -> Result<(Self, u32)> {
        if let Shape::Of(TypeInner::Struct { members, .. }) = self {
            let member = &members[index as usize];
            let mut at = member.offset;
            if layout == Layout::Words {
                at = 0;
                for before in &members[..index as usize] {
                    at += Shape::new(module, before.ty).scalars(module)?;
                }
            }
            return Ok((Shape::new(module, member.ty), at));
        }
        let (element, part) = self.elements(module, layout)?;
        Ok((element, part.stride * index))
    }

    /// How many scalars a value of this type has.
    pub(crate) fn scalars(self, module: &'a Module) -> Result<u32> {
        let mut count = 0;
        self.walk(module, Layout::Words, 0, &mut |run| count += run.count)?;
        Ok(count)
    }

    /// The scalars in order; neighbours of one kind are one run.
    pub(crate) fn runs(self, module: &'a Module, layout: Layout) -> Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        self.walk(module, layout, 0, &mut |run| match runs.last_mut() {
            Some(last) if last.kind == run.kind && run.at == end(last, layout) => {
                last.count += run.count;
            }
            _ => runs.push(run),
        })?;
        Ok(runs)
    }

    fn walk(
        self,
        module: &'a Module,
        layout: Layout,
        at: u32,
        found: &mut impl FnMut(Run),
    ) -> Result<()> {
        match self {
            Shape::Scalar(scalar) => found(Run { at, count: 1, kind: Kind::of(scalar)? }),
            Shape::Vector(count, scalar) => found(Run { at, count, kind: Kind::of(scalar)? }),
            Shape::Of(TypeInner::Struct { members, .. }) => {
                for index in 0..members.len() as u32 {
                    let (member, offset) = self.part(module, layout, index)?;
                    member.walk(module, layout, at + offset, found)?;
                }
            }
            Shape::Of(TypeInner::CooperativeMatrix { columns, rows, scalar, .. }) => {
                found(Run { at, count: *columns as u32 * *rows as u32, kind: Kind::of(*scalar)? });
            }
            Shape::Of(_) => {
                let (element, part) = self.elements(module, layout)?;
                let Some(count) = part.count else {
                    bail!("an array without a size is read only by its elements")
                };
                for index in 0..count {
                    element.walk(module, layout, at + index * part.stride, found)?;
                }
            }
        }
        Ok(())
    }
}

/// Where the next scalar would stand.
fn end(run: &Run, layout: Layout) -> u32 {
    let unit = if layout == Layout::Buffer { run.kind.bytes() } else { 1 };
    run.at + run.count * unit
}

/// From one column of a matrix in a buffer to the next: columns of three rows are aligned as those of four.
fn column_stride(rows: u32, scalar: Scalar) -> Result<u32> {
    let rows = if rows == 3 { 4 } else { rows };
    Ok(rows * Kind::of(scalar)?.bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn runs(text: &str, layout: Layout) -> Vec<(u32, u32, Kind)> {
        let module = naga::front::wgsl::parse_str(text).unwrap();
        let (_, variable) = module.global_variables.iter().next().unwrap();
        let runs = Shape::new(&module, variable.ty).runs(&module, layout).unwrap();
        runs.into_iter().map(|run| (run.at, run.count, run.kind)).collect()
    }

    #[test]
    fn structs_are_aligned_as_wgsl_says() {
        let text = "struct S { a: u32, b: vec3<f32>, c: f32, d: array<vec2<u32>, 2> }\n\
                    @group(0) @binding(0) var<storage> s: S;";
        let all = [(0, 1, Kind::U32), (16, 4, Kind::F32), (32, 4, Kind::U32)];
        assert_eq!(runs(text, Layout::Buffer), all);
        let all = [(0, 1, Kind::U32), (1, 4, Kind::F32), (5, 4, Kind::U32)];
        assert_eq!(runs(text, Layout::Words), all);
    }

    #[test]
    fn halves_take_two_bytes_and_columns_of_three_are_padded() {
        let half = "enable f16;\n@group(0) @binding(0) var<storage> s: array<vec4<f16>, 2>;";
        assert_eq!(runs(half, Layout::Buffer), [(0, 8, Kind::F16)]);
        let matrix = "@group(0) @binding(0) var<storage> s: mat2x3<f32>;";
        assert_eq!(runs(matrix, Layout::Buffer), [(0, 3, Kind::F32), (16, 3, Kind::F32)]);
        assert_eq!(runs(matrix, Layout::Words), [(0, 6, Kind::F32)]);
    }
}
