//! Third derivatives, Hessians and Jacobians with nested tapes, and the golden cases about tapes' behaviour.

use serde_json::Value;
use wgrad::{GradientOptions, GradientTape, Result, Tensor, UnconnectedGradients, Variable};

use super::call::{Answer, Call, Stop};
use super::calls::UnaryOp;
use super::oracle::Case;
use super::sheet::Sheet;

/// Whether the case's outputs are derivatives themselves.
pub fn is_derived(case: &Case) -> bool {
    let third = case.attr("order").and_then(Value::as_i64) == Some(3);
    third || case.attr("kind").is_some() || case.attr("custom_gradient").is_some()
}

pub fn derived(c: &Call) -> Answer {
    let x = c.x()?;
    let f: UnaryOp = match c.case.op.as_str() {
        "x4" => |x| x.pow(4.0),
        "sin" => Tensor::sin,
        "reduce_logsumexp" => |x| x.reduce_logsumexp(()),
        "softmax" => |x| x.softmax(-1),
        "log(1+exp(x))" => |x| x.exp()?.add(1.0)?.log(),
        "x0^2*x1 + sin(x1)" => |x| {
            let parts = x.unstack(0)?;
            Ok(parts[0].square()? * &parts[1] + parts[1].sin()?)
        },
        "sum(100(x[1:]-x[:-1]^2)^2 + (1-x[:-1])^2)" => |x| {
            let (next, own) =
                (x.strided_slice(ndarray::s![1..])?, x.strided_slice(ndarray::s![..-1])?);
            let valley = (next - own.square()?).square()? * 100.0;
            (valley + (1.0 - own).square()?).reduce_sum(())
        },
        _ => return Err(Stop::Lacks(String::new())),
    };
    if let Some(order) = c.int("order")? {
        c.only("upstream", "ones")?;
        return Ok(derivatives(&f, x, order as usize)?);
    }
    match c.text("kind")?.as_deref() {
        None => {
            c.remark("formula");
            match c.flag("custom_gradient")? {
                true => Ok(derivatives(&stable_log1pexp(), x, 1)?),
                false => Ok(derivatives(&f, x, 1)?),
            }
        }
        Some("hessian") => hessian(f, x),
        Some("jacobian and batch_jacobian") => jacobian(f, x),
        Some(_) => Err(Stop::Lacks("kind".into())),
    }
}

/// log(1 + e^x) with the gradient dy (1 - 1 / (1 + e^x)).
fn stable_log1pexp() -> impl Fn(&Tensor) -> Result<Tensor> {
    wgrad::custom_gradient(|x: &Tensor| {
        let e = x.exp()?;
        Ok((e.add(1.0)?.log()?, move |dy: &Tensor| dy.multiply(1.0 - 1.0 / (&e + 1.0))))
    })
}

fn hessian(f: UnaryOp, x: &Tensor) -> Answer {
    let mut parts = derivatives(&f, x, 1)?;
    parts.push(wgrad::autodiff::hessian(f, x)?);
    Ok(parts)
}

fn jacobian(f: UnaryOp, x: &Tensor) -> Answer {
    let tape = GradientTape::persistent();
    tape.watch(x)?;
    let y = f(x)?;
    let jacobian = tape.jacobian(&y, x)?.expect("y depends on x");
    let batch = tape.batch_jacobian(&y, x)?.expect("y depends on x");
    Ok(vec![y, jacobian, batch])
}

