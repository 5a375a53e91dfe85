//! `wgrad::signal`: transforms of many lengths compared with sums in `f64`, and everything else with numbers of TensorFlow
//! 2.21.

#![allow(clippy::unwrap_used)]

use crate::support::compare::noise;
use crate::{near, numbers, quarters};
use std::f64::consts::TAU;

use wgrad::signal::{
    self, DctOptions, Fft2dOptions, FftOptions, FrameOptions, StftOptions, Window,
};
use wgrad::{GradientTape, Tensor};

/// The transform in `f64`, split in halves while the length is even.
fn dft(x: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let n = x.len();
    let turned = |[a, b]: [f64; 2], k: usize| {
        let (sin, cos) = (-TAU * (k % n) as f64 / n as f64).sin_cos();
        [a * cos - b * sin, a * sin + b * cos]
    };
    if n.is_multiple_of(2) {
        let half = |from: usize| dft(&x.iter().copied().skip(from).step_by(2).collect::<Vec<_>>());
        let (even, odd) = (half(0), half(1));
        let sum = |k: usize| {
            let ([a, b], [c, d]) = (even[k % (n / 2)], turned(odd[k % (n / 2)], k));
            [a + c, b + d]
        };
        return (0..n).map(sum).collect();
    }
    let one = |k: usize| {
        x.iter().enumerate().fold([0.0; 2], |[a, b], (j, v)| {
            let [c, d] = turned(*v, j * k);
            [a + c, b + d]
        })
    };
    (0..n).map(one).collect()
}

/// The error of each number, relative to the mean magnitude of the spectrum.
#[track_caller]
fn check_spectrum(n: usize, got: &[f32], want: &[[f64; 2]]) {
    let flat: Vec<f64> = want.iter().flatten().copied().collect();
    assert_eq!(got.len(), flat.len(), "{n}");
    let size = (flat.iter().map(|v| v * v).sum::<f64>() / flat.len() as f64).sqrt();
    let worst = got.iter().zip(&flat).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    // A pass has a few rounding errors of half a unit; a length with a large factor has three transforms of twice the length.
    assert!(worst <= 4e-6 * size, "{n}: {worst} of {size}");
}

#[test]
fn transforms_of_every_length() {
    let lengths = (1..=70).chain([97, 121, 128, 169, 210, 243, 512, 1000, 1001, 1009, 2048, 4096]);
    for n in lengths {
        let x = noise(1, 2 * n);
        let pairs: Vec<[f64; 2]> =
            x.chunks(2).map(|v| [f64::from(v[0]), f64::from(v[1])]).collect();
        let want = dft(&pairs);
        // A batch of two signals; the second is the first times 2.
        let both: Vec<f32> = x.iter().copied().chain(x.iter().map(|v| 2.0 * v)).collect();
        let input = Tensor::from_slice(&both, [2, n, 2]).unwrap();
        let spectrum = signal::fft(&input).unwrap();
        let got = spectrum.to_vec::<f32>().unwrap();
        check_spectrum(n, &got[..2 * n], &want);
        assert!(got[..2 * n].iter().zip(&got[2 * n..]).all(|(a, b)| 2.0 * a == *b), "{n}");
        let back = signal::ifft(&spectrum).unwrap().to_vec::<f32>().unwrap();
        let worst = back.iter().zip(&both).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{n}: back to {worst}");
    }
}

#[test]
fn real_transforms_of_every_length() {
    for n in (1..=40).chain([97, 128, 210, 1000, 1022, 2048, 4096]) {
        let x = noise(1, n);
        let pairs: Vec<[f64; 2]> = x.iter().map(|v| [f64::from(*v), 0.0]).collect();
        let spectrum = signal::rfft(&Tensor::from_slice(&x, [1, n]).unwrap()).unwrap();
        assert_eq!(spectrum.shape(), [1, n / 2 + 1, 2]);
        check_spectrum(n, &spectrum.to_vec::<f32>().unwrap(), &dft(&pairs)[..n / 2 + 1]);
        let back = signal::irfft_with(&spectrum, FftOptions::new().fft_length(n)).unwrap();
        assert_eq!(back.shape(), [1, n]);
        let back = back.to_vec::<f32>().unwrap();
        let worst = back.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{n}: back to {worst}");
    }
}

