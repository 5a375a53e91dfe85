//! Errors of attention, recurrent layers and normalizations, and their results for empty inputs.

use wgrad::{
    AttentionOptions, FusedBatchNormOptions, GruOptions, LstmOptions, NormalizationOptions,
};

use super::*;

fn attention(q: &Tensor, k: &Tensor, v: &Tensor, options: AttentionOptions) -> Result<Tensor> {
    tf::scaled_dot_product_attention(q, k, v, options)
}

#[test]
fn attention_says_what_does_not_fit() {
    let plain = AttentionOptions::new;
    let (q, k) = (zeros([2, 4, 3, 8]), zeros([2, 4, 5, 8]));
    assert_eq!(
        text(attention(&zeros([8]), &zeros([8]), &zeros([8]), plain())),
        "ScaledDotProductAttention: query is [8], key [8] and value [8]; all three need the same number of axes, two or \
         more: [.., H, T, D]."
    );
    assert_eq!(
        text(attention(&q, &zeros([2, 4, 5, 6]), &k, plain())),
        "ScaledDotProductAttention: query is [2, 4, 3, 8], key [2, 4, 5, 6] and value [2, 4, 5, 8]; query and key need \
         one last axis, of one element or more."
    );
    assert_eq!(
        text(attention(&q, &k, &zeros([2, 4, 6, 8]), plain())),
        "ScaledDotProductAttention: query is [2, 4, 3, 8], key [2, 4, 5, 8] and value [2, 4, 6, 8]; key and value need \
         one second to last axis."
    );
    let three = zeros([2, 3, 5, 8]);
    assert!(
        text(attention(&q, &three, &three, plain())).contains("may be a multiple of the others'")
    );
    assert!(text(attention(&q, &k, &zeros([1, 4, 5, 8]), plain())).contains("must agree"));
    assert_eq!(
        text(attention(&q, &k, &k, plain().mask(zeros([2, 4, 3, 4])))),
        "ScaledDotProductAttention: the mask is [2, 4, 3, 4] and the scores [2, 4, 3, 5]; the mask must broadcast to \
         them."
    );
    let numbers = Tensor::full_of([5], 1, tf::DType::I32).unwrap();
    assert_eq!(
        text(attention(&q, &k, &k, plain().mask(numbers))),
        "ScaledDotProductAttention (the mask): the dtype i32 is not supported here; use f32, f16, bool. Cast the tensor \
         first."
    );
    assert_eq!(
        text(attention(&q, &k, &k, plain().dropout_rate(1.0))),
        "ScaledDotProductAttention: the rate of dropout is 1; it must be at least 0 and below 1."
    );
    let ints = Tensor::full_of([2, 3], 1, tf::DType::I32).unwrap();
    assert!(
        text(attention(&ints, &ints, &ints, plain())).contains("the dtype i32 is not supported")
    );
}

#[test]
fn recurrent_layers_say_what_does_not_fit() {
    let (x, kernel, recurrent) = (zeros([2, 5, 3]), zeros([3, 16]), zeros([4, 16]));
    let run = |x: &Tensor, bias: Option<&Tensor>, options| {
        tf::lstm(x, &kernel, &recurrent, bias, options)
    };
    assert_eq!(
        text(run(&zeros([2, 3]), None, LstmOptions::new())),
        "LSTM: the input is [2, 3]; it must be [B, T, F]: batch, steps, features."
    );
    assert_eq!(
        text(run(&zeros([2, 0, 3]), None, LstmOptions::new())),
        "LSTM: the input is [2, 0, 3]; a sequence needs at least one step."
    );
    assert_eq!(
        text(run(&x, Some(&zeros([12])), LstmOptions::new())),
        "LSTM: with inputs of 3 features, the kernel is [3, 16], the recurrent kernel [4, 16] and the bias Some([12]); \
         for U units they must be [3, 4 U], [U, 4 U] and [4 U]."
    );
    let state = [zeros([2, 4]), zeros([3, 4])];
    assert_eq!(
        text(run(&x, None, LstmOptions::new().initial_state(state))),
        "LSTM: a state is [3, 4]; for this batch and these kernels it must be [2, 4]."
    );
    let mask = Tensor::full_of([2, 4], true, tf::DType::Bool).unwrap();
    assert_eq!(
        text(run(&x, None, LstmOptions::new().mask(mask))),
        "LSTM: the mask is [2, 4] and the input [2, 5, 3]; the mask must be [B, T]."
    );
    assert!(text(run(&x, None, LstmOptions::new().mask(zeros([2, 5])))).contains("use bool"));
    let (kernel, recurrent) = (zeros([3, 12]), zeros([4, 12]));
    let bias = zeros([12]);
    assert!(
        text(tf::gru(&x, &kernel, &recurrent, Some(&bias), GruOptions::new()))
            .ends_with("[2, 3 U].")
    );
    let h = zeros([2, 4]);
    assert!(
        text(tf::gru_cell(&x, &h, &kernel, &recurrent, None, true))
            .contains("a cell takes one step")
    );
    let narrow = zeros([2, 2]);
    assert!(
        text(tf::lstm_cell(&narrow, [&h, &h], &kernel, &recurrent, None))
            .contains("[2, 4 U], [U, 4 U]")
    );
}

