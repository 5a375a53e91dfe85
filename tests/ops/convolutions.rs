//! Convolutions and pools of every kind, compared with direct loops in `f64`: strides larger than the windows, windows larger
//! than the image, groups, paddings, empty batches.

#![allow(clippy::unwrap_used)]

use crate::support::compare::Random;
use wgrad::{
    Conv1dOptions, Conv1dTransposeOptions, Conv2dOptions, Conv2dTransposeOptions, Conv3dOptions,
    Conv3dTransposeOptions, ConvolutionOptions, GradientTape, MaxPoolWithArgmaxOptions, Padding,
    Pool1dOptions, Pool2dOptions, Pool3dOptions, PoolOptions, PoolingType, Tensor,
};

/// Small pseudorandom integers, whose sums of products are exact in `f32`.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..count).map(|_| (random.bits() % 17) as f32 - 8.0).collect()
}

fn tensor(shape: &[usize], seed: u64) -> (Tensor, Vec<f32>) {
    let values = numbers(shape.iter().product(), seed);
    (Tensor::from_slice(&values, shape).unwrap(), values)
}

/// Output size and leading padding along an axis, by TensorFlow's rule.
fn windows(size: usize, k: usize, s: usize, d: usize, pad: Pad) -> (usize, i64) {
    let span = (k - 1) * d + 1;
    match pad {
        Pad::Valid => (if size >= span { (size - span) / s + 1 } else { 0 }, 0),
        Pad::Same => {
            let out = size.div_ceil(s);
            let total = (out.saturating_sub(1) * s + span).saturating_sub(size);
            (out, (total / 2) as i64)
        }
        Pad::Edges(low, high) => {
            let all = size + low + high;
            (if all >= span { (all - span) / s + 1 } else { 0 }, low as i64)
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Pad {
    Valid,
    Same,
    Edges(usize, usize),
}

/// A convolution of volumes; other ranks have leading axes of size 1.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// `[N,D,H,W,C]`
    x: [usize; 5],
    /// `[KD,KH,KW,C/G,O]`
    w: [usize; 5],
    strides: [usize; 3],
    dilations: [usize; 3],
    pads: [Pad; 3],
}

impl Case {
    fn geometry(&self) -> ([usize; 3], [i64; 3]) {
        let mut out = [0; 3];
        let mut low = [0; 3];
        for k in 0..3 {
            let (of, to) = (self.x[k + 1], self.w[k]);
            (out[k], low[k]) = windows(of, to, self.strides[k], self.dilations[k], self.pads[k]);
        }
        (out, low)
    }

    /// Calls `f` with the indices of the result, the input and the filters for every product.
    fn walk(&self, mut f: impl FnMut(usize, usize, usize)) {
        let ([od, oh, ow], low) = self.geometry();
        let ([n, d, h, w, c], [kd, kh, kw, cg, o]) = (self.x, self.w);
        let groups = c.checked_div(cg).unwrap_or(1).max(1);
        let og = o / groups;
        let at = |k: usize, i: usize, u: usize, size: usize| {
            let place = (i * self.strides[k] + u * self.dilations[k]) as i64 - low[k];
            (place >= 0 && place < size as i64).then_some(place as usize)
        };
        for b in 0..n {
            for (l, i, j) in triples([od, oh, ow]) {
                for (t, u, v) in triples([kd, kh, kw]) {
                    let (Some(z), Some(y), Some(x)) =
                        (at(0, l, t, d), at(1, i, u, h), at(2, j, v, w))
                    else {
                        continue;
                    };
                    for q in 0..o {
                        for p in 0..cg {
                            let result = (((b * od + l) * oh + i) * ow + j) * o + q;
                            let channel = q / og * cg + p;
                            let input = (((b * d + z) * h + y) * w + x) * c + channel;
                            let filter = (((t * kh + u) * kw + v) * cg + p) * o + q;
                            f(result, input, filter);
                        }
                    }
                }
            }
        }
    }

    fn result(&self) -> [usize; 5] {
        let ([od, oh, ow], _) = self.geometry();
        [self.x[0], od, oh, ow, self.w[4]]
    }
}

fn triples([a, b, c]: [usize; 3]) -> impl Iterator<Item = (usize, usize, usize)> {
    (0..a).flat_map(move |i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))))
}

