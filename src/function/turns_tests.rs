//! Tests of loops whose turns run ahead: their lengths, their reads, and what a turn too many must not do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{
    Device, GradientTape, Tensor, Variable, WhileLoopOptions, cond, constant, function, while_loop,
    while_loop_with,
};

/// `x` to the power of two, `n` times, starting from `x`, as long as the value is below `limit`.
fn squares(device: &Device) -> impl Fn(f32, f32) -> (i32, f32) {
    let f = function(|x: Tensor, limit: Tensor| {
        let body = |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, y.multiply(1.5)?));
        while_loop(|(_, y)| y.less(&limit), body, (constant(0)?, x))
    });
    let device = device.clone();
    move |x, limit| {
        let scalar = |value: f32| Tensor::from_slice(&[value], []).unwrap();
        let (i, y) = device.scope(|| f(scalar(x), scalar(limit))).unwrap();
        (i.item().unwrap(), y.item().unwrap())
    }
}

fn expected(mut x: f32, limit: f32) -> (i32, f32) {
    let mut turns = 0;
    while x < limit {
        x *= 1.5;
        turns += 1;
    }
    (turns, x)
}

#[test]
fn loops_of_any_length_make_as_many_turns_as_their_values_say() {
    let device = Device::new().unwrap();
    let f = squares(&device);
    // Each run begins with as many turns as the last one made.
    for power in [0, 1, 2, 3, 31, 32, 33, 70, 5, 0, 70, 1] {
        let limit = 1.5f32.powi(power) * 0.99;
        assert_eq!(f(1.0, limit), expected(1.0, limit), "{power}");
    }
}

#[test]
fn a_loop_reads_few_values() {
    let device = Device::new().unwrap();
    let f = squares(&device);
    let reads = |turns: i32| {
        let before = device.stats().reads;
        assert_eq!(f(1.0, 1.5f32.powi(turns) * 0.99).0, turns);
        device.stats().reads - before
    };
    // The two results are read, too. Turns run in groups of 1, 2, 4, 8, 16, 32 and 32.
    assert!(reads(80) <= 7 + 2, "the first loop waits too often");
    // The group of 32 first, and one more.
    assert!(reads(33) <= 2 + 2, "a loop as before waits too often");
    assert!(reads(20) <= 1 + 2);
    assert!(reads(20) <= 1 + 2);
}

#[test]
fn turns_that_ran_too_early_reach_nothing() {
    // The square root of a negative number, and a division by zero, in the turn after the last.
    let f = function(|x: Tensor| {
        let body = |y: Tensor| {
            let next = y.subtract(1.0)?;
            next.multiply(next.sqrt()?.divide(next.sqrt()?)?)
        };
        while_loop(|y| y.greater(1.5), body, x)
    });
    let slope = |x: f32| {
        let x = constant(x).unwrap();
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        let y = f(x.clone()).unwrap();
        let slope = tape.gradient(&y, [&x]).unwrap()[0].clone().unwrap();
        (y.item::<f32>().unwrap(), slope.item::<f32>().unwrap())
    };
    for start in [2.0, 9.0, 3.0, 1.0, 9.0] {
        let wanted = if start > 1.5 { 1.0 } else { start };
        assert_eq!(f(constant(start).unwrap()).unwrap().item::<f32>().unwrap(), wanted);
        assert_eq!(slope(start), (wanted, 1.0), "{start}");
    }
}

