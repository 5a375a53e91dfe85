//! Ops that move elements, or make sequences of numbers: errors, and results of edge cases.

use super::{floats, ints, text, values, zeros};

use wgrad as tf;
use wgrad::{DType, Error, Indexing, OneHotOptions, Result, ReverseSequenceOptions, Tensor};

const HUGE: usize = usize::MAX;

fn whole(x: Result<Tensor>) -> Vec<i32> {
    x.unwrap().to_vec().unwrap()
}

#[test]
fn rolls() {
    let x = ints([1, 2, 3, 4]);
    assert_eq!(whole(x.roll(&[1], 0)), [4, 1, 2, 3]);
    assert_eq!(whole(x.roll(&[-9], 0)), [2, 3, 4, 1]);
    assert_eq!(whole(x.roll(&[i64::MAX, 1], [0, -1])), [1, 2, 3, 4]);
    assert_eq!(whole(x.roll(&[i64::MIN], 0)), [1, 2, 3, 4]);
    assert_eq!(whole(x.roll(&[], ())), [1, 2, 3, 4]);
    assert_eq!(zeros([0, 2]).roll(&[3], 0).unwrap().shape(), [0, 2]);
    let bools = tf::constant([true, false, false]).unwrap();
    assert_eq!(bools.roll(&[1], 0).unwrap().to_vec::<bool>().unwrap(), [false, true, false]);
    assert_eq!(
        text(x.roll(&[1, 2], 0)),
        "Roll: the shifts [1, 2] and the axes [0] must be equally many; name the axis of each shift."
    );
    assert!(matches!(x.roll(&[1], 1), Err(Error::Index(_))));
    assert!(matches!(floats([1.0]).sum(()).unwrap().roll(&[1], 0), Err(Error::Index(_))));
    assert!(text(x.roll(&[1], ())).contains("equally many"));
}

#[test]
fn repeats() {
    let x = ints([1, 2, 3]);
    assert_eq!(whole(x.repeat(&[2], 0)), [1, 1, 2, 2, 3, 3]);
    assert!(whole(x.repeat(&[0], 0)).is_empty());
    assert_eq!(whole(x.repeat(&[0, 3, 1], -1)), [2, 2, 2, 3]);
    assert!(whole(x.repeat(&[0, 0, 0], 0)).is_empty());
    assert_eq!(whole(ints([7]).sum(()).unwrap().repeat(&[3], ())), [7, 7, 7]);
    assert_eq!(zeros([0, 2]).repeat(&[3], 0).unwrap().shape(), [0, 2]);
    assert_eq!(zeros([0, 2]).repeat(&[], 0).unwrap().shape(), [0, 2]);
    let flags = tf::constant([true, false]).unwrap().repeat(&[1, 2], 0).unwrap();
    assert_eq!(flags.to_vec::<bool>().unwrap(), [true, false, false]);
    assert_eq!(
        text(x.repeat(&[1, 2], 0)),
        "Repeat: 2 numbers for the 3 slices along axis 0 of [3]; give one for each, or one for all."
    );
    assert_eq!(
        text(zeros([2, 2]).repeat(&[1], [0, 1])),
        "Repeat: [0, 1] names 2 axes; name one, or () for the flattened tensor."
    );
    assert!(text(x.repeat(&[HUGE], 0)).contains("more than 2^64"));
    assert!(text(x.repeat(&[HUGE, HUGE, 0], 0)).contains("more than 2^64"));
    assert!(text(x.repeat(&[1 << 40, 1, 1], 0)).contains("too many for unequal numbers"));
    assert!(x.repeat(&[1 << 40], 0).is_err());
    assert!(matches!(x.repeat(&[1], 1), Err(Error::Index(_))));
}

