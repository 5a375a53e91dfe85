//! Arithmetic on the host, for the shapes and counters that graphs compute by ordinary ops.
//!
//! Each function returns `None` if it does not know the op or the dtype; the device computes it then.

use half::{bf16, f16};
use ndarray::{ArrayD, IxDyn, Zip};

use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType, Number};
use crate::shape::broadcast;

/// Larger arrays are computed on the device.
pub(super) const LARGEST: usize = 1 << 14;

/// The numbers of an array.
#[derive(Debug, Clone)]
enum Numbers {
    Int(ArrayD<i128>),
    Float(ArrayD<f64>),
    Bool(ArrayD<bool>),
}

fn numbers(array: &HostArray<'_>) -> Option<Numbers> {
    let shape = IxDyn(array.shape());
    if array.dtype() == HostDType::Bool {
        let values = array.bytes().iter().map(|byte| *byte != 0).collect();
        return ArrayD::from_shape_vec(shape, values).ok().map(Numbers::Bool);
    }
    if array.dtype().is_float() {
        return array.to_f64().map(Numbers::Float);
    }
    let values = array.numbers()?.map(|number| match number {
        Number::Int(value) => Some(value),
        Number::Float(_) => None,
    });
    ArrayD::from_shape_vec(shape, values.collect::<Option<_>>()?).ok().map(Numbers::Int)
}

/// The array of these numbers: integers wrap around, floats are rounded.
fn array(dtype: HostDType, numbers: Numbers) -> Option<HostArray<'static>> {
    macro_rules! write {
        ($values:expr, $type:ty) => {
            $values.iter().flat_map(|v| (*v as $type).to_le_bytes()).collect()
        };
    }
    let (shape, bytes): (Vec<usize>, Vec<u8>) = match numbers {
        Numbers::Int(values) => {
            let bytes = match dtype {
                HostDType::I8 => write!(values, i8),
                HostDType::U8 => write!(values, u8),
                HostDType::I16 => write!(values, i16),
                HostDType::U16 => write!(values, u16),
                HostDType::I32 => write!(values, i32),
                HostDType::U32 => write!(values, u32),
                HostDType::I64 => write!(values, i64),
                HostDType::U64 => write!(values, u64),
                _ => return None,
            };
            (values.shape().to_vec(), bytes)
        }
        Numbers::Float(values) => {
            let bytes = match dtype {
                HostDType::F16 => {
                    values.iter().flat_map(|v| f16::from_f64(*v).to_le_bytes()).collect()
                }
                HostDType::Bf16 => {
                    values.iter().flat_map(|v| bf16::from_f64(*v).to_le_bytes()).collect()
                }
                HostDType::F32 => write!(values, f32),
                HostDType::F64 => write!(values, f64),
                _ => return None,
            };
            (values.shape().to_vec(), bytes)
        }
        Numbers::Bool(values) => {
            (values.shape().to_vec(), values.iter().map(|v| u8::from(*v)).collect())
        }
    };
    HostArray::new(dtype, shape, bytes).ok()
}

