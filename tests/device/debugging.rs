//! Checks, assertions and prints, which the device reports when it reaches them, and the mode that names the op that made the
//! first NaN.

#![allow(clippy::unwrap_used)]

use crate::support::child;

use wgrad as tf;
use wgrad::debugging::{self, AssertNearOptions, PrintOptions};
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::{DType, Device, Error, GradientTape, Result, Tensor, Variable};

fn floats<const N: usize>(values: [f32; N]) -> Tensor {
    tf::constant(values).unwrap()
}

/// The device's error after `f`, and the line before the call.
#[track_caller]
fn reported(f: impl FnOnce() -> Result<()>) -> String {
    let device = Device::new().unwrap();
    device.scope(f).unwrap();
    let error = device.synchronize().unwrap_err();
    assert!(matches!(error, Error::Check(_)), "{error:?}");
    // It is reported once.
    device.synchronize().unwrap();
    error.to_string()
}

#[track_caller]
fn silent(f: impl FnOnce() -> Result<()>) {
    let device = Device::new().unwrap();
    device.scope(f).unwrap();
    device.synchronize().unwrap();
}

#[test]
fn nan_and_infinity_are_reported_with_the_op_and_the_line() {
    let line = line!() + 2;
    let text = reported(|| {
        debugging::check_numerics(&floats([1.0, 0.0, -1.0, -2.0]).log()?, "the logarithm").map(drop)
    });
    assert_eq!(
        text,
        format!(
            "CheckNumerics: the logarithm: Log gave 2 NaN and 1 infinite numbers, of 4 (f32 [4]). Called at \
             tests/device/debugging.rs:{line}."
        )
    );
    let text = reported(|| debugging::assert_all_finite(&floats([f32::INFINITY]), ""));
    assert!(
        text.starts_with("CheckNumerics: Const gave 0 NaN and 1 infinite numbers, of 1 (f32 [1])."),
        "{text}"
    );
    silent(|| debugging::check_numerics(&floats([1.0, f32::MAX]), "").map(drop));
    silent(|| debugging::assert_all_finite(&Tensor::zeros([0, 2])?, ""));
    let error = debugging::check_numerics(&tf::constant(1).unwrap(), "").unwrap_err();
    assert!(matches!(error, Error::DType(_)), "{error}");
}

#[test]
fn a_read_reports_and_the_next_gives_the_values() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = floats([4.0, -4.0]);
        let y = debugging::check_numerics(&x.sqrt().unwrap(), "").unwrap();
        // Nothing is read at the call.
        assert_eq!((device.stats().flushes, device.stats().reads), (0, 0));
        let z = y.add(1.0).unwrap();
        assert!(matches!(z.to_vec::<f32>(), Err(Error::Check(_))));
        let values = z.to_vec::<f32>().unwrap();
        assert!(values[0] == 3.0 && values[1].is_nan());
        // For a value that exists already, a read also reports it; async reads do, too.
        debugging::assert_all_finite(&z, "again").unwrap();
        assert!(matches!(x.to_vec::<f32>(), Err(Error::Check(_))));
        debugging::assert_all_finite(&z, "again").unwrap();
        let read = pollster::block_on(Tensor::to_vecs_async::<f32>(&[&x, &z]));
        assert!(matches!(read, Err(Error::Check(_))));
        // Two checks: the first error is reported, and nothing is left.
        debugging::assert_positive(&x, "first").unwrap();
        debugging::assert_negative(&x, "second").unwrap();
        assert!(x.item_of(0).unwrap_err().to_string().starts_with("assert_positive: first: "));
        device.synchronize().unwrap();
    });
}

trait ItemOf {
    fn item_of(&self, at: usize) -> Result<f32>;
}

impl ItemOf for Tensor {
    fn item_of(&self, at: usize) -> Result<f32> {
        Ok(self.to_vec::<f32>()?[at])
    }
}

