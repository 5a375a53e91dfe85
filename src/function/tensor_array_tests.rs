//! Tests of [`TensorArray`]: values and gradients, eagerly and in functions, and what it refuses.

use super::*;
use crate::function::{function, while_loop};
use crate::tape::GradientTape;

fn vec(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

fn filled(values: &[&[f32]]) -> TensorArray {
    let array = TensorArray::new(DType::F32, values.len()).infer_shape(false);
    let all = values.iter().enumerate();
    all.fold(array, |array, (at, row)| {
        array.write(at, Tensor::from_slice(row, [row.len()]).unwrap()).unwrap()
    })
}

fn message<T>(result: Result<T>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn methods_return_what_tensorflow_returns() -> Result<()> {
    let array = filled(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    assert_eq!(array.size(), 3);
    assert_eq!(vec(&array.read(1)?), [3.0, 4.0]);
    assert_eq!(vec(&array.read(&constant(2)?)?), [5.0, 6.0]);
    assert_eq!(array.stack()?.shape(), [3, 2]);
    assert_eq!(vec(&array.gather(&[2, 0])?), [5.0, 6.0, 1.0, 2.0]);
    let array = array.scatter(&[0, 2], &constant([[7.0, 8.0], [9.0, 10.0]])?)?;
    assert_eq!(vec(&array.stack()?), [7.0, 8.0, 3.0, 4.0, 9.0, 10.0]);
    let array = array.unstack(&constant([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])?)?;
    assert_eq!(vec(&array.concat()?), [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    let array = array.split(&constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?, &[1, 3, 2])?;
    assert_eq!(vec(&array.read(1)?), [2.0, 3.0, 4.0]);
    assert_eq!(vec(&array.concat()?), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    // An element may be written again, and a copy is independent.
    let copy = array.clone().write(0, constant([-1.0])?)?;
    assert_eq!((vec(&copy.read(0)?), vec(&array.read(0)?)), (vec![-1.0], vec![1.0]));
    // Unwritten elements are zeros if their shape is known.
    let sparse = TensorArray::new(DType::I32, 2).write(1, constant([4, 5])?)?;
    assert_eq!(sparse.stack()?.to_vec::<i32>()?, [0, 0, 4, 5]);
    let growing = TensorArray::new(DType::F32, 0).dynamic_size(true);
    let growing = growing.write(3, constant(1.5)?)?;
    assert_eq!((growing.size(), vec(&growing.stack()?)), (4, vec![0.0, 0.0, 0.0, 1.5]));
    Ok(())
}

#[test]
fn gradients_pass_through_all_methods() -> Result<()> {
    let x = constant([1.0, 2.0, 3.0, 4.0])?;
    let of = |f: &dyn Fn(&Tensor) -> Result<Tensor>| -> Result<Vec<f32>> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f(&x)?.square()?.reduce_sum(())?;
        Ok(vec(&tape.required_gradient(&y, &x)?))
    };
    let array = || TensorArray::new(DType::F32, 4);
    let all = vec![2.0, 4.0, 6.0, 8.0];
    assert_eq!(of(&|x| array().unstack(x)?.stack())?, all);
    assert_eq!(of(&|x| array().scatter(&[3, 1, 0, 2], x)?.stack())?, all);
    assert_eq!(of(&|x| array().unstack(x)?.gather(&[1, 1]))?, [0.0, 8.0, 0.0, 0.0]);
    let pieces = |x: &Tensor| TensorArray::new(DType::F32, 2).infer_shape(false).split(x, &[1, 3]);
    assert_eq!(of(&|x| pieces(x)?.concat())?, all);
    assert_eq!(of(&|x| pieces(x)?.read(1))?, [0.0, 4.0, 6.0, 8.0]);
    let written = |x: &Tensor| array().write(2, x.reduce_sum(())?)?.read(2);
    assert_eq!(of(&written)?, [20.0; 4]);
    Ok(())
}

// Running sums of rows, read back in the reverse order, by indices that only a run knows.
#[test]
fn a_loop_of_a_function_writes_and_reads() -> Result<()> {
    let body = |x: Tensor| -> Result<[Tensor; 2]> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let count = x.reduce_max(())?.cast(DType::I32)?;
        let sums = TensorArray::new(DType::F32, 6).element_shape([2]);
        let start = (constant(0)?, x.clone(), sums);
        let (_, _, sums) = while_loop(
            |(i, _, _)| i.less(&count),
            |(i, sum, sums)| Ok((i.add(1)?, sum.add(&x)?, sums.write(&i, sum)?)),
            start,
        )?;
        let (_, y) = while_loop(
            |(i, _)| i.greater_equal(0),
            |(i, y)| Ok((i.subtract(1)?, y.multiply(0.5)?.add(sums.read(&i)?)?)),
            (count.subtract(1)?, x.zeros_like()?),
        )?;
        let gradient = tape.gradient(&y, &x)?;
        Ok([y, gradient.map_or_else(|| x.zeros_like(), Ok)?])
    };
    let f = function(body);
    for values in [[3.0, 1.0], [1.0, 0.5], [5.0, 2.0], [0.25, 0.5]] {
        let x = constant(values)?;
        let ([y, dy], [want, want_dy]) = (f(x.clone())?, body(x)?);
        assert_eq!((vec(&y), vec(&dy)), (vec(&want), vec(&want_dy)));
    }
    // Sums x, 2x and 3x, backward: ((3x) / 2 + 2x) / 2 + x = 2.75 x.
    let [y, dy] = f(constant([3.0, 1.0])?)?;
    assert_eq!((vec(&y), vec(&dy)), (vec![8.25, 2.75], vec![2.75, 2.75]));
    assert_eq!(f.tracing_count(), 1);
    Ok(())
}

#[test]
fn an_array_says_what_is_wrong() -> Result<()> {
    let one = || constant(1.0).unwrap();
    let array = || TensorArray::new(DType::F32, 2);
    let text = message(array().write(2, one()));
    assert!(text.contains("the index is 2") && text.contains("2 elements"), "{text}");
    let text = message(array().write(-1, one()));
    assert!(text.contains("the index is -1"), "{text}");
    let text = message(array().dynamic_size(true).write(usize::MAX, one()));
    assert!(text.contains("at most"), "{text}");
    let text = message(TensorArray::new(DType::F32, usize::MAX).write(0, one()));
    assert!(text.contains("at most"), "{text}");
    let text = message(array().write(0, constant(1)?));
    assert!(text.contains("f32") && text.contains("i32"), "{text}");
    let text = message(array().write(0, one())?.write(1, constant([1.0, 2.0])?));
    assert!(text.contains("[2]") && text.contains("infer_shape"), "{text}");
    assert!(message(array().read(0)).contains("element 0 was not written"));
    assert!(message(array().stack()).contains("element 0 was not written"));
    assert!(message(TensorArray::new(DType::F32, 0).stack()).contains("no elements"));
    let once = array().clear_after_read(true).write(0, one())?;
    once.read(0)?;
    assert!(message(once.read(0)).contains("clear_after_read"));
    let text = message(array().unstack(&constant([1.0, 2.0, 3.0])?));
    assert!(text.contains("makes 3 elements") && text.contains("the array has 2"), "{text}");
    assert!(message(array().unstack(&one())).contains("scalar"));
    assert!(message(array().split(&constant([1.0, 2.0])?, &[1, 2])).contains("do not add up"));
    assert!(message(array().split(&constant([1.0])?, &[usize::MAX, 2])).contains("do not add up"));
    assert!(message(array().scatter(&[0], &constant([1.0, 2.0])?)).contains("2 parts"));
    assert!(message(array().gather(&[])).contains("no indices"));
    assert!(message(array().read(&constant([0])?)).contains("must be a scalar"));
    assert!(message(array().read(&constant(0.0)?)).contains("must be i32"));
    // By an index that only a run knows, the array needs a shape.
    let f = function(|i: Tensor| TensorArray::new(DType::F32, 2).read(&i));
    assert!(message(f(constant(0)?)).contains("element_shape"));
    Ok(())
}