/// The result of an op of one array.
pub(super) fn unary(op: &str, x: &HostArray<'_>) -> Option<HostArray<'static>> {
    let dtype = x.dtype();
    let result = match numbers(x)? {
        Numbers::Int(values) => Numbers::Int(match op {
            "Neg" => values.mapv(|v| -v),
            "Abs" => values.mapv(i128::abs),
            "Sign" => values.mapv(i128::signum),
            "Square" => values.mapv(|v| v.wrapping_mul(v)),
            "Floor" | "Ceil" | "Round" | "Rint" => values,
            _ => return None,
        }),
        Numbers::Float(values) => Numbers::Float(match op {
            "Neg" => values.mapv(|v| -v),
            "Abs" => values.mapv(f64::abs),
            "Square" => values.mapv(|v| v * v),
            "Sqrt" => values.mapv(f64::sqrt),
            "Floor" => values.mapv(f64::floor),
            "Ceil" => values.mapv(f64::ceil),
            "Round" | "Rint" => values.mapv(f64::round_ties_even),
            _ => return None,
        }),
        Numbers::Bool(values) => Numbers::Bool(match op {
            "LogicalNot" => values.mapv(|v| !v),
            _ => return None,
        }),
    };
    array(dtype, result)
}

/// The result of an op of two arrays, which broadcast.
pub(super) fn binary(
    op: &str,
    a: &HostArray<'_>,
    b: &HostArray<'_>,
) -> Option<Result<HostArray<'static>>> {
    let dtype = a.dtype();
    if dtype != b.dtype() {
        return None;
    }
    if dtype == HostDType::String {
        return compare_strings(op, a, b);
    }
    let (a, b) = (numbers(a)?, numbers(b)?);
    let shape = match broadcast(op, &shape_of(&a).into(), &shape_of(&b).into()) {
        Ok(shape) => shape,
        Err(error) => return Some(Err(error)),
    };
    let shape = sized(&shape)?;
    let (dtype, result) = match (a, b) {
        (Numbers::Int(a), Numbers::Int(b)) => {
            let divides = matches!(
                op,
                "FloorDiv" | "FloorMod" | "Mod" | "TruncateDiv" | "TruncateMod" | "Div"
            );
            if divides && b.iter().any(|b| *b == 0) {
                return Some(Err(Error::Data(message!("it divides by zero."))));
            }
            match compare(op, &a, &b, &shape) {
                Some(result) => (HostDType::Bool, Numbers::Bool(result?)),
                None => (dtype, Numbers::Int(zip(&a, &b, &shape, int_op(op)?)?)),
            }
        }
        (Numbers::Float(a), Numbers::Float(b)) => match compare(op, &a, &b, &shape) {
            Some(result) => (HostDType::Bool, Numbers::Bool(result?)),
            None => (dtype, Numbers::Float(zip(&a, &b, &shape, float_op(op)?)?)),
        },
        (Numbers::Bool(a), Numbers::Bool(b)) => {
            let f: fn(bool, bool) -> bool = match op {
                "LogicalAnd" => |a, b| a && b,
                "LogicalOr" => |a, b| a || b,
                "Equal" => |a, b| a == b,
                "NotEqual" => |a, b| a != b,
                _ => return None,
            };
            (HostDType::Bool, Numbers::Bool(zip(&a, &b, &shape, f)?))
        }
        _ => return None,
    };
    array(dtype, result).map(Ok)
}

/// The shape of a result, unless it is too large for the host.
fn sized(shape: &[usize]) -> Option<IxDyn> {
    let count = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size))?;
    (count <= LARGEST).then(|| IxDyn(shape))
}

fn shape_of(numbers: &Numbers) -> &[usize] {
    match numbers {
        Numbers::Int(values) => values.shape(),
        Numbers::Float(values) => values.shape(),
        Numbers::Bool(values) => values.shape(),
    }
}

fn zip<T: Copy, R: Default + Clone>(
    a: &ArrayD<T>,
    b: &ArrayD<T>,
    shape: &IxDyn,
    f: impl Fn(T, T) -> R,
) -> Option<ArrayD<R>> {
    let (a, b) = (a.broadcast(shape.clone())?, b.broadcast(shape.clone())?);
    let mut result = ArrayD::from_elem(shape.clone(), R::default());
    Zip::from(&mut result).and(a).and(b).for_each(|r, a, b| *r = f(*a, *b));
    Some(result)
}

/// The result of a comparison; the outer `None` if `op` is none.
fn compare<T: Copy + PartialOrd>(
    op: &str,
    a: &ArrayD<T>,
    b: &ArrayD<T>,
    shape: &IxDyn,
) -> Option<Option<ArrayD<bool>>> {
    let f: fn(T, T) -> bool = match op {
        "Equal" => |a, b| a == b,
        "NotEqual" => |a, b| a != b,
        "Less" => |a, b| a < b,
        "LessEqual" => |a, b| a <= b,
        "Greater" => |a, b| a > b,
        "GreaterEqual" => |a, b| a >= b,
        _ => return None,
    };
    Some(zip(a, b, shape, f))
}

