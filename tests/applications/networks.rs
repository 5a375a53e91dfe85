//! The networks for images: numbers of parameters as published, and names and values as Keras has them.

use serde_json::Value;
use wgrad::interop::DeviceExt;
use wgrad::keras::applications::{
    ApplicationOptions, Arrangement, Bert, BertConfig, ClassNames, Gpt2, Gpt2Config, Pooling,
    Scaling, Vit, VitConfig, decode_predictions, densenet, efficientnet, lenet, mobilenet_v2,
    mobilenet_v3, preprocess_input, resnet, unet, vgg16,
};
use wgrad::keras::layers::DepthwiseConv2D;
use wgrad::keras::{Activation, Functional, INFERENCE, Layer, TRAINING};
use wgrad::{Device, GradientTape, Result, Tensor, Trackable};

type Build = fn(&ApplicationOptions) -> Result<Functional>;

/// A device that accepts every call and computes nothing.
fn idle_device() -> Device {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::NOOP,
        backend_options: wgpu::BackendOptions {
            noop: wgpu::NoopBackendOptions { enable: true, ..Default::default() },
            ..Default::default()
        },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let options = wgpu::RequestAdapterOptions::default();
    let adapter = pollster::block_on(instance.request_adapter(&options)).unwrap();
    let wanted = wgpu::DeviceDescriptor { required_limits: adapter.limits(), ..Default::default() };
    let (raw, queue) = pollster::block_on(adapter.request_device(&wanted)).unwrap();
    Device::from_wgpu(&adapter, raw, queue).unwrap()
}

fn trainable(model: &impl Trackable) -> usize {
    model.trainable_variables().iter().map(|v| v.shape().iter().product::<usize>()).sum()
}

#[test]
fn parameters_are_as_many_as_published() {
    idle_device().scope(|| {
        let options = ApplicationOptions::new();
        // Keras's `count_params`.
        let keras: [(Build, usize); 7] = [
            (vgg16::vgg16, 138_357_544),
            (resnet::resnet50, 25_636_712),
            (mobilenet_v2::mobilenet_v2, 3_538_984),
            (mobilenet_v3::mobilenet_v3_small, 2_554_968),
            (mobilenet_v3::mobilenet_v3_large, 5_507_432),
            (efficientnet::efficientnet_b0, 5_330_571),
            (densenet::densenet121, 8_062_504),
        ];
        for (build, count) in keras {
            let model = build(&options).unwrap();
            // Keras counts the images that a normalization has seen, too.
            let seen = usize::from(model.name() == "efficientnetb0");
            assert_eq!(model.count_params() + seen, count, "{}", model.name());
        }
        // Torchvision's documentation.
        let options = options.arrangement(Arrangement::Torchvision);
        let torchvision: [(Build, usize); 8] = [
            (resnet::resnet18, 11_689_512),
            (resnet::resnet34, 21_797_672),
            (resnet::resnet50, 25_557_032),
            (mobilenet_v2::mobilenet_v2, 3_504_872),
            (mobilenet_v3::mobilenet_v3_small, 2_542_856),
            (mobilenet_v3::mobilenet_v3_large, 5_483_032),
            (efficientnet::efficientnet_b0, 5_288_548),
            (densenet::densenet121, 7_978_856),
        ];
        for (build, count) in torchvision {
            let model = build(&options).unwrap();
            assert_eq!(trainable(&model), count, "{}", model.name());
        }
        let lenet = lenet::lenet(&ApplicationOptions::new().classes(10)).unwrap();
        // 156 + 2416 + 48120 + 10164 + 850
        assert_eq!(lenet.count_params(), 61_706);
        let unet = unet::unet(unet::UnetConfig::new(), &ApplicationOptions::new().classes(2));
        assert_eq!(trainable(&unet.unwrap()), UNET);
        // Torchvision's documentation, and Hugging Face's `num_parameters`.
        assert_eq!(Vit::new(VitConfig::new()).unwrap().count_params(), 86_567_656);
        assert_eq!(Bert::new(BertConfig::new()).unwrap().count_params(), 109_482_240);
        assert_eq!(Gpt2::new(Gpt2Config::new()).unwrap().count_params(), 124_439_808);
    });
}

/// Two convolutions of 3 x 3 on each of nine levels, each with a normalization's two numbers per channel, four transposed ones of
/// 2 x 2 with bias, and the classifier.
const UNET: usize = {
    const fn twice(from: usize, to: usize) -> usize {
        9 * from * to + 9 * to * to + 4 * to
    }
    let mut sum = twice(3, 64) + twice(512, 1024) + 64 * 2 + 2;
    let mut level = 0;
    while level < 4 {
        let to = 64 << level;
        if level > 0 {
            sum += twice(to / 2, to);
        }
        sum += 2 * to * 4 * to + to + twice(2 * to, to);
        level += 1;
    }
    sum
};

