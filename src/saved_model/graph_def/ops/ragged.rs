//! Rows of different lengths, and sparse tensors: TensorFlow's ragged tensors as its graphs compute them.

use super::call::{Call, Entry, Results, any, many, unsupported};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::value::{Value, int_array};

/// The most elements of a result that is computed on the host.
const LARGEST: usize = 1 << 26;

pub(super) static OPS: &[Entry] = &[
    many("RaggedBincount", &[], bincount),
    any("RaggedTensorToTensor", to_tensor),
    any("SparseToDense", sparse_to_dense),
];

/// The parts of a list that splits separate, which begin with 0 and end with the list's length.
pub(super) fn rows<'a, T>(values: &'a [T], splits: &[i64]) -> Result<Vec<&'a [T]>> {
    let wrong = || {
        Error::Data(message!(
            "its {} row splits do not separate {} values into rows.",
            splits.len(),
            values.len()
        ))
    };
    let ends = splits.first() == Some(&0) && splits.last() == Some(&(values.len() as i64));
    if !ends {
        return Err(wrong());
    }
    splits
        .windows(2)
        .map(|pair| {
            let (from, to) = (usize::try_from(pair[0]).ok(), usize::try_from(pair[1]).ok());
            values.get(from.zip(to).map(|(from, to)| from..to)?)
        })
        .collect::<Option<_>>()
        .ok_or_else(wrong)
}

/// The elements of an array, as bytes of this size each.
fn sized<'a>(array: &'a HostArray<'_>) -> Result<(usize, &'a [u8])> {
    let size = array.dtype().size().filter(|size| *size > 0);
    let size = size.ok_or_else(|| unsupported(format_args!("rows of {}", array.dtype())))?;
    Ok((size, array.bytes()))
}

/// The number of elements of a result.
fn elements(shape: &[usize]) -> Result<usize> {
    let elements = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    elements.filter(|count| *count <= LARGEST).ok_or_else(|| {
        Error::Shape(message!("its result would be {shape:?}, more than {LARGEST} elements."))
    })
}

/// A result in which each element is `default`.
fn filled(shape: &[usize], default: &[u8]) -> Result<Vec<u8>> {
    Ok(default.repeat(elements(shape)?))
}

fn to_tensor(call: &Call<'_>) -> Result<Value> {
    let types = call.attr_texts("row_partition_types");
    let types: Vec<&str> = types.iter().map(|kind| &**kind).collect();
    let values = call.host(1)?;
    let (size, bytes) = sized(&values)?;
    if values.shape().len() != 1 {
        return Err(unsupported(format_args!("rows of values {:?}", values.shape())));
    }
    let places: Vec<usize> = (0..values.len()).collect();
    let splits = match types[..] {
        ["ROW_SPLITS"] => call.ints(3)?,
        ["FIRST_DIM_SIZE", "VALUE_ROWIDS"] => {
            let count = call.size(3)?;
            let mut ends = vec![0i64; elements(&[count])? + 1];
            let mut last = 0;
            for row in call.ints(4)? {
                let count = usize::try_from(row).ok().and_then(|row| ends.get_mut(row + 1));
                let count = count.filter(|_| row >= last).ok_or_else(|| {
                    Error::Data(message!(
                        "its row {row} follows row {last}; rows must be in order and exist."
                    ))
                })?;
                *count += 1;
                last = row;
            }
            let mut all = 0;
            for end in &mut ends {
                all += *end;
                *end = all;
            }
            ends
        }
        _ => return Err(unsupported(format_args!("rows by {types:?}"))),
    };
    let rows = rows(&places, &splits)?;
    let wanted = call.ints(0)?;
    let longest = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let of = |at: usize, own: usize| {
        wanted.get(at).and_then(|size| usize::try_from(*size).ok()).unwrap_or(own)
    };
    let shape = [of(0, rows.len()), of(1, longest)];
    let default = call.host(2)?;
    if default.dtype() != values.dtype() || default.len() != 1 {
        return Err(unsupported(format_args!("the default {}", call.input(2)?.describe())));
    }
    let mut result = filled(&shape, default.bytes())?;
    for (at, row) in rows.iter().take(shape[0]).enumerate() {
        let Some(first) = row.first() else { continue };
        let (count, start) = (row.len().min(shape[1]) * size, at * shape[1] * size);
        result[start..start + count].copy_from_slice(&bytes[first * size..first * size + count]);
    }
    Ok(Value::host(HostArray::new(values.dtype(), shape, result)?))
}