fn compare_strings(
    op: &str,
    a: &HostArray<'_>,
    b: &HostArray<'_>,
) -> Option<Result<HostArray<'static>>> {
    let wanted = match op {
        "Equal" => true,
        "NotEqual" => false,
        _ => return None,
    };
    let strings = |x: &HostArray<'_>| {
        ArrayD::from_shape_vec(IxDyn(x.shape()), x.strings()?.iter().collect::<Vec<_>>())
            .ok()
            .map(|array| array.mapv(Vec::clone))
    };
    let (a, b) = (strings(a)?, strings(b)?);
    let shape = match broadcast(op, &a.shape().into(), &b.shape().into()) {
        Ok(shape) => shape,
        Err(error) => return Some(Err(error)),
    };
    let places = sized(&shape)?;
    let (a, b) = (a.broadcast(places.clone())?, b.broadcast(places)?);
    let bytes: Vec<u8> =
        a.iter().zip(b.iter()).map(|(a, b)| u8::from((a == b) == wanted)).collect();
    Some(HostArray::new(HostDType::Bool, shape, bytes))
}

fn int_op(op: &str) -> Option<fn(i128, i128) -> i128> {
    Some(match op {
        "Add" | "AddV2" => i128::wrapping_add,
        "Sub" => i128::wrapping_sub,
        "Mul" => i128::wrapping_mul,
        "Maximum" => |a, b| a.max(b),
        "Minimum" => |a, b| a.min(b),
        "FloorDiv" => |a, b| (a - ((a % b) + b) % b) / b,
        "FloorMod" => |a, b| ((a % b) + b) % b,
        "TruncateDiv" | "Div" => |a, b| a / b,
        "TruncateMod" | "Mod" => |a, b| a % b,
        "SquaredDifference" => |a, b| (a - b).wrapping_mul(a - b),
        _ => return None,
    })
}

fn float_op(op: &str) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        "Add" | "AddV2" => |a, b| a + b,
        "Sub" => |a, b| a - b,
        "Mul" => |a, b| a * b,
        "RealDiv" | "Div" => |a, b| a / b,
        "FloorDiv" => |a, b| (a / b).floor(),
        "Maximum" => |a, b| if a.is_nan() || a > b { a } else { b },
        "Minimum" => |a, b| if a.is_nan() || a < b { a } else { b },
        _ => return None,
    })
}

/// The array in another dtype, as TensorFlow's `Cast` converts it.
pub(in super::super) fn cast(x: &HostArray<'_>, dtype: HostDType) -> Option<HostArray<'static>> {
    let float = dtype.is_float();
    let result = match (numbers(x)?, dtype) {
        (Numbers::Int(values), HostDType::Bool) => Numbers::Bool(values.mapv(|v| v != 0)),
        (Numbers::Float(values), HostDType::Bool) => Numbers::Bool(values.mapv(|v| v != 0.0)),
        (Numbers::Bool(values), HostDType::Bool) => Numbers::Bool(values),
        (Numbers::Int(values), _) if float => Numbers::Float(values.mapv(|v| v as f64)),
        (Numbers::Bool(values), _) if float => Numbers::Float(values.mapv(f64::from)),
        (Numbers::Float(values), _) if float => Numbers::Float(values),
        (Numbers::Int(values), _) => Numbers::Int(values),
        (Numbers::Bool(values), _) => Numbers::Int(values.mapv(i128::from)),
        (Numbers::Float(values), _) => Numbers::Int(values.mapv(|v| v as i128)),
    };
    array(dtype, result)
}

/// The reduction of an array along some axes, each below its rank.
pub(super) fn reduce(
    op: &str,
    x: &HostArray<'_>,
    axes: &[usize],
    keepdims: bool,
) -> Option<HostArray<'static>> {
    let dtype = x.dtype();
    let result = match numbers(x)? {
        Numbers::Int(values) => {
            let (first, f): (Option<i128>, fn(i128, i128) -> i128) = match op {
                "Sum" => (Some(0), i128::wrapping_add),
                "Prod" => (Some(1), i128::wrapping_mul),
                "Max" => (None, |a, b| a.max(b)),
                "Min" => (None, |a, b| a.min(b)),
                _ => return None,
            };
            Numbers::Int(folded(values, axes, keepdims, first, f)?)
        }
        Numbers::Float(values) => {
            let (first, f): (Option<f64>, fn(f64, f64) -> f64) = match op {
                "Sum" => (Some(0.0), |a, b| a + b),
                "Prod" => (Some(1.0), |a, b| a * b),
                "Max" => (None, |a, b| if a.is_nan() || a > b { a } else { b }),
                "Min" => (None, |a, b| if a.is_nan() || a < b { a } else { b }),
                _ => return None,
            };
            Numbers::Float(folded(values, axes, keepdims, first, f)?)
        }
        Numbers::Bool(values) => {
            let (first, f): (bool, fn(bool, bool) -> bool) = match op {
                "All" => (true, |a, b| a && b),
                "Any" => (false, |a, b| a || b),
                _ => return None,
            };
            Numbers::Bool(folded(values, axes, keepdims, Some(first), f)?)
        }
    };
    array(dtype, result)
}

