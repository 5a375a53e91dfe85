//! Attention layers: numbers of Keras 3.15 beyond the golden cases, masks, gradients, and the cost of a training step.

#![allow(clippy::unwrap_used)]

use crate::{fill, near, wave};
use wgrad::keras::layers::{
    AdditiveAttention, AttendOptions, Attention, Dense, GroupQueryAttention, LayerNormalization,
    MultiHeadAttention, ScoreMode,
};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Context, INFERENCE, Layer, TRAINING};
use wgrad::{Device, GradientTape, Result, Tensor, Trackable, constant, random};

fn query_value_key() -> [Tensor; 3] {
    [wave(&[2, 3, 4], 0.3), wave(&[2, 5, 4], 0.9), wave(&[2, 5, 4], 1.7)]
}

fn masks() -> [Tensor; 2] {
    let of_query = constant([[true, true, false], [true, true, true]]).unwrap();
    let of_value =
        constant([[true, true, true, false, false], [true, true, true, true, true]]).unwrap();
    [of_query, of_value]
}

#[test]
fn attention_without_heads_is_that_of_keras() {
    let inputs = query_value_key();
    let [of_query, of_value] = masks();
    let given = [Some(&of_query), Some(&of_value)];
    let weights = |layer: &dyn Trackable| {
        // Their shapes are [].
        for (i, variable) in layer.variables().iter().enumerate() {
            variable.assign(0.7 + 0.2 * i as f32).unwrap();
        }
    };

    let concat = Attention::new().score_mode(ScoreMode::Concat).use_scale(true);
    concat.call(&inputs[..], INFERENCE).unwrap();
    weights(&concat);
    let names: Vec<String> = concat.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["scale", "concat_score_weight"]);
    let (y, scores) = concat.call_with_scores(&inputs, given, INFERENCE).unwrap();
    near(
        "concat",
        &y,
        &[
            0.152596, 0.307515, 0.317804, 0.178625, 0.153370, 0.311270, 0.322775, 0.182474, 0.0,
            0.0, 0.0, 0.0, -0.032917, 0.022639, 0.067547, 0.080688, -0.033161, 0.023792, 0.069556,
            0.082607, -0.047480, 0.011057, 0.064394, 0.087445,
        ],
    );
    assert_eq!(scores.shape(), [2, 3, 5]);
    near(
        "scores",
        &scores.slice(&[0, 2, 0], &[1, 1, 5]).unwrap(),
        &[0.347106, 0.137898, 0.514996, 0.0, 0.0],
    );

    let dot = Attention::new().use_scale(true);
    dot.call(&inputs[..], INFERENCE).unwrap();
    weights(&dot);
    near(
        "dot",
        &dot.call_with_scores(&inputs, given, INFERENCE).unwrap().0,
        &[
            0.109765, 0.214052, 0.217668, 0.118910, 0.065852, 0.103174, 0.091971, 0.037514, 0.0,
            0.0, 0.0, 0.0, 0.179365, 0.126761, 0.014540, -0.104519, -0.046822, -0.040254,
            -0.014753, 0.017686, 0.149684, 0.122718, 0.038036, -0.064535,
        ],
    );
    let causal = Attention::new().use_scale(true).use_causal_mask(true);
    causal.call(&inputs[..], INFERENCE).unwrap();
    weights(&causal);
    near(
        "causal",
        &causal.call(&inputs[..], INFERENCE).unwrap(),
        &[
            0.391663, 0.499787, 0.372853, 0.070560, 0.050100, -0.007728, -0.061922, -0.086993,
            0.064989, 0.132097, 0.137077, 0.077588, 0.361441, 0.053877, -0.279026, -0.480699,
            -0.123518, -0.106935, -0.040059, 0.045657, 0.187173, 0.097376, -0.038218, -0.155838,
        ],
    );

    let additive = AdditiveAttention::new();
    additive.call(&inputs[..], INFERENCE).unwrap();
    fill(&additive);
    near(
        "additive",
        &additive.call_with_scores(&inputs, given, INFERENCE).unwrap().0,
        &[
            0.149992, 0.277346, 0.274260, 0.142185, 0.149133, 0.280585, 0.280074, 0.147840, 0.0,
            0.0, 0.0, 0.0, 0.075717, 0.084800, 0.054001, -0.002196, 0.073929, 0.085299, 0.056552,
            0.001207, 0.066507, 0.076624, 0.050704, 0.000936,
        ],
    );
}

