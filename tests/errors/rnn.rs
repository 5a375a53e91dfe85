//! Errors of recurrent and attention layers, and their results for empty batches.

use wgrad::Trackable;
use wgrad::keras::layers::{
    AdditiveAttention, AttendOptions, Attention, Bidirectional, Dense, GroupQueryAttention, Gru,
    Lstm, LstmCell, MergeMode, MultiHeadAttention, Rnn, RnnCell, SimpleRnn, StackedRnnCells,
    TimeDistributed,
};
use wgrad::keras::{Context, INFERENCE, Layer, TRAINING};

use super::*;

#[test]
fn recurrent_layers_say_what_does_not_fit() {
    let x = zeros([2, 5, 3]);
    let lstm = || Lstm::new(4);
    assert_eq!(
        text(lstm().call(&zeros([5, 3]), INFERENCE)),
        "LSTM: the input is [5, 3]; it must be [B, T, F]: batch, steps, features. Give a single sequence a batch axis with \
         expand_dims(0), numbers a last axis with expand_dims(-1)."
    );
    assert_eq!(
        text(Gru::new(4).call(&zeros([2, 0, 3]), INFERENCE)),
        "GRU: the input is [2, 0, 3]; a sequence needs at least one step."
    );
    assert_eq!(
        text(SimpleRnn::new(0).call(&x, INFERENCE)),
        "SimpleRNNCell: units is 0; it must be at least 1."
    );
    assert_eq!(
        text(lstm().dropout(1.5).call(&x, TRAINING)),
        "Dropout: the rate is 1.5; it must be at least 0 and below 1."
    );
    assert_eq!(
        text(lstm().call_with_state(&x, Some(&[zeros([2, 4])]), INFERENCE)),
        "LSTM: the initial states are [[2, 4]]; for the input [2, 5, 3] they must be [[2, 4], [2, 4]]."
    );
    assert_eq!(
        text(Gru::new(4).call(&[x.clone(), zeros([3, 4])][..], INFERENCE)),
        "GRU: the initial states are [[3, 4]]; for the input [2, 5, 3] they must be [[2, 4]]."
    );
    assert_eq!(
        text(lstm().call(&[][..], INFERENCE)),
        "LSTM: it was called on an empty list; it takes the sequences, and the states before the first step."
    );
    let numbers = zeros([2, 5]);
    assert_eq!(
        text(lstm().call(&x, INFERENCE.with_mask(Some(&numbers)))),
        "LSTM: the mask is f32; it must be bool. Use not_equal(0)."
    );
    let short = zeros([2, 4]).not_equal(0.0).unwrap();
    assert_eq!(
        text(lstm().call(&x, INFERENCE.with_mask(Some(&short)))),
        "LSTM: the mask is [2, 4] and the input [2, 5, 3]; the mask must be [B, T]."
    );
    let words = tf::constant([[[1, 2, 3]]]).unwrap();
    assert!(text(lstm().call(&words, INFERENCE)).contains("the dtype i32 is not supported"));

    let built = lstm();
    built.call(&x, INFERENCE).unwrap();
    assert!(
        text(built.call(&zeros([2, 5, 7]), INFERENCE))
            .starts_with("the input is [2, 5, 7], for which a weight has to be [7, 16]")
    );
    let stateful = lstm().stateful(true);
    stateful.call(&x, INFERENCE).unwrap();
    assert_eq!(
        text(stateful.call(&zeros([3, 5, 3]), INFERENCE)),
        "LSTM: the layer is stateful, and its states are [[2, 4], [2, 4]]; for the input [3, 5, 3] they would be [[3, 4], [3, \
         4]]. Give it batches of one size, or call reset_state of the layer, or reset_states of the model, between."
    );
    assert_eq!(
        text(LstmCell::new(4).step(&x, &[], INFERENCE)),
        "LSTMCell: the input is [2, 5, 3]; a cell takes one step, [B, F]. For whole sequences wrap it in RNN::new."
    );
    assert_eq!(
        text(LstmCell::new(4).step(&zeros([2, 3]), &[zeros([2, 4])], INFERENCE)),
        "LSTMCell: the states are [[2, 4]]; for the input [2, 3] they must be [[2, 4], [2, 4]]."
    );
}