#[track_caller]
fn same(what: &str, got: &Tensor, want: &[f64]) {
    let got = got.to_vec::<f32>().unwrap();
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        // Sums of integers below 2^24 are exact.
        assert!(f64::from(*g) == *w, "{what}: element {i} is {g} and must be {w}");
    }
}

/// The sizes of the axes of a call with rank `axes`.
fn own(sizes: [usize; 5], axes: usize, filter: bool) -> Vec<usize> {
    let space = &sizes[if filter { 3 - axes } else { 4 - axes }..];
    if filter { space.to_vec() } else { [&[sizes[0]], space].concat() }
}

fn padding(pads: &[Pad]) -> Padding {
    let pair = |pad: &Pad| match *pad {
        Pad::Edges(low, high) => (low, high),
        _ => (0, 0),
    };
    match (pads[0], pads) {
        (Pad::Valid, _) => Padding::Valid,
        (Pad::Same, _) => Padding::Same,
        (_, [a]) => [pair(a)].into(),
        (_, [a, b]) => [pair(a), pair(b)].into(),
        (_, [a, b, c]) => [pair(a), pair(b), pair(c)].into(),
        _ => unreachable!("one to three axes"),
    }
}

fn forward(case: &Case, axes: usize, x: &Tensor, w: &Tensor) -> Tensor {
    let (s, d, pad) = (case.strides, case.dilations, padding(&case.pads[3 - axes..]));
    match axes {
        1 => x.conv1d(w, Conv1dOptions::new().stride(s[2]).dilations(d[2]).padding(pad)),
        2 => {
            let options = Conv2dOptions::new().strides([s[1], s[2]]).padding(pad);
            x.conv2d(w, options.dilations([d[1], d[2]]))
        }
        _ => x.conv3d(w, Conv3dOptions::new().strides(s).dilations(d).padding(pad)),
    }
    .unwrap()
}

/// The transposed convolution of `dy` with the same filters, to the input's shape.
fn transposed(case: &Case, axes: usize, dy: &Tensor, w: &Tensor) -> Tensor {
    let (s, d, pad) = (case.strides, case.dilations, padding(&case.pads[3 - axes..]));
    let [n, _, h, wide, c] = case.x;
    match axes {
        1 => {
            let options = Conv1dTransposeOptions::new().output_shape([n, wide, c]).strides(s[2]);
            dy.conv1d_transpose(w, options.dilations(d[2]).padding(pad))
        }
        2 => {
            let options = Conv2dTransposeOptions::new().output_shape([n, h, wide, c]);
            let options = options.strides([s[1], s[2]]).dilations([d[1], d[2]]);
            dy.conv2d_transpose(w, options.padding(pad))
        }
        _ => {
            let options = Conv3dTransposeOptions::new().output_shape(case.x).strides(s);
            dy.conv3d_transpose(w, options.dilations(d).padding(pad))
        }
    }
    .unwrap()
}

/// Compares value, both gradients and the transposed convolution with loops.
fn check(case: Case, axes: usize) {
    let what = format!("{case:?} along {axes}");
    let (x, xs) = tensor(&own(case.x, axes, false), 1);
    let (w, ws) = tensor(&own(case.w, axes, true), 2);
    let result = case.result();
    let (dy, dys) = tensor(&own(result, axes, false), 3);
    let mut want = [dys.len(), xs.len(), ws.len()].map(|n| vec![0.0f64; n]);
    case.walk(|y, x, w| {
        want[0][y] += f64::from(xs[x]) * f64::from(ws[w]);
        want[1][x] += f64::from(dys[y]) * f64::from(ws[w]);
        want[2][w] += f64::from(xs[x]) * f64::from(dys[y]);
    });
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    tape.watch(&w).unwrap();
    let y = forward(&case, axes, &x, &w);
    assert_eq!(y.shape(), own(result, axes, false), "{what}");
    let grads = tape.gradient_from(&y, Some(&[&dy]), [&x, &w]).unwrap();
    same(&what, &y, &want[0]);
    for (k, name) in ["dx", "dw"].into_iter().enumerate() {
        same(&format!("{name} of {what}"), grads[k].as_ref().unwrap(), &want[k + 1]);
    }
    same(&format!("transposed {what}"), &transposed(&case, axes, &dy, &w), &want[1]);
}

const PLAIN: Case = Case {
    x: [2, 1, 6, 7, 3],
    w: [1, 3, 2, 3, 4],
    strides: [1; 3],
    dilations: [1; 3],
    pads: [Pad::Valid; 3],
};

