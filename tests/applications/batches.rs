//! Several texts at once: each is the one that is generated alone.

use wgrad::Device;
use wgrad::keras::applications::{CausalLm, GenerateOptions};

use crate::decoders::{gpt2, llama};

const PROMPTS: [&[u32]; 4] = [&[5, 9, 2, 30, 31, 7], &[1], &[8, 8, 3], &[5, 9, 2, 30, 31, 7]];

fn alone(model: &impl CausalLm, prompt: &[u32], options: &GenerateOptions) -> Vec<u32> {
    model.generate(prompt, options.clone()).unwrap().map(Result::unwrap).collect()
}

fn each_is_as_alone(model: &impl CausalLm) {
    let options = GenerateOptions::new().max_new_tokens(9);
    let texts = model.generate_batch(&PROMPTS, options.clone()).unwrap().texts().unwrap();
    for (prompt, text) in PROMPTS.iter().zip(&texts) {
        assert_eq!(*text, alone(model, prompt, &options));
    }
    // Each text ends by itself, with the stop token.
    let stop = texts[0][2];
    let stopping = options.clone().stop_tokens([stop]);
    let stopped = model.generate_batch(&PROMPTS, stopping.clone()).unwrap().texts().unwrap();
    for (prompt, text) in PROMPTS.iter().zip(&stopped) {
        assert_eq!(*text, alone(model, prompt, &stopping));
    }
    assert!(stopped.iter().any(|text| text.len() <= 3));
    // Drawn tokens: the seeds follow each other.
    let drawn = options.sample(true).top_k(10).temperature(1.2).seed(7);
    let texts = model.generate_batch(&PROMPTS, drawn.clone()).unwrap().texts().unwrap();
    for (at, (prompt, text)) in PROMPTS.iter().zip(&texts).enumerate() {
        assert_eq!(*text, alone(model, prompt, &drawn.clone().seed(7 + at as u64)));
    }
    assert_ne!(texts[0], texts[3]);
}

#[test]
fn texts_of_different_lengths_are_as_alone() {
    each_is_as_alone(&gpt2(128));
    each_is_as_alone(&llama());
}

#[test]
fn texts_of_one_length_are_as_alone() {
    let model = llama();
    let options = GenerateOptions::new().max_new_tokens(6);
    let prompts = [[3u32, 4, 5], [9, 1, 1]];
    let texts = model.generate_batch(&prompts, options.clone()).unwrap().texts().unwrap();
    assert_eq!(texts[0], alone(&model, &prompts[0], &options));
    assert_eq!(texts[1], alone(&model, &prompts[1], &options));
}

#[test]
fn steps_say_which_texts_have_ended() {
    let model = gpt2(64);
    let first = alone(&model, &[1], &GenerateOptions::new().max_new_tokens(1))[0];
    let options = GenerateOptions::new().max_new_tokens(3).stop_tokens([first]);
    let mut steps = model.generate_batch(&[&[1u32][..], &[5, 9, 2]], options).unwrap();
    let mut open = [true, true];
    for step in &mut steps {
        for (open, token) in open.iter_mut().zip(step.unwrap()) {
            assert_eq!(*open, token.is_some());
            *open = *open && token != Some(first);
        }
    }
    assert!(!open[0] && steps.next().is_none());
}

#[test]
fn longer_texts_need_no_more_memory_and_no_more_pipelines() {
    let device = Device::new().unwrap();
    device.scope(|| {
        let model = gpt2(512);
        let options = GenerateOptions::new().max_new_tokens(400);
        let mut texts = model.generate_batch(&PROMPTS, options).unwrap();
        let [first, middle, last] = [64, 100, 200].map(|count| {
            for _ in 0..count {
                assert!(texts.next().unwrap().unwrap().iter().all(Option::is_some));
            }
            device.synchronize().unwrap();
            device.stats()
        });
        assert_eq!((middle.pipelines, last.pipelines), (first.pipelines, first.pipelines));
        assert_eq!(last.plan_misses, middle.plan_misses);
        assert_eq!((last.live_bytes, last.buffers), (middle.live_bytes, middle.buffers));
        assert_eq!(texts.past().used(), 6 + 363);
    });
}

#[test]
fn wrong_prompts_of_a_batch_are_errors() {
    let model = gpt2(16);
    let error = |prompts: &[&[u32]], new: usize| {
        let options = GenerateOptions::new().max_new_tokens(new);
        model.generate_batch(prompts, options).unwrap_err().to_string()
    };
    assert_eq!(error(&[], 1), "generate: there is no prompt; pass at least one.");
    assert_eq!(error(&[&[1], &[]], 1), "generate: prompt 1 is empty; it needs at least one token.");
    assert_eq!(
        error(&[&[1], &[3, 40]], 1),
        "generate: prompt 1 has the token 40, and the network knows those below 40."
    );
    assert_eq!(
        error(&[&[1; 10], &[1]], 8),
        "generate: prompt 0 has 10 tokens and 8 are to follow, and the context has room for 16; generate fewer, or shorten the \
         prompt."
    );
    let none = model.generate_batch(&[[1u32]], GenerateOptions::new().max_new_tokens(0)).unwrap();
    assert_eq!(none.texts().unwrap(), [[0u32; 0]]);
}