/// A cell that omits its second state.
#[derive(Trackable)]
struct Forgetful;

impl RnnCell for Forgetful {
    fn state_sizes(&self) -> Vec<usize> {
        vec![3, 3]
    }

    fn step(&self, x: &Tensor, _: &[Tensor], _: Context<'_>) -> Result<(Tensor, Vec<Tensor>)> {
        Ok((x.clone(), vec![x.clone()]))
    }
}

#[test]
fn cells_and_wrappers_say_what_does_not_fit() {
    let x = zeros([2, 5, 3]);
    assert_eq!(
        text(Rnn::new(Forgetful).call(&x, INFERENCE)),
        "RNN: the states before a step are [[2, 3], [2, 3]] and the cell's states after it [[2, 3]]; a step must keep their \
         number and shapes."
    );
    assert_eq!(
        text(Rnn::new(StackedRnnCells::new()).call(&x, INFERENCE)),
        "StackedRNNCells: there is no cell. Put one in with add."
    );
    assert_eq!(
        text(Rnn::new(LstmCell::new(4)).call(&zeros([5, 3]), INFERENCE)),
        "RNN: the input is [5, 3]; it must be [B, T, ..]: batch, steps, and what a step has. Give a single sequence a batch \
         axis with expand_dims(0)."
    );
    let both =
        Bidirectional::with_backward_layer(Lstm::new(4), Lstm::new(4).return_sequences(true));
    assert_eq!(
        text(both.call(&x, INFERENCE)),
        "Bidirectional: return_sequences of the layers is [false, true] and go_backwards [false, false]; the first must be \
         equal and the second differ."
    );
    let both = || Bidirectional::new(Gru::new(4));
    assert_eq!(
        text(both().merge_mode(MergeMode::None).call(&x, INFERENCE)),
        "Bidirectional: with MergeMode::None there are two results. Take them from call_both, or choose another mode."
    );
    assert_eq!(
        text(both().call(&[x.clone(), zeros([2, 4])][..], INFERENCE)),
        "Bidirectional: 1 states were given; the layers of both directions need the same number."
    );
    let distributed = TimeDistributed::new(Dense::new(2));
    assert_eq!(
        text(distributed.call(&zeros([2, 3]), INFERENCE)),
        "TimeDistributed: the input is [2, 3]; it must be [B, T, ..] with three axes or more."
    );
    let mask = zeros([2, 4]).not_equal(0.0).unwrap();
    assert_eq!(
        text(distributed.call(&x, INFERENCE.with_mask(Some(&mask)))),
        "TimeDistributed: the mask is [2, 4] and the input [2, 5, 3]; the mask must begin with [B, T]."
    );
}

