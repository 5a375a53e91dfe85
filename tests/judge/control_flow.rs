//! Random programs of branches, loops and TensorArrays have TensorFlow's results and derivatives, eagerly and as functions:
//! `cargo xtask judge`. `WGRAD_JUDGE_PROGRAMS` is their number, `WGRAD_JUDGE_SEED` the first seed.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use wgrad as tf;
use wgrad::{
    DType, GradientTape, Result, Tensor, TensorArray, TensorOrVariable, Variable, WhileLoopOptions,
};

use crate::support::folder::Folder;

/// Writes random programs, whose values stay small.
struct Writer(u64);

impl Writer {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn number(&mut self) -> f64 {
        (self.below(2001) as f64 - 1000.0) / 1000.0
    }

    fn vector(&mut self) -> Vec<f64> {
        (0..3).map(|_| self.number()).collect()
    }

    /// Indices of values, of which there are `known`.
    fn some(&mut self, known: usize) -> Vec<usize> {
        (0..1 + self.below(4)).map(|_| self.below(known)).collect()
    }

    fn body(&mut self, known: usize, depth: usize) -> Value {
        let mut body = Vec::new();
        for _ in 0..1 + self.below(3) {
            body.push(self.statement(known + body.len(), depth));
        }
        // The derivatives of nested products stay small, too.
        let last = known + body.len() - 1;
        body.push(json!(["scale", last, 0.9]));
        body.push(json!(["tanh", last + 1]));
        Value::Array(body)
    }

    fn statement(&mut self, known: usize, depth: usize) -> Value {
        let (i, j, c) = (self.below(known), self.below(known), self.number());
        let kinds = if depth == 0 { 6 } else { 20 };
        match self.below(kinds) {
            0 => json!(["tanh", i]),
            1 => json!(["sin", i]),
            2 => json!(["scale", i, c]),
            3 => json!(["add", i, j]),
            4 => json!(["mul", i, j]),
            5 => json!(["custom", i, c]),
            6 => json!(["cond", i, c, self.body(known, depth - 1), self.body(known, depth - 1)]),
            7 => {
                let bodies: Vec<Value> =
                    (0..1 + self.below(3)).map(|_| self.body(known, depth - 1)).collect();
                json!(["switch", i, bodies])
            }
            8 | 9 => {
                let count = [Some(0), Some(1), Some(3), Some(10), None, None][self.below(6)];
                let most = [None, None, Some(2)][self.below(3)];
                json!(["while", count, j, most, i, self.body(known + 2, depth - 1)])
            }
            10 => json!(["map", self.some(known), self.body(known + 1, depth - 1)]),
            // Each row runs all of it, so nothing may decide by a row.
            11 => json!(["vectorized_map", self.some(known), self.body(known + 1, 0)]),
            12 => json!(["scan", self.some(known), j, self.body(known + 2, depth - 1)]),
            13 => {
                let fold = ["foldl", "foldr"][self.below(2)];
                json!([fold, self.some(known), j, self.body(known + 2, depth - 1)])
            }
            14 => json!(["host", i, c]),
            15 => json!(["split", i]),
            16 => {
                let first = self.below(2);
                json!(["scatter", i, j, [first, 1 - first]])
            }
            17 => json!(["recompute", i, self.body(1, depth - 1)]),
            18 => json!(["function", i, self.body(known + 1, depth - 1)]),
            _ => {
                let count = 1 + self.below(4);
                let order: Vec<usize> = (0..1 + self.below(3)).map(|_| self.below(count)).collect();
                json!(["array", count, i, order, self.body(known + 1, depth - 1)])
            }
        }
    }

    fn program(&mut self) -> Value {
        let inputs = [self.vector(), self.vector()];
        json!({"inputs": inputs, "variable": self.vector(), "body": self.body(3, 3)})
    }

    /// So many calls, without decisions, that a function runs them as two plans under a tape.
    fn flat_program(&mut self) -> Value {
        let inputs = [self.vector(), self.vector()];
        let mut body = Vec::new();
        for at in 0..24 {
            let known = 3 + body.len();
            let i = self.below(known);
            body.push(match at % 8 {
                3 => json!(["recompute", i, self.body(1, 0)]),
                5 => json!(["function", i, self.body(known + 1, 0)]),
                7 => json!(["tanh", i]),
                _ => self.statement(known, 0),
            });
        }
        let last = body.len() + 2;
        body.push(json!(["add", last, 2 + self.below(last - 2)]));
        body.push(json!(["tanh", last + 1]));
        json!({"inputs": inputs, "variable": self.vector(), "body": body})
    }