#[test]
fn a_million_numbers() {
    let n = 1 << 20;
    let x = noise(1, 2 * n);
    let pairs: Vec<[f64; 2]> = x.chunks(2).map(|v| [f64::from(v[0]), f64::from(v[1])]).collect();
    let y = signal::fft(&Tensor::from_slice(&x, [n, 2]).unwrap()).unwrap();
    check_spectrum(n, &y.to_vec::<f32>().unwrap(), &dft(&pairs));
}

#[test]
fn two_axes() {
    near(
        signal::rfft2d(&quarters(&[3, 4])),
        &[3, 3, 2],
        &[
            1.75, 0.0, -2.25, -0.5, -2.25, 0.0, 0.625, -1.948557, 2.38157, 1.375, -4.125, -2.38157,
            0.625, 1.948557, -2.38157, 1.375, -4.125, 2.38157,
        ],
    );
    near(
        signal::rfft2d_with(&quarters(&[3, 4]), Fft2dOptions::new().fft_length([2, 5])),
        &[2, 3, 2],
        &[
            2.5, 0.0, -2.647542, 0.2030748, 0.1475425, -0.8602388, -0.5, 0.0, -0.9114745,
            0.4275887, -2.588526, -3.350137,
        ],
    );
    let spectrum = signal::rfft2d(&quarters(&[3, 4])).unwrap();
    near(signal::irfft2d(&spectrum), &[3, 4], &numbers(12));
    let x = quarters(&[2, 3, 4, 2]);
    near(signal::ifft2d(&signal::fft2d(&x).unwrap()), &[2, 3, 4, 2], &numbers(48));
}

#[test]
fn real_transforms_as_tensorflows() {
    let c = Tensor::from_slice(&[1.0f32, 2.0, 3.0, -1.0, 0.5, 4.0], [3, 2]).unwrap();
    let of = |n: usize| signal::irfft_with(&c, FftOptions::new().fft_length(n));
    near(signal::irfft(&c), &[4], &[1.875, 0.625, -1.125, -0.375]);
    near(of(5), &[5], &[1.6, -0.1510168, 1.047788, -2.465822, 0.9690508]);
    near(of(8), &[8], &[1.0, -0.1678932, 0.25, 0.7714466, -0.5, -1.582107, -0.25, 1.478553]);
    near(of(3), &[3], &[2.333333, -0.08931641, -1.244017]);
    near(
        signal::rfft_with(&quarters(&[5]), FftOptions::new().fft_length(7)),
        &[4, 2],
        &[1.5, 0.0, -2.27869, -0.7765254, 0.3053311, -0.05783534, -2.276641, -1.495799],
    );
}

#[test]
fn cosine_transforms() {
    let x = quarters(&[5]);
    let of =
        |kind: u8, ortho: bool| signal::dct_with(&x, DctOptions::new().kind(kind).ortho(ortho));
    near(of(1, false), &[5], &[3.5, -2.56066, 0.0, -0.4393399, -5.5]);
    near(signal::dct(&x), &[5], &[3.0, -3.734848, -1.699593, -0.3367709, -4.449594]);
    near(of(2, true), &[5], &[0.6708204, -1.181062, -0.5374586, -0.1064963, -1.407085]);
    let third = [2.094449, -3.626, 0.5000002, 0.3169832, -4.285432];
    near(of(3, false), &[5], &third);
    near(signal::idct(&x), &[5], &third);
    near(of(3, true), &[5], &[0.5313372, -1.277628, 0.02712803, -0.03074694, -1.486159]);
    near(
        of(4, false),
        &[5],
        &[0.5259854, -4.610864, std::f32::consts::FRAC_1_SQRT_2, -3.16477, -3.03274],
    );
    near(of(4, true), &[5], &[0.1663312, -1.458083, 0.2236068, -1.000788, -0.9590365]);
    near(
        signal::dct_with(&x, DctOptions::new().n(7)),
        &[7],
        &[3.0, -1.427934, -4.779902, -0.7520969, 0.2903067, -3.502906, -3.929792],
    );
    for kind in 2..=4 {
        let options = DctOptions::new().kind(kind).ortho(true);
        let there = signal::dct_with(&x, options).unwrap();
        near(signal::idct_with(&there, options), &[5], &numbers(5));
    }
}

