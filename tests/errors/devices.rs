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
    // A number goes to its tensor's device, whatever the scope.
    assert_eq!(first.scope(|| values(b.add(1.0))), [1.0, 1.0]);
    assert_eq!(first.scope(|| values(b.reduce_mean(()))), [0.0]);
    assert_eq!(first.scope(|| values(b.softmax(0))), [0.5, 0.5]);
}