#[test]
fn heads_share_gates_windows_and_axes_are_those_of_keras() {
    let [q, v, _] = query_value_key();
    let grouped = GroupQueryAttention::new(2, 4, 2);
    let pair = [q.clone(), v.clone()];
    grouped.call(&pair[..], INFERENCE).unwrap();
    fill(&grouped);
    let want = [
        0.529711, 0.236306, -0.168238, -0.493656, 0.527282, 0.234212, -0.169012, -0.492746,
        0.528541, 0.235760, -0.167902, -0.492597, 0.538988, 0.234814, -0.179796, -0.509846,
        0.534489, 0.235187, -0.174727, -0.502464, 0.543030, 0.237546, -0.179660, -0.512369,
    ];
    near("grouped", &grouped.call(&pair[..], INFERENCE).unwrap(), &want);
    // With scores, another implementation is used.
    let (y, scores) = grouped.call_with_scores(&q, &v, AttendOptions::new(), INFERENCE).unwrap();
    near("grouped with scores", &y, &want);
    near(
        "scores",
        &scores.slice(&[0, 1, 0, 0], &[1, 1, 1, 5]).unwrap(),
        &[0.200716, 0.202951, 0.195971, 0.207026, 0.193336],
    );

    let window = MultiHeadAttention::new(2, 3)
        .value_dim(2)
        .output_shape(vec![5])
        .sliding_window(2)
        .use_gate(true)
        .use_causal_mask(true);
    window.call(&q, INFERENCE).unwrap();
    fill(&window);
    near(
        "window",
        &window.call(&q, INFERENCE).unwrap(),
        &[
            -0.294344, -0.563467, -0.567583, -0.304756, 0.101403, -0.290500, -0.551470, -0.553076,
            -0.294561, 0.102490, -0.286966, -0.551975, -0.557382, -0.300643, 0.097493, -0.282766,
            -0.536423, -0.537792, -0.286229, 0.099952, -0.283284, -0.548699, -0.556053, -0.301886,
            0.094263, -0.296295, -0.557490, -0.556488, -0.293762, 0.107126,
        ],
    );

    let image = wave(&[1, 2, 3, 4], 0.3);
    let of = |layer: MultiHeadAttention| {
        layer.call(&image, INFERENCE).unwrap();
        fill(&layer);
        layer.call(&image, INFERENCE).unwrap()
    };
    near(
        "rows",
        &of(MultiHeadAttention::new(2, 3).attention_axes(2)),
        &[
            0.384086, 0.230636, -0.031286, -0.278493, 0.383967, 0.230508, -0.031363, -0.278483,
            0.384147, 0.230720, -0.031217, -0.278473, 0.399712, 0.239246, -0.033741, -0.290859,
            0.400458, 0.240100, -0.033181, -0.290857, 0.399744, 0.239261, -0.033750, -0.290888,
        ],
    );
    near(
        "columns",
        &of(MultiHeadAttention::new(2, 3).attention_axes(1)),
        &[
            0.400847, 0.239228, -0.034904, -0.292619, 0.382764, 0.231259, -0.029010, -0.275636,
            0.392744, 0.235133, -0.033065, -0.285711, 0.400660, 0.239009, -0.035052, -0.292628,
            0.383188, 0.231755, -0.028675, -0.275620, 0.392139, 0.234429, -0.033537, -0.285730,
        ],
    );
    near(
        "all",
        &of(MultiHeadAttention::new(2, 3)),
        &[
            0.392303, 0.235334, -0.032315, -0.284767, 0.392034, 0.235062, -0.032463, -0.284721,
            0.392448, 0.235518, -0.032181, -0.284744, 0.391936, 0.234931, -0.032566, -0.284746,
            0.392487, 0.235581, -0.032123, -0.284719, 0.391961, 0.234943, -0.032572, -0.284768,
        ],
    );
}