#[test]
fn attention_layers_say_what_does_not_fit() {
    let (q, v) = (zeros([2, 3, 8]), zeros([2, 5, 8]));
    let heads = || MultiHeadAttention::new(2, 4);
    let pair = |a: &Tensor, b: &Tensor| [a.clone(), b.clone()];
    assert_eq!(
        text(heads().call(&zeros([3, 8]), INFERENCE)),
        "MultiHeadAttention: query is [3, 8], value [3, 8] and key [3, 8]; they must be [B, T, D], [B, S, E] and [B, S, F]."
    );
    assert!(
        text(heads().call(&pair(&q, &zeros([3, 5, 8]))[..], INFERENCE)).contains("value [3, 5, 8]")
    );
    assert_eq!(
        text(heads().call(&[q.clone()][..], INFERENCE)),
        "MultiHeadAttention: it was called on 1 tensors; it takes [query, value] or [query, value, key]."
    );
    assert_eq!(
        text(MultiHeadAttention::new(0, 4).call(&q, INFERENCE)),
        "MultiHeadAttention: num_heads is 0, key_dim 4 and value_dim 4; each must be at least 1."
    );
    assert_eq!(
        text(heads().attention_axes(2).call(&q, INFERENCE)),
        "MultiHeadAttention: attention_axes are [2] of 3 axes; they must lie between the first and the last."
    );
    let masked = |mask: Tensor| {
        heads().call_with(&q, &v, AttendOptions::new().attention_mask(mask), INFERENCE)
    };
    assert_eq!(
        text(masked(zeros([2, 3, 5]))),
        "MultiHeadAttention: the attention mask is f32; it must be bool. Use not_equal(0)."
    );
    assert_eq!(
        text(masked(zeros([2, 3, 4]).not_equal(0.0).unwrap())),
        "MultiHeadAttention: the attention mask is [2, 3, 4] and the scores [2, 2, 3, 5]; it must be [B, T, S], [T, S] or [B, \
         H, T, S], or 1 along these axes."
    );
    let of_query = zeros([2, 3]).not_equal(0.0).unwrap();
    assert_eq!(
        text(heads().call(&pair(&q, &v)[..], INFERENCE.with_mask(Some(&of_query)))),
        "MultiHeadAttention: the mask is [2, 3] and there are [2, 5] keys; it must have an element for each."
    );
    assert!(text(heads().dropout(1.0).call(&q, TRAINING)).contains("the rate is 1"));
    assert_eq!(
        text(GroupQueryAttention::new(4, 3, 2).call(&q, INFERENCE)),
        "GroupQueryAttention: num_query_heads is 3, num_key_value_heads 2 and head_dim 4; each must be at least 1, and the \
         first a multiple of the second."
    );
    assert_eq!(
        text(Attention::new().call(&pair(&q, &zeros([2, 5, 7]))[..], INFERENCE)),
        "Attention: query is [2, 3, 8], value [2, 5, 7] and key [2, 5, 7]; they must be [B, T, D], [B, S, E] and [B, S, D]."
    );
    assert_eq!(
        text(
            AdditiveAttention::new().call(&pair(&q, &v)[..], INFERENCE.with_mask(Some(&of_query)))
        ),
        "AdditiveAttention: the value's mask is [2, 3]; it must be [2, 5]."
    );
}

#[test]
fn batches_without_rows_have_results_without_rows() {
    let x = zeros([0, 5, 3]);
    assert_eq!(Lstm::new(4).call(&x, INFERENCE).unwrap().shape(), [0, 4]);
    let gru = Gru::new(4).return_sequences(true).go_backwards(true);
    assert_eq!(gru.call(&x, INFERENCE).unwrap().shape(), [0, 5, 4]);
    assert!(gru.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap().is_empty());
    let heads = MultiHeadAttention::new(2, 4);
    assert_eq!(heads.call(&x, INFERENCE).unwrap().shape(), [0, 5, 3]);
    let nothing = [zeros([2, 3, 8]), zeros([2, 0, 8])];
    // A query without visible keys returns the projection of zeros: the bias, which is 0.
    same(&values(heads_of(&nothing)), &[0.0; 2 * 3 * 8]);
    let layer = Lstm::new(4);
    layer.call(&x, INFERENCE).unwrap();
    assert_eq!(layer.count_params(), 4 * 4 * (3 + 4 + 1));
    // NaN spreads along its own sequence only.
    let x = floats([1.0, f32::NAN, 3.0, 4.0]).reshape([2, 2, 1]).unwrap();
    let y = values(Lstm::new(4).call(&x, INFERENCE));
    assert!(y[..4].iter().all(|y| y.is_nan()) && y[4..].iter().all(|y| y.is_finite()), "{y:?}");
}

fn heads_of(inputs: &[Tensor]) -> Result<Tensor> {
    MultiHeadAttention::new(2, 4).call(inputs, INFERENCE)
}