#[test]
fn blocks_of_places() {
    let x = zeros([1, 4, 6, 3]);
    assert_eq!(x.space_to_depth(2).unwrap().shape(), [1, 2, 3, 12]);
    assert_eq!(zeros([0, 4, 6, 3]).space_to_depth(2).unwrap().shape(), [0, 2, 3, 12]);
    assert_eq!(
        text(x.space_to_depth(1)),
        "SpaceToDepth: the block size is 1; it must be at least 2."
    );
    assert_eq!(
        text(x.space_to_depth(4)),
        "SpaceToDepth: images of 4 x 6 pixels cannot be divided into blocks of 4 x 4; both sizes must be multiples \
         of 4."
    );
    assert_eq!(
        text(x.depth_to_space(2)),
        "DepthToSpace: 3 channels do not fill blocks of 2 x 2 pixels; their number must be a multiple of 4."
    );
    assert!(text(zeros([2, 2]).depth_to_space(2)).contains("[N,H,W,C]"));
    assert!(x.space_to_depth(HUGE).is_err() && x.depth_to_space(HUGE).is_err());
    assert!(text(zeros([1, 4, 6, 0]).depth_to_space(HUGE)).contains("2^64"));
    // Every element is moved to the right index, and back.
    let line = tf::range(0, 2 * 4 * 6 * 3, 1).unwrap();
    let x = line.reshape([2, 4, 6, 3]).unwrap();
    let deep = x.space_to_depth(2).unwrap();
    let want: Vec<i32> = index(&[2, 2, 3, 2, 2, 3])
        .map(|i| place(&[i[0], i[1] * 2 + i[3], i[2] * 2 + i[4], i[5]], &[2, 4, 6, 3]) as i32)
        .collect();
    assert_eq!(deep.to_vec::<i32>().unwrap(), want);
    assert_eq!(whole(deep.depth_to_space(2)), whole(Ok(x.clone())));
    let batches = x.space_to_batch(&[3, 2], &[(1, 1), (0, 2)]).unwrap();
    assert_eq!(batches.shape(), [12, 2, 4, 3]);
    let want: Vec<i32> = index(&[3, 2, 2, 2, 4, 3])
        .map(|i| {
            let (y, x) = (i[3] * 3 + i[0], i[4] * 2 + i[1]);
            let inside = (1..5).contains(&y) && x < 6;
            if inside { place(&[i[2], y - 1, x, i[5]], &[2, 4, 6, 3]) as i32 } else { 0 }
        })
        .collect();
    assert_eq!(batches.to_vec::<i32>().unwrap(), want);
    assert_eq!(whole(batches.batch_to_space(&[3, 2], &[(1, 1), (0, 2)])), whole(Ok(x.clone())));
    assert_eq!(
        text(x.space_to_batch(&[3], &[(0, 0)])),
        "SpaceToBatchND: 4 positions, padded, cannot be divided into blocks of 3; the padded sizes of [2, 4, 6, 3] \
         must be multiples of [3]."
    );
    assert_eq!(
        text(x.batch_to_space(&[3], &[(0, 0)])),
        "BatchToSpaceND: a batch of 2 does not fill blocks of [3]; it must be a multiple of 3."
    );
    assert_eq!(
        text(x.batch_to_space(&[2], &[(5, 4)])),
        "BatchToSpaceND: the crops (5, 4) remove more than the 8 positions that axis 1 has."
    );
    for (block, edges) in [(&[0][..], &[(0, 0)][..]), (&[2], &[]), (&[1; 4], &[(0, 0); 4])] {
        assert!(text(x.space_to_batch(block, edges)).contains("one pair for each size"));
        assert!(text(x.batch_to_space(block, edges)).contains("one pair for each size"));
    }
    assert!(x.batch_to_space(&[2], &[(HUGE, 1)]).is_err());
    assert!(x.space_to_batch(&[2], &[(HUGE, 1)]).is_err());
    assert!(x.space_to_batch(&[HUGE], &[(0, 0)]).is_err());
}

/// Every index of a shape, in order.
fn index(shape: &'static [usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..shape.iter().product()).map(|mut flat: usize| {
        let mut at = vec![0; shape.len()];
        for k in (0..shape.len()).rev() {
            at[k] = flat % shape[k];
            flat /= shape[k];
        }
        at
    })
}

