//! Tensors of two devices.

use super::{ints, values, zeros};

use wgrad as tf;
use wgrad::{Device, DeviceFault, Error};

#[test]
fn tensors_of_two_devices_do_not_meet() {
    let [first, second] = [Device::new().unwrap(), Device::new().unwrap()];
    let a = first.scope(|| zeros([2]));
    let b = second.scope(|| zeros([2]));
    let mixed = [
        a.add(&b),
        tf::concat([&a, &b], 0),
        tf::where_(&a.greater(0.0).unwrap(), &a, &b),
        a.gather(&second.scope(|| ints([0])), 0),
    ];
    for result in mixed {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Mismatch, _)), "{error}");
        assert!(error.to_string().contains("Device::scope"), "{error}");
    }
    // Both are on one adapter; the message distinguishes them, and names the device of each input.
    let number = |device: &Device| {
        let text = format!("{device:?}");
        text.trim_start_matches("Device(").split(':').next().unwrap().to_string()
    };
    let [one, two] = [number(&first), number(&second)];
    assert!(one != two && one.parse::<usize>().is_ok(), "{first:?} {second:?}");
    let error = second.scope(|| b.add(&a)).unwrap_err();
    let error = error.to_string();
    let said = [
        format!("input 0, [2], is on device {two} of this program ("),
        "the one of this Device::scope), and input 1, [2], on device".to_string(),
        format!("device {one} of this program ("),
    ];
    for said in said {
        assert!(error.contains(&said), "{error}: {said}");
    }
    // A number is placed on its tensor's device, whatever the scope.
    assert_eq!(first.scope(|| values(b.add(1.0))), [1.0, 1.0]);
    assert_eq!(first.scope(|| values(b.reduce_mean(()))), [0.0]);
    assert_eq!(first.scope(|| values(b.softmax(0))), [0.5, 0.5]);
}

/// Reads, computes and uploads when its thread ends, and reports the outcome.
struct AtTheEnd(tf::Tensor, std::sync::mpsc::Sender<String>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        let device = self.0.device();
        // Recorded or not, nothing reaches the device.
        let tape = tf::GradientTape::new();
        let watched = tape.watch(&self.0).and_then(|()| tape.gradient(&self.0.square()?, &self.0));
        let calls: [(&str, tf::Result<()>); 8] = [
            (
                "differentiate",
                watched.and_then(|dx| dx.unwrap_or(self.0.clone()).item::<f32>()).map(drop),
            ),
            ("upload in a scope", device.scope(|| tf::constant([1.0, 2.0])).map(drop)),
            ("read", self.0.to_vec::<f32>().map(drop)),
            ("compute", self.0.add(1.0).and_then(|y| y.item::<f32>()).map(drop)),
            ("open", Device::new().map(drop)),
            ("flush", device.flush()),
            ("synchronize", device.synchronize()),
            ("upload", tf::constant([1.0, 2.0]).map(drop)),
        ];
        for (call, result) in calls {
            let said = result.map_or_else(|error| error.to_string(), |()| "fine".to_string());
            let _ = self.1.send(format!("{call}: {said}"));
        }
    }
}

thread_local! {
    static LAST: std::cell::RefCell<Option<AtTheEnd>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn a_thread_that_ends_gets_errors() {
    for own in [false, true] {
        let (sender, receiver) = std::sync::mpsc::channel();
        // This thread keeps the device alive: the ending thread does not release it.
        let device = if own { Device::new().unwrap() } else { Device::current().unwrap() };
        let kept = device.clone();
        let work = move || {
            // Accessed first, so that it is dropped last.
            LAST.with_borrow(|_| ());
            let x = device.scope(|| tf::constant([1.0])).unwrap();
            assert_eq!(values(x.square()), [1.0]);
            let waits = x.add(2.0).unwrap();
            LAST.set(Some(AtTheEnd(waits, sender)));
        };
        std::thread::spawn(work).join().unwrap();
        drop(kept);
        let said: Vec<String> = receiver.into_iter().collect();
        assert_eq!(said.len(), 8, "{said:?}");
        for line in said {
            assert!(line.contains("this thread is ending"), "{line}");
        }
    }
    // The device remains usable in other threads.
    assert_eq!(values(tf::constant([1.0]).unwrap().add(1.0)), [2.0]);
}
