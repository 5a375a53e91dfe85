//! Tests of the rules of custom gradients in functions, under tapes around the functions.

use crate as tf;
use crate::error::Result;
use crate::runtime::Device;
use crate::tape::{GradientTape, TensorOrVariable};
use crate::tensor::Tensor;
use crate::variable::Variable;

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.spec(), b.spec());
    for (a, b) in a.to_vec::<f32>().unwrap().iter().zip(b.to_vec::<f32>().unwrap()) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{a} and {b}");
    }
}

/// The value of `f` and its gradients by `x`, then by `variables`.
fn gradients(
    f: &dyn Fn(Tensor) -> Result<Tensor>,
    x: &Tensor,
    variables: &[Variable],
) -> Vec<Tensor> {
    let tape = GradientTape::new();
    tape.watch(x).unwrap();
    let y = f(x.clone()).unwrap();
    let variables = variables.iter().cloned().map(TensorOrVariable::Variable);
    let sources: Vec<_> =
        std::iter::once(TensorOrVariable::Tensor(x.clone())).chain(variables).collect();
    let all = tape.gradient(&y, &sources[..]).unwrap();
    std::iter::once(y).chain(all.into_iter().map(|gradient| gradient.unwrap())).collect()
}

/// Checks that the function of `f` has the gradients of `f`, in its first runs and for other arguments.
fn same_as_eager(
    f: impl Fn(Tensor) -> Result<Tensor> + Send + Sync + Clone + 'static,
    variables: &[Variable],
) {
    let function = tf::function(f.clone());
    for x in [[0.3, -1.2], [1.7, 0.4], [-0.6, 0.9]] {
        let x = tf::constant(x).unwrap();
        let expected = gradients(&f, &x, variables);
        let got = gradients(&|x| function(x), &x, variables);
        assert_eq!(got.len(), expected.len());
        got.iter().zip(&expected).for_each(|(got, expected)| close(got, expected));
    }
    assert_eq!(function.tracing_count(), 1);
}

/// log(1 + e^x), whose rule uses a value of the forward pass.
fn log1pexp(x: &Tensor) -> Result<Tensor> {
    tf::custom_gradient(|x: &Tensor| {
        let e = x.exp()?;
        let y = e.add(1.0)?.log()?;
        // Three times the gradient, so that no other rule can have computed it.
        Ok((y, move |dy: &Tensor| dy.multiply(3.0)?.multiply(1.0 - 1.0 / (&e + 1.0))))
    })(x)
}

/// Adds as many calls as let a function run as two plans.
fn deep(x: &Tensor) -> Result<Tensor> {
    (0..10).try_fold(x.clone(), |x, _| x.sin()?.multiply(1.1))
}

#[test]
fn a_rule_uses_values_of_the_forward_pass_of_its_own_run() {
    same_as_eager(|x| log1pexp(&x), &[]);
    same_as_eager(|x| log1pexp(&log1pexp(&x.multiply(2.0)?)?)?.multiply(&x), &[]);
    same_as_eager(|x| deep(&log1pexp(&deep(&x)?)?), &[]);
}

#[test]
fn rules_use_captured_tensors_and_variables() {
    let scale = tf::constant([2.0, -0.5]).unwrap();
    let w = Variable::new(tf::constant([0.9, 1.4]).unwrap());
    let (scale, own) = (scale, w.clone());
    same_as_eager(
        move |x| {
            let (scale, own) = (scale.clone(), own.clone());
            tf::custom_gradient_with_variables(move |x: &Tensor| {
                let (x, scale) = (x.clone(), scale.clone());
                let y = x.multiply(&own)?;
                let rule = move |dy: &Tensor, variables: &[Variable]| {
                    Ok((dy.multiply(&variables[0])?.multiply(&scale)?, vec![dy.multiply(&x)?]))
                };
                Ok((y, rule))
            })(&x)
        },
        &[w],
    );
}