fn place(at: &[usize], shape: &[usize]) -> usize {
    at.iter().zip(shape).fold(0, |sum, (i, n)| sum * n + i)
}

#[test]
fn numbers_in_a_row() {
    assert_eq!(values(tf::linspace(0.0, 10.0, 5)), [0.0, 2.5, 5.0, 7.5, 10.0]);
    assert_eq!(values(tf::linspace(3.0, 9.0, 1)), [3.0]);
    assert_eq!(values(tf::linspace(3.0, 9.0, 2)), [3.0, 9.0]);
    assert!(values(tf::linspace(0.0, 1.0, 0)).is_empty());
    assert_eq!(values(tf::linspace(5, 1, 3)), [5.0, 3.0, 1.0]);
    // The ends are exact, whatever the rounding of the steps.
    let ends = values(tf::linspace(0.1, 0.7, 1_000_003));
    assert_eq!([ends[0], ends[1_000_002]], [0.1, 0.7]);
    let rows = tf::linspace_with(floats([0.0, 1.0]), 4.0, 3, -1).unwrap();
    assert_eq!(rows.to_vec::<f32>().unwrap(), [0.0, 2.0, 4.0, 1.0, 2.5, 4.0]);
    assert_eq!(tf::linspace(floats([0.0, 1.0]), zeros([3, 1]), 7).unwrap().shape(), [7, 3, 2]);
    assert!(text(tf::linspace(floats([0.0, 1.0]), zeros([3]), 2)).contains("LinSpace: a is [2]"));
    assert!(text(tf::linspace(ints([1]), 2, 2)).contains("i32"));
    assert!(matches!(tf::linspace_with(0.0, 1.0, 3, 1), Err(Error::Index(_))));
    assert!(tf::linspace(0.0, 1.0, HUGE).is_err());

    let of = |dtype| tf::range_of(5, 0, -2, dtype);
    assert_eq!(of(DType::U32).unwrap().to_vec::<u32>().unwrap(), [5, 3, 1]);
    assert_eq!(of(DType::I32).unwrap().to_vec::<i32>().unwrap(), [5, 3, 1]);
    assert_eq!(values(of(DType::F32)), [5.0, 3.0, 1.0]);
    let most = u32::MAX;
    assert_eq!(
        tf::range_of(most - 1, i64::from(most) + 1, 1, DType::U32)
            .unwrap()
            .to_vec::<u32>()
            .unwrap(),
        [most - 1, most]
    );
    assert_eq!(
        text(tf::range_of(0, -3, -1, DType::U32)),
        "Range: from 0 to -3 in steps of -1 the last number is -2, and u32 holds 0 to 4294967295. Give one of the three \
         as a float."
    );
    assert_eq!(
        text(tf::range_of(0.0, 3.0, 0.5, DType::I32)),
        "Range: from 0.0 to 3.0 in steps of 0.5 in i32; give three integers, or take a float dtype."
    );
    assert!(text(tf::range_of(0, 3, 1, DType::Bool)).contains("not defined for bool"));
    assert_eq!(values(tf::range(1.0, -1.0, -0.75)), [1.0, 0.25, -0.5]);
}

#[test]
fn grids() {
    let (x, y, z) = (ints([1, 2, 3]), ints([4, 5]), ints([6]));
    let grid = tf::meshgrid([&x, &y]).unwrap();
    assert_eq!(grid[0].shape(), [2, 3]);
    assert_eq!(whole(Ok(grid[1].clone())), [4, 4, 4, 5, 5, 5]);
    let grid = tf::meshgrid_with([&x, &y], Indexing::Ij).unwrap();
    assert_eq!(grid[1].shape(), [3, 2]);
    assert_eq!(whole(Ok(grid[0].clone())), [1, 1, 2, 2, 3, 3]);
    assert_eq!(tf::meshgrid([&x, &y, &z]).unwrap()[2].shape(), [2, 3, 1]);
    let scalar = ints([9]).sum(()).unwrap();
    assert_eq!(tf::meshgrid([&scalar, &x]).unwrap()[0].shape(), [3, 1]);
    assert_eq!(tf::meshgrid([&x]).unwrap()[0].shape(), [3]);
    assert!(tf::meshgrid::<Tensor>([]).unwrap().is_empty());
    assert_eq!(tf::meshgrid([&zeros([0]), &zeros([2])]).unwrap()[1].shape(), [2, 0]);
    assert!(text(tf::meshgrid([&x, &zeros([2])])).contains("must have one dtype"));
}