fn folded<T: Copy>(
    mut values: ArrayD<T>,
    axes: &[usize],
    keepdims: bool,
    first: Option<T>,
    f: fn(T, T) -> T,
) -> Option<ArrayD<T>> {
    let mut axes = axes.to_vec();
    axes.sort_unstable();
    axes.dedup();
    for axis in axes.into_iter().rev() {
        let axis = ndarray::Axis(axis);
        if first.is_none() && values.len_of(axis) == 0 {
            return None;
        }
        let folded = values.map_axis(axis, |lane| {
            let mut lane = lane.iter().copied();
            let start = first.or_else(|| lane.next());
            start.map(|start| lane.fold(start, f))
        });
        let mut shape = values.shape().to_vec();
        if keepdims {
            shape[axis.0] = 1;
        } else {
            shape.remove(axis.0);
        }
        let list = folded.into_iter().collect::<Option<Vec<T>>>()?;
        values = ArrayD::from_shape_vec(IxDyn(&shape), list).ok()?;
    }
    Some(values)
}

/// The indices of an array's elements, in its shape. Ops that only move elements are computed on them.
pub(super) fn indices(shape: &[usize]) -> Option<ArrayD<usize>> {
    let count = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size))?;
    ArrayD::from_shape_vec(IxDyn(shape), (0..count).collect()).ok()
}

/// The elements of `sources` at these indices, counted through all of them, as an array.
pub(super) fn pick(
    sources: &[&HostArray<'_>],
    indices: &ArrayD<usize>,
) -> Option<HostArray<'static>> {
    let dtype = sources.first()?.dtype();
    if sources.iter().any(|source| source.dtype() != dtype) {
        return None;
    }
    let mut starts = Vec::with_capacity(sources.len());
    let mut count = 0;
    for source in sources {
        starts.push(count);
        count += source.len();
    }
    let find = |index: usize| {
        // Of several equal starts, the last one has the element.
        let at = starts.partition_point(|start| *start <= index).checked_sub(1)?;
        Some((sources[at], index - starts[at]))
    };
    if dtype == HostDType::String {
        let mut strings = Vec::with_capacity(indices.len());
        for index in indices {
            let (source, at) = find(*index)?;
            strings.push(source.strings()?.get(at)?.clone());
        }
        return HostArray::from_strings(indices.shape(), strings).ok();
    }
    let size = dtype.size()?;
    let mut bytes = Vec::with_capacity(indices.len().checked_mul(size)?);
    for index in indices {
        let (source, at) = find(*index)?;
        bytes.extend_from_slice(source.bytes().get(at * size..(at + 1) * size)?);
    }
    HostArray::new(dtype, indices.shape(), bytes).ok()
}