#[test]
fn frames() {
    let pad = FrameOptions::new().pad_end(true).pad_value(9.0);
    near(
        signal::frame_with(&quarters(&[7]), 3, 2, pad),
        &[4, 3],
        &[-1.0, 0.75, -0.25, -0.25, 1.5, 0.5, 0.5, -0.5, 1.25, 1.25, 9.0, 9.0],
    );
    near(
        signal::frame_with(&quarters(&[5, 2]), 2, 2, FrameOptions::new().axis(0)),
        &[2, 2, 2],
        &numbers(8),
    );
    // Shorter than a frame: no frames.
    assert_eq!(signal::frame(&quarters(&[2, 3]), 4, 1).unwrap().shape(), [2, 0, 4]);
    assert_eq!(signal::frame(&quarters(&[0]), 4, 1).unwrap().shape(), [0, 4]);
    near(
        signal::overlap_and_add(&quarters(&[2, 5]), 3),
        &[8],
        &[-1.0, 0.75, -0.25, 1.0, 1.75, 0.25, -0.75, 1.0],
    );
    near(
        signal::overlap_and_add(&quarters(&[3, 2]), 4),
        &[10],
        &[-1.0, 0.75, 0.0, 0.0, -0.25, 1.5, 0.0, 0.0, 0.5, -0.5],
    );
}

#[test]
fn short_time_transforms() {
    near(
        signal::stft(&quarters(&[14]), 6, 3),
        &[3, 5, 2],
        &[
            1.75, 0.0, -1.214689, -1.094131, 0.5625, 1.4375, 0.4646893, -1.469131, -1.375, 0.0,
            1.0, 0.0, -0.8504127, -0.7298542, 0.5625, 1.3125, 0.4754127, -1.479854, -1.375, 0.0,
            0.2500002, 0.0, -0.486136, -0.3655775, 0.5625, 1.1875, 0.486136, -1.490577, -1.375,
            0.0,
        ],
    );
    let options = StftOptions::new().fft_length(6).window(Window::Hamming).pad_end(true);
    near(
        signal::stft_with(&quarters(&[10]), 5, 2, options),
        &[5, 4, 2],
        &[
            0.9250001,
            0.0,
            -0.5825,
            -0.09959292,
            0.6325,
            -0.6018877,
            -1.505,
            0.0,
            1.12,
            0.0,
            0.355,
            -1.047891,
            -0.995,
            -0.3550705,
            0.03999996,
            0.0,
            1.095,
            0.0,
            -0.8249999,
            -0.9006665,
            -0.2849999,
            1.36832,
            1.365,
            0.0,
            0.02500004,
            0.0,
            0.002500027,
            0.5326056,
            0.9475,
            -0.7664325,
            -1.325,
            0.0,
            0.48,
            0.0,
            0.21,
            -0.4676537,
            -0.33,
            -0.4676537,
            -0.6,
            0.0,
        ],
    );
    let spectra = signal::stft(&quarters(&[20]), 8, 4).unwrap();
    near(
        signal::inverse_stft(&spectra, 8, 4),
        &[20],
        &[
            0.0,
            0.01608496,
            -0.0625,
            1.09283,
            0.5,
            -0.375,
            0.625,
            0.1875,
            -0.75,
            0.75,
            0.0,
            -0.75,
            0.75,
            -0.1875,
            0.75,
            0.375,
            -0.5,
            0.9106917,
            0.0625,
            -0.01608493,
        ],
    );
    let window = signal::inverse_stft_window(8, 4, Window::Hann).unwrap();
    let back = StftOptions::new().window(Window::Weights(window));
    let undone = signal::inverse_stft_with(&spectra, 8, 4, back).unwrap();
    // Both ends are in one frame only, attenuated by its window.
    let middle = undone.slice(&[4], &[12]).unwrap();
    near(Ok(middle), &[12], &numbers(20)[4..16]);
    near(
        signal::inverse_stft_window(6, 4, Window::Hann),
        &[6],
        &[0.0, 2.0, 1.333333, 1.0, 1.333333, 2.0],
    );
}