#[test]
fn gradients_pass_through_a_check_and_are_checked() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let x = floats([0.0, 4.0]);
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        // The root of 0 is 0, and its slope infinite.
        let y = debugging::check_numerics(&x, "x").unwrap().sqrt().unwrap();
        let dx = tape.gradient(&y, &x).unwrap().unwrap();
        let error = dx.to_vec::<f32>().unwrap_err().to_string();
        assert!(error.starts_with("CheckNumerics: x: the gradient: "), "{error}");
        assert!(error.contains("gave 0 NaN and 1 infinite numbers, of 2"), "{error}");
        assert_eq!(dx.to_vec::<f32>().unwrap(), [f32::INFINITY, 0.25]);
        // Second order.
        let (outer, inner) = (GradientTape::new(), GradientTape::new());
        let x = floats([3.0]);
        outer.watch(&x).unwrap();
        inner.watch(&x).unwrap();
        let y = debugging::check_numerics(&x, "x").unwrap().pow(3.0).unwrap();
        let dx = inner.gradient(&y, &x).unwrap().unwrap();
        let ddx = outer.gradient(&dx, &x).unwrap().unwrap();
        assert!((ddx.item::<f32>().unwrap() - 18.0).abs() < 1e-4);
    });
}

#[test]
fn assertions_report_the_first_element() {
    let table = || tf::constant([[1, 2, 3], [4, 5, 6]]);
    let line = line!() + 1;
    let text = reported(|| debugging::assert_less(&table()?, tf::constant([5, 5, 5])?, "rows"));
    assert_eq!(
        text,
        format!(
            "assert_less: rows: x < y does not hold for 2 of 6 elements; the first is [1, 1], where x is 5 and y is 5. \
             Called at tests/device/debugging.rs:{line}."
        )
    );
    let first =
        |f: &dyn Fn() -> Result<()>| reported(f).split(" Called").next().unwrap().to_string();
    let x = || floats([1.0, -2.5, f32::NAN]);
    let of = |rule: &str, count: usize, at: usize, what: &str| {
        format!(
            "{rule} does not hold for {count} of 3 elements; the first is [{at}], where {what}."
        )
    };
    assert_eq!(
        first(&|| debugging::assert_equal(&x(), 1.0, "")),
        format!("assert_equal: {}", of("x == y", 2, 1, "x is -2.5 and y is 1"))
    );
    assert_eq!(
        first(&|| debugging::assert_none_equal(&x(), -2.5, "")),
        format!("assert_none_equal: {}", of("x != y", 1, 1, "x is -2.5 and y is -2.5"))
    );
    assert_eq!(
        first(&|| debugging::assert_positive(&x(), "")),
        format!("assert_positive: {}", of("x > 0", 2, 1, "x is -2.5"))
    );
    assert_eq!(
        first(&|| debugging::assert_near(&x(), floats([1.0, -2.5, 0.0]), "")),
        format!("assert_near: {}", of("|x - y| <= atol + rtol |y|", 1, 2, "x is NaN and y is 0"))
    );
    for f in
        [debugging::assert_greater, debugging::assert_greater_equal, debugging::assert_less_equal]
    {
        // A scalar and a column, some of whose elements violate each rule.
        assert!(
            first(&|| f(&floats([0.0, 1.0, 2.0]), floats([1.0, 0.5, 3.0]), ""))
                .contains("of 3 elements")
        );
    }
    for f in
        [debugging::assert_negative, debugging::assert_non_negative, debugging::assert_non_positive]
    {
        assert!(first(&|| f(&x(), "")).contains("of 3 elements"));
    }
    let bools = || tf::constant([true, false]);
    assert!(
        first(&|| debugging::assert_equal(&bools()?, true, ""))
            .contains("where x is false and y is true")
    );
}

#[test]
fn assertions_that_hold_are_silent() {
    let x = || floats([0.0, 1.0, 2.0]);
    silent(|| debugging::assert_equal(&x(), x(), ""));
    silent(|| debugging::assert_equal(&Tensor::zeros([0, 3])?, 1.0, ""));
    silent(|| debugging::assert_near(&x(), floats([1e-6, 1.000_001, 2.0]), ""));
    silent(|| debugging::assert_near(&floats([f32::INFINITY]), f32::INFINITY, ""));
    let far = AssertNearOptions::new().atol(0.5);
    silent(|| debugging::assert_near_with(&x(), x().add(0.4)?, "", far));
    silent(|| debugging::assert_non_negative(&x(), ""));
    silent(|| debugging::assert_less(&x(), 2.5, ""));
    silent(|| debugging::assert_greater_equal(&tf::constant([3u32, 4])?, 3u32, ""));
    let error = debugging::assert_equal(&x(), floats([1.0, 2.0]), "").unwrap_err();
    assert!(matches!(error, Error::Shape(_)), "{error}");
    let error = debugging::assert_less(&x(), tf::constant(1).unwrap(), "").unwrap_err();
    assert!(matches!(error, Error::DType(_)), "{error}");
}