/// `a` where `condition` is true, otherwise `b`; all three broadcast.
pub(super) fn select(
    condition: &HostArray<'_>,
    a: &HostArray<'_>,
    b: &HostArray<'_>,
) -> Option<HostArray<'static>> {
    let Numbers::Bool(condition) = numbers(condition)? else { return None };
    let inner = broadcast("SelectV2", &a.shape().into(), &b.shape().into()).ok()?;
    let shape = broadcast("SelectV2", &condition.shape().into(), &inner).ok()?;
    let shape = sized(&shape)?;
    let condition = condition.broadcast(shape.clone())?.to_owned();
    let first = indices(a.shape())?.broadcast(shape.clone())?.to_owned();
    let second = indices(b.shape())?.mapv(|at| at + a.len()).broadcast(shape)?.to_owned();
    let mut picked = first;
    Zip::from(&mut picked).and(&condition).and(&second).for_each(|at, condition, second| {
        if !condition {
            *at = *second;
        }
    });
    pick(&[a, b], &picked)
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    fn of<T: crate::host_array::ArrayElement>(array: &HostArray<'_>) -> Vec<T> {
        array.to_array::<T>().unwrap().into_iter().collect()
    }

    #[test]
    fn integers_divide_towards_minus_infinity() {
        let (a, b) = (HostArray::from(array![7, -7, 7, -7]), HostArray::from(array![2, 2, -2, -2]));
        let of = |op| of::<i32>(&binary(op, &a, &b).unwrap().unwrap());
        assert_eq!(of("FloorDiv"), [3, -4, -4, 3]);
        assert_eq!(of("FloorMod"), [1, 1, -1, -1]);
        assert_eq!(of("TruncateDiv"), [3, -3, -3, 3]);
        assert_eq!(of("TruncateMod"), [1, -1, 1, -1]);
        let zero = HostArray::from(array![0]);
        let error = binary("FloorDiv", &a, &zero).unwrap().unwrap_err();
        assert!(error.to_string().contains("divides by zero"));
    }

    #[test]
    fn integers_wrap_around_in_their_dtype() {
        let big = HostArray::from(array![i32::MAX]);
        assert_eq!(of::<i32>(&binary("AddV2", &big, &big).unwrap().unwrap()), [-2]);
        let long = HostArray::from(array![i64::MAX]);
        assert_eq!(of::<i64>(&binary("AddV2", &long, &long).unwrap().unwrap()), [-2]);
        assert_eq!(
            of::<i32>(&cast(&HostArray::from(array![-2.7f32]), HostDType::I32).unwrap()),
            [-2]
        );
    }

    #[test]
    fn axes_are_reduced_and_elements_are_picked() {
        let x = HostArray::from(array![[1i64, 2, 3], [4, 5, 6]]);
        assert_eq!(of::<i64>(&reduce("Prod", &x, &[1], false).unwrap()), [6, 120]);
        let kept = reduce("Max", &x, &[0], true).unwrap();
        assert_eq!((kept.shape(), of::<i64>(&kept)), (&[1, 3][..], vec![4, 5, 6]));
        assert_eq!(of::<i64>(&reduce("Sum", &x, &[0, 1], false).unwrap()), [21]);
        let transposed = indices(&[2, 3]).unwrap().reversed_axes();
        assert_eq!(of::<i64>(&pick(&[&x], &transposed).unwrap()), [1, 4, 2, 5, 3, 6]);
        let names = HostArray::from_strings([2], vec![b"a".to_vec(), b"b".to_vec()]).unwrap();
        let picked = pick(&[&names, &names], &array![3usize, 0].into_dyn()).unwrap();
        assert_eq!(picked.strings().unwrap(), [b"b", b"a"]);
        let condition = HostArray::from(array![true, false]);
        let (a, b) = (HostArray::from(array![1, 2]), HostArray::from(array![9]));
        assert_eq!(of::<i32>(&select(&condition, &a, &b).unwrap()), [1, 9]);
    }
}