    /// A loop of 1,000 turns, of which each is a few calls.
    fn long_program(&mut self) -> Value {
        let inputs = [self.vector(), self.vector()];
        let body = json!([["while", 1000, 1, null, 0, self.body(5, 0)], ["add", 3, 1]]);
        json!({"inputs": inputs, "variable": self.vector(), "body": body})
    }
}

fn index(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn indices(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(index).collect()
}

fn number(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

/// The last value of `body`.
fn run(body: &Value, env: &[Tensor]) -> Result<Tensor> {
    let mut env = env.to_vec();
    for statement in body.as_array().unwrap() {
        let value = value_of(statement.as_array().unwrap(), &env)?;
        env.push(value);
    }
    Ok(env.pop().unwrap())
}

fn with<const N: usize>(env: &[Tensor], more: [Tensor; N]) -> Vec<Tensor> {
    env.iter().cloned().chain(more).collect()
}

fn rows(env: &[Tensor], at: &Value) -> Result<Tensor> {
    tf::stack(indices(at).into_iter().map(|at| &env[at]).collect::<Vec<_>>(), 0)
}

fn value_of(statement: &[Value], env: &[Tensor]) -> Result<Tensor> {
    let a = &statement[1..];
    let at = |value: &Value| &env[index(value)];
    match statement[0].as_str().unwrap() {
        "tanh" => at(&a[0]).tanh(),
        "sin" => at(&a[0]).sin(),
        "scale" => at(&a[0]).multiply(number(&a[1])),
        "add" => at(&a[0]).add(at(&a[1])),
        "mul" => at(&a[0]).multiply(at(&a[1])),
        "custom" => {
            let factor = number(&a[1]);
            tf::custom_gradient(move |v: &Tensor| {
                let e = v.multiply(0.3)?.exp()?;
                let y = e.add(1.0)?.log()?;
                // Not the gradient of y, so that nothing else can have computed it.
                let rule = move |dy: &Tensor| dy.multiply(e.add(1.0)?.reciprocal()?.add(factor)?);
                Ok((y, rule))
            })(at(&a[0]))
        }
        "host" => {
            let factor = number(&a[1]);
            let call = move |inp: &[Tensor]| {
                let shape = inp[0].to_vec::<f32>()?.len();
                assert_eq!(shape, 3, "the values are there");
                Ok(vec![inp[0].multiply(factor)?.sin()?.add(&inp[0])?])
            };
            let v = at(&a[0]);
            Ok(tf::host_call(call, &[v], &[(v.shape(), v.dtype())])?.remove(0))
        }
        "split" => {
            let pieces = TensorArray::new(DType::F32, 2).infer_shape(false);
            let pieces = pieces.split(at(&a[0]), &[1, 2])?;
            let turned = TensorArray::new(DType::F32, 2).infer_shape(false);
            turned.write(0, pieces.read(1)?)?.write(1, pieces.read(0)?)?.concat()
        }
        "scatter" => {
            let both = tf::stack([at(&a[0]), at(&a[1])], 0)?;
            let array = TensorArray::new(DType::F32, 2).element_shape([3]);
            let all = array.scatter(&indices(&a[2]), &both)?.stack()?;
            all.multiply(Tensor::from_slice(&[1.0_f32, 2.0], [2, 1])?)?.reduce_sum(0)?.tanh()
        }
        "recompute" => {
            let body = a[1].clone();
            tf::recompute_grad(move |v: &Tensor| run(&body, std::slice::from_ref(v)))(at(&a[0]))
        }
        "function" => {
            let (body, env) = (a[1].clone(), env.to_vec());
            let own = at(&a[0]).clone();
            tf::function(move |v: Tensor| run(&body, &with(&env, [v])))(own)
        }
        "cond" => {
            let pred = at(&a[0]).reduce_sum(())?.greater(number(&a[1]))?;
            tf::cond(&pred, || run(&a[2], env), || run(&a[3], env))
        }
        "switch" => {
            let index = at(&a[0]).reduce_sum(())?.multiply(3.0)?.floor()?.cast(DType::I32)?;
            let branch = |body| Box::new(move || run(body, env)) as tf::Branch<'_, Tensor>;
            tf::switch_case(&index, a[1].as_array().unwrap().iter().map(branch).collect())
        }
        "while" => {
            let limit = match a[0].as_u64() {
                Some(count) => tf::constant(count as i32)?,
                None => {
                    let count = at(&a[1]).reduce_sum(())?.abs()?.multiply(4.0)?;
                    count.cast(DType::I32)?.minimum(7)?
                }
            };
            let body = |(i, v): (Tensor, Tensor)| {
                let step = v.multiply(0.0)?.add(i.cast(DType::F32)?.multiply(0.1)?)?;
                Ok((i.add(1)?, run(&a[4], &with(env, [v, step]))?))
            };
            let start = (tf::constant(0)?, at(&a[3]).clone());
            let options = WhileLoopOptions::new().maximum_iterations(a[2].as_u64());
            Ok(tf::while_loop_with(|(i, _)| i.less(&limit), body, start, options)?.1)
        }
        "map" => {
            let mapped = tf::map_fn(|row| run(&a[1], &with(env, [row])), &rows(env, &a[0])?)?;
            mapped.reduce_sum(0)?.tanh()
        }
        "vectorized_map" => {
            let elems = rows(env, &a[0])?;
            let mapped = tf::vectorized_map(|row| run(&a[1], &with(env, [row])), &elems)?;
            mapped.reduce_sum(0)?.tanh()
        }
        "scan" => {
            let step = |state, row| run(&a[2], &with(env, [state, row]));
            let states = tf::scan(step, &rows(env, &a[0])?, at(&a[1]).clone())?;
            states.reduce_sum(0)?.tanh()
        }
        fold @ ("foldl" | "foldr") => {
            let step = |state, row| run(&a[2], &with(env, [state, row]));
            let (elems, start) = (rows(env, &a[0])?, at(&a[1]).clone());
            if fold == "foldl" {
                tf::foldl(step, &elems, start)
            } else {
                tf::foldr(step, &elems, start)
            }
        }
        "array" => {
            let count = index(&a[0]);
            let body = |(i, v, array): (Tensor, Tensor, TensorArray)| {
                let v = run(&a[3], &with(env, [v]))?;
                let array = array.write(&i, &v)?;
                Ok((i.add(1)?, v, array))
            };
            let array = TensorArray::new(DType::F32, count).element_shape([3]);
            let start = (tf::constant(0)?, at(&a[1]).clone(), array);
            let (_, _, array) = tf::while_loop(|(i, ..)| i.less(count as i32), body, start)?;
            let numbers: Vec<f32> = (1..=count).map(|number| number as f32).collect();
            let all = array.stack()?.multiply(Tensor::from_slice(&numbers, [count, 1])?)?;
            let taken = array.gather(&indices(&a[2]))?;
            let again = TensorArray::new(DType::F32, count).element_shape([3]).unstack(&all)?;
            let sums = all.reduce_sum(0)?.add(taken.reduce_sum(0)?)?;
            sums.add(again.read(count - 1)?)?.tanh()
        }
        other => panic!("no statement {other}"),
    }
}

struct Inputs {
    x: Tensor,
    y: Tensor,
    w: Variable,
}

impl Inputs {
    fn new(program: &Value) -> Result<Self> {
        let vector = |values: &Value| {
            let values: Vec<f32> = values.as_array().unwrap().iter().map(number).collect();
            Tensor::from_slice(&values, [3])
        };
        let (x, y) = (vector(&program["inputs"][0])?, vector(&program["inputs"][1])?);
        Ok(Inputs { x, y, w: Variable::new(vector(&program["variable"])?) })
    }
}

fn loss(result: &Tensor) -> Result<Tensor> {
    result.multiply(Tensor::from_slice(&[0.3_f32, 0.5, -0.7], [3])?)?.reduce_sum(())
}

fn sources(x: &Tensor, y: &Tensor, w: &Variable) -> [TensorOrVariable; 3] {
    [x.into(), y.into(), w.into()]
}

fn or_zeros(gradients: Vec<Option<Tensor>>) -> Result<Vec<Tensor>> {
    gradients.into_iter().map(|g| g.map_or_else(|| Tensor::zeros([3]), Ok)).collect()
}

/// The result, its gradients by `x`, `y` and `w`, and those of the sum of their squares.
fn derivatives(
    f: &dyn Fn(Tensor, Tensor) -> Result<Tensor>,
    inputs: &Inputs,
) -> Result<Vec<Tensor>> {
    let Inputs { x, y, w } = inputs;
    let outer = GradientTape::new();
    outer.watch(x)?;
    outer.watch(y)?;
    let inner = GradientTape::new();
    inner.watch(x)?;
    inner.watch(y)?;
    let result = f(x.clone(), y.clone())?;
    let of = |tape: GradientTape, target: &Tensor| {
        or_zeros(tape.gradient(target, &sources(x, y, w)[..])?)
    };
    let first = of(inner, &loss(&result)?)?;
    let squares = first.iter().map(|g| g.square()?.reduce_sum(())).collect::<Result<Vec<_>>>()?;
    let second = of(outer, &tf::add_n(squares.iter().collect::<Vec<_>>())?)?;
    Ok([vec![result], first, second].concat())
}

/// The result, and its gradients by `x`, `y` and `w`.
fn gradients_of(
    f: &dyn Fn(Tensor, Tensor) -> Result<Tensor>,
    inputs: &Inputs,
) -> Result<Vec<Tensor>> {
    let Inputs { x, y, w } = inputs;
    let tape = GradientTape::new();
    tape.watch(x)?;
    tape.watch(y)?;
    let result = f(x.clone(), y.clone())?;
    let gradients = or_zeros(tape.gradient(&loss(&result)?, &sources(x, y, w)[..])?)?;
    Ok([vec![result], gradients].concat())
}

fn lists(tensors: &[Tensor]) -> Result<Vec<Vec<f32>>> {
    tensors.iter().map(Tensor::to_vec::<f32>).collect()
}

fn assert_close(own: &[Vec<f32>], other: &Value, what: &str) {
    for (at, (own, other)) in own.iter().zip(other.as_array().unwrap()).enumerate() {
        for (own, other) in own.iter().zip(other.as_array().unwrap()) {
            let other = number(other);
            let scale = other.abs().max(if at > 3 { 1.0 } else { 0.1 });
            assert!(
                (own - other).abs() < 2e-4 * scale,
                "{what}: {own} here, {other} in TensorFlow, in value {at}"
            );
        }
    }
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn random_programs_have_tensorflows_results() -> Result<()> {
    let variable = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (count, seed) = (variable("WGRAD_JUDGE_PROGRAMS", 24), variable("WGRAD_JUDGE_SEED", 1));
    // Of 24 programs, one has a long loop, and three have no decisions.
    let program = |seed: u64| match seed % 24 {
        0 => Writer(seed).long_program(),
        6 | 12 | 18 => Writer(seed).flat_program(),
        _ => Writer(seed).program(),
    };
    let programs: Vec<Arc<Value>> = (seed..seed + count).map(|at| Arc::new(program(at))).collect();
    let folder = Folder::new("judge-control-flow");
    let text = serde_json::to_vec(&programs.iter().map(|p| &**p).collect::<Vec<_>>()).unwrap();
    let path = folder.write("programs.json", &text);
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/control_flow.py");
    let output = Command::new(python).arg(script).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(results.len(), programs.len());
    for ((program, wanted), seed) in programs.iter().zip(&results).zip(seed..) {
        let inputs = Inputs::new(program)?;
        let body = |x: Tensor, y: Tensor| run(&program["body"], &[x, y, inputs.w.read()]);
        let what = |how: &str| format!("program {seed}, {how}: {program}");
        let made = |how: &str, results: Result<Vec<Tensor>>| match results {
            Ok(results) => assert_close(&lists(&results).unwrap(), wanted, &what(how)),
            Err(error) => panic!("{}: {error}", what(how)),
        };
        made("eagerly", derivatives(&body, &inputs));
        let own = |x: Tensor, y: Tensor, w: &Variable, program: &Value| {
            run(&program["body"], &[x, y, w.read()])
        };
        let f = tf::function({
            let (program, w) = (program.clone(), inputs.w.clone());
            move |x: Tensor, y: Tensor| own(x, y, &w, &program)
        });
        made("as a function", f(inputs.x.clone(), inputs.y.clone()).map(|result| vec![result]));
        let call = |x: Tensor, y: Tensor| f(x, y);
        made("as a function on tapes", derivatives(&call, &inputs));
        for _ in 0..2 {
            made("as a function on one tape", gradients_of(&call, &inputs));
        }
        let gradients = tf::function({
            let (program, w) = (program.clone(), inputs.w.clone());
            move |x: Tensor, y: Tensor| {
                let inputs = Inputs { x, y, w: w.clone() };
                let own = |x, y| own(x, y, &w, &program);
                // A second derivative would call the host again.
                match program.to_string().contains("host") {
                    true => gradients_of(&own, &inputs),
                    false => derivatives(&own, &inputs),
                }
            }
        });
        for _ in 0..2 {
            let results = gradients(inputs.x.clone(), inputs.y.clone());
            made("as a function with the tapes inside", results);
        }
    }
    Ok(())
}