/// As values.py describes.
fn fill(model: &Functional) {
    for (k, (name, variable)) in model.named_variables().into_iter().enumerate() {
        let (layer, name) = name.rsplit_once('/').unwrap();
        let shape = variable.shape().to_vec();
        let all: usize = shape.iter().product();
        let depthwise = layer.ends_with("depthwise") || layer.ends_with("dwconv");
        let columns = match shape.len() {
            0 | 1 => 0,
            rank => shape[rank - 1 - usize::from(depthwise)],
        };
        let value = |i: usize| {
            let wave = (0.7 * i as f64 + k as f64).sin();
            let value = match name {
                "gamma" => 1.0 + 0.1 * wave,
                "moving_variance" | "variance" => 1.0 + 0.3 * wave,
                _ if shape.len() < 2 => 0.1 * wave,
                _ => wave * (2.0 * columns as f64 / all as f64).sqrt(),
            };
            value as f32
        };
        let values: Vec<f32> = (0..all).map(value).collect();
        variable.assign(Tensor::from_slice(&values, shape).unwrap()).unwrap();
    }
}

#[test]
fn names_and_values_are_those_of_keras() {
    let networks: [(&str, Build); 7] = [
        ("VGG16", vgg16::vgg16),
        ("ResNet50", resnet::resnet50),
        ("MobileNetV2", mobilenet_v2::mobilenet_v2),
        ("MobileNetV3Small", mobilenet_v3::mobilenet_v3_small),
        ("MobileNetV3Large", mobilenet_v3::mobilenet_v3_large),
        ("EfficientNetB0", efficientnet::efficientnet_b0),
        ("DenseNet121", densenet::densenet121),
    ];
    let text = std::fs::read_to_string("tests/data/applications/values.json").unwrap();
    let wanted: Value = serde_json::from_str(&text).unwrap();
    let options =
        ApplicationOptions::new().include_top(false).input_shape([32, 32, 3]).pooling(Pooling::Avg);
    for (name, build) in networks {
        let model = build(&options).unwrap();
        let layers: Vec<&str> = model
            .layers()
            .filter(|(_, layer)| !layer.variables().is_empty())
            .map(|(name, _)| name)
            .collect();
        let wanted = &wanted[name];
        assert_eq!(Value::from(layers), wanted["layers"], "{name}");
        fill(&model);
        let scale =
            if name.starts_with("MobileNetV3") || name.starts_with("Eff") { 255.0 } else { 1.0 };
        let pixel = |i: usize| (scale * (0.5 + 0.5 * (0.3 * i as f64).sin())) as f32;
        let x: Vec<f32> = (0..32 * 32 * 3).map(pixel).collect();
        let x = Tensor::from_slice(&x, [1, 32, 32, 3]).unwrap();
        let y: Vec<f32> = model.call(&x, INFERENCE).unwrap().to_vec().unwrap();
        let mean = y.iter().map(|y| f64::from(*y)).sum::<f64>() / y.len() as f64;
        // A relative error of 1e-4 of the largest of these numbers.
        let near = |got: f64, want: &Value| (got - want.as_f64().unwrap()).abs() < 4e-5;
        assert!(near(mean, &wanted["mean"]), "{name}: {mean} and {}", wanted["mean"]);
        for (got, want) in y.iter().zip(wanted["first"].as_array().unwrap()) {
            assert!(near(f64::from(*got), want), "{name}: {y:?} and {}", wanted["first"]);
        }
    }
}

#[test]
fn a_step_has_gradients_for_all_weights() {
    let options = || {
        let options = ApplicationOptions::new().input_shape([32, 32, 3]).classes(4);
        options.classifier_activation(Activation::Linear)
    };
    let torch = options().arrangement(Arrangement::Torchvision);
    let models = [
        resnet::resnet18(&options()).unwrap(),
        mobilenet_v3::mobilenet_v3_small(&torch).unwrap(),
        unet::unet(unet::UnetConfig::new().filters(4).depth(2), &options()).unwrap(),
    ];
    let x = wgrad::random::Generator::from_seed(1).normal([2, 32, 32, 3]).unwrap();
    for model in models {
        let tape = GradientTape::new();
        let loss = model.call(&x, TRAINING).unwrap().square().unwrap().reduce_mean(()).unwrap();
        let variables = model.trainable_variables();
        for gradient in tape.gradient(&loss, &variables).unwrap() {
            let values: Vec<f32> = gradient.unwrap().to_vec().unwrap();
            assert!(values.iter().all(|x| x.is_finite()), "{}", model.name());
        }
    }
}