#[test]
fn windows() {
    near(signal::hann_window(5), &[5], &[0.0, 0.5, 1.0, 0.5, 0.0]);
    near(signal::hann_window(2), &[2], &[0.0, 1.0]);
    near(signal::hann_window(1), &[1], &[1.0]);
    assert_eq!(signal::hann_window(0).unwrap().shape(), [0]);
    let symmetric = signal::WindowOptions::new().periodic(false);
    near(signal::hann_window_with(4, symmetric), &[4], &[0.0, 0.75, 0.75, 0.0]);
    near(signal::hamming_window(6), &[6], &[0.08, 0.31, 0.77, 1.0, 0.77, 0.31]);
    near(
        signal::kaiser_window(5, 12.0),
        &[5],
        &[5.277345e-5, 0.2156727, 1.0, 0.2156727, 5.277345e-5],
    );
    near(signal::kaiser_window(4, 3.0), &[4], &[0.2048847, 0.8712419, 0.8712419, 0.2048847]);
    near(signal::kaiser_window(1, 3.0), &[1], &[1.0]);
    near(signal::vorbis_window(4), &[4], &[0.2280144, 0.9736578, 0.9736578, 0.2280142]);
}

#[test]
fn mels() {
    let options = signal::MelOptions::new().num_mel_bins(4).num_spectrogram_bins(9);
    near(
        signal::linear_to_mel_weight_matrix(options),
        &[9, 4],
        &[
            0.0,
            0.0,
            0.0,
            0.0,
            0.8956538,
            0.1043461,
            0.0,
            0.0,
            0.0,
            0.8690782,
            0.1309218,
            0.0,
            0.0,
            0.1091703,
            0.8908297,
            0.0,
            0.0,
            0.0,
            0.505573,
            0.4944271,
            0.0,
            0.0,
            0.004824332,
            0.9951757,
            0.0,
            0.0,
            0.0,
            0.5769244,
            0.0,
            0.0,
            0.0,
            0.2033447,
            0.0,
            0.0,
            0.0,
            0.0,
        ],
    );
    near(
        signal::mfccs_from_log_mel_spectrograms(&quarters(&[6])),
        &[6],
        &[0.5773503, -0.4382779, -1.375, 0.4082483, -0.7938566, -1.152712],
    );
}

/// The loss is the energy of a spectrum, n times the signal's energy (Parseval), so the gradient is 2 n x.
#[test]
fn the_gradient_of_the_energy() {
    for n in [64, 60, 34] {
        let x = quarters(&[n, 2]);
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        let energy = signal::abs(&signal::fft(&x).unwrap()).unwrap().square().unwrap().sum(());
        let gradient = tape.gradient(energy.unwrap(), &x).unwrap().unwrap();
        let want: Vec<f32> = numbers(2 * n).iter().map(|v| 2.0 * n as f32 * v).collect();
        near(Ok(gradient), &[n, 2], &want);
    }
}

#[test]
fn complex_numbers() {
    let z = Tensor::from_slice(&[3.0f32, 4.0, 0.0, 0.0, -1.0, 0.0], [3, 2]).unwrap();
    near(signal::abs(&z), &[3], &[5.0, 0.0, 1.0]);
    near(signal::angle(&z), &[3], &[0.9272952, 0.0, std::f32::consts::PI]);
    near(signal::conj(&z), &[3, 2], &[3.0, -4.0, 0.0, 0.0, -1.0, 0.0]);
    // (3 + 4i)^2 = -7 + 24i
    near(signal::multiply(&z, &z), &[3, 2], &[-7.0, 24.0, 0.0, 0.0, 1.0, 0.0]);
    let tape = GradientTape::new();
    tape.watch(&z).unwrap();
    let gradient = tape.gradient(signal::abs(&z).unwrap(), &z).unwrap().unwrap();
    near(Ok(gradient), &[3, 2], &[0.6, 0.8, 0.0, 0.0, -1.0, 0.0]);
}