#[test]
fn images_by_any_options() {
    let edges = |a, b, c, d| [Pad::Edges(0, 0), Pad::Edges(a, b), Pad::Edges(c, d)];
    let same = [Pad::Same; 3];
    for case in [
        PLAIN,
        Case { pads: same, strides: [1, 2, 3], ..PLAIN },
        // Strides larger than the windows.
        Case { pads: same, strides: [1, 5, 4], ..PLAIN },
        Case { strides: [1, 7, 9], ..PLAIN },
        // Dilated filters larger than the image, alone and with padding.
        Case { dilations: [1, 9, 8], ..PLAIN },
        Case { dilations: [1, 9, 8], pads: same, ..PLAIN },
        Case { dilations: [1, 2, 3], strides: [1, 2, 2], pads: same, ..PLAIN },
        // Padding wider than the window, and none on one side.
        Case { pads: edges(5, 4, 0, 6), ..PLAIN },
        Case { pads: edges(2, 1, 0, 3), strides: [1, 2, 2], dilations: [1, 2, 1], ..PLAIN },
        Case { pads: edges(1, 0, 2, 1), x: [2, 1, 4, 5, 4], w: [1, 1, 1, 4, 3], ..PLAIN },
        // Empty batches, single pixels, many channels.
        Case { x: [0, 1, 6, 7, 3], ..PLAIN },
        Case { x: [1, 1, 1, 1, 1], w: [1, 1, 1, 1, 1], ..PLAIN },
        Case { x: [1, 1, 1, 1, 3], w: [1, 3, 3, 3, 2], pads: same, ..PLAIN },
        Case { x: [1, 1, 3, 3, 1000], w: [1, 3, 3, 1000, 5], pads: same, ..PLAIN },
        Case { x: [1, 1, 60, 50, 3], w: [1, 7, 5, 3, 9], strides: [1, 2, 1], ..PLAIN },
    ] {
        check(case, 2);
    }
}

#[test]
fn images_by_groups() {
    for (c, cg, o) in
        [(6, 3, 4), (6, 2, 9), (8, 4, 8), (8, 4, 2), (5, 1, 10), (64, 4, 64), (1000, 2, 500)]
    {
        let case = Case { x: [2, 1, 5, 6, c], w: [1, 3, 2, cg, o], ..PLAIN };
        check(case, 2);
        check(Case { pads: [Pad::Same; 3], strides: [1, 2, 3], ..case }, 2);
        check(Case { dilations: [1, 2, 2], pads: [Pad::Same; 3], ..case }, 2);
        check(Case { w: [1, 1, 1, cg, o], ..case }, 2);
    }
    check(Case { x: [0, 1, 5, 6, 6], w: [1, 3, 2, 3, 4], ..PLAIN }, 2);
    check(Case { x: [1, 1, 1, 1, 6], w: [1, 3, 3, 3, 4], pads: [Pad::Same; 3], ..PLAIN }, 2);
}

#[test]
fn signals() {
    let base = Case { x: [2, 1, 1, 13, 3], w: [1, 1, 4, 3, 5], ..PLAIN };
    for case in [
        base,
        Case { pads: [Pad::Same; 3], strides: [1, 1, 2], ..base },
        Case { strides: [1, 1, 6], ..base },
        Case { dilations: [1, 1, 3], pads: [Pad::Same; 3], ..base },
        Case { dilations: [1, 1, 30], pads: [Pad::Same; 3], ..base },
        Case { pads: [Pad::Edges(0, 0), Pad::Edges(0, 0), Pad::Edges(3, 5)], ..base },
        Case { x: [1, 1, 1, 1, 1], w: [1, 1, 1, 1, 1], ..base },
        Case { x: [0, 1, 1, 13, 3], ..base },
        // As in causal models.
        Case {
            pads: [Pad::Edges(0, 0), Pad::Edges(0, 0), Pad::Edges(6, 0)],
            dilations: [1, 1, 2],
            ..base
        },
        Case { x: [1, 1, 1, 20_000, 1], w: [1, 1, 5, 1, 2], ..base },
    ] {
        check(case, 1);
    }
}