#[test]
fn options_have_keras_meaning() {
    let base = || ApplicationOptions::new().input_shape([64, 64, 3]);
    let shape = |options: ApplicationOptions| {
        let model = mobilenet_v2::mobilenet_v2(&options).unwrap();
        model.outputs()[0].shape().to_vec()
    };
    assert_eq!(shape(base().classes(7)), [None, Some(7)]);
    let bare = || base().include_top(false);
    assert_eq!(shape(bare()), [None, Some(2), Some(2), Some(1280)]);
    assert_eq!(shape(bare().pooling(Pooling::Max)), [None, Some(1280)]);
    let any = ApplicationOptions::new().include_top(false);
    assert_eq!(shape(any), [None, None, None, Some(1280)]);
    let model = resnet::resnet18(&base().classes(3)).unwrap();
    let y = model.call(&Tensor::ones([2, 64, 64, 3]).unwrap(), INFERENCE).unwrap();
    let sums: Vec<f32> = y.reduce_sum(1).unwrap().to_vec().unwrap();
    assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{sums:?}");
    assert!(DepthwiseConv2D::new([3, 3]).variables().is_empty());
}

#[test]
fn wrong_options_are_errors() {
    let error = |options: ApplicationOptions| resnet::resnet18(&options).unwrap_err().to_string();
    let options = ApplicationOptions::new;
    assert_eq!(
        error(options().input_shape([16, 64, 3])),
        "resnet18: input_shape is (16, 64, 3); images must have at least 32 x 32 pixels."
    );
    assert_eq!(
        error(options().input_shape([64, 64])),
        "resnet18: input_shape is (64, 64); it must be [height, width, channels], and the channels must be known."
    );
    assert_eq!(
        error(options().classes(0)),
        "resnet18: classes is 0; it must be at least 1, or include_top false."
    );
    let odd = unet::unet(unet::UnetConfig::new(), &options().input_shape([40, 32, 3]));
    assert_eq!(
        odd.unwrap_err().to_string(),
        "U-Net: input_shape is (40, 32, 3); with a depth of 4, height and width must be multiples of 16."
    );
    let error = Vit::new(VitConfig::new().patch_size(15)).unwrap_err().to_string();
    assert_eq!(error, "ViT: image_size is 224 and patch_size 15; images must be whole patches.");
    let error = Gpt2::new(Gpt2Config::new().n_head(5)).unwrap_err().to_string();
    assert_eq!(
        error,
        "GPT-2: the width is 768 and there are 5 heads; the width must be a multiple of the heads."
    );
}

#[test]
fn images_are_scaled_as_in_keras() {
    let x = wgrad::constant([[[10.0, 100.0, 200.0]]]).unwrap();
    let scaled = |scaling| -> Vec<f32> { preprocess_input(&x, scaling).unwrap().to_vec().unwrap() };
    let near = |got: Vec<f32>, want: [f32; 3]| {
        assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{got:?} {want:?}")
    };
    near(scaled(Scaling::Tf), [10.0 / 127.5 - 1.0, 100.0 / 127.5 - 1.0, 200.0 / 127.5 - 1.0]);
    near(scaled(Scaling::Caffe), [200.0 - 103.939, 100.0 - 116.779, 10.0 - 123.68]);
    let torch = |x: f32, mean: f32, deviation: f32| (x / 255.0 - mean) / deviation;
    near(
        scaled(Scaling::Torch),
        [torch(10.0, 0.485, 0.229), torch(100.0, 0.456, 0.224), torch(200.0, 0.406, 0.225)],
    );
    let gray = wgrad::constant([[[1.0]]]).unwrap();
    assert!(preprocess_input(&gray, Scaling::Tf).is_ok());
    assert_eq!(
        preprocess_input(&gray, Scaling::Caffe).unwrap_err().to_string(),
        "preprocess_input: the images are [1, 1, 1]; they must be [.., H, W, 3], as each of the three colors has its own mean."
    );
}

#[test]
fn predictions_get_the_names_that_the_program_gives() {
    let y = wgrad::constant([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]).unwrap();
    let json = r#"{"0": ["n0", "cat"], "1": ["n1", "dog"], "2": ["n2", "fish"]}"#;
    let names = ClassNames::from_text(json).unwrap();
    assert_eq!(names, ClassNames::from_text("cat\ndog\n\nfish\n").unwrap());
    let best = decode_predictions(&y, &names, 2).unwrap();
    let shown: Vec<Vec<(usize, &str, f32)>> =
        best.iter().map(|of| of.iter().map(|p| (p.class, &*p.name, p.score)).collect()).collect();
    assert_eq!(shown, [[(1, "dog", 0.5), (2, "fish", 0.3)], [(2, "fish", 0.8), (0, "cat", 0.1)]]);
    let few = ClassNames::new(["cat", "dog"]);
    assert_eq!(
        decode_predictions(&y, &few, 2).unwrap_err().to_string(),
        "decode_predictions: the predictions are [2, 3], and there are 2 names. wgrad has no list of ImageNet's classes: give \
         the 3 names of this network's classes in order, such as with ClassNames::from_file on Keras's imagenet_class_index.json."
    );
    assert!(ClassNames::from_text(" \n").is_err() && ClassNames::from_text("{\"1\": 2}").is_err());
}