#[test]
fn sequences() {
    let bools = |x: Result<Tensor>| x.unwrap().to_vec::<bool>().unwrap();
    assert_eq!(bools(ints([2, -1, 9]).sequence_mask(2)), [true, true, false, false, true, true]);
    assert_eq!(bools(ints([2]).sum(()).unwrap().sequence_mask(3)), [true, true, false]);
    assert_eq!(ints([1, 2]).sequence_mask(0).unwrap().shape(), [2, 0]);
    assert!(text(floats([1.0]).sequence_mask(2)).contains("SequenceMask"));
    assert!(ints([1]).sequence_mask(HUGE).is_err());

    let x = tf::constant([[1, 2, 3], [4, 5, 6]]).unwrap();
    let options = ReverseSequenceOptions::new();
    assert_eq!(whole(x.reverse_sequence(&ints([2, 0]), options)), [2, 1, 3, 4, 5, 6]);
    assert_eq!(whole(x.reverse_sequence(&ints([9, -3]), options)), [3, 2, 1, 4, 5, 6]);
    let columns = options.seq_axis(0).batch_axis(1);
    assert_eq!(whole(x.reverse_sequence(&ints([1, 2, 0]), columns)), [1, 5, 3, 4, 2, 6]);
    assert_eq!(
        text(x.reverse_sequence(&ints([1]), options)),
        "ReverseSequence: the lengths are [1] and axis 0 of [2, 3] has 2 sequences; give one length for each."
    );
    assert_eq!(
        text(x.reverse_sequence(&ints([1]), options.seq_axis(-2))),
        "ReverseSequence: steps and sequences lie both along axis 0 of [2, 3]; name two axes."
    );
    assert!(text(x.reverse_sequence(&floats([1.0, 2.0]), options)).contains("the lengths"));
    assert!(matches!(x.reverse_sequence(&ints([1, 2]), options.seq_axis(2)), Err(Error::Index(_))));
}