#[test]
fn volumes() {
    let base = Case { x: [2, 5, 4, 6, 3], w: [3, 2, 3, 3, 4], ..PLAIN };
    for case in [
        base,
        Case { pads: [Pad::Same; 3], ..base },
        Case { pads: [Pad::Same; 3], strides: [2, 3, 1], ..base },
        Case { strides: [4, 1, 2], ..base },
        Case { dilations: [2, 1, 2], ..base },
        Case { dilations: [7, 3, 9], pads: [Pad::Same; 3], ..base },
        Case { dilations: [7, 1, 1], ..base },
        Case {
            pads: [Pad::Edges(4, 1), Pad::Edges(0, 2), Pad::Edges(1, 0)],
            strides: [2, 1, 1],
            ..base
        },
        Case { x: [1, 1, 1, 1, 1], w: [1, 1, 1, 1, 1], ..base },
        Case { x: [0, 5, 4, 6, 3], ..base },
        Case { x: [1, 1, 3, 3, 2], w: [3, 3, 3, 2, 2], pads: [Pad::Same; 3], ..base },
        // More frames than one kernel concatenates.
        Case { x: [1, 12, 2, 3, 2], w: [9, 2, 2, 2, 3], pads: [Pad::Same; 3], ..base },
        Case { x: [1, 3, 2, 2, 1000], w: [2, 1, 1, 1000, 3], ..base },
    ] {
        check(case, 3);
    }
}

#[test]
fn transposed_convolutions_grow_as_keras_has_it() {
    let x = Tensor::ones([2, 5, 4, 3]).unwrap();
    let w = Tensor::ones([3, 2, 6, 3]).unwrap();
    let base = Conv2dTransposeOptions::new().strides([2, 3]);
    let shape = |options| x.conv2d_transpose(&w, options).unwrap().shape().to_vec();
    assert_eq!(shape(base), [2, 10, 12, 6]);
    assert_eq!(shape(base.padding(Padding::Valid)), [2, 11, 12, 6]);
    assert_eq!(shape(base.padding([(1, 1), (0, 1)])), [2, 9, 10, 6]);
    assert_eq!(shape(base.dilations([2, 1]).strides([1, 1]).padding(Padding::Valid)), [2, 9, 5, 6]);
    assert_eq!(shape(base.output_shape([2, 9, 11, 6])), [2, 9, 11, 6]);
    // Two groups: the input has twice the channels of the filters.
    assert_eq!(
        x.reshape([2, 5, 2, 6])
            .unwrap()
            .conv2d_transpose(Tensor::ones([3, 2, 2, 6]).unwrap(), base.output_shape([2, 10, 6, 4]))
            .unwrap()
            .shape(),
        [2, 10, 6, 4]
    );
}

#[test]
fn convolutions_of_any_rank() {
    let options = || ConvolutionOptions::new().padding(Padding::Same);
    let same = Conv2dOptions::new().padding(Padding::Same);
    let (x, _) = tensor(&[1, 4, 5, 2], 1);
    let (w, _) = tensor(&[3, 2, 2, 3], 2);
    let equal = |a: Tensor, b: Tensor| {
        assert_eq!(a.shape(), b.shape());
        assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
    };
    equal(
        x.convolution(&w, options().strides([2, 1])).unwrap(),
        x.conv2d(&w, same.strides([2, 1])).unwrap(),
    );
    equal(
        x.convolution(&w, options().dilations([2])).unwrap(),
        x.atrous_conv2d(&w, 2, Padding::Same).unwrap(),
    );
    let (signal, _) = tensor(&[2, 9, 2], 3);
    let filter = w.slice(&[0, 0, 0, 0], &[1, -1, -1, -1]).unwrap().squeeze(0).unwrap();
    equal(
        signal.convolution(&filter, options().strides([3])).unwrap(),
        signal.conv1d(&filter, Conv1dOptions::new().stride(3).padding(Padding::Same)).unwrap(),
    );
    let (volume, _) = tensor(&[1, 3, 4, 5, 2], 4);
    let block = w.expand_dims(0).unwrap();
    equal(
        volume.convolution(&block, options().strides([1, 2, 1])).unwrap(),
        volume
            .conv3d(&block, Conv3dOptions::new().strides([1, 2, 1]).padding(Padding::Same))
            .unwrap(),
    );
}

/// The windows of a pooling of volumes.
#[derive(Clone, Copy, Debug)]
struct Pools {
    x: [usize; 5],
    window: [usize; 3],
    strides: [usize; 3],
    dilations: [usize; 3],
    pads: [Pad; 3],
}

