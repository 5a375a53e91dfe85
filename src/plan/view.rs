//! Arithmetic on views: composes a view of a view into one, and splits shapes so finely that several fit one set of
//! axes.

use crate::graph::lower::{RuntimeOffset, Strided, Term, View, ViewAxis};

/// The view of all elements in row-major order over axes of these sizes.
pub(super) fn natural(sizes: &[usize]) -> Strided {
    natural_over(sizes, |_| true)
}

/// As [`natural`], over the axes selected by `counts`; along the others the element stays the same.
pub(super) fn natural_over(sizes: &[usize], counts: impl Fn(usize) -> bool) -> Strided {
    natural_with_ones(sizes, |axis| counts(axis) && sizes[axis] != 1)
}

/// As [`natural_over`], with strides along axes of size 1 as if they were longer.
pub(super) fn natural_with_ones(sizes: &[usize], counts: impl Fn(usize) -> bool) -> Strided {
    let mut axes = vec![ViewAxis { stride: 0, window: None }; sizes.len()];
    let mut stride = 1;
    for axis in (0..sizes.len()).rev().filter(|&axis| counts(axis)) {
        axes[axis].stride = stride;
        stride *= sizes[axis] as i64;
    }
    Strided { offset: 0.into(), axes }
}

/// The view that reads, through `inner` over a node of shape `shape`, the elements that `outer` selects from the node.
/// `outer` is over axes of `sizes` and has no windows. `None` if no strides express it.
pub(super) fn compose(
    sizes: &[usize],
    outer: &Strided,
    shape: &[usize],
    inner: &View,
) -> Option<Strided> {
    let View::Strided(inner) = inner else { return Some(outer.clone()) };
    let mut out = Strided {
        offset: inner.offset.clone(),
        axes: vec![ViewAxis { stride: 0, window: None }; sizes.len()],
    };
    let own = natural(shape);
    // The node's coordinates at the first element.
    let mut rest = outer.offset.constant;
    let mut coordinates: Vec<Coordinate> = Vec::with_capacity(shape.len());
    for axis in &own.axes {
        let start = if axis.stride == 0 { 0 } else { rest / axis.stride };
        rest -= start * axis.stride;
        let start = RuntimeOffset::from(start);
        coordinates.push(Coordinate { start, low: 0, high: 0, moves: Vec::new() });
    }
    if rest != 0 {
        return None;
    }
    // Each scalar moves along one axis: the outermost one that it does not overshoot. If that is wrong, it leaves the
    // axis, because only one set of coordinates of an element is within the axes.
    for &term in &outer.offset.terms {
        let fits = |a: &ViewAxis| a.stride != 0 && a.stride <= term.factor.abs();
        let along = own.axes.iter().position(fits)?;
        let factor = term.factor / own.axes[along].stride;
        if factor * own.axes[along].stride != term.factor {
            return None;
        }
        coordinates[along].start.add_term(Term { factor, ..term });
    }
    for coordinate in &mut coordinates {
        (coordinate.low, coordinate.high) = coordinate.start.range();
    }
    for (at, (axis, &size)) in outer.axes.iter().zip(sizes).enumerate() {
        if axis.stride == 0 || size == 1 {
            continue;
        }
        // This is the outermost axis of the node that a step does not overshoot.
        let along = own.axes.iter().position(|a| a.stride != 0 && a.stride <= axis.stride.abs())?;
        let by = axis.stride / own.axes[along].stride;
        if by * own.axes[along].stride != axis.stride {
            return None;
        }
        let reach = by * (size as i64 - 1);
        let coordinate = &mut coordinates[along];
        coordinate.low += reach.min(0);
        coordinate.high += reach.max(0);
        coordinate.moves.push((at, by));
    }
    for (along, coordinate) in coordinates.iter().enumerate() {
        if coordinate.low < 0 || coordinate.high >= shape[along] as i64 {
            return None;
        }
        let axis = &inner.axes[along];
        let Some(mut window) = axis.window.clone() else {
            out.offset.add(&coordinate.start, axis.stride);
            for &(at, by) in &coordinate.moves {
                out.axes[at].stride += by * axis.stride;
            }
            continue;
        };
        let &[(at, 1)] = &coordinate.moves[..] else { return None };
        window.low.add(&coordinate.start, -1);
        out.axes[at] = ViewAxis { stride: axis.stride, window: Some(window) };
    }
    Some(out)
}

