//! [`Rows`]: a table of numbers on the host, with the labels and weights of its rows, read from any form of a model's data.

use crate::data::{Cardinality, DataKind, IntoModelData, ModelData};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// `[N,D]` numbers in row-major order, where NaN is a missing value.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// N.
    pub(super) count: usize,
    /// D.
    pub(super) width: usize,
    pub(super) x: Vec<f64>,
    /// A label for each row, if the data have labels.
    pub(super) y: Option<Vec<f64>>,
    /// A weight for each row, if the data have weights.
    pub(super) weights: Option<Vec<f64>>,
}

/// An array of the data: the size of its rows, and its values.
struct Part {
    width: usize,
    values: Vec<f64>,
}

impl Rows {
    /// Reads all data. Values that are on a device, or in batches, are read back from it.
    pub(super) async fn read<'a>(call: &str, data: impl IntoModelData<'a>) -> Result<Self> {
        let in_call = |error: Error| error.reworded(|text| message!("{call}: {text}"));
        let data = data.into_model_data().map_err(in_call)?;
        let rows = Rows::of(call, data).await?;
        if rows.count == 0 || rows.width == 0 {
            return Err(Error::Data(message!(
                "{call}: x is [{}, {}]: there are no values. Pass at least one row and one column.",
                rows.count,
                rows.width
            )));
        }
        Ok(rows)
    }

    async fn of(call: &str, data: ModelData<'_>) -> Result<Self> {
        match data.0 {
            DataKind::Arrays(arrays) => {
                let mut parts = [Vec::new(), Vec::new(), Vec::new()];
                for (parts, columns) in
                    parts.iter_mut().zip([&arrays.x, &arrays.y, &arrays.sample_weight])
                {
                    for column in columns {
                        let width = column.shape().iter().skip(1).product();
                        let values = match (column.host_values(), column.tensor()) {
                            (Some(values), _) => values,
                            (None, Some(tensor)) => values_of(tensor).await?,
                            (None, None) => Vec::new(),
                        };
                        parts.push(Part { width, values });
                    }
                }
                let [x, y, weights] = parts;
                Rows::joined(call, arrays.len(), x, y, weights)
            }
            DataKind::Batches(mut source) => {
                if source.count == Cardinality::Infinite {
                    return Err(Error::Data(message!(
                        "{call}: the dataset is infinite, and all rows are needed together. End it: dataset.take(n)."
                    )));
                }
                let mut all: Option<Rows> = None;
                for batch in (source.begin)() {
                    let batch = batch?;
                    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
                    for (parts, tensors) in
                        parts.iter_mut().zip([&batch.x, &batch.y, &batch.sample_weight])
                    {
                        for tensor in tensors {
                            let width = tensor.shape().iter().skip(1).product();
                            parts.push(Part { width, values: values_of(tensor).await? });
                        }
                    }
                    let [x, y, weights] = parts;
                    let rows = Rows::joined(call, batch.len(), x, y, weights)?;
                    match &mut all {
                        None => all = Some(rows),
                        Some(all) => all.append(call, rows)?,
                    }
                }
                Ok(all.unwrap_or_default())
            }
        }
    }

    /// Puts the inputs side by side.
    fn joined(
        call: &str,
        count: usize,
        x: Vec<Part>,
        y: Vec<Part>,
        weights: Vec<Part>,
    ) -> Result<Self> {
        let width = x.iter().map(|part| part.width).sum();
        let mut values = Vec::new();
        match <[Part; 1]>::try_from(x) {
            Ok([part]) => values = part.values,
            Err(parts) => {
                values.reserve(count * width);
                for row in 0..count {
                    for part in &parts {
                        values.extend(&part.values[row * part.width..(row + 1) * part.width]);
                    }
                }
            }
        }
        let one = |what: &str, mut parts: Vec<Part>| match parts.pop() {
            None => Ok(None),
            Some(part) if parts.is_empty() && part.width == 1 && part.values.len() == count => {
                Ok(Some(part.values))
            }
            Some(part) => Err(Error::Shape(message!(
                "{call}: {what} has {} arrays, the last with {} numbers in {} rows; one number for each of {count} rows is \
                 needed. Pass an array [N] or [N, 1].",
                parts.len() + 1,
                part.values.len(),
                part.values.len() / part.width.max(1)
            ))),
        };
        let (y, weights) = (one("y", y)?, one("sample_weight", weights)?);
        Ok(Rows { count, width, x: values, y, weights })
    }

    fn append(&mut self, call: &str, other: Rows) -> Result<()> {
        let parts = |rows: &Rows| (rows.width, rows.y.is_some(), rows.weights.is_some());
        if parts(self) != parts(&other) {
            return Err(Error::Shape(message!(
                "{call}: a batch has rows of {} numbers, and an earlier one of {}. All batches must have the same columns, \
                 labels and weights.",
                other.width,
                self.width
            )));
        }
        self.count += other.count;
        self.x.extend(other.x);
        let join = |to: &mut Option<Vec<f64>>, from: Option<Vec<f64>>| {
            if let (Some(to), Some(from)) = (to, from) {
                to.extend(from);
            }
        };
        join(&mut self.y, other.y);
        join(&mut self.weights, other.weights);
        Ok(())
    }

    /// The labels.
    pub(super) fn labels(&self, call: &str) -> Result<&[f64]> {
        self.y
            .as_deref()
            .ok_or_else(|| Error::Data(message!("{call}: the data have no labels. Pass (x, y).")))
    }

    /// Checks that weights are numbers from 0 on, of which one is above 0.
    pub(super) fn check_weights(&self, call: &str) -> Result<()> {
        let Some(weights) = &self.weights else { return Ok(()) };
        let wrong = weights.iter().position(|weight| !weight.is_finite() || *weight < 0.0);
        if let Some(row) = wrong {
            return Err(Error::Data(message!(
                "{call}: the weight of row {row} is {}; weights are finite numbers from 0 on.",
                weights[row]
            )));
        }
        match weights.iter().any(|weight| *weight > 0.0) {
            true => Ok(()),
            false => Err(Error::Data(message!(
                "{call}: all weights are 0, so no row counts. Give some rows weights above 0."
            ))),
        }
    }

    /// The rows in this order.
    pub(super) fn ordered(&self, order: &[usize]) -> Rows {
        let pick = |list: &Option<Vec<f64>>| {
            list.as_ref().map(|list| order.iter().map(|row| list[*row]).collect())
        };
        let row = |row: &usize| self.x[row * self.width..(row + 1) * self.width].iter().copied();
        Rows {
            count: order.len(),
            width: self.width,
            x: order.iter().flat_map(row).collect(),
            y: pick(&self.y),
            weights: pick(&self.weights),
        }
    }
}

/// The values of a tensor.
async fn values_of(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(match tensor.dtype() {
        DType::Bool => tensor.to_vec_async::<bool>().await?.into_iter().map(f64::from).collect(),
        dtype if dtype.is_float() => tensor.to_vec_async::<f64>().await?,
        _ => tensor.to_vec_async::<i64>().await?.into_iter().map(|x| x as f64).collect(),
    })
}