const POOLS: Pools = Pools {
    x: [2, 1, 7, 6, 3],
    window: [1, 3, 2],
    strides: [1, 2, 2],
    dilations: [1; 3],
    pads: [Pad::Valid; 3],
};

impl Pools {
    /// The input's indices in each window, in order, for every element of the result.
    fn windows(&self) -> ([usize; 5], Vec<Vec<usize>>) {
        let [n, d, h, w, c] = self.x;
        let mut out = [0; 3];
        let mut low = [0; 3];
        for k in 0..3 {
            let (size, stride) = (self.x[k + 1], self.strides[k]);
            (out[k], low[k]) =
                windows(size, self.window[k], stride, self.dilations[k], self.pads[k]);
        }
        let mut all = Vec::new();
        for b in 0..n {
            for at in triples(out) {
                for channel in 0..c {
                    let mut places = Vec::new();
                    for by in triples(self.window) {
                        let place = |k: usize, i: usize, u: usize| {
                            let p = (i * self.strides[k] + u * self.dilations[k]) as i64 - low[k];
                            (p >= 0 && p < self.x[k + 1] as i64).then_some(p as usize)
                        };
                        let (z, y, x) =
                            (place(0, at.0, by.0), place(1, at.1, by.1), place(2, at.2, by.2));
                        if let (Some(z), Some(y), Some(x)) = (z, y, x) {
                            places.push((((b * d + z) * h + y) * w + x) * c + channel);
                        }
                    }
                    all.push(places);
                }
            }
        }
        ([n, out[0], out[1], out[2], c], all)
    }
}

/// Compares a pooling and its gradient with the windows' indices; many numbers are equal.
fn check_pool(
    what: &str,
    shape: Vec<usize>,
    (result, windows): (Vec<usize>, Vec<Vec<usize>>),
    kind: PoolingType,
    call: impl Fn(&Tensor) -> Tensor,
) {
    let (x, xs) = tensor(&shape, 4);
    let (dy, dys) = tensor(&result, 5);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = call(&x);
    assert_eq!(y.shape(), result, "{what}");
    let [dx] = tape.gradient_from(&y, Some(&[&dy]), [&x]).unwrap();
    let dx = dx.unwrap();
    let mut want = (Vec::new(), vec![0.0f64; xs.len()]);
    for (places, dy) in windows.iter().zip(&dys) {
        if kind == PoolingType::Max {
            // The first of the largest.
            let best =
                places.iter().rev().copied().max_by(|&a, &b| xs[a].total_cmp(&xs[b])).unwrap();
            want.0.push(f64::from(xs[best]));
            want.1[best] += f64::from(*dy);
        } else {
            let count = places.len() as f64;
            want.0.push(places.iter().map(|&p| f64::from(xs[p])).sum::<f64>() / count);
            places.iter().for_each(|&p| want.1[p] += f64::from(*dy) / count);
        }
    }
    for (got, want) in [(&y, &want.0), (&dx, &want.1)] {
        for (g, w) in got.to_vec::<f32>().unwrap().iter().zip(want) {
            // A few quotients, each rounded once, and their sums.
            assert!(
                (f64::from(*g) - w).abs() <= 1e-5 * w.abs().max(4.0),
                "{what}: {g} must be {w}"
            );
        }
    }
}

fn pools(case: Pools, axes: usize) {
    let (result, windows) = case.windows();
    for kind in [PoolingType::Max, PoolingType::Avg] {
        let (k, s, pad) = (case.window, case.strides, padding(&case.pads[3 - axes..]));
        let max = kind == PoolingType::Max;
        let call = |x: &Tensor| {
            match axes {
                1 => {
                    let options = Pool1dOptions::new().strides(s[2]).padding(pad);
                    if max { x.max_pool1d(k[2], options) } else { x.avg_pool1d(k[2], options) }
                }
                2 => {
                    let options = Pool2dOptions::new().strides([s[1], s[2]]).padding(pad);
                    let k = [k[1], k[2]];
                    if max { x.max_pool2d(k, options) } else { x.avg_pool2d(k, options) }
                }
                _ => {
                    let options = Pool3dOptions::new().strides(s).padding(pad);
                    if max { x.max_pool3d(k, options) } else { x.avg_pool3d(k, options) }
                }
            }
            .unwrap()
        };
        let of_any_rank = |x: &Tensor| {
            let options = PoolOptions::new().strides(&s[3 - axes..]).padding(pad);
            x.pool(&k[3 - axes..], kind, options.dilations(&case.dilations[3 - axes..])).unwrap()
        };
        let what = format!("{kind:?} {case:?} along {axes}");
        let given = (own(result, axes, false), windows.clone());
        if case.dilations == [1; 3] {
            check_pool(&what, own(case.x, axes, false), given.clone(), kind, call);
        }
        check_pool(&what, own(case.x, axes, false), given, kind, of_any_rank);
    }
}