#[test]
fn an_assignment_between_runs_is_seen_by_the_rule() {
    let w = Variable::new(tf::constant(2.0).unwrap());
    let own = w.clone();
    let f = tf::function(move |x: Tensor| {
        let own = own.clone();
        tf::custom_gradient(move |x: &Tensor| {
            let factor = own.peek();
            Ok((x.multiply(1.0)?, move |dy: &Tensor| dy.multiply(&factor)))
        })(&x)
    });
    let x = tf::constant(1.0).unwrap();
    // `peek` shows the value of the time of the trace, as a captured tensor does.
    assert_eq!(gradients(&|x| f(x), &x, &[])[1].item::<f32>().unwrap(), 2.0);
    w.assign(tf::constant(5.0).unwrap()).unwrap();
    assert_eq!(gradients(&|x| f(x), &x, &[])[1].item::<f32>().unwrap(), 2.0);
}

#[test]
fn recomputed_functions_have_gradients_for_arguments_and_variables() {
    let w = Variable::new(tf::constant([0.9, 1.4]).unwrap());
    let own = w.clone();
    let block = move |x: &Tensor| {
        let own = own.clone();
        tf::recompute_grad(move |x: &Tensor| x.multiply(&own)?.sin()?.exp())(x)
    };
    let (once, deeper) = (block.clone(), block.clone());
    same_as_eager(move |x| once(&x), std::slice::from_ref(&w));
    same_as_eager(move |x| deep(&deeper(&deeper(&deep(&x)?)?)?), std::slice::from_ref(&w));
    // One in another.
    let nested = move |x: Tensor| {
        let block = block.clone();
        tf::recompute_grad(move |x: &Tensor| block(&block(x)?)?.square())(&x)
    };
    same_as_eager(nested, &[w]);
}

/// sin and cos, whose rules call each other.
fn own_sin(x: &Tensor) -> Result<Tensor> {
    tf::custom_gradient(|x: &Tensor| {
        let own = x.clone();
        Ok((x.sin()?, move |dy: &Tensor| dy.multiply(own_cos(&own)?)))
    })(x)
}

fn own_cos(x: &Tensor) -> Result<Tensor> {
    tf::custom_gradient(|x: &Tensor| {
        let own = x.clone();
        Ok((x.cos()?, move |dy: &Tensor| dy.multiply(own_sin(&own)?)?.negative()))
    })(x)
}

#[test]
fn three_derivatives_of_a_rule_that_calls_its_own_function() {
    fn derivatives(
        f: &dyn Fn(&Tensor) -> Result<Tensor>,
        x: &Tensor,
        order: usize,
    ) -> Result<Tensor> {
        if order == 0 {
            return f(x);
        }
        let tape = GradientTape::new();
        tape.watch(x)?;
        let y = derivatives(f, x, order - 1)?;
        tape.required_gradient(y, x)
    }
    let x = tf::constant([0.3, -1.2]).unwrap();
    let f = tf::function(|x: Tensor| own_sin(&x));
    let by_function = |x: &Tensor| f(x.clone());
    let expected =
        [x.sin(), x.cos(), x.sin().and_then(|y| y.negative()), x.cos().and_then(|y| y.negative())];
    for (order, expected) in expected.into_iter().enumerate() {
        close(&derivatives(&by_function, &x, order).unwrap(), &expected.unwrap());
    }
    assert_eq!(f.tracing_count(), 1);
    // The fourth derivative is one of a rule that is not part of the program.
    let error = derivatives(&by_function, &x, 4).and_then(|y| y.to_vec::<f32>()).unwrap_err();
    assert!(error.to_string().contains("up to order 3"), "{error}");
}

#[test]
fn rules_in_functions_in_functions_and_in_branches_and_loops() {
    let inner = std::sync::Arc::new(tf::function(|x: Tensor| log1pexp(&x)));
    same_as_eager(move |x| inner(x.sin()?)?.multiply(&x), &[]);
    same_as_eager(
        |x| {
            let positive = x.reduce_sum(())?.greater(0.0)?;
            tf::cond(&positive, || log1pexp(&x), || log1pexp(&x.multiply(2.0)?))
        },
        &[],
    );
    same_as_eager(
        |x| {
            let start = (tf::constant(0)?, x);
            let turn = |(i, x): (Tensor, Tensor)| Ok((i.add(1)?, log1pexp(&x)?));
            Ok(tf::while_loop(|(i, _)| i.less(3), turn, start)?.1)
        },
        &[],
    );
}

