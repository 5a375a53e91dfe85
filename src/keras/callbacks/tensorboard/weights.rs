//! Histograms and images of a model's weights.

use crate::dtype::DType;
use crate::error::Result;
use crate::summary::{self, MediaOptions};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// The maximum number of filters of a convolution that are drawn.
const MOST_FILTERS: usize = 64;

/// Writes a histogram of each weight, and an image if `images`.
pub(super) fn write(model: &dyn Trackable, epoch: u64, images: bool) -> Result<()> {
    let title = model.title();
    for (path, variable) in model.named_variables() {
        let weight = variable.peek();
        summary::histogram(&format!("{title}/{path}/histogram"), &weight, epoch)?;
        if !images || !weight.dtype().is_float() || weight.is_empty() {
            continue;
        }
        if let Some(picture) = picture(&weight.detached())? {
            let all = MediaOptions::new().max_outputs(MOST_FILTERS);
            summary::image_with(&format!("{title}/{path}/image"), picture, epoch, all)?;
        }
    }
    Ok(())
}

/// A weight as images `[N,H,W,1]`: a vector is one row, a matrix is transposed if it has more rows than columns, and a weight
/// of three axes is one image for each index of the last. Keras draws no weights with more axes; here a convolution's kernel
/// `[H,W,C,F]` is drawn as one image for each filter, of the first channel.
fn picture(weight: &Tensor) -> Result<Option<Tensor>> {
    let weight = weight.squeeze(())?;
    let shape: Vec<i64> = weight.shape().iter().map(|size| *size as i64).collect();
    let weight = match shape[..] {
        [] => weight.reshape([1, 1, 1, 1])?,
        [size] => weight.reshape([1, 1, size, 1])?,
        [rows, columns] if rows > columns => {
            weight.transpose([1, 0])?.reshape([1, columns, rows, 1])?
        }
        [rows, columns] => weight.reshape([1, rows, columns, 1])?,
        [rows, columns, filters] => {
            weight.transpose([2, 0, 1])?.reshape([filters, rows, columns, 1])?
        }
        [rows, columns, _, filters] => {
            let first = weight.slice(&[0, 0, 0, 0], &[-1, -1, 1, -1])?;
            first.transpose([3, 0, 1, 2])?.reshape([filters, rows, columns, 1])?
        }
        _ => return Ok(None),
    };
    let weight = weight.cast(DType::F32)?;
    let least = weight.reduce_min(())?;
    let range = weight.reduce_max(())?.subtract(&least)?;
    // If all weights are equal, 0 / 0 is drawn black.
    Ok(Some(weight.subtract(&least)?.divide(range)?))
}
