//! The cost of training: plans, buffers and reads; threads and futures.

use wgrad::keras::callbacks::{Callback, EpochLogs, LambdaCallback, Run};
use wgrad::keras::optimizers::Adam;
use wgrad::keras::{CompileOptions, EvaluateOptions, FitOptions, Logs, Model, PredictOptions};
use wgrad::{Device, Result, Trackable};

use super::{alone, data, loss, network, series};

/// Records the device's counters after each epoch.
struct Counting {
    seen: Vec<wgrad::DeviceStats>,
}

impl Callback for Counting {
    fn batch_logs(&self) -> wgrad::keras::callbacks::BatchLogs {
        wgrad::keras::callbacks::BatchLogs::Unused
    }

    fn on_epoch_end(&mut self, _: usize, _: &mut Logs, _: &mut Run<'_>) -> Result<()> {
        let device = Device::current()?;
        device.synchronize()?;
        self.seen.push(device.stats());
        Ok(())
    }
}

#[test]
fn the_second_epoch_plans_and_compiles_nothing() {
    let _alone = alone();
    let device = Device::new().unwrap();
    device.scope(|| {
        let (x, y) = data(150);
        let model = network();
        model
            .compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(["accuracy"]))
            .unwrap();
        let mut counting = Counting { seen: Vec::new() };
        // Functions: batches of 8, and one of 6; a validation set with batches of 3 and 2.
        let front = (x.slice(ndarray::s![..50, ..]), y.slice(ndarray::s![..50]));
        let options = FitOptions::new().epochs(4).batch_size(8).validation_batch_size(3);
        let options = options.validation_data(front);
        model.fit((&x, &y), options.callback(&mut counting)).unwrap();
        let seen = &counting.seen;
        for epoch in 1..4 {
            let (before, after) = (&seen[epoch - 1], &seen[epoch]);
            assert_eq!(after.plan_misses, before.plan_misses, "plans in epoch {epoch}: {seen:#?}");
            assert_eq!(after.pipelines, before.pipelines, "pipelines in epoch {epoch}");
            if epoch > 1 {
                assert_eq!(after.buffers, before.buffers, "buffers in epoch {epoch}: {seen:#?}");
            }
        }
        // 36 batches are not read one by one.
        assert!(seen[3].reads - seen[2].reads <= 12, "{seen:#?}");
    });
}

#[test]
fn fit_runs_on_a_thread_and_as_a_future() {
    let _alone = alone();
    let (x, y) = data(40);
    let model = std::sync::Arc::new(network());
    model.compile(Adam::new(0.01), loss(), CompileOptions::new()).unwrap();
    let there = model.clone();
    let thread = std::thread::spawn(move || {
        there.fit((&x, &y), FitOptions::new()).map(|h| h.epochs().len())
    });
    assert_eq!(thread.join().unwrap().unwrap(), 1);
    let (x, y) = data(40);
    let both = async {
        model.fit_async((&x, &y), FitOptions::new()).await?;
        model.evaluate_async((&x, &y), EvaluateOptions::new()).await?;
        model.predict_async(&x, PredictOptions::new()).await
    };
    assert_eq!(pollster::block_on(both).unwrap().shape(), [40, 3]);
}

/// Sixty epochs of a handful of examples wait for the device a few times, not once per epoch.
#[test]
fn short_epochs_do_not_wait_for_the_device() {
    let _alone = alone();
    let device = Device::new().unwrap();
    device.scope(|| {
        let (x, y) = data(4);
        let trained = |callback: Option<LambdaCallback<'_>>| {
            let model = network();
            model
                .compile(Adam::new(0.01), loss(), CompileOptions::new().metrics(["accuracy"]))
                .unwrap();
            let before = device.stats().reads;
            let mut options = FitOptions::new().epochs(60).validation_data((&x, &y)).verbose(0);
            if let Some(callback) = callback {
                options = options.callback(callback);
            }
            let history = model.fit((&x, &y), options).unwrap();
            (history, model.get_weights().unwrap(), device.stats().reads - before)
        };
        let (ahead, weights, reads) = trained(None);
        assert!(reads <= 30, "{reads} reads");
        assert_eq!(ahead.epochs(), (0..60).collect::<Vec<_>>());
        // A callback that needs an epoch's numbers at once gets them, and they are the same.
        let mut seen = Vec::new();
        let note = LambdaCallback::new().on_epoch_end(|epoch, logs, run| {
            let steps = run.optimizer()?.iterations();
            seen.push((epoch, steps, logs.get("val_loss").unwrap()));
            Ok(())
        });
        let (waited, same, reads) = trained(Some(note));
        assert!((60..=130).contains(&reads), "{reads} reads");
        assert_eq!((&waited, same), (&ahead, weights.clone()));
        let losses = series(&ahead, "val_loss");
        let want: Vec<_> = (0..60).map(|at| (at, at as u64 + 1, losses[at])).collect();
        assert_eq!(seen, want);
        // A callback that only records them gets them in order, but later.
        let mut seen = Vec::new();
        let note =
            LambdaCallback::new().epoch_logs(EpochLogs::Behind).on_epoch_end(|epoch, logs, _| {
                seen.push((epoch, logs.get("loss").unwrap()));
                Ok(())
            });
        let (behind, _, reads) = trained(Some(note));
        assert!(reads <= 30, "{reads} reads");
        assert_eq!(behind, ahead);
        assert_eq!(seen, series(&ahead, "loss").into_iter().enumerate().collect::<Vec<_>>());
    });
}