/// f(x) and its derivatives up to `order`, each the gradient of the previous one with upstream ones.
fn derivatives(
    f: &dyn Fn(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    order: usize,
) -> Result<Vec<Tensor>> {
    if order == 0 {
        return Ok(vec![f(x)?]);
    }
    let tape = GradientTape::new();
    tape.watch(x)?;
    let mut all = derivatives(f, x, order - 1)?;
    let next = tape.required_gradient(&all[order - 1], x)?;
    all.push(next);
    Ok(all)
}

/// A tape answers only once because of its type: `gradient` consumes it.
fn a_tape_answers_once() {
    trait Copies<A> {
        fn are_none() {}
    }
    struct Some;
    impl<T> Copies<()> for T {}
    impl<T: Clone> Copies<Some> for T {}
    // Ambiguous, and therefore a compile error, for types that can be cloned.
    <GradientTape as Copies<_>>::are_none();
    let _: fn(GradientTape, &'static Tensor, &'static Tensor) -> Result<Option<Tensor>> =
        GradientTape::gradient;
}

/// Checks the statements about tapes in `values`: none, a number, or several of these.
pub fn tape_behaviour(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    let values = c.case.raw.get("values").and_then(Value::as_object);
    for (key, want) in c.need("values", values)? {
        let got: Vec<Option<Tensor>> = match key.as_str() {
            "persistent: x=3, y=x*x, z=y*y: dz/dx, dy/dx" => {
                let x = Tensor::scalar(3f32)?;
                let tape = GradientTape::persistent();
                tape.watch(&x)?;
                let y = &x * &x;
                let z = &y * &y;
                vec![tape.gradient(&z, &x)?, tape.gradient(&y, &x)?]
            }
            "x0 Variable(2), x1 constant(3) unwatched, y=x0^2+x1^2: grads" => {
                let (x0, x1) = (two()?, Tensor::scalar(3f32)?);
                let tape = GradientTape::persistent();
                let sum = x0.read().square()? + x1.square()?;
                vec![tape.gradient(&sum, &x0)?, tape.gradient(&sum, &x1)?]
            }
            "two targets y0=x0^2, y1=1/x0 at 2: d(y0+y1)/dx0" => {
                let x0 = two()?;
                let tape = GradientTape::new();
                let targets = [x0.read().square()?, 1.0 / &x0];
                vec![tape.gradient(&targets[..], &x0)?]
            }
            "unconnected default" => {
                let (x0, x1) = (two()?, Tensor::scalar(3f32)?);
                let tape = GradientTape::new();
                vec![tape.gradient(&x1.square()?, &x0)?]
            }
            "unconnected ZERO" => {
                let (x0, x1) = (two()?, Tensor::scalar(3f32)?);
                let tape = GradientTape::new();
                let zeros =
                    GradientOptions::new().unconnected_gradients(UnconnectedGradients::Zero);
                vec![tape.gradient_with(&x1.square()?, &x0, zeros)?]
            }
            "stop_recording: out = x0*x0 + (x0*5 not recorded), d/dx0 at 2" => {
                let x0 = two()?;
                let tape = GradientTape::new();
                let five = tape.stop_recording(|| &x0 * 5.0);
                let out = x0.read().square()? + five;
                vec![tape.gradient(&out, &x0)?]
            }
            "loop: s=0; i in 0..4: even s+=x0*i, odd s*=x0; s and ds/dx0 at 2" => {
                let x0 = two()?;
                let tape = GradientTape::new();
                let mut s = Tensor::scalar(0f32)?;
                for i in 0..5 {
                    s = if i % 2 == 0 { s + &x0 * i } else { s * &x0 };
                }
                vec![Some(s.clone()), tape.gradient(&s, &x0)?]
            }
            // TensorFlow warns and returns none; here, watching is an error.
            "integer watched" => {
                let watched = GradientTape::new().watch(&Tensor::scalar(3)?);
                vec![watched.is_ok().then(|| Tensor::scalar(0f32)).transpose()?]
            }
            "second gradient of a non-persistent tape" => {
                a_tape_answers_once();
                if !want.as_str().is_some_and(|text| text.starts_with("RuntimeError")) {
                    sheet.miss(key, format!("there is no second one; TensorFlow has {want}"));
                }
                continue;
            }
            "v=1: a=v*2; v.assign(10); b=v*a: b, db/dv" => {
                let v = Variable::new(&Tensor::scalar(1f32)?);
                let tape = GradientTape::new();
                let a = &v * 2.0;
                v.assign(&Tensor::scalar(10f32)?)?;
                let b = &v * &a;
                vec![Some(b.clone()), tape.gradient(&b, &v)?]
            }
            _ => return Err(Stop::Lacks(key.clone())),
        };
        let wanted = super::oracle::one_or_many(want);
        if wanted.len() != got.len() {
            sheet.miss(key, format!("{} numbers, wanted {}", got.len(), wanted.len()));
        }
        for (got, want) in got.iter().zip(wanted) {
            match (got, want.as_f64()) {
                (Some(got), Some(want)) => sheet.add_number(key, got, want),
                (None, None) if want.is_null() => {}
                (got, _) => sheet.miss(key, format!("got {got:?}, wanted {want}")),
            }
        }
    }
    Ok(())
}

fn two() -> Result<Variable> {
    Ok(Variable::new(&Tensor::scalar(2f32)?))
}
