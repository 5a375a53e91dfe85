//! Errors of `wgrad::signal`, and signals without elements.

use wgrad::Tensor;
use wgrad::signal::{self, DctOptions, FftOptions, FrameOptions, MelOptions, StftOptions, Window};

use crate::{ints, text, zeros};

#[test]
fn pairs_and_ranks() {
    assert_eq!(
        text(signal::fft(&zeros([4, 3]))),
        "FFT: the tensor is [4, 3]; complex numbers are pairs along a last axis of size 2. Make them by signal::complex."
    );
    assert_eq!(
        text(signal::fft(&zeros([2]))),
        "FFT: the tensor is [2]; it must be [..,n,2], with the parts of each number last."
    );
    assert!(text(signal::fft2d(&zeros([3, 2]))).contains("it must be [..,h,w,2]"));
    assert_eq!(
        text(signal::fft(&ints([1, 2]))),
        "FFT: the dtype i32 is not supported here; use f32. Cast the tensor first."
    );
    for x in [zeros([4, 3]), Tensor::scalar(1.0f32).unwrap()] {
        for result in [
            signal::ifft(&x),
            signal::irfft(&x),
            signal::abs(&x),
            signal::real(&x),
            signal::angle(&x),
            signal::conj(&x),
            signal::multiply(&x, &x),
            signal::inverse_stft(&x, 4, 2),
        ] {
            assert!(text(result).contains("pairs along a last axis of size 2"));
        }
    }
    let scalar = Tensor::scalar(1.0f32).unwrap();
    assert_eq!(text(signal::rfft(&scalar)), "RFFT: the tensor is []; it must be [..,n].");
    assert!(text(signal::frame(&scalar, 2, 2)).contains("it must be [..,n]"));
    assert!(text(signal::overlap_and_add(&zeros([3]), 2)).contains("[..,frames,length]"));
    assert!(text(signal::inverse_stft(&zeros([3, 2]), 4, 2)).contains("fft_length/2+1,2]"));
    assert!(text(signal::dct(&scalar)).contains("it must be [..,n]"));
}

#[test]
fn lengths() {
    assert_eq!(
        text(signal::fft(&zeros([3, 0, 2]))),
        "FFT: a transform of 0 numbers; there must be 1 to 268435456."
    );
    assert!(text(signal::rfft(&zeros([0]))).contains("a transform of 0 numbers"));
    assert!(text(signal::irfft(&zeros([1, 2]))).contains("a transform of 0 numbers"));
    let far = FftOptions::new().fft_length(usize::MAX);
    assert!(text(signal::rfft_with(&zeros([4]), far)).contains("there must be 1 to"));
    assert_eq!(
        text(signal::frame(&zeros([9]), 0, 2)),
        "frame: frames of 0 samples in steps of 2; both numbers must be above 0."
    );
    assert!(text(signal::stft(&zeros([9]), 4, 0)).contains("both numbers must be above 0"));
    assert!(text(signal::overlap_and_add(&zeros([2, 3]), 0)).contains("must be above 0"));
    assert!(signal::overlap_and_add(&zeros([2, 3]), usize::MAX).is_err());
    let axis = FrameOptions::new().axis(2);
    assert!(text(signal::frame_with(&zeros([9, 2]), 2, 2, axis)).contains("axis 2 does not exist"));
    let pad = FrameOptions::new().pad_end(true);
    assert!(signal::frame_with(&zeros([9]), usize::MAX, usize::MAX, pad).is_err());
    assert!(signal::stft(&zeros([9]), usize::MAX, 1).is_err());
    assert_eq!(
        text(signal::dct_with(&zeros([1]), DctOptions::new().kind(1))),
        "dct: the tensor is [1], transformed along 1 numbers; type 1 needs at least 2."
    );
}

#[test]
fn options() {
    assert_eq!(
        text(signal::dct_with(&zeros([4]), DctOptions::new().kind(5))),
        "dct: the type is 5; it must be 1 to 4, and type 1 has no orthonormal form."
    );
    let first = DctOptions::new().kind(1).ortho(true);
    assert!(text(signal::dct_with(&zeros([4]), first)).contains("no orthonormal form"));
    assert_eq!(
        text(signal::kaiser_window(4, -1.0)),
        "kaiser_window: beta is -1; it must be finite and 0 or more."
    );
    let window = StftOptions::new().window(Window::Weights(zeros([3])));
    assert_eq!(
        text(signal::stft_with(&zeros([9]), 4, 2, window)),
        "stft: the window is [3]; a frame of 4 samples needs as many weights."
    );
    assert_eq!(
        text(signal::linear_to_mel_weight_matrix(MelOptions::new().upper_edge_hertz(5000.0))),
        "linear_to_mel_weight_matrix: the edges are 125 and 5000 Hz at 8000 samples a second; they must rise from 0 or more \
         to at most half the sample rate."
    );
    let none = MelOptions::new().num_mel_bins(0);
    assert!(text(signal::linear_to_mel_weight_matrix(none)).contains("at least one of each"));
    let many = MelOptions::new().num_mel_bins(usize::MAX);
    assert!(text(signal::linear_to_mel_weight_matrix(many)).contains("at most"));
}

#[test]
fn batches_without_elements() {
    assert_eq!(signal::fft(&zeros([0, 8, 2])).unwrap().shape(), [0, 8, 2]);
    assert_eq!(signal::fft2d(&zeros([2, 0, 4, 4, 2])).unwrap().shape(), [2, 0, 4, 4, 2]);
    assert_eq!(signal::rfft(&zeros([0, 8])).unwrap().shape(), [0, 5, 2]);
    assert_eq!(signal::irfft(&zeros([0, 5, 2])).unwrap().shape(), [0, 8]);
    assert_eq!(signal::stft(&zeros([0, 100]), 16, 8).unwrap().shape(), [0, 11, 9, 2]);
    assert_eq!(signal::stft(&zeros([3]), 16, 8).unwrap().shape(), [0, 9, 2]);
    assert_eq!(signal::overlap_and_add(&zeros([0, 4]), 2).unwrap().shape(), [2]);
    assert_eq!(signal::dct(&zeros([0, 4])).unwrap().shape(), [0, 4]);
}
