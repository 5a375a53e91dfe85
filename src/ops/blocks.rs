//! Moves blocks of positions into channels or batches, and back, by reshapes and a transpose.

use super::inventory::{Entry, OpKind, one};
use super::pad::pad_with;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::Shape;
use crate::tensor::Tensor;

impl Tensor {
    /// Moves each block of `block_size x block_size` positions of images `[N,H,W,C]` into the channels of one position:
    /// `[N, H/B, W/B, B*B*C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::Tensor;
    /// let x = Tensor::from_slice(&[1, 2, 3, 4], [1, 2, 2, 1])?;
    /// assert_eq!(x.space_to_depth(2)?.shape(), [1, 1, 1, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 4, the block size is less than 2, or it does not divide both sizes.
    pub fn space_to_depth(&self, block_size: usize) -> Result<Tensor> {
        let (op, b) = ("SpaceToDepth", block_size);
        let [n, h, w, c] = images(op, self, b)?;
        if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
            return Err(Error::Shape(message!(
                "{op}: images of {h} x {w} pixels cannot be divided into blocks of {b} x {b}; both sizes must be \
                 multiples of {b}."
            )));
        }
        let deep = deeper(op, self, c, b)?;
        let apart = self.reshape_to([n, h / b, b, w / b, b, c].into())?;
        apart.transpose([0, 1, 3, 2, 4, 5])?.reshape_to([n, h / b, w / b, deep].into())
    }

    /// Moves the channels of each position of images `[N,H,W,B*B*C]` into a block of `block_size x block_size` positions:
    /// `[N, H*B, W*B, C]`. The inverse of [`space_to_depth`](Tensor::space_to_depth).
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 4, the block size is less than 2, or its square does not divide the number of
    /// channels.
    pub fn depth_to_space(&self, block_size: usize) -> Result<Tensor> {
        let (op, b) = ("DepthToSpace", block_size);
        let [n, h, w, deep] = images(op, self, b)?;
        let square = b.saturating_mul(b);
        if !deep.is_multiple_of(square) {
            return Err(Error::Shape(message!(
                "{op}: {deep} channels do not fill blocks of {b} x {b} pixels; their number must be a multiple of \
                {square}."
            )));
        }
        let c = deep / square;
        let (high, wide) = (deeper(op, self, h, b)? / b, deeper(op, self, w, b)? / b);
        let apart = self.reshape_to([n, h, w, b, b, c].into())?;
        apart.transpose([0, 1, 3, 2, 4, 5])?.reshape_to([n, high, wide, c].into())
    }

    /// Pads the axes after the batch with zeros and moves the positions of each block of `block_shape` into the batch: batch
    /// `(p * B1 + q) * N + n` of the result contains the positions of image n at offset (p, q) within each block.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::Tensor;
    /// let x = Tensor::from_slice(&[1, 2, 3, 4, 5], [1, 5])?;
    /// let y = x.space_to_batch(&[2], &[(0, 1)])?;
    /// assert_eq!((y.shape(), y.to_vec::<i32>()?), (&[2, 3][..], vec![1, 3, 5, 2, 4, 0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of paddings differs from the number of block sizes, there are more of them than axes
    /// after the batch, or a block size is 0 or does not divide its padded axis.
    pub fn space_to_batch(
        &self,
        block_shape: &[usize],
        paddings: &[(usize, usize)],
    ) -> Result<Tensor> {
        let op = "SpaceToBatchND";
        blocks(op, self, block_shape, paddings)?;
        let m = block_shape.len();
        let mut edges = vec![(0, 0); self.rank()];
        edges[1..=m].copy_from_slice(paddings);
        let padded = self.pad(&edges)?;
        let shape = padded.shape();
        let mut apart = vec![shape[0]];
        let mut out = vec![whole(op, self, block_shape.iter().copied().chain([shape[0]]))?];
        for (&size, &block) in shape[1..].iter().zip(block_shape) {
            if !size.is_multiple_of(block) {
                return Err(Error::Shape(message!(
                    "{op}: {size} positions, padded, cannot be divided into blocks of {block}; the padded sizes of \
                     {shape:?} must be multiples of {block_shape:?}."
                )));
            }
            apart.extend([size / block, block]);
            out.push(size / block);
        }
        apart.extend(&shape[m + 1..]);
        out.extend(&shape[m + 1..]);
        // The positions within a block become axes before the batch.
        let mut order: Vec<usize> = (0..m).map(|k| 2 * k + 2).collect();
        order.push(0);
        order.extend((0..m).map(|k| 2 * k + 1));
        order.extend(2 * m + 1..apart.len());
        padded.reshape_to(apart.into())?.transpose(&order[..])?.reshape_to(out.into())
    }

    /// Rearranges the batch into blocks of `block_shape` positions and crops the ends by `crops`: the inverse of
    /// [`space_to_batch`](Tensor::space_to_batch).
    ///
    /// # Errors
    /// As [`Tensor::space_to_batch`]; [`Error::Shape`] if the block does not divide the batch, or the crops are larger
    /// than an axis.
    pub fn batch_to_space(
        &self,
        block_shape: &[usize],
        crops: &[(usize, usize)],
    ) -> Result<Tensor> {
        let op = "BatchToSpaceND";
        blocks(op, self, block_shape, crops)?;
        let (m, shape) = (block_shape.len(), self.shape());
        let block = whole(op, self, block_shape.iter().copied())?;
        if !shape[0].is_multiple_of(block) {
            return Err(Error::Shape(message!(
                "{op}: a batch of {} does not fill blocks of {block_shape:?}; it must be a multiple of {block}.",
                shape[0]
            )));
        }
        let mut apart = block_shape.to_vec();
        apart.push(shape[0] / block);
        apart.extend(&shape[1..]);
        let mut order = vec![m];
        let mut out = vec![shape[0] / block];
        let mut edges = smallvec::smallvec![(0, 0, 1); self.rank()];
        for k in 0..m {
            order.extend([m + 1 + k, k]);
            let size = whole(op, self, [shape[k + 1], block_shape[k]].into_iter())?;
            let (low, high) = crops[k];
            if low.checked_add(high).is_none_or(|cut| cut > size) {
                return Err(Error::Shape(message!(
                    "{op}: the crops ({low}, {high}) remove more than the {size} positions that axis {} has.",
                    k + 1
                )));
            }
            out.push(size);
            edges[k + 1] = (-(low as i64), -(high as i64), 1);
        }
        order.extend(2 * m + 1..apart.len());
        out.extend(&shape[m + 1..]);
        let all = self.reshape_to(apart.into())?.transpose(&order[..])?.reshape_to(out.into())?;
        pad_with(&all, edges, if self.dtype() == DType::Bool { false.into() } else { 0.into() })
    }
}

