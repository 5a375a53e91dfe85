//! Compares recurrent layers with custom kernels with the same layers composed of cells.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::compare::near;
use crate::runtime::Device;
use crate::tape::GradientTape;

fn numbers(shape: &[usize], step: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * step) % 31) as f32 / 30.0 - 0.5).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// A layer with given options, on inputs x, h, kernel, recurrent kernel, bias.
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

/// A layer, and which of its results are compared.
#[derive(Clone, Copy)]
struct Case {
    cell: Cell,
    /// Batch, steps, features, units.
    sizes: [usize; 4],
    dtype: DType,
    /// Whether second-order gradients are compared, too.
    second: bool,
}

const NAMES: [&str; 12] = [
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

impl Case {
    /// The result, its gradients, and the second-order gradients, which are multiplied by other numbers.
    fn results(&self, masked: bool, backwards: bool, unroll: bool) -> Vec<Tensor> {
        let Case { cell, sizes: [batch, steps, features, units], dtype, second } = *self;
        let wide = cell.gates() * units;
        let bias: &[usize] = if cell == Cell::Gru { &[2, wide] } else { &[wide] };
        let shapes: [&[usize]; 5] =
            [&[batch, steps, features], &[batch, units], &[features, wide], &[units, wide], bias];
        // Sums of many units would saturate the gates.
        let scale = |i: usize| if i == 3 { (12.0 / units as f32).min(1.0) } else { 1.0 };
        let inputs: Vec<Tensor> = shapes
            .iter()
            .enumerate()
            .map(|(i, shape)| numbers(shape, 7 + 2 * i).multiply(scale(i)).unwrap())
            .map(|x| x.cast(dtype).unwrap())
            .collect();
        let mask = masked.then(|| numbers(&[batch, steps], 13).greater(-0.2).unwrap());
        let outer = GradientTape::new();
        inputs.iter().for_each(|x| outer.watch(x).unwrap());
        let tape = GradientTape::new();
        inputs.iter().for_each(|x| tape.watch(x).unwrap());
        let y = run(cell, &inputs, mask.as_ref(), backwards, unroll);
        let dy = numbers(y.shape(), 5).cast(y.dtype()).unwrap();
        outer.watch(&dy).unwrap();
        let grads = tape.gradient_from(&y, Some(&[&dy]), &inputs[..]).unwrap();
        let grads: Vec<Tensor> = grads.into_iter().map(Option::unwrap).collect();
        let seed =
            |(i, x): (usize, &Tensor)| numbers(x.shape(), 3 + 2 * i).cast(x.dtype()).unwrap();
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
    }

    /// Compares the kernels on the first device with the cells on the second.
    fn compare(&self, [kernels, cells]: [&Device; 2], by: f64) {
        for (masked, backwards) in [(false, false), (false, true), (true, false), (true, true)] {
            let got = kernels.scope(|| self.results(masked, backwards, false));
            let want = cells.scope(|| self.results(masked, backwards, true));
            let count = if self.second { NAMES.len() } else { 6 };
            assert_eq!((got.len(), want.len()), (count, count));
            for (name, (got, want)) in NAMES.iter().zip(got.iter().zip(&want)) {
                let Case { cell, sizes, dtype, .. } = self;
                let what = format!("{name} of {cell:?} {sizes:?} {dtype} {backwards} {masked}");
                near(&what, got, want, by);
            }
        }
    }
}

/// Compares kernels and cells on the same device.
fn compare(cell: Cell, sizes: [usize; 4], dtype: DType, second: bool, by: f64) {
    let device = Device::current().unwrap();
    Case { cell, sizes, dtype, second }.compare([&device, &device], by);
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

/// A device with the kernels of a GPU that ends loops where kernels state that they end, and with this much workgroup
/// memory.
fn gpu(memory: u32, loops: usize) -> Device {
    let device = Device::new().unwrap();
    device.set_tuning(crate::plan::Tuning::Off);
    device.change_caps(|caps| {
        (caps.cpu, caps.subgroups, caps.strict) = (false, None, true);
        (caps.workgroup[1], caps.loop_iterations) = (memory, loops);
    });
    device
}

/// A device on which each op is a kernel.
fn single_ops() -> Device {
    let device = Device::new().unwrap();
    device.set_fusion(false);
    device
}

/// Compares a GPU's kernels for layers of these sizes with cells, op by op.
fn compare_on(gpu: &Device, all: &[[usize; 4]], dtype: DType, second: bool, by: f64) {
    let cells = single_ops();
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        for &sizes in all {
            Case { cell, sizes, dtype, second }.compare([gpu, &cells], by);
        }
    }
}

#[test]
fn workgroups_that_walk_compute_what_cells_do() {
    // One row and two per workgroup, rows beyond the last, units that do not fill slices.
    let sizes = [[1, 1, 1, 4], [3, 3, 2, 12], [2, 3, 2, 132], [64, 2, 2, 16], [65, 2, 2, 20]];
    compare_on(&gpu(16 << 10, 1 << 15), &sizes, DType::F32, false, 2e-4);
}

#[test]
fn workgroups_walk_with_four_rows_where_they_share_more_memory() {
    compare_on(&gpu(32 << 10, 1 << 15), &[[130, 2, 2, 64]], DType::F32, false, 2e-4);
}

#[test]
fn walks_of_many_steps_are_several_launches() {
    let device = gpu(16 << 10, 256);
    compare_on(&device, &[[3, 70, 1, 8]], DType::F32, false, 2e-4);
    let count = |steps| kernels(&device, Cell::Lstm, [steps, 16], false)[0];
    let (few, many) = (count(10), count(150));
    assert!(few == 1 && (2..10).contains(&many), "{few} and {many} kernels");
}

#[test]
fn steps_of_wide_layers_compute_what_cells_do() {
    let sizes = [[1, 3, 1, 516], [3, 2, 2, 516], [7, 2, 1, 520]];
    compare_on(&gpu(16 << 10, 1 << 15), &sizes, DType::F32, false, 2e-4);
    // Less than four rows need.
    compare_on(&gpu(16_352, 1 << 15), &[[5, 2, 1, 516]], DType::F32, false, 2e-4);
}

#[test]
fn widened_layers_on_a_gpu_compute_what_cells_do() {
    let device = gpu(16 << 10, 1 << 15);
    compare_on(&device, &[[2, 3, 2, 3]], DType::F32, true, 2e-4);
    compare_on(&device, &[[1, 2, 1, 1], [2, 2, 1, 130], [2, 2, 1, 513]], DType::F32, false, 2e-4);
}

#[test]
fn a_gpu_s_kernels_have_gradients_of_gradients() {
    compare_on(&gpu(16 << 10, 1 << 15), &[[3, 4, 2, 8]], DType::F32, true, 2e-4);
}

#[test]
fn a_gpu_sums_half_floats_in_f32() {
    let device = gpu(16 << 10, 1 << 15);
    if !device.caps().f16 {
        println!("this adapter has no f16");
        return;
    }
    compare_on(&device, &[[3, 4, 2, 8], [65, 2, 2, 20]], DType::F16, false, 2e-2);
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
fn units_that_fill_no_vectors_are_widened() {
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        compare(cell, [2, 3, 2, 3], DType::F32, true, 2e-4);
        compare(cell, [3, 2, 2, 1], DType::F32, false, 2e-4);
        compare(cell, [2, 2, 1, 130], DType::F32, false, 2e-4);
        if Device::current().unwrap().caps().f16 {
            compare(cell, [3, 2, 2, 5], DType::F16, false, 2e-2);
        }
    }
}

/// The number of kernels of a layer with this many steps and units in one flush, with or without gradients: the layer's
/// own, and all.
fn kernels(device: &Device, cell: Cell, [steps, units]: [usize; 2], gradients: bool) -> [usize; 2] {
    let wide = cell.gates() * units;
    let bias: &[usize] = if cell == Cell::Gru { &[2, wide] } else { &[wide] };
    let shapes: [&[usize]; 5] = [&[4, steps, 8], &[4, units], &[8, wide], &[units, wide], bias];
    device.scope(|| {
        let x: Vec<Tensor> = shapes.iter().map(|shape| numbers(shape, 7)).collect();
        let mut count = [0; 2];
        // The first run of a structure may use single ops.
        for _ in 0..2 {
            device.synchronize().unwrap();
            let tape = GradientTape::new();
            x.iter().for_each(|x| tape.watch(x).unwrap());
            let y = run(cell, &x, None, false, false);
            let grads = if gradients { tape.gradient(&y, &x[..]).unwrap() } else { Vec::new() };
            device.synchronize().unwrap();
            drop((y, grads));
            let plan = device.last_plan().unwrap();
            let own = plan.kernels().iter().filter(|kernel| kernel.label.starts_with("recurrent_"));
            count = [own.count(), plan.kernels().len()];
        }
        count
    })
}

/// A layer's own kernels with 10 steps and with 20.
fn of_few_and_many(device: &Device, cell: Cell, units: usize, gradients: bool) -> [usize; 2] {
    [10, 20].map(|steps| {
        let [own, all] = kernels(device, cell, [steps, units], gradients);
        println!("{cell:?}, {units} units, {steps} steps, gradients {gradients}: {own} of {all}");
        assert!(all <= own + 40, "{all} kernels");
        own
    })
}

#[test]
fn a_step_is_one_kernel_of_a_processor_and_two_with_gradients() {
    let device = Device::new().unwrap();
    device.set_tuning(crate::plan::Tuning::Off);
    device.change_caps(|caps| caps.cpu = true);
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        for units in [16, 10] {
            // One kernel copies the initial state.
            assert_eq!(of_few_and_many(&device, cell, units, false), [11, 21], "{cell:?}");
            assert_eq!(of_few_and_many(&device, cell, units, true), [21, 41], "{cell:?}");
        }
    }
}

#[test]
fn all_steps_are_one_kernel_of_a_gpu_and_two_with_gradients() {
    let device = gpu(16 << 10, 1 << 15);
    for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
        for units in [16, 10] {
            assert_eq!(of_few_and_many(&device, cell, units, false), [1, 1], "{cell:?}");
            assert_eq!(of_few_and_many(&device, cell, units, true), [2, 2], "{cell:?}");
        }
    }
}