#[test]
fn pools_of_every_rank() {
    let same = [Pad::Same; 3];
    for axes in [1, 2, 3] {
        let base = match axes {
            1 => Pools { x: [2, 1, 1, 13, 3], window: [1, 1, 4], ..POOLS },
            2 => POOLS,
            _ => Pools { x: [2, 5, 4, 6, 3], window: [3, 2, 2], ..POOLS },
        };
        let one = [1; 3];
        pools(base, axes);
        pools(Pools { pads: same, ..base }, axes);
        pools(Pools { pads: same, strides: one, ..base }, axes);
        // Strides larger than the windows, windows larger than the input.
        pools(
            Pools { strides: [1, 5, 7].map(|s| if axes == 3 { s + 3 } else { s }), ..base },
            axes,
        );
        pools(
            Pools { window: base.window.map(|k| if k == 1 { 1 } else { 40 }), pads: same, ..base },
            axes,
        );
        pools(Pools { x: [0, base.x[1], base.x[2], base.x[3], 3], ..base }, axes);
        pools(Pools { x: [1, base.x[1], base.x[2], base.x[3], 1000], ..base }, axes);
        pools(Pools { x: [1, 1, 1, 1, 1], window: one, strides: one, ..base }, axes);
        let edges = |k: usize| {
            if base.window[k] == 1 { Pad::Edges(0, 0) } else { Pad::Edges(1, base.window[k] - 1) }
        };
        pools(Pools { pads: [edges(0), edges(1), edges(2)], ..base }, axes);
        // Windows with gaps.
        let gaps = |d: usize| base.window.map(|k| if k == 1 { 1 } else { d });
        pools(Pools { dilations: gaps(2), strides: one, ..base }, axes);
        pools(Pools { dilations: gaps(3), window: base.window.map(|k| k.min(2)), ..base }, axes);
        pools(Pools { dilations: gaps(50), ..base }, axes);
    }
}

#[test]
fn pools_to_a_number_of_results() {
    for [size, n] in [[6, 3], [7, 3], [3, 7], [10, 4], [5, 5], [1, 4], [97, 10], [4, 1]] {
        let bins = |size: usize, n: usize| -> Vec<Vec<usize>> {
            (0..n).map(|i| (i * size / n..((i + 1) * size).div_ceil(n)).collect()).collect()
        };
        for kind in [PoolingType::Max, PoolingType::Avg] {
            let max = kind == PoolingType::Max;
            // One axis, with three channels.
            let mut windows = Vec::new();
            for b in 0..2 {
                for bin in bins(size, n) {
                    windows.extend(
                        (0..3).map(|c| bin.iter().map(|p| (b * size + p) * 3 + c).collect()),
                    );
                }
            }
            check_pool(
                &format!("{kind:?} of {size} to {n}"),
                vec![2, size, 3],
                (vec![2, n, 3], windows),
                kind,
                |x| {
                    if max { x.adaptive_max_pool1d([n]) } else { x.adaptive_avg_pool1d([n]) }
                        .unwrap()
                },
            );
            // Two axes: the other has five inputs and two results.
            let mut windows = Vec::new();
            for rows in bins(size, n) {
                for columns in bins(5, 2) {
                    let all = rows.iter().flat_map(|y| columns.iter().map(move |x| y * 5 + x));
                    windows.push(all.collect());
                }
            }
            check_pool(
                &format!("{kind:?} of {size} x 5 to {n} x 2"),
                vec![1, size, 5, 1],
                (vec![1, n, 2, 1], windows),
                kind,
                |x| {
                    if max { x.adaptive_max_pool2d([n, 2]) } else { x.adaptive_avg_pool2d([n, 2]) }
                        .unwrap()
                },
            );
        }
    }
}

/// An infinite element stays in its own windows.
#[test]
fn means_of_infinities() {
    let x = Tensor::from_slice(&[f32::INFINITY, 1.0, 2.0, 3.0, 4.0], [1, 5, 1]).unwrap();
    let y = x.adaptive_avg_pool1d([2]).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(y, [f32::INFINITY, 3.0]);
}

