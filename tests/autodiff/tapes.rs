//! How long a tape records: until its gradient, `stop`, or the end of its function; and its warning if it is forgotten.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use wgrad as tf;
use wgrad::{Device, GradientTape, PersistentTape, Tensor, Variable};

/// The crate's log messages since a test requested them.
struct Log(Mutex<Vec<String>>);

static LOG: Log = Log(Mutex::new(Vec::new()));

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            self.0.lock().unwrap().push(record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn item(x: &Option<Tensor>) -> f32 {
    x.as_ref().expect("connected").item().unwrap()
}

#[test]
fn a_persistent_tape_that_was_asked_records_no_more() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let w = Variable::new(&Tensor::ones([64])?);
        let tape = GradientTape::persistent();
        let y = w.read().square()?;
        assert_eq!(tape.gradient(&y, &w)?.unwrap().to_vec::<f32>()?, [2.0; 64]);

        // The tape is still there, for a second gradient, while the program continues.
        let step = || -> tf::Result<()> {
            let mut x = w.read();
            for _ in 0..10 {
                x = x.sin()?;
            }
            w.assign(&x)?;
            device.flush()
        };
        step()?;
        step()?;
        step()?;
        let buffers = device.stats().buffers;
        for _ in 0..20 {
            step()?;
        }
        assert_eq!(device.stats().buffers, buffers, "nothing is kept of what came later");
        let late = w.read().square()?;
        assert!(tape.gradient(&late, &w)?.is_none());
        assert_eq!(tape.gradient(&y, &w)?.unwrap().to_vec::<f32>()?, [2.0; 64]);
        Ok(())
    })
}

#[test]
fn a_function_is_recorded_until_it_ends() -> tf::Result<()> {
    let w = Variable::new(&tf::constant(3.0)?);
    let (tape, y) = GradientTape::record(|_| Ok(&w * &w))?;
    let z = &y * &w;
    assert!(tape.gradient(&z, &w)?.is_none(), "it was made after the function");

    let (tape, y) = GradientTape::record(|_| Ok(&w * &w))?;
    assert_eq!(tape.required_gradient(&y, &w)?.item::<f32>()?, 6.0);

    // A failure is returned, and the tape is dropped.
    let error = GradientTape::record(|_| w.read().reshape([2, 2])).map(drop).unwrap_err();
    assert!(error.to_string().starts_with("Reshape: "), "{error}");

    // Within the function, the tape records its own gradient computations.
    let (tape, (y, dy)) = PersistentTape::record(|tape| {
        let y = &w * &w * &w;
        let dy = tape.gradient(&y, &w)?.expect("connected");
        Ok((y, dy))
    })?;
    assert_eq!(item(&tape.gradient(&y, &w)?), 27.0);
    assert_eq!(item(&tape.gradient(&dy, &w)?), 18.0);
    assert!(tape.gradient(&(&y * &dy), &w)?.is_none());

    // Tapes nest: the outer one records what the inner one computes.
    let (outer, dy) = GradientTape::record(|_| {
        let (inner, y) = GradientTape::record(|_| Ok(&w * &w * &w))?;
        inner.required_gradient(&y, &w)
    })?;
    assert_eq!(outer.required_gradient(&dy, &w)?.item::<f32>()?, 18.0);
    Ok(())
}

#[test]
fn a_persistent_tape_continues_on_request() -> tf::Result<()> {
    let x = tf::constant(2.0)?;
    let tape = GradientTape::persistent().keep_recording();
    tape.watch(&x)?;
    let y = x.pow(3.0)?;
    let dy = tape.gradient(&y, &x)?.unwrap();
    let ddy = tape.gradient(&dy, &x)?.unwrap();
    assert_eq!(item(&tape.gradient(&ddy, &x)?), 6.0);
    let z = &y * &x;
    assert_eq!(item(&tape.gradient(&z, &x)?), 32.0);
    tape.stop();
    let late = &z * &x;
    assert!(tape.gradient(&late, &x)?.is_none());
    assert_eq!(item(&tape.gradient(&z, &x)?), 32.0);
    Ok(())
}

#[test]
fn a_stopped_tape_says_that_it_watches_nothing() -> tf::Result<()> {
    let x = tf::constant(2.0)?;
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = &x * &x;
    tape.stop();
    tape.stop();
    let error = tape.watch(&x).unwrap_err();
    assert_eq!(
        error.to_string(),
        "GradientTape.watch: the tape has stopped recording; watch before stop and gradient, or open another tape."
    );
    assert!(matches!(error, tf::Error::Gradient(_)));
    assert_eq!(tape.required_gradient(&y, &x)?.item::<f32>()?, 4.0);
    Ok(())
}

#[test]
fn a_tape_that_is_left_open_says_so_once() -> tf::Result<()> {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let device = Device::new()?;
    device.scope(|| {
        for _ in 0..2 {
            let w = Variable::new(&tf::constant(0.5)?);
            let tape = GradientTape::new();
            for _ in 0..110 {
                let mut x = w.read();
                for _ in 0..150 {
                    x = x.negative()?;
                }
                w.assign(&x)?;
            }
            drop(tape);
        }
        Ok::<(), tf::Error>(())
    })?;
    let reported: Vec<String> =
        LOG.0.lock().unwrap().iter().filter(|t| t.contains("Tape")).cloned().collect();
    assert_eq!(
        reported,
        [
            "GradientTape: a tape has recorded 16384 calls, and keeps the values that their gradients need. If it is still \
          open by mistake, end it: by gradient, by stop, or with the function of GradientTape::record."
        ]
    );
    Ok(())
}