#[test]
fn a_tape_in_the_function_and_one_around_it() {
    let inner = |x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = log1pexp(&x)?;
        tape.required_gradient(y, &x)
    };
    same_as_eager(inner, &[]);
}

#[test]
fn a_rule_that_fails_says_why_where_the_gradient_is_computed() {
    let f = tf::function(|x: Tensor| {
        tf::custom_gradient(|x: &Tensor| {
            Ok((x.sin()?, |_: &Tensor| Err(crate::Error::Gradient("no rule for this".into()))))
        })(&x)
    });
    let x = tf::constant(1.0).unwrap();
    assert!((f(x.clone()).unwrap().item::<f32>().unwrap() - 1_f32.sin()).abs() < 1e-6);
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let error = tape.gradient(f(x.clone()).unwrap(), &x).unwrap_err();
    assert!(error.to_string().contains("no rule for this"), "{error}");
}

#[test]
fn a_rule_in_one_of_three_branches() {
    same_as_eager(
        |x| {
            let index = x.reduce_sum(())?.multiply(3.0)?.floor()?.cast(tf::DType::I32)?;
            let before = x.sin()?;
            let branches: Vec<tf::Branch<Tensor>> = vec![
                Box::new(|| x.tanh()),
                Box::new(|| before.sin()),
                Box::new(|| log1pexp(&before)?.multiply(&x)),
            ];
            tf::switch_case(&index, branches)?.multiply(&x)
        },
        &[],
    );
}

/// Two results of different shapes, and a rule that uses what the closure computes.
fn sine_and_sum(x: &Tensor) -> Result<Vec<Tensor>> {
    tf::custom_gradient(|x: &Vec<Tensor>| {
        let (sin, cos) = (x[0].sin()?, x[0].cos()?);
        let results = vec![sin, x[0].reduce_sum(())?];
        let rule = move |dys: &Vec<Tensor>| {
            Ok(vec![dys[0].multiply(&cos)?.multiply(2.0)?.add(dys[1].multiply(3.0)?)?])
        };
        Ok((results, rule))
    })(&vec![x.clone()])
}

#[test]
fn rules_in_vectorized_maps() {
    let rows = |x: &Tensor| tf::stack([x, &x.sin()?, &x.exp()?], 0);
    let one = move |x: Tensor| {
        let f = |row: Tensor| log1pexp(&row)?.multiply(&row);
        tf::vectorized_map(f, &rows(&x)?)?.reduce_sum(0)
    };
    same_as_eager(one, &[]);
    let two = move |x: Tensor| {
        let f = |row: Tensor| {
            let results = sine_and_sum(&row)?;
            results[0].multiply(&results[1])
        };
        tf::vectorized_map(f, &rows(&x)?)?.reduce_sum(0)
    };
    same_as_eager(two, &[]);
    // An argument that is the same for all rows, and maps in maps.
    let nested = move |x: Tensor| {
        let f = |row: Tensor| {
            let own = |element: Tensor| {
                let results = sine_and_sum(&element.multiply(&row)?)?;
                log1pexp(&x)?.multiply(&results[0])?.multiply(&results[1])
            };
            tf::vectorized_map(own, &row)?.reduce_sum(0)
        };
        tf::vectorized_map(f, &rows(&x)?)?.reduce_sum(0)
    };
    same_as_eager(nested, &[]);
}