/// How one coordinate of a node follows from the coordinates of a kernel.
struct Coordinate {
    start: RuntimeOffset,
    low: i64,
    high: i64,
    /// An axis of the kernel, and how many steps this coordinate moves for each step along it.
    moves: Vec<(usize, i64)>,
}

/// Sizes whose products are the axes of all `shapes`, which have the same number of elements: for `[6, 4]` and
/// `[2, 12]` they are `[2, 3, 4]`. `None` if the axes do not nest.
pub(super) fn refine<'a>(shapes: impl Iterator<Item = &'a [usize]>) -> Option<Vec<usize>> {
    let mut marks: Vec<usize> = vec![1];
    for shape in shapes {
        let mut product = 1;
        for &size in shape.iter().rev() {
            product *= size;
            if let Err(at) = marks.binary_search(&product) {
                marks.insert(at, product);
            }
        }
    }
    let mut sizes = Vec::with_capacity(marks.len());
    for pair in marks.windows(2).rev() {
        if pair[1] % pair[0] != 0 {
            return None;
        }
        sizes.push(pair[1] / pair[0]);
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::lower::Window;

    fn strides(view: &Strided) -> Vec<i64> {
        view.axes.iter().map(|a| a.stride).collect()
    }

    #[test]
    fn views_of_views_are_views() {
        // The transpose of a slice: rows 1 and 2 of [4, 6], transposed.
        let slice = View::strided(6, &[6, 1]);
        let turned = compose(&[6, 2], &natural(&[6, 2]), &[6, 2], &View::strided(0, &[1, 6]));
        let turned = turned.unwrap();
        assert_eq!(strides(&turned), [1, 6]);
        let both = compose(&[6, 2], &turned, &[2, 6], &slice).unwrap();
        assert_eq!((both.offset.clone(), strides(&both)), (6.into(), vec![1, 6]));
        // A row repeated, over finer axes.
        let row = compose(&[2, 3, 4], &natural(&[2, 3, 4]), &[6, 4], &View::strided(0, &[0, 1]));
        assert_eq!(strides(&row.unwrap()), [0, 0, 1]);
        // Backwards through a reversed view.
        let reversed = View::strided(5, &[-1]);
        let twice = compose(
            &[6],
            &Strided { offset: 5.into(), axes: vec![ViewAxis { stride: -1, window: None }] },
            &[6],
            &reversed,
        );
        let twice = twice.unwrap();
        assert_eq!((twice.offset.clone(), strides(&twice)), (0.into(), vec![1]));
    }

    #[test]
    fn what_no_strides_say_is_refused() {
        // [4, 6] walked as 24 elements through a transpose.
        assert!(compose(&[24], &natural(&[24]), &[4, 6], &View::strided(0, &[1, 4])).is_none());
        // Every fifth element of rows of six.
        let fifth = Strided { offset: 0.into(), axes: vec![ViewAxis { stride: 5, window: None }] };
        assert!(compose(&[4], &fifth, &[4, 6], &View::strided(0, &[1, 4])).is_none());
    }

    #[test]
    fn windows_move_with_their_axis() {
        let window = Window { low: 2.into(), len: 3, dilation: 1 };
        let axes = vec![
            ViewAxis { stride: 3, window: None },
            ViewAxis { stride: 1, window: Some(window.clone()) },
        ];
        let padded = View::Strided(Strided { offset: 0.into(), axes });
        let turned = Strided {
            offset: 0.into(),
            axes: vec![ViewAxis { stride: 1, window: None }, ViewAxis { stride: 7, window: None }],
        };
        let both = compose(&[7, 2], &turned, &[2, 7], &padded).unwrap();
        assert_eq!(both.axes[0], ViewAxis { stride: 1, window: Some(window) });
        assert_eq!(both.axes[1], ViewAxis { stride: 3, window: None });
    }

    #[test]
    fn shapes_are_refined_together() {
        let refined = |shapes: &[&[usize]]| refine(shapes.iter().copied());
        assert_eq!(refined(&[&[6, 4], &[2, 12]]), Some(vec![2, 3, 4]));
        assert_eq!(refined(&[&[50, 1, 10], &[500]]), Some(vec![50, 10]));
        assert_eq!(refined(&[&[1, 1]]), Some(vec![]));
        assert_eq!(refined(&[&[6, 4], &[3, 8], &[4, 6]]), None);
    }
}
