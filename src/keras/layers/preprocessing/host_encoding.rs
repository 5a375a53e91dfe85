//! Encodes the indices that a layer has computed on the host.

use super::category_encoding::OutputMode;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::shape::Shape;

/// An index that becomes nothing in a row.
pub(super) const DROPPED: i64 = -1;

/// How indices are encoded.
pub(super) struct Encoding<'a> {
    pub(super) layer: &'static str,
    pub(super) mode: OutputMode,
    pub(super) depth: usize,
    /// Of the result, unless it is weighted.
    pub(super) dtype: HostDType,
    /// The weights of [`OutputMode::TfIdf`].
    pub(super) idf: &'a [f32],
}

impl Encoding<'_> {
    /// The result for an array of indices; those outside `0..depth` become nothing.
    pub(super) fn encode(&self, shape: &[usize], ids: Vec<i64>) -> Result<HostArray<'static>> {
        let (lead, last) = match (self.mode, shape) {
            (OutputMode::Int, _) => return Ok(integers(self.dtype, shape.into(), &ids)),
            (OutputMode::OneHot, [lead @ .., 1]) if !lead.is_empty() => (lead, 1),
            (OutputMode::OneHot, []) => (&[1][..], 1),
            (OutputMode::OneHot, all) => (all, 1),
            (_, []) => (&[][..], 1),
            (_, [last]) => (&[][..], *last),
            (_, [rows, last]) => (std::slice::from_ref(rows), *last),
            (mode, _) => {
                return Err(Error::Shape(message!(
                    "{}: the input is {shape:?}; with output_mode {} it can have up to two axes. Reshape it to [N, K].",
                    self.layer,
                    mode.name()
                )));
            }
        };
        let rows: usize = Shape::from(lead).elements();
        self.rows(lead, (0..rows).map(|row| &ids[row * last..(row + 1) * last]))
    }

    /// The result for rows of indices, which may differ in length.
    pub(super) fn rows<'r>(
        &self,
        lead: &[usize],
        rows: impl Iterator<Item = &'r [i64]>,
    ) -> Result<HostArray<'static>> {
        let depth = self.depth;
        let shape = Shape::from([lead, &[depth]].concat());
        let counts = self.mode == OutputMode::Count || self.mode == OutputMode::TfIdf;
        let mut values: Vec<f32> = Vec::new();
        let size = shape.checked_elements().filter(|size| size.checked_mul(8).is_some());
        if size.is_none_or(|size| values.try_reserve_exact(size).is_err()) {
            return Err(Error::Shape(message!(
                "{}: the result would be {shape:?}, which does not fit into memory. Take fewer tokens or bins, or output_mode int.",
                self.layer
            )));
        }
        for row in rows {
            let start = values.len();
            values.resize(start + depth, 0.0);
            let places = &mut values[start..];
            for id in row {
                let place = usize::try_from(*id).ok().and_then(|id| places.get_mut(id));
                if let Some(place) = place {
                    *place = if counts { *place + 1.0 } else { 1.0 };
                }
            }
            if self.mode == OutputMode::TfIdf {
                places.iter_mut().zip(self.idf).for_each(|(count, weight)| *count *= weight);
            }
        }
        Ok(match (self.mode, self.dtype) {
            (OutputMode::TfIdf, _) | (_, HostDType::F32) => {
                let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
                HostArray::of_bytes(HostDType::F32, shape, bytes)
            }
            (_, dtype) => {
                let values: Vec<i64> = values.iter().map(|x| *x as i64).collect();
                integers(dtype, shape, &values)
            }
        })
    }
}

/// An array of `i64` or `i32`.
pub(super) fn integers(dtype: HostDType, shape: Shape, values: &[i64]) -> HostArray<'static> {
    let bytes: Vec<u8> = match dtype {
        HostDType::I32 => values.iter().flat_map(|x| (*x as i32).to_le_bytes()).collect(),
        HostDType::F32 => values.iter().flat_map(|x| (*x as f32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    let dtype =
        if matches!(dtype, HostDType::I32 | HostDType::F32) { dtype } else { HostDType::I64 };
    HostArray::of_bytes(dtype, shape, bytes)
}