#[test]
fn shapes_and_biases() {
    let x = zeros([2, 3]);
    assert_eq!(x.ensure_shape([-1, 3]).unwrap().shape(), [2, 3]);
    assert_eq!(
        text(x.ensure_shape([2, 4])),
        "EnsureShape: the tensor is [2, 3] and must be [2, 4] (-1 stands for any size)."
    );
    assert!(x.ensure_shape([-1]).is_err() && x.ensure_shape([-2, 3]).is_err());
    assert_eq!(tf::broadcast_static_shape([2, 1], [3]).unwrap()[..], [2, 3]);
    assert!(text(tf::broadcast_static_shape([2], [3])).contains("BroadcastStaticShape: a is [2]"));
    assert_eq!(values(x.bias_add(floats([1.0, 2.0, 3.0]))), [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(
        text(x.bias_add(floats([1.0]))),
        "BiasAdd: the bias is [1] and the tensor [2, 3]; the bias needs one number for each position of the last \
         axis, and the tensor at least two axes."
    );
    assert!(floats([1.0]).bias_add(floats([1.0])).is_err());
    let hot = |axis: i64| tf::one_hot_with(&ints([1, 0]), 3, OneHotOptions::new().axis(axis));
    assert_eq!(values(hot(0)), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(values(hot(-1)), [0.0, 1.0, 0.0, 1.0, 0.0, 0.0]);
    assert_eq!(values(hot(-2)), values(hot(0)));
    assert_eq!(
        text(hot(2)),
        "OneHot: axis 2 does not exist in a tensor of rank 2; it must be in -2 to 1."
    );
}

/// A tape records `identity` as a separate op.
#[test]
fn identities_are_tensors_of_their_own() {
    let x = floats([2.0]);
    let tape = wgrad::GradientTape::new();
    tape.watch(&x).unwrap();
    let y = x.identity().unwrap();
    let z = (&x * &y).square().unwrap();
    let grads = tape.gradient(&z, [&x, &y]).unwrap();
    // z = x^2 y^2: with respect to y alone 2 x^2 y; with respect to x with y = x, 4 x^3.
    assert_eq!(values(Ok(grads[0].clone().unwrap())), [32.0]);
    assert_eq!(values(Ok(grads[1].clone().unwrap())), [16.0]);
}

#[test]
fn patches_of_images() {
    use tf::image::{ExtractPatchesOptions, extract_patches};
    let options = ExtractPatchesOptions::new();
    let shape = [2usize, 5, 6, 3];
    let x = tf::range(1, 181, 1).unwrap().reshape([2, 5, 6, 3]).unwrap();
    for (patch, strides, rates, same) in [
        ([2, 3], [1, 1], [1, 1], false),
        ([3, 2], [2, 3], [1, 1], true),
        ([2, 2], [7, 7], [3, 2], true),
        ([3, 3], [1, 2], [9, 9], true),
        ([9, 9], [1, 1], [1, 1], false),
        ([1, 1], [1, 1], [1, 1], true),
    ] {
        let padding = if same { tf::Padding::Same } else { tf::Padding::Valid };
        let options = options.strides(strides).rates(rates).padding(padding);
        let y = extract_patches(&x, patch, options).unwrap();
        let mut out = [0; 2];
        let mut low = [0i64; 2];
        for k in 0..2 {
            let (size, span) = (shape[k + 1], (patch[k] - 1) * rates[k] + 1);
            if same {
                out[k] = size.div_ceil(strides[k]);
                low[k] = ((out[k] - 1) * strides[k] + span).saturating_sub(size) as i64 / 2;
            } else {
                out[k] = (size + 1).saturating_sub(span).div_ceil(strides[k]);
            }
        }
        assert_eq!(y.shape(), [2, out[0], out[1], patch[0] * patch[1] * 3]);
        let mut want = Vec::new();
        for n in 0..2 {
            for at in pairs(out) {
                for by in pairs(patch) {
                    for c in 0..3 {
                        let place =
                            |k: usize| (at[k] * strides[k] + by[k] * rates[k]) as i64 - low[k];
                        let (y, x) = (place(0), place(1));
                        let inside = (0..5).contains(&y) && (0..6).contains(&x);
                        let value = ((n * 5 + y) * 6 + x) * 3 + c + 1;
                        want.push(if inside { value as i32 } else { 0 });
                    }
                }
            }
        }
        assert_eq!(y.to_vec::<i32>().unwrap(), want, "{patch:?} {options:?}");
    }
    assert_eq!(
        extract_patches(&zeros([0, 4, 4, 1]), [2, 2], options).unwrap().shape(),
        [0, 3, 3, 4]
    );
    assert_eq!(
        text(extract_patches(&x, [0, 2], options)),
        "ExtractImagePatches: patches of [0, 2], strides [1, 1] and rates [1, 1] for images of 5 x 6 pixels; all \
         must be at least 1, and none may span more than 1073741823 positions."
    );
    assert!(extract_patches(&x, [2, 2], options.strides([0, 1])).is_err());
    assert!(extract_patches(&x, [2, 2], options.rates([1, HUGE])).is_err());
    assert!(extract_patches(&zeros([2, 2]), [1, 1], options).is_err());
}

fn pairs([a, b]: [usize; 2]) -> impl Iterator<Item = [usize; 2]> {
    (0..a).flat_map(move |i| (0..b).map(move |j| [i, j]))
}