#[test]
fn a_batch_of_none_has_results_of_none() {
    let (kernel, recurrent) = (zeros([3, 16]), zeros([4, 16]));
    let result =
        tf::lstm(&zeros([0, 5, 3]), &kernel, &recurrent, None, LstmOptions::new()).unwrap();
    assert_eq!(result.output.shape(), [0, 4]);
    assert_eq!(result.output.to_vec::<f32>().unwrap(), [0f32; 0]);
    let none = zeros([0, 4]);
    let of = NormalizationOptions::new;
    assert_eq!(none.layer_normalization(-1, of()).unwrap().to_vec::<f32>().unwrap(), [0f32; 0]);
    assert_eq!(none.group_normalization(2, of()).unwrap().shape(), [0, 4]);
}

#[test]
fn normalizations_say_what_does_not_fit() {
    let x = zeros([2, 3, 4]);
    let of = NormalizationOptions::new;
    assert_eq!(
        text(x.group_normalization(3, of())),
        "GroupNormalization: the input is [2, 3, 4], for 3 groups; it must be [N, .., C], and the groups divide the \
         channels."
    );
    assert!(text(x.group_normalization(0, of())).contains("for 0 groups"));
    assert_eq!(
        text(x.layer_normalization(-1, of().scale(zeros([3])))),
        "LayerNormalization: x is [2, 3, 4], so scale and offset must be [4]; one is [3]."
    );
    assert!(text(x.rms_normalization(3, of())).starts_with("RMSNormalization: axis 3"));
    assert!(text(x.layer_normalization([1, 1], of())).contains("twice"));
    let channels = zeros([4]);
    assert_eq!(
        text(x.fused_batch_norm(&zeros([3]), &channels, FusedBatchNormOptions::new())),
        "FusedBatchNormV3: x is [2, 3, 4], and scale, offset, mean and variance must be [4]; one is [3]."
    );
    let inference = FusedBatchNormOptions::new().is_training(false);
    assert_eq!(
        text(x.fused_batch_norm(&channels, &channels, inference)),
        "FusedBatchNormV3: with is_training false and exponential_avg_factor 1 it needs mean and variance."
    );
    assert_eq!(
        text(x.local_response_normalization(Default::default())),
        "LRN: the input is [2, 3, 4]; it must be [N, H, W, C]."
    );
    let ints = Tensor::full_of([2, 2], 1, tf::DType::I32).unwrap();
    assert!(text(ints.layer_normalization(-1, of())).contains("use f32, f16"));
}

#[test]
fn dropout_says_what_does_not_fit() {
    let x = zeros([2, 4]);
    let generator = tf::random::Generator::from_seed(1);
    let shape = |sizes: &[usize]| tf::random::DropoutOptions::new().noise_shape(sizes.to_vec());
    assert_eq!(
        text(x.dropout_with(0.5, &generator, shape(&[2, 3]))),
        "Dropout: the tensor is [2, 4] and noise_shape [2, 3]; it must have the tensor's sizes, or 1 where elements are \
         dropped together."
    );
    assert_eq!(
        text(x.stateless_dropout(-0.5, [1, 2], Default::default())),
        "Dropout: the rate is -0.5; it must be at least 0 and below 1."
    );
    assert!(text(x.alpha_dropout(f32::NAN, &generator, shape(&[1]))).contains("the rate is NaN"));
}
