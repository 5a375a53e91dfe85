//! A debugging mode: every op runs when it is called, and the first one that produces NaN or infinity is reported.
//!
//! Native only, because the host waits for each result. While the mode is off, a call only tests a flag.

use std::backtrace::Backtrace;
use std::fmt::Write;
use std::sync::Arc;

use half::f16;

use super::{Device, DeviceState};
use crate::dtype::DType;
use crate::error::{Error, Message, Result, message};
use crate::graph::{Op, Spec, Value, ValueState};

impl Device {
    /// Whether every op runs when it is called and its result is checked for NaN and infinity
    /// (`WGRAD_CHECK_NUMERICS=1`). Use it for debugging: each call takes as long as the computation and a read.
    ///
    /// The reported op is the one that *produces* the value: its result contains NaN and none of its inputs does, or
    /// infinity and none of its inputs does. Values from the host, or requested ones (`Tensor::full(shape,
    /// f32::INFINITY)`), are not produced by an op; [`check_numerics`](crate::debugging::check_numerics) finds them.
    /// The result of the op counts as failed: the next flush, optimizer step, or read of it or of a value computed from
    /// it returns [`Error::Check`] with the op, the numbers in its result and its inputs, and the line of the program
    /// that called it (if the program has line tables, as debug builds have; otherwise the function).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, constant};
    /// let device = Device::new()?;
    /// device.set_check_numerics(true);
    /// let error = device.scope(|| {
    ///     let x = constant([1.0, 0.0, -2.0])?;
    ///     let y = x.log()? * 2.0;
    ///     y.to_vec::<f32>()
    /// });
    /// let text = error.unwrap_err().to_string();
    /// assert!(text.starts_with("Log: the result, f32 [3], has 1 NaN, 1 infinite"), "{text}");
    /// assert!(text.contains("Input 0, f32 [3], is from -2 to 1."), "{text}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_check_numerics(&self, on: bool) {
        self.state().check_numerics = on;
    }

    /// As [`Device::push`], but runs the op and checks its result.
    #[cold]
    pub(super) fn push_checked(
        &self,
        state: &mut DeviceState,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        spec: Spec,
    ) -> Arc<Value> {
        let (value, failed) = state.stream.push(op, inputs, spec);
        if let Some(error) = failed {
            state.failure.get_or_insert(error);
            return value;
        }
        self.flush_unasked(state);
        // An op without inputs returns what the program requests.
        if !inputs.is_empty() {
            if let Err(error) = self.check_result(&value, inputs) {
                value.set(ValueState::Failed(error.clone()));
                state.failure.get_or_insert(error);
            }
        }
        value
    }

    fn check_result(&self, value: &Arc<Value>, inputs: &[&Arc<Value>]) -> Result<()> {
        let Some(result) = self.numbers_of(value)? else { return Ok(()) };
        if result.nan + result.infinite == 0 {
            return Ok(());
        }
        let mut nan = result.nan > 0;
        let mut infinite = result.infinite > 0;
        let mut ranges = String::new();
        for (at, input) in inputs.iter().enumerate() {
            let numbers = self.numbers_of(input)?;
            let (dtype, shape) = (input.spec.dtype, &input.spec.shape);
            let _ = write!(ranges, " Input {at}, {dtype} {shape}, ");
            match numbers {
                None => ranges.push_str("has no floats."),
                Some(numbers) => {
                    nan &= numbers.nan == 0;
                    infinite &= numbers.infinite == 0;
                    let _ = write!(ranges, "{}.", numbers.text());
                }
            }
        }
        if !nan && !infinite {
            return Ok(());
        }
        let (dtype, shape) = (value.spec.dtype, &value.spec.shape);
        Err(Error::Check(message!(
            "{}: the result, {dtype} {shape}, {}.{ranges} {}",
            value.op,
            result.text(),
            place()
        )))
    }

    /// Counts the NaN, infinite and finite numbers of a value; `None` if they are not floats or the value has failed.
    fn numbers_of(&self, value: &Arc<Value>) -> Result<Option<Numbers>> {
        let ValueState::Ready(buffer) = value.state() else { return Ok(None) };
        let (dtype, elements) = (value.spec.dtype, value.spec.elements());
        if !dtype.is_float() || elements == 0 {
            return Ok(None);
        }
        let gpu = &self.0.gpu;
        let staging = gpu.staging(dtype.size() * elements)?;
        let index = gpu.submit(&[], Some((&buffer, &staging)))?;
        let bytes = gpu.read_blocking(staging, index)?;
        Ok(Some(match dtype {
            DType::F16 => Numbers::collect(
                bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()),
            ),
            _ => Numbers::collect(
                bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            ),
        }))
    }
}

/// How many floats are NaN and infinite, and the range of the others.
struct Numbers {
    nan: usize,
    infinite: usize,
    finite: Option<(f32, f32)>,
}

impl Numbers {
    fn collect(values: impl Iterator<Item = f32>) -> Self {
        let mut numbers = Numbers { nan: 0, infinite: 0, finite: None };
        for x in values {
            match x {
                _ if x.is_nan() => numbers.nan += 1,
                _ if x.is_infinite() => numbers.infinite += 1,
                _ => {
                    let (low, high) = numbers.finite.unwrap_or((x, x));
                    numbers.finite = Some((low.min(x), high.max(x)));
                }
            }
        }
        numbers
    }

