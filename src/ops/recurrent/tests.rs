//! Recurrent layers by kernels of a step against the same layers by cells.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::runtime::Device;
use crate::tape::GradientTape;

fn numbers(shape: &[usize], step: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * step) % 31) as f32 / 30.0 - 0.5).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn near(what: &str, got: &Tensor, want: &Tensor, by: f32) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    let wide = |x: &Tensor| x.cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
    for (i, (got, want)) in wide(got).into_iter().zip(wide(want)).enumerate() {
        assert!((got - want).abs() <= by * (1.0 + want.abs()), "{what} [{i}]: {got}, not {want}");
    }
}

/// A layer with one way to walk, on inputs x, h, kernel, recurrent kernel, bias.
fn run(cell: Cell, x: &[Tensor], mask: Option<&Tensor>, backwards: bool, unroll: bool) -> Tensor {
    let (mask, h, bias) = (mask.cloned(), x[1].clone(), Some(&x[4]));
    let result = match cell {
        Cell::Lstm => {
            let options = LstmOptions::new().initial_state([h.clone(), h]).mask(mask);
            let options = options.go_backwards(backwards).return_sequences(true).unroll(unroll);
            lstm(&x[0], &x[2], &x[3], bias, options)
        }
        Cell::Gru => {
            let options = GruOptions::new().initial_state(h).mask(mask);
            let options = options.go_backwards(backwards).return_sequences(true).unroll(unroll);
            gru(&x[0], &x[2], &x[3], bias, options)
        }
        Cell::Simple => {
            let options = SimpleRnnOptions::new().initial_state(h).mask(mask);
            let options = options.go_backwards(backwards).return_sequences(true).unroll(unroll);
            simple_rnn(&x[0], &x[2], &x[3], bias, options)
        }
    };
    all_of(result.unwrap()).unwrap()
}

/// `second` says whether the gradients of the gradients are compared, too.
fn compare(
    cell: Cell,
    [batch, steps, features, units]: [usize; 4],
    dtype: DType,
    second: bool,
    by: f32,
) {
    let wide = cell.gates() * units;
    let bias: &[usize] = if cell == Cell::Gru { &[2, wide] } else { &[wide] };
    let shapes: [&[usize]; 5] =
        [&[batch, steps, features], &[batch, units], &[features, wide], &[units, wide], bias];
    let inputs: Vec<Tensor> = shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| numbers(shape, 7 + 2 * i).cast(dtype).unwrap())
        .collect();
    let mask = numbers(&[batch, steps], 13).greater(-0.2).unwrap();
    for mask in [None, Some(&mask)] {
        for backwards in [false, true] {
            // The result, its gradients, and those of the gradients, which are multiplied by other numbers.
            let all = |unroll| {
                let outer = GradientTape::new();
                inputs.iter().for_each(|x| outer.watch(x).unwrap());
                let tape = GradientTape::new();
                inputs.iter().for_each(|x| tape.watch(x).unwrap());
                let y = run(cell, &inputs, mask, backwards, unroll);
                let dy = numbers(y.shape(), 5).cast(y.dtype()).unwrap();
                outer.watch(&dy).unwrap();
                let grads = tape.gradient_from(&y, Some(&[&dy]), &inputs[..]).unwrap();
                let grads: Vec<Tensor> = grads.into_iter().map(Option::unwrap).collect();
                let seed = |(i, x): (usize, &Tensor)| {
                    numbers(x.shape(), 3 + 2 * i).cast(x.dtype()).unwrap()
                };
                let seeds: Vec<Tensor> = grads.iter().enumerate().map(seed).collect();
                let seeds: Vec<&Tensor> = seeds.iter().collect();
                let mut sources = inputs.clone();
                sources.push(dy);
                let mut all = vec![y];
                if second {
                    let of = outer.gradient_from(&grads[..], Some(&seeds), &sources[..]).unwrap();
                    all.extend(of.into_iter().map(Option::unwrap));
                }
                all.splice(1..1, grads);
                all
            };
            let names = [
                "y",
                "dx",
                "dh",
                "dkernel",
                "drecurrent",
                "dbias",
                "ddx",
                "ddh",
                "ddkernel",
                "ddrecurrent",
                "ddbias",
                "ddy",
            ];
            let (got, want) = (all(false), all(true));
            let count = if second { names.len() } else { 6 };
            assert_eq!((got.len(), want.len()), (count, count));
            for (name, (got, want)) in names.iter().zip(got.iter().zip(&want)) {
                let what = format!(
                    "{name} of {cell:?} {batch} {steps} {units} {backwards} {}",
                    mask.is_some()
                );
                near(&what, got, want, by);
            }
        }
    }
}

#[test]
fn kernels_of_a_step_compute_what_cells_do() {
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        for sizes in [[1, 1, 1, 4], [3, 4, 2, 8], [5, 12, 3, 12], [9, 2, 4, 36]] {
            // The steps of cells take long to compile.
            compare(cell, sizes, DType::F32, sizes[1] == 1 || sizes[1] == 4, 2e-4);
        }
    }
}

#[test]
fn half_floats_are_summed_in_f32() {
    if !Device::current().unwrap().caps().f16 {
        println!("this adapter has no f16");
        return;
    }
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        compare(cell, [3, 4, 2, 8], DType::F16, cell == Cell::Lstm, 2e-2);
    }
}

#[test]
fn units_that_fill_no_vectors_have_no_kernels_and_the_same_results() {
    let caps = Device::current().unwrap().caps().clone();
    assert!(!fused::fits(Cell::Lstm, [2, 3, 6], false, &caps));
    assert!(fused::fits(Cell::Lstm, [2, 3, 8], true, &caps));
    compare(Cell::Gru, [2, 3, 2, 5], DType::F32, false, 1e-6);
}

/// Kernels of a layer of so many steps in one flush, with or without gradients.
fn kernels(cell: Cell, steps: usize, gradients: bool) -> u64 {
    let device = Device::new().unwrap();
    let wide = cell.gates() * 16;
    let bias: &[usize] = if cell == Cell::Gru { &[2, wide] } else { &[wide] };
    let shapes: [&[usize]; 5] = [&[4, steps, 8], &[4, 16], &[8, wide], &[16, wide], bias];
    device.scope(|| {
        let x: Vec<Tensor> = shapes.iter().map(|shape| numbers(shape, 7)).collect();
        let mut count = 0;
        // The first run of a structure may be by single ops.
        for _ in 0..2 {
            device.synchronize().unwrap();
            let before = device.stats().kernels;
            let tape = GradientTape::new();
            x.iter().for_each(|x| tape.watch(x).unwrap());
            let y = run(cell, &x, None, false, false);
            let grads = if gradients { tape.gradient(&y, &x[..]).unwrap() } else { Vec::new() };
            device.synchronize().unwrap();
            drop((y, grads));
            count = device.stats().kernels - before;
        }
        count
    })
}

#[test]
fn a_step_is_one_kernel_and_two_with_gradients() {
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        for (gradients, each) in [(false, 1), (true, 2)] {
            let (few, many) = (kernels(cell, 10, gradients), kernels(cell, 20, gradients));
            println!("{cell:?}, 10 and 20 steps, gradients {gradients}: {few} and {many} kernels");
            assert!((10..=10 * each).contains(&(many - few)), "{cell:?}");
            assert!(few <= 10 * each + 32, "{few} kernels beside the steps'");
        }
    }
}
