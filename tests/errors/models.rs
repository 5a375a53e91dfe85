//! Invalid models: disconnected outputs, names, mismatched inputs.

use std::sync::Arc;

use wgrad::keras::layers::{Conv2D, Dense};
use wgrad::keras::{Functional, INFERENCE, Input, Layer, LayerExt, Sequential, SymbolicTensor};
use wgrad::{DType, Tensor};

use super::{ints, text, zeros};

#[test]
fn ends_must_meet() {
    let (a, b) = (Input::new([2]).with_name("a"), Input::new([2]));
    let y = a.add(&b).unwrap();
    assert_eq!(
        text(Functional::new(&a, &y).map(|_| ())),
        "Functional: output 0 depends on an input (None, 2) f32 without a name, which is not among the model's inputs. Add \
         it to the inputs."
    );
    assert_eq!(
        text(Functional::new(&b, [&*b, &y]).map(|_| ())),
        "Functional: output 1 depends on the input 'a', which is not among the model's inputs. Add it to the inputs."
    );
    assert_eq!(
        text(Functional::new([&a, &b, &a], &y).map(|_| ())),
        "Functional: input 2 ((None, 2) f32) is among the inputs twice. Name each input once."
    );
    let none: [&SymbolicTensor; 0] = [];
    assert_eq!(
        text(Functional::new(none, &y).map(|_| ())),
        "Functional: the model has 0 inputs and 1 outputs; it needs at least one of each."
    );
}

#[test]
fn names_are_unique() {
    let x = Input::new([2]);
    let y = Dense::new(2).on_named("head", &x).unwrap();
    let y = Dense::new(2).on_named("head", &y).unwrap();
    assert_eq!(
        text(Functional::new(&x, &y).map(|_| ())),
        "Functional: two layers are called 'head'. Give each layer a name of its own; to share one layer, put it into an \
         Arc and call clones of that."
    );
    let shared = Arc::new(Dense::new(2));
    let y = shared.clone().on_named("head", &x).unwrap();
    let y = shared.on_named("head", &y).unwrap();
    Functional::new(&x, &y).unwrap();
    let y = Dense::new(2).on_named("a/b", &x).unwrap();
    assert_eq!(
        text(Functional::new(&x, &y).map(|_| ())),
        "Functional: a layer is called 'a/b'; a name has at least one letter, and no '/', which separates names in paths."
    );
    let model = Functional::new(&x, Dense::new(2).on(&x).unwrap()).unwrap();
    assert_eq!(
        text(model.get_layer("head").map(|_| ())),
        "Functional: the model has no layer called 'head'. Its layers are input_layer, dense."
    );
}

#[test]
fn layers_say_what_symbols_do_not_fit() {
    let x = Input::new([28, 28]);
    let reported = text(Conv2D::new(8, [3, 3]).on(&x));
    assert!(
        reported.starts_with(
            "layer 'conv2d': Conv2D: the input is [2, 28, 28]; it must be [N, H, W, C]."
        ),
        "{reported}"
    );
    let stack = Sequential::new()
        .add_named("first", Dense::new(2))
        .add_named("second", Conv2D::new(1, [1, 1]));
    let reported = text(stack.on(&Input::new([3])));
    assert!(reported.starts_with("layer 'sequential/second': Conv2D: the input is"), "{reported}");
    let reported = text(x.add(&Input::new([3])));
    assert!(reported.starts_with("layer 'add': AddV2: "), "{reported}");
    let varying = Input::new([None]).map("rank", |x| match x.shape()[1] < 100 {
        true => Ok(x.clone()),
        false => x.reduce_sum(1),
    });
    assert_eq!(
        text(varying),
        "layer 'rank': the layer's result is (2, 64) for one size of its input and (3) for another; a layer of a model \
         always returns the same number of axes."
    );
}

#[test]
fn inputs_are_checked() {
    let (a, b) = (
        Input::new([None, Some(3)]).with_name("a"),
        Input::new([2]).with_name("b").with_dtype(DType::I32),
    );
    let y = SymbolicTensor::map_all("first", [&a, &b], |x| Ok(x[0].clone())).unwrap();
    let model = Functional::new([&a, &b], &y).unwrap();
    let call =
        |inputs: &[Tensor]| text(Layer::<[Tensor], Vec<Tensor>>::call(&model, inputs, INFERENCE));
    assert_eq!(
        call(&[zeros([1, 5, 3])]),
        "Functional: the model has 2 inputs and was called with 1 tensor. Its inputs are a, b."
    );
    assert_eq!(
        call(&[zeros([5, 3]), ints([1, 2])]),
        "Functional: the input 'a' is [5, 3]; it must be (None, None, 3), where None is any size. For a batch of one \
         example use expand_dims(0)."
    );
    assert_eq!(
        call(&[zeros([1, 5, 4]), ints([1, 2])]),
        "Functional: the input 'a' is [1, 5, 4]; it must be (None, None, 3), where None is any size."
    );
    assert_eq!(
        call(&[zeros([1, 5, 3]), zeros([1, 2])]),
        "Functional: the input 'b' is f32; it must be i32. Cast it."
    );
    let two = Functional::new(&a, [&*a, &a.add(1.0).unwrap()]).unwrap();
    assert_eq!(
        text(Layer::<Tensor>::call(&two, &zeros([1, 5, 3]), INFERENCE)),
        "Functional: the model has 2 outputs, and one tensor was requested. Call it with a list, model.call(&[x], \
         cx), which returns a list."
    );
}

#[test]
#[should_panic = "layer 'add': AddV2: "]
fn operators_on_symbols_panic_with_the_words_of_the_method() {
    let _ = &*Input::new([2]) + &Input::new([3]);
}