#[test]
fn places_of_maxima() {
    let x = Tensor::from_slice(&[1.0, 5.0, 5.0, 3.0, 9.0, 2.0, 2.0, 9.0], [2, 2, 2, 1]).unwrap();
    let options = MaxPoolWithArgmaxOptions::new();
    let (y, place) = x.max_pool_with_argmax([2, 2], options).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [5.0, 9.0]);
    assert_eq!(place.to_vec::<i32>().unwrap(), [1, 0]);
    let (_, place) = x.max_pool_with_argmax([2, 2], options.include_batch_in_index(true)).unwrap();
    assert_eq!(place.to_vec::<i32>().unwrap(), [1, 4]);
    let none = Tensor::zeros([0, 2, 2, 1]).unwrap().max_pool_with_argmax([2, 2], options).unwrap();
    assert_eq!(none.1.shape(), [0, 1, 1, 1]);
}

/// Multiples of 1/2 in an order that repeats after 23 numbers, times `by`.
fn mixed(shape: &[usize], start: usize, by: f32) -> wgrad::Result<Tensor> {
    let size: usize = shape.iter().product();
    let values: Vec<f32> = (0..size)
        .map(|i| ((i * 37 + start * 11) % 23) as f32 - 11.0)
        .map(|v| v * 0.5 * by)
        .collect();
    Tensor::from_slice(&values, shape)
}

/// Compared with TensorFlow 2.21: results, and gradients where window `i` counts `i + 1` times.
#[test]
fn dilations_are_those_of_tensorflow() -> wgrad::Result<()> {
    let options = Conv2dOptions::new().padding(Padding::Same).strides([2, 2]);
    let (x, w) = (mixed(&[1, 5, 4, 2], 1, 1.0)?, mixed(&[2, 3, 2], 2, 0.37)?);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    tape.watch(&w)?;
    let y = x.dilation2d(&w, options)?;
    let weights: Vec<f32> = (1..=12).map(|i| i as f32).collect();
    let loss = y.multiply(Tensor::from_slice(&weights, [1, 3, 2, 2])?)?.reduce_sum(())?;
    let want = [4.63, 4.39, 7.035, 4.295, 1.63, 4.815, 4.48, 1.295, 7.535, 4.795, 1.035, -1.705];
    assert_eq!(y.shape(), [1, 3, 2, 2]);
    for (got, want) in y.to_vec::<f32>()?.into_iter().zip(want) {
        assert!((got - want).abs() < 1e-5, "{got}, not {want}");
    }
    let [dx, dw] = tape.gradient(&loss, [&x, &w])?;
    let want = [
        0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 4.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
        0.0, 0.0, 5.0, 0.0, 0.0, 8.0, 0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 7.0, 0.0, 9.0, 0.0, 0.0, 10.0,
        11.0, 0.0, 0.0, 12.0,
    ];
    assert_eq!(dx.unwrap().to_vec::<f32>()?, want);
    let want = [23.0, 0.0, 0.0, 34.0, 6.0, 0.0, 0.0, 2.0, 7.0, 6.0, 0.0, 0.0];
    assert_eq!(dw.unwrap().to_vec::<f32>()?, want);
    Ok(())
}

#[test]
fn dilations_of_nothing_are_the_lowest_number() -> wgrad::Result<()> {
    // NaN is never the largest, and -inf is not above the lowest number.
    let x = wgrad::constant([f32::NAN, 1.0, f32::NEG_INFINITY, f32::NEG_INFINITY])?;
    let y = x.reshape([1, 1, 4, 1])?.dilation2d(&Tensor::zeros([1, 2, 1])?, Default::default())?;
    assert_eq!(y.to_vec::<f32>()?, [1.0, 1.0, f32::MIN]);
    // All taps are outside the image.
    let (x, w) = (Tensor::zeros([1, 1, 1, 1])?, Tensor::zeros([2, 2, 1])?);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = x.dilation2d(&w, Conv2dOptions::new().padding(Padding::Same).dilations([3, 3]))?;
    assert_eq!(y.to_vec::<f32>()?, [f32::MIN]);
    assert_eq!(tape.gradient(&y, &x)?.unwrap().to_vec::<f32>()?, [0.0]);
    Ok(())
}
