//! Tensors as elements: they stay on their device, and are read only for saving.

use super::{Item, ItemSpec, PadTo};
use crate::data::codec::{Reader, Writer};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::ops::{self, PadMode};
use crate::tensor::Tensor;

impl Item for Tensor {
    type Batch = Tensor;
    type Padding = Scalar;
    const ON_DEVICE: bool = true;

    fn type_spec() -> ItemSpec {
        ItemSpec::Array { dtype: "tensor", shape: None }
    }

    fn spec(&self) -> ItemSpec {
        ItemSpec::array(self.dtype().name(), self.shape())
    }

    fn stack(items: Vec<Self>) -> Result<Tensor> {
        ops::stack(items, 0)
    }

    fn pad(items: Vec<Self>, to: &mut PadTo<'_>, padding: &Scalar) -> Result<Tensor> {
        let shapes: Vec<&[usize]> = items.iter().map(|item| item.shape()).collect();
        let shape = to.shape(&shapes)?;
        let pad = |item: &Tensor| {
            let room: Vec<(usize, usize)> =
                item.shape().iter().zip(&shape).map(|(size, full)| (0, full - size)).collect();
            let padding = match (padding, item.dtype()) {
                (Scalar::Int(0), DType::Bool) => Scalar::Bool(false),
                (padding, _) => *padding,
            };
            item.pad_with(&room, PadMode::Constant(padding))
        };
        ops::stack(items.iter().map(pad).collect::<Result<Vec<_>>>()?, 0)
    }

    fn rows(&self) -> Result<usize> {
        self.shape().first().copied().ok_or_else(|| {
            Error::Shape("unbatch: the tensor is a scalar; it needs a first axis.".into())
        })
    }

    fn row(&self, at: usize) -> Result<Tensor> {
        if self.dtype() == DType::U8 {
            // `gather` does not support bytes.
            let mut begin = vec![0; self.shape().len()];
            let mut size: Vec<i64> = self.shape().iter().map(|size| *size as i64).collect();
            (begin[0], size[0]) = (at, 1);
            return self.slice(&begin, &size)?.reshape(&self.shape()[1..]);
        }
        // The index is uploaded as a tensor: a slice would make a plan for each index.
        let place = i32::try_from(at).unwrap_or(i32::MAX);
        self.gather(&Tensor::from_slice(&[place], [])?, 0)
    }

    #[cfg(not(target_family = "wasm"))]
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.block(self.dtype().name().as_bytes());
        out.number(self.shape().len() as u64);
        self.shape().iter().for_each(|size| out.number(*size as u64));
        out.block(&self.to_bytes()?);
        Ok(())
    }

    #[cfg(target_family = "wasm")]
    fn write(&self, _: &mut Writer) -> Result<()> {
        Err(Error::Data(
            "saved elements: in a browser a tensor cannot be read synchronously. Save the dataset before \
             `to_tensors`.".into(),
        ))
    }

    fn read(from: &mut Reader<'_>) -> Result<Self> {
        let name = from.text()?;
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        let dtype = dtype.ok_or_else(|| {
            Error::Data(message!("saved elements: {name:?} is not a dtype: they are corrupt."))
        })?;
        let rank = from.count(8)?;
        let mut shape = Vec::with_capacity(rank);
        for _ in 0..rank {
            shape.push(from.size()?);
        }
        let bytes = from.block()?;
        let size = shape.iter().try_fold(dtype.size(), |product, size| product.checked_mul(*size));
        if size != Some(bytes.len()) {
            return Err(Error::Data(message!(
                "saved elements: a tensor {shape:?} of {name} has {} bytes: they are corrupt.",
                bytes.len()
            )));
        }
        Tensor::from_bytes(bytes, &shape, dtype)
    }
}