    fn text(&self) -> String {
        let range = match self.finite {
            Some((low, high)) => format!("from {low} to {high}"),
            None => "without a finite number".to_owned(),
        };
        match (self.nan, self.infinite) {
            (0, 0) => format!("is {range}"),
            (nan, infinite) => format!("has {nan} NaN, {infinite} infinite, and is else {range}"),
        }
    }
}

/// The location of the program's call, as far as symbols are available.
fn place() -> Message {
    match callers(&Backtrace::force_capture().to_string()) {
        Some(place) => message!("The program called it {place}."),
        None => message!("The program has no symbols that show who called it."),
    }
}

/// The innermost function of a backtrace that is in neither wgrad nor another library, and its line.
fn callers(backtrace: &str) -> Option<String> {
    // A function's name, and the line below it, if it has line tables. Their names do not include modules.
    let mut frames: Vec<(&str, Option<String>)> = Vec::new();
    for line in backtrace.lines().map(str::trim) {
        match (line.strip_prefix("at "), frames.last_mut(), line.split_once(": ")) {
            (Some(place), Some((_, known)), _) => *known = Some(place.replace('\\', "/")),
            (None, _, Some((number, name))) if number.parse::<u32>().is_ok() => {
                frames.push((name, None))
            }
            _ => {}
        }
    }
    // The backtrace contains this file, whose path leads to wgrad's sources.
    let places = || frames.iter().filter_map(|(_, place)| place.as_deref());
    let home = places().find_map(|place| Some(place.split_once("runtime/numerics.rs")?.0));
    let theirs = |(name, place): &&(&str, Option<String>)| match place {
        Some(place) => {
            !home.is_some_and(|home| place.starts_with(home))
                && !place.starts_with("/rustc/")
                && !place.contains("/registry/src/")
        }
        None => !is_ours(name),
    };
    let (name, place) = frames.iter().find(theirs)?;
    Some(match place {
        Some(place) => format!("at {place}, in {name}"),
        None => format!("in {name}"),
    })
}

/// Whether a function, by its name with its modules, is not the program's.
fn is_ours(name: &str) -> bool {
    // `<wgrad::tensor::Tensor as core::ops::Add>::add`, `<&wgrad::..`, and plain paths.
    let path = name.trim_start_matches(['<', '&', '*']).trim_start_matches("mut ");
    let ours = ["wgrad", "std", "core", "alloc", "backtrace", "__rustc", "pollster"];
    path.split_once("::").is_none_or(|(root, _)| ours.contains(&root))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_found_by_lines() {
        let ours = "   0: create\n             at /rustc/59807616/library/std/src/backtrace.rs:9:5\n   1: place\n             \
                    at ./src/runtime/numerics.rs:9:5\n   2: mul<f32>\n             at ./src/tensor/operators.rs:8:1\n";
        let text = |rest: &str| callers(&format!("{ours}{rest}"));
        let step = "   4: {closure#0}\n             at ./examples/src/main.rs:7:9\n   5: main\n";
        assert_eq!(text(step), Some("at ./examples/src/main.rs:7:9, in {closure#0}".into()));
        let block_on =
            "   4: block_on\n             at /cargo/registry/src/index/pollster-1/src/lib.rs:7:9\n";
        assert_eq!(text(&format!("{block_on}{step}")), text(step));
        assert_eq!(text(block_on), None);
        let windows = ours.replace("./src/", ".\\src\\").replace("runtime/", "runtime\\");
        let mine = "   4: step\n             at .\\examples\\main.rs:7:9\n";
        assert_eq!(
            callers(&format!("{windows}{mine}")),
            Some("at ./examples/main.rs:7:9, in step".into())
        );
    }

    #[test]
    fn the_program_is_found_by_names() {
        let ours = "   0: std::backtrace::Backtrace::create\n   1: wgrad::runtime::numerics::place\n   2: \
                    <&wgrad::tensor::Tensor as core::ops::arith::Mul<f32>>::mul\n   3: <wgrad::Device>::scope::<()>\n";
        let text = |rest: &str| callers(&format!("{ours}{rest}"));
        assert_eq!(
            text("   4: <mine::Layer as wgrad::keras::Layer>::call\n   5: mine::main\n"),
            Some("in <mine::Layer as wgrad::keras::Layer>::call".into())
        );
        assert_eq!(text("   4: main\n   5: __libc_start_main\n"), None);
        assert_eq!(callers("disabled backtrace"), None);
    }

    #[test]
    fn numbers_are_counted() {
        let text = |values: &[f32]| Numbers::collect(values.iter().copied()).text();
        assert_eq!(text(&[1.0, -2.5, 0.0]), "is from -2.5 to 1");
        assert_eq!(
            text(&[f32::NAN, 3.0, f32::NEG_INFINITY, f32::NAN]),
            "has 2 NaN, 1 infinite, and is else from 3 to 3"
        );
        assert_eq!(text(&[f32::NAN]), "has 1 NaN, 0 infinite, and is else without a finite number");
    }
}