#[test]
fn shapes_and_dtypes_are_known_at_the_call() {
    let x = Tensor::zeros([2, 3]).unwrap();
    let text = |result: Result<()>| result.unwrap_err().to_string();
    debugging::assert_rank(&x, 2, "").unwrap();
    debugging::assert_rank_at_least(&x, 1, "").unwrap();
    debugging::assert_type(&x, DType::F32, "").unwrap();
    debugging::assert_scalar(&tf::constant(1.0).unwrap(), "").unwrap();
    assert_eq!(
        text(debugging::assert_rank(&x, 3, "x")),
        "assert_rank: x: x is [2, 3], of rank 2, and not 3."
    );
    assert_eq!(
        text(debugging::assert_rank_at_least(&x, 3, "")),
        "assert_rank_at_least: x is [2, 3], of rank 2, and not of 3 or more."
    );
    assert_eq!(
        text(debugging::assert_scalar(&x, "")),
        "assert_scalar: x is [2, 3], and not a scalar."
    );
    assert_eq!(
        text(debugging::assert_type(&x, DType::I32, "")),
        "assert_type: x is f32 [2, 3], and not i32."
    );
    let shapes = |spec: &str| debugging::assert_shapes(&[(&x, spec)], "");
    for fits in ["N M", "2, 3", ". 3", "* 3", "... N M", "...", ". ."] {
        shapes(fits).unwrap();
    }
    for (spec, why) in [
        ("N N", "axis 1 is 3, and N is 2 of tensor 0"),
        ("2 4", "axis 1 is 3, and not 4"),
        ("", "its rank is 2, and not 0"),
        ("... A B C", "its rank is 2, and not 3 or more"),
        ("N ...", "only the first word may stand for any number of axes"),
    ] {
        assert_eq!(
            text(shapes(spec)),
            format!("assert_shapes: tensor 0 is [2, 3] and should be {spec:?}: {why}.")
        );
    }
}

#[test]
fn the_mode_names_the_op_and_the_line() {
    let device = Device::new().unwrap();
    device.set_check_numerics(true);
    device.scope(|| {
        let x = floats([1.0, 2.0, 3.0]);
        let mask = floats([0.0, f32::NEG_INFINITY, 0.0]);
        // An infinity that the program creates intentionally is not reported.
        let masked = x.add(&mask).unwrap().softmax(-1).unwrap();
        assert_eq!(masked.to_vec::<f32>().unwrap()[1], 0.0);
        let line = line!() + 1;
        let y = x.subtract(2.0).unwrap().rsqrt().unwrap();
        let z = y.multiply(2.0).unwrap();
        let error = z.to_vec::<f32>().unwrap_err();
        assert!(matches!(error, Error::Check(_)));
        let error = error.to_string();
        assert!(
            error.starts_with(
                "Rsqrt: the result, f32 [3], has 1 NaN, 1 infinite, and is else from 1 to 1. Input 0, f32 [3], is from \
                 -1 to 1. The program called it "
            ),
            "{error}"
        );
        assert!(error.contains("debugging.rs") && error.contains(&format!(":{line}:")), "{error}");
        // An integer op, and a random draw.
        assert_eq!(tf::constant([1, 2]).unwrap().add(1).unwrap().to_vec::<i32>().unwrap(), [2, 3]);
    });
    device.set_check_numerics(false);
    let nan = device.scope(|| floats([-1.0]).sqrt()).unwrap();
    assert!(nan.item::<f32>().unwrap().is_nan());
}

fn descend(sgd: &Sgd, w: &Variable, loss: impl FnOnce() -> Result<Tensor>) -> Result<()> {
    let tape = GradientTape::new();
    let loss = loss()?;
    sgd.minimize(&loss, tape, w)
}