/// The axes of images that blocks of `b x b` positions cover.
fn images(op: &str, x: &Tensor, b: usize) -> Result<[usize; 4]> {
    if b < 2 {
        return Err(Error::Shape(message!("{op}: the block size is {b}; it must be at least 2.")));
    }
    x.shape().try_into().map_err(|_| {
        Error::Shape(message!(
            "{op}: the images are {:?}; they need the four axes [N,H,W,C]. Use expand_dims or reshape.",
            x.shape()
        ))
    })
}

/// `size * b * b`.
fn deeper(op: &str, x: &Tensor, size: usize, b: usize) -> Result<usize> {
    whole(op, x, [size, b, b].into_iter())
}

/// The product of sizes of the result.
fn whole(op: &str, x: &Tensor, sizes: impl Iterator<Item = usize>) -> Result<usize> {
    let sizes: Vec<usize> = sizes.collect();
    Shape::new(&sizes).checked_elements().ok_or_else(|| {
        Error::Shape(message!(
            "{op}: the blocks of {:?} would give an axis of more than 2^64 elements.",
            x.shape()
        ))
    })
}

fn blocks(op: &str, x: &Tensor, block: &[usize], edges: &[(usize, usize)]) -> Result<()> {
    if block.len() != edges.len() || block.len() >= x.rank() || block.contains(&0) {
        return Err(Error::Shape(message!(
            "{op}: blocks of {block:?} with the edges {edges:?} for {:?}; there must be one pair for each size, none of them \
             0, and no more than axes behind the batch.",
            x.shape()
        )));
    }
    Ok(())
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "space_to_depth", &["tf.nn.space_to_depth"], |c| {
        one(c.x()?.space_to_depth(c.size("block_size")?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("space_to_depth", &[2, 4, 6, 1], |x| x.space_to_depth(2))),
    Entry::new(OpKind::Composed, "depth_to_space", &["tf.nn.depth_to_space"], |c| {
        one(c.x()?.depth_to_space(c.size("block_size")?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("depth_to_space", &[1, 2, 3, 8], |x| x.depth_to_space(2))),
    Entry::new(OpKind::Composed, "space_to_batch", &["tf.space_to_batch"], |c| {
        let paddings = c.need("paddings", c.pairs("paddings")?)?;
        one(c.x()?.space_to_batch(&c.need("block_shape", c.sizes("block_shape")?)?, &paddings))
    })
    .takes(&[DType::F32, DType::F16, DType::I32, DType::U32])
    .cases(|cases| {
        cases.of_shape("space_to_batch", &[2, 3, 4, 2], |x| {
            x.space_to_batch(&[2, 3], &[(1, 0), (0, 2)])
        });
    }),
    Entry::new(OpKind::Composed, "batch_to_space", &["tf.batch_to_space"], |c| {
        let crops = c.need("crops", c.pairs("crops")?)?;
        one(c.x()?.batch_to_space(&c.need("block_shape", c.sizes("block_shape")?)?, &crops))
    })
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("batch_to_space", &[12, 2, 2, 1], |x| {
            x.batch_to_space(&[2, 3], &[(1, 0), (0, 2)])
        });
    }),
];