#[test]
fn what_a_mask_hides_changes_nothing() {
    let layer = MultiHeadAttention::new(2, 4);
    let x = random::normal([2, 6, 8]).unwrap();
    layer.call(&x, INFERENCE).unwrap();
    let mask = constant([[true, true, true, false, false, false], [true; 6]]).unwrap();
    let cx = INFERENCE.with_mask(Some(&mask));
    let first = |x: &Tensor| x.slice(&[0, 0, 0], &[1, 3, -1]).unwrap();
    let y = layer.call(&x, cx).unwrap();
    let cut = layer.call(&first(&x), INFERENCE).unwrap();
    near("cut", &first(&y), &cut.to_vec::<f32>().unwrap());
    assert!(Layer::<Tensor>::compute_mask(&layer, &x, Some(&mask)).unwrap().is_some());

    // The same as an attention mask, with and without scores; masked keys have weight 0.
    let wide = mask.expand_dims(1).unwrap().logical_and(mask.expand_dims(2).unwrap()).unwrap();
    let options = || AttendOptions::new().attention_mask(wide.clone());
    near(
        "mask",
        &layer.call_with(&x, &x, options(), INFERENCE).unwrap(),
        &y.to_vec::<f32>().unwrap(),
    );
    let (again, scores) = layer.call_with_scores(&x, &x, options(), INFERENCE).unwrap();
    near("scores", &again, &y.to_vec::<f32>().unwrap());
    let hidden = scores.slice(&[0, 0, 0, 3], &[1, 2, 6, 3]).unwrap();
    assert_eq!(hidden.to_vec::<f32>().unwrap(), [0.0; 36]);

    // A row of weights sums to 1; dropout preserves the mean and drops some.
    let dropping = MultiHeadAttention::new(2, 4).dropout(0.5).seed(1);
    dropping.call(&x, INFERENCE).unwrap();
    dropping.set_weights(&layer.get_weights().unwrap()).unwrap();
    let bare = layer.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    near("inference", &dropping.call(&x, INFERENCE).unwrap(), &bare);
    assert_ne!(dropping.call(&x, TRAINING).unwrap().to_vec::<f32>().unwrap(), bare);
}

/// Compares the gradients of all weights with finite differences.
fn check_gradients(name: &str, layer: &dyn Trackable, call: &dyn Fn() -> Result<Tensor>) {
    call().unwrap();
    fill(layer);
    let loss = || call().unwrap().square().unwrap().reduce_sum(()).unwrap();
    let tape = GradientTape::new();
    let value = loss();
    let variables = layer.trainable_variables();
    let all = tape.required_gradient(&value, &variables[..]).unwrap();
    for (variable, grad) in variables.iter().zip(all) {
        let (at, grad) = (variable.read(), grad.to_vec::<f32>().unwrap());
        let direction = wave(variable.shape(), 2.5);
        let along: f64 = grad
            .iter()
            .zip(direction.to_vec::<f32>().unwrap())
            .map(|(g, d)| f64::from(*g) * f64::from(d))
            .sum();
        let moved = |by: f32| {
            variable.assign(at.add(direction.multiply(by).unwrap()).unwrap()).unwrap();
            f64::from(loss().item::<f32>().unwrap())
        };
        // Of second order: the error is about 1e-4 from the step's square, plus rounding of 1e-7 divided by the step.
        let difference = (moved(0.01) - moved(-0.01)) / 0.02;
        variable.assign(&at).unwrap();
        let bound = 2e-3 * along.abs().max(0.1);
        assert!((along - difference).abs() < bound, "{name}: {along}, not {difference}");
    }
}