/// A training step: the gradient makes the NaN, within a call of the optimizer.
#[test]
fn the_mode_finds_the_op_of_a_gradient() {
    let device = Device::new().unwrap();
    device.set_check_numerics(true);
    let step = || -> Result<()> {
        let w = Variable::new(tf::constant([0.0, 1.0])?);
        let sgd = Sgd::new(0.1);
        for _ in 0..2 {
            descend(&sgd, &w, || w.read().square()?.reduce_sum(())?.sqrt())?;
        }
        // The loss at 0 is 0, and its slope infinite times 0.
        let w = Variable::new(tf::constant([0.0])?);
        descend(&sgd, &w, || w.read().square()?.reduce_sum(())?.sqrt())
    };
    let error = device.scope(step).unwrap_err();
    assert!(matches!(error, Error::Check(_)), "{error:?}");
    assert!(error.to_string().contains("debugging.rs"), "{error}");
}

#[test]
fn a_tensor_says_what_made_it() {
    let x = floats([1.0]);
    let text = |x: &Tensor| format!("{x:?}");
    assert!(text(&x).starts_with("Tensor { op: Const, shape: [1], dtype: f32, device: "), "{x:?}");
    assert!(text(&x.exp().unwrap()).starts_with("Tensor { op: Exp, shape: [1], dtype: f32, "));
    assert!(text(&Tensor::zeros([2]).unwrap()).starts_with("Tensor { op: Fill, shape: [2]"));
}

#[test]
#[ignore = "a part of prints_come_in_order"]
fn prints() {
    let x = tf::constant([[1, 2, 3], [4, 5, 6]]).unwrap();
    x.print("x:").unwrap();
    let y = x.cast(DType::F32).unwrap().multiply(0.5).unwrap();
    y.print("").unwrap();
    eprintln!("nothing is printed yet");
    y.reduce_sum(()).unwrap().print("sum").unwrap();
    tf::range(0, 100, 1).unwrap().print("long").unwrap();
    y.print_with("one", PrintOptions::new().summarize(1)).unwrap();
    assert_eq!(x.to_vec::<i32>().unwrap()[0], 1);
    eprintln!("read");
    // For an existing value, and at the end of the program.
    x.print_with("all", PrintOptions::new().summarize(None)).unwrap();
}

#[test]
fn prints_come_in_order() {
    let want = "nothing is printed yet\nx: [[1 2 3]\n [4 5 6]]\n[[0.5 1 1.5]\n [2 2.5 3]]\nsum 10.5\nlong [0 1 2 ... 97 98 99]\n\
                one [[0.5 ... 1.5]\n [2 ... 3]]\nread\n";
    let got = child::stderr(module_path!(), "prints", &[]);
    assert!(got.starts_with(want), "{got}");
}

#[test]
#[ignore = "a part of prints_in_a_loop"]
fn many_prints() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let w = Variable::new(tf::constant(1.0).unwrap());
        let sgd = Sgd::new(1e-4);
        let mut settled = None;
        for step in 0..10_000 {
            descend(&sgd, &w, || {
                let loss = w.read().square()?;
                loss.print("loss")?;
                debugging::assert_positive(&loss, "")?;
                Ok(loss)
            })
            .unwrap();
            // On a processor, the plan is made again after a thousand steps.
            if step == 1100 {
                settled = Some(device.stats());
            }
        }
        device.synchronize().unwrap();
        let (settled, now) = (settled.unwrap(), device.stats());
        assert_eq!((settled.pipelines, settled.buffers), (now.pipelines, now.buffers));
        assert!(now.plan_misses <= settled.plan_misses + 2, "{settled:?} {now:?}");
    });
}

#[test]
fn prints_in_a_loop() {
    let printed = child::stderr(module_path!(), "many_prints", &[]);
    let losses: Vec<f32> =
        printed.lines().filter_map(|line| line.strip_prefix("loss ")?.parse().ok()).collect();
    assert_eq!(losses.len(), 10_000);
    assert!(losses.windows(2).all(|pair| pair[1] < pair[0]), "the prints are out of order");
}

#[test]
#[ignore = "a part of the_mode_is_turned_on_from_outside"]
fn divides() {
    let x = floats([0.0]);
    let error = x.divide(0.0).unwrap().to_vec::<f32>().unwrap_err().to_string();
    assert!(error.starts_with("RealDiv: the result, f32 [1], has 1 NaN"), "{error}");
}

#[test]
fn the_mode_is_turned_on_from_outside() {
    child::stderr(module_path!(), "divides", &[("WGRAD_CHECK_NUMERICS", "1")]);
}