#[test]
fn vectorized_rules_are_those_of_each_row() {
    let x = tf::constant([[0.3, -1.2], [1.7, 0.4], [-0.6, 0.9]]).unwrap();
    let f = |row: Tensor| {
        let results = sine_and_sum(&row)?;
        log1pexp(&results[0])?.multiply(&results[1])
    };
    let vectorized = gradients(&|x| tf::vectorized_map(f, &x), &x, &[]);
    let by_row = gradients(&|x| tf::map_fn(f, &x), &x, &[]);
    vectorized.iter().zip(&by_row).for_each(|(own, expected)| close(own, expected));
    // The rows of a Jacobian are computed together, too.
    let jacobian = |f: &dyn Fn(Tensor) -> Result<Tensor>| {
        let tape = GradientTape::new();
        let x = tf::constant([0.3, -1.2]).unwrap();
        tape.watch(&x).unwrap();
        tape.jacobian(&f(x.clone()).unwrap(), &x).unwrap().unwrap()
    };
    let expected = [[2.0 * 0.3_f32.cos() + 3.0, 3.0], [3.0, 2.0 * 1.2_f32.cos() + 3.0]];
    let sum = |x: Tensor| {
        let results = sine_and_sum(&x)?;
        results[0].add(&results[1])
    };
    close(&jacobian(&sum), &tf::constant(expected).unwrap());
    close(&jacobian(&|x| tf::function(sum)(x)), &tf::constant(expected).unwrap());
    let recursive = jacobian(&|x| own_sin(&x));
    close(&recursive, &tf::constant([[0.3_f32.cos(), 0.0], [0.0, 1.2_f32.cos()]]).unwrap());
}

#[test]
fn maps_in_maps_call_nothing_on_the_placeholders_of_the_inner_one() {
    // A failed call is reported by the next read.
    let x = tf::constant([[0.5, 2.0], [1.0, -1.0]]).unwrap();
    let y = tf::vectorized_map(
        |row: Tensor| tf::vectorized_map(|element: Tensor| element.multiply(&row)?.sin(), &row),
        &x,
    );
    let all = y.unwrap().to_vec::<f32>().unwrap();
    let expected = [0.25, 1.0, 1.0, 4.0, 1.0, -1.0, -1.0, 1.0].map(f32::sin);
    all.iter().zip(expected).for_each(|(own, expected)| assert!((own - expected).abs() < 1e-5));
    assert!(Device::current().unwrap().flush().is_ok());
}

#[test]
fn branches_share_a_captured_tensor_and_the_code_after_them_uses_it() {
    let c = tf::constant([0.5, -2.0]).unwrap();
    let own = c.clone();
    let f = move |x: Tensor| {
        let positive = x.reduce_sum(())?.greater(0.0)?;
        let y = tf::cond(&positive, || x.multiply(&own)?.sin(), || x.add(&own)?.exp())?;
        y.multiply(&own)
    };
    same_as_eager(f.clone(), &[]);
    // A tape in the function sees what the branches do with it.
    let by_c = move |x: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&c)?;
        tape.required_gradient(f(x)?, &c)
    };
    let function = tf::function(by_c.clone());
    for x in [[0.3, -1.2], [1.7, 0.4]] {
        let x = tf::constant(x).unwrap();
        close(&function(x.clone()).unwrap(), &by_c(x).unwrap());
    }
}

#[test]
fn a_rule_in_a_branch_uses_values_from_around_the_branch() {
    let c = tf::constant([0.5, -2.0]).unwrap();
    let f = move |x: Tensor| {
        let (around, own) = (x.sin()?, c.clone());
        let tripled = |x: &Tensor| {
            let (around, own) = (around.clone(), own.clone());
            tf::custom_gradient(move |x: &Tensor| {
                let (around, own) = (around.clone(), own.clone());
                let rule = move |dy: &Tensor| dy.multiply(&around)?.multiply(&own);
                Ok((x.tanh()?, rule))
            })(x)
        };
        let positive = x.reduce_sum(())?.greater(0.0)?;
        let y = tf::cond(&positive, || tripled(&x), || x.multiply(2.0))?;
        let turn = |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, tripled(&y)?.multiply(0.1)?));
        Ok(tf::while_loop(|(i, _)| i.less(3), turn, (tf::constant(0)?, y))?.1)
    };
    same_as_eager(f, &[]);
}