fn bincount(call: &mut Call<'_>) -> Result<Results> {
    let (splits, values, size) = (call.ints(0)?, call.ints(1)?, call.size(2)?);
    if call.shape_of(3)?.iter().product::<usize>() > 0 {
        return Err(unsupported(format_args!("weights of ragged rows")));
    }
    let dtype = call.attr_type("T", HostDType::F32);
    let binary = call.attr_bool("binary_output", false);
    let rows = rows(&values, &splits)?;
    let shape = [rows.len(), size];
    let mut counts = vec![0i64; elements(&shape)?];
    for (at, row) in rows.iter().enumerate() {
        for value in *row {
            let place = usize::try_from(*value).map_err(|_| {
                Error::Data(message!("it counts {value}; numbers must not be negative."))
            })?;
            if place < size {
                let count = &mut counts[at * size + place];
                *count = if binary { 1 } else { *count + 1 };
            }
        }
    }
    let counts = match dtype {
        HostDType::F32 => {
            let bytes: Vec<u8> = counts.iter().flat_map(|n| (*n as f32).to_le_bytes()).collect();
            HostArray::new(dtype, shape, bytes)?
        }
        HostDType::I32 | HostDType::I64 => int_array(dtype, &shape, &counts),
        _ => return Err(unsupported(format_args!("counts of {dtype}"))),
    };
    Ok(Results::from_iter([Value::host(counts)]))
}

fn sparse_to_dense(call: &Call<'_>) -> Result<Value> {
    let (indices, shape) = (call.ints(0)?, call.sizes(1)?);
    let (values, default) = (call.host(2)?, call.host(3)?);
    let (size, bytes) = sized(&values)?;
    if default.dtype() != values.dtype() || default.len() != 1 {
        return Err(unsupported(format_args!("the default {}", call.input(3)?.describe())));
    }
    let mut result = filled(&shape, default.bytes())?;
    let rank = shape.len().max(1);
    if shape.is_empty() || indices.len() % rank != 0 {
        return Err(Error::Shape(message!(
            "its indices are {}, and its result is {shape:?}.",
            call.input(0)?.describe()
        )));
    }
    for (at, index) in indices.chunks_exact(rank).enumerate() {
        let place = index.iter().zip(&shape).try_fold(0, |place, (index, size)| {
            usize::try_from(*index)
                .ok()
                .filter(|index| index < size)
                .map(|index| place * size + index)
        });
        let place = place
            .ok_or_else(|| Error::Data(message!("its index {index:?} is not in {shape:?}.")))?;
        // One value may stand for all.
        let from = if values.len() == 1 { 0 } else { at } * size;
        let value = bytes.get(from..from + size).ok_or_else(|| {
            Error::Shape(message!(
                "it has {} values for {} indices.",
                values.len(),
                indices.len() / rank
            ))
        })?;
        result[place * size..][..size].copy_from_slice(value);
    }
    Ok(Value::host(HostArray::new(values.dtype(), shape, result)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_must_separate_all_values() {
        assert_eq!(rows(&[1, 2, 3], &[0, 2, 2, 3]).ok(), Some(vec![&[1, 2][..], &[], &[3]]));
        for wrong in [&[][..], &[0], &[0, 2], &[1, 3], &[0, 4, 3], &[0, 3, 2, 3], &[0, -1, 3]] {
            assert!(rows(&[1, 2, 3], wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(rows::<i32>(&[], &[0]).ok(), Some(vec![]));
    }
}