#[test]
fn gradients_of_long_loops_are_those_of_their_turns() {
    let w = Variable::new(constant(0.9).unwrap());
    let f = function({
        let w = w.clone();
        move |x: Tensor| {
            let body = |y: Tensor| y.multiply(&w);
            while_loop(|y| y.greater(0.1), body, x)
        }
    });
    for start in [1.0f32, 0.5, 0.05, 1.0] {
        let tape = GradientTape::new();
        let y = f(constant(start).unwrap()).unwrap();
        let slope = tape.gradient(&y, [&w]).unwrap()[0].clone();
        let mut turns = 0;
        let mut value = start;
        while value > 0.1 {
            value *= 0.9;
            turns += 1;
        }
        assert_eq!(y.item::<f32>().unwrap(), value);
        // Without a turn, the variable takes no part.
        let slope = slope.map_or(0.0, |slope| slope.item::<f32>().unwrap());
        let wanted = turns as f32 * start * 0.9f32.powi(turns - 1);
        assert!((slope - wanted).abs() <= 1e-4 * wanted.abs(), "{start}: {slope}, {wanted}");
    }
}

#[test]
fn a_loop_sees_the_present_values_of_what_it_reads() {
    let step = Variable::new(constant(1.0).unwrap());
    let f = function({
        let step = step.clone();
        move |x: Tensor| {
            let body = |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, y.add(&step)?));
            let (turns, y) = while_loop(|(_, y)| y.less(10.0), body, (constant(0)?, x))?;
            // Not a part of the loop: the next loop reads another value.
            step.assign_add(1.0)?;
            Ok((turns, y))
        }
    });
    for (turns, last) in [(10, 10.0), (5, 10.0), (4, 12.0), (3, 12.0)] {
        let (i, y) = f(constant(0.0).unwrap()).unwrap();
        assert_eq!((i.item::<i32>().unwrap(), y.item::<f32>().unwrap()), (turns, last));
    }
}

#[test]
fn a_loop_ends_after_its_maximum() {
    let f = function(|x: Tensor| {
        let most = WhileLoopOptions::new().maximum_iterations(7);
        while_loop_with(|y: &Tensor| y.less(100.0), |y| y.add(1.0), x, most)
    });
    for (start, end) in [(0.0, 7.0), (98.0, 100.0), (50.0, 57.0), (200.0, 200.0), (0.0, 7.0)] {
        assert_eq!(f(constant(start).unwrap()).unwrap().item::<f32>().unwrap(), end);
    }
}

#[test]
fn what_a_turn_does_besides_computing_happens_once_for_each() {
    let calls = Arc::new(AtomicUsize::new(0));
    let total = Variable::new(constant(0.0).unwrap());
    let f = function({
        let (calls, total) = (calls.clone(), total.clone());
        move |x: Tensor| {
            let calls = calls.clone();
            let body = |y: Tensor| {
                total.assign_add(&y)?;
                let calls = calls.clone();
                let count = move |inp: &[Tensor]| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    Ok(vec![inp[0].add(1.0)?])
                };
                Ok(crate::host_call(count, &[&y], &[(y.shape(), y.dtype())])?.remove(0))
            };
            while_loop(|y| y.less(5.0), body, x)
        }
    });
    for _ in 0..3 {
        assert_eq!(f(constant(0.0).unwrap()).unwrap().item::<f32>().unwrap(), 5.0);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 15);
    assert_eq!(total.peek().item::<f32>().unwrap(), 30.0);
}

#[test]
fn small_choices_in_a_turn_are_selected() {
    let device = Device::new().unwrap();
    let f = function(|n: Tensor| {
        // The Collatz sequence: its length.
        let body = |(i, n): (Tensor, Tensor)| {
            let even = n.floormod(2)?.equal(0)?;
            let next = cond(&even, || n.floordiv(2), || n.multiply(3)?.add(1))?;
            Ok((i.add(1)?, next))
        };
        Ok(while_loop(|(_, n)| n.not_equal(1), body, (constant(0)?, n))?.0)
    });
    let turns = |n: i32| {
        device.scope(|| f(Tensor::from_slice(&[n], []).unwrap()).unwrap().item::<i32>().unwrap())
    };
    assert_eq!(turns(27), 111);
    let before = device.stats().reads;
    assert_eq!([turns(27), turns(97), turns(1), turns(6)], [111, 118, 0, 8]);
    let reads = device.stats().reads - before;
    assert!(reads <= 24, "{reads} reads");
}