#[test]
fn gradients_agree_with_differences() {
    let inputs = query_value_key();
    let [_, of_value] = masks();
    let cx = INFERENCE.with_mask(Some(&of_value));
    let concat = Attention::new().score_mode(ScoreMode::Concat).use_scale(true);
    check_gradients("concat", &concat, &|| concat.call(&inputs[..], cx));
    let additive = AdditiveAttention::new();
    check_gradients("additive", &additive, &|| additive.call(&inputs[..], cx));
    let heads = MultiHeadAttention::new(2, 3).use_gate(true).sliding_window(2);
    check_gradients("heads", &heads, &|| heads.call(&inputs[..], cx));
    let grouped = GroupQueryAttention::new(3, 4, 2);
    let options = AttendOptions::new().use_causal_mask(true);
    check_gradients("grouped", &grouped, &|| {
        grouped.call_with_scores(&inputs[0], &inputs[1], options.clone(), cx).map(|(y, _)| y)
    });
}

/// A block of a transformer.
#[derive(Trackable)]
struct Block {
    attention: MultiHeadAttention,
    norm_1: LayerNormalization,
    inner: Dense,
    outer: Dense,
    norm_2: LayerNormalization,
}

impl Layer for Block {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let x = self.norm_1.call(&x.add(self.attention.call(x, cx)?)?, cx)?;
        let y = self.outer.call(&self.inner.call(&x, cx)?, cx)?;
        self.norm_2.call(&x.add(y)?, cx)
    }
}

#[test]
fn a_training_step_of_a_block_settles_and_learns() {
    Device::new().unwrap().scope(|| {
        let device = Device::current().unwrap();
        let block = Block {
            attention: MultiHeadAttention::new(2, 8).dropout(0.1),
            norm_1: LayerNormalization::new(),
            inner: Dense::new(32).activation(Activation::Gelu),
            outer: Dense::new(16),
            norm_2: LayerNormalization::new(),
        };
        let adam = Adam::new(1e-2);
        let x = random::normal([4, 12, 16]).unwrap();
        let target = x.roll(&[1], 1).unwrap();
        let step = || {
            let tape = GradientTape::new();
            let y = block.call(&x, TRAINING).unwrap();
            let loss = y.subtract(&target).unwrap().square().unwrap().reduce_mean(()).unwrap();
            adam.minimize(&loss, tape, &block).unwrap();
            loss.item::<f32>().unwrap()
        };
        let first = step();
        (0..4).for_each(|_| _ = step());
        let before = device.stats();
        let mut last = first;
        (0..40).for_each(|_| last = step());
        let after = device.stats();
        let made = [
            after.plan_misses - before.plan_misses,
            after.pipelines - before.pipelines,
            after.buffers - before.buffers,
        ];
        assert_eq!(made, [0; 3], "plans, pipelines, buffers");
        assert!(last < 0.7 * first, "{first} -> {last}");
    });
}

#[cfg(feature = "json")]
#[test]
fn configs_come_back() {
    use wgrad::keras::layers::layer_from_config;
    let config = MultiHeadAttention::new(2, 3)
        .value_dim(4)
        .output_shape(vec![5])
        .attention_axes(1)
        .dropout(0.25)
        .use_bias(false)
        .seed(3)
        .get_config()
        .unwrap();
    assert_eq!(config.get::<usize>("value_dim").unwrap(), Some(4));
    assert_eq!(config.options()["dropout"], 0.25);
    // With one tensor it is self-attention.
    assert_eq!(layer_from_config(&config).unwrap().get_config().unwrap(), config);
    let config = Attention::new().score_mode(ScoreMode::Concat).get_config().unwrap();
    assert_eq!(config.options()["score_mode"], "concat");
    // Without heads, the layer has several inputs.
    let error = layer_from_config(&config).err().unwrap().to_string();
    assert!(error.contains("a layer Attention takes several inputs"), "{error}");
}
