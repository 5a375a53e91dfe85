//! Convolutions, pooling and resized images. ONNX has channels before rows and columns.

use super::super::builder::{Attribute, Builder, Out};
use super::{Write, missing};
use crate::dtype::DType;
use crate::graph::attributes::Value;
use crate::ops::image::resize::weights_of_line;
use crate::ops::{Conv2dOptions, Padding};
use crate::saved_model::traced::{Found, Number, Site, field};
use Attribute::{Int, Ints, Text};

pub(super) const OPS: &[(&str, Write)] = &[
    ("Conv2D", conv2d),
    ("Conv2DBackpropInput", conv_transpose),
    ("DepthwiseConv2D", depthwise),
    ("ImageResample", resample),
    ("Pool", pool),
];

/// Images with the channels before rows and columns.
fn channels_first(b: &mut Builder, x: &Out) -> Out {
    b.transpose(x, &[0, 3, 1, 2])
}

fn channels_last(b: &mut Builder, x: &Out) -> Out {
    b.transpose(x, &[0, 2, 3, 1])
}

fn pair([rows, columns]: [usize; 2]) -> Attribute {
    Ints(vec![rows as i64, columns as i64])
}

/// The padding of windows of a number of elements (`taps`) on images of these sizes.
fn pads(
    padding: Padding,
    image: &[Number],
    taps: [usize; 2],
    strides: [usize; 2],
    dilations: [usize; 2],
) -> (&'static str, Attribute) {
    let (mut low, mut high) = (vec![0; 2], vec![0; 2]);
    match padding {
        Padding::Valid => {}
        Padding::Explicit(edges) => {
            for (axis, (before, after)) in edges.pairs().iter().enumerate().take(2) {
                (low[axis], high[axis]) = (*before as i64, *after as i64);
            }
        }
        Padding::Same => {
            for axis in 0..2 {
                let Number::Known(size) = image[axis] else {
                    return ("auto_pad", Text("SAME_UPPER"));
                };
                let [taps, stride, dilation] =
                    [taps[axis], strides[axis], dilations[axis]].map(|size| size as i64);
                let count = (size + stride - 1) / stride;
                let all = ((count - 1) * stride + (taps - 1) * dilation + 1 - size).max(0);
                (low[axis], high[axis]) = (all / 2, all - all / 2);
            }
        }
    }
    ("pads", Ints([low, high].concat()))
}

/// The sizes of the filter's window, which are known.
fn taps(site: &Site, filter: usize) -> [usize; 2] {
    let shape = &site.inputs[filter][0].shape;
    [shape[0], shape[1]]
}

fn conv(
    b: &mut Builder,
    site: &Site,
    image: &Out,
    filter: &Out,
    options: &Conv2dOptions,
    groups: usize,
) -> Found<Out> {
    let Conv2dOptions { strides, padding, dilations, .. } = *options;
    let attributes = [
        pads(padding, &site.input_shape(0)?[1..3], taps(site, 1), strides, dilations),
        ("strides", pair(strides)),
        ("dilations", pair(dilations)),
        ("group", Int(groups as i64)),
    ];
    let x = channels_first(b, image);
    let y = b.op("Conv", &[&x, filter], attributes);
    Ok(channels_last(b, &y))
}

fn conv2d(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options = site.get("options")?;
    let (channels, own) = (site.inputs[0][0].shape[3], site.inputs[1][0].shape[2]);
    let filter = b.transpose(&inputs[1], &[3, 2, 0, 1]);
    conv(b, site, &inputs[0], &filter, &options, channels.checked_div(own).unwrap_or(1))
}

fn depthwise(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options = site.get("options")?;
    let shape = &site.inputs[1][0].shape;
    let (channels, each) = (shape[2], shape[3]);
    let sizes = [shape[0], shape[1], 1, channels * each];
    let filter = b.reshape(&inputs[1], &sizes.map(|size| Number::Known(size as i64)));
    let filter = b.transpose(&filter, &[3, 2, 0, 1]);
    conv(b, site, &inputs[0], &filter, &options, channels)
}

fn conv_transpose(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let options: Conv2dOptions = site.get("options")?;
    let Conv2dOptions { strides, padding, dilations, .. } = options;
    let (image, window) = (site.output_shape()?, taps(site, 1));
    let results = site.input_shape(0)?;
    let (name, edges) = pads(padding, &image[1..3], window, strides, dilations);
    let (Ints(edges), "pads") = (edges, name) else {
        return Err("has padding of images of unknown size, which ONNX lacks".to_string());
    };
    let mut more = Vec::new();
    for axis in 0..2 {
        let (Number::Known(size), Number::Known(count)) = (&image[axis + 1], &results[axis + 1])
        else {
            return Err("has images of unknown size, which ONNX lacks".to_string());
        };
        let [taps, stride, dilation] =
            [window[axis], strides[axis], dilations[axis]].map(|size| size as i64);
        let own = stride * (count - 1) + (taps - 1) * dilation + 1 - edges[axis] - edges[axis + 2];
        if size < &own {
            return Err("cuts off elements that ONNX keeps".to_string());
        }
        more.push(size - own);
    }
    let (channels, own) = (site.calls[0].spec.shape[3], site.inputs[1][0].shape[2]);
    let attributes = [
        ("pads", Ints(edges)),
        ("output_padding", Ints(more)),
        ("strides", pair(strides)),
        ("dilations", pair(dilations)),
        ("group", Int(channels.checked_div(own).unwrap_or(1) as i64)),
    ];
    let dy = channels_first(b, &inputs[0]);
    let filter = b.transpose(&inputs[1], &[3, 2, 0, 1]);
    let x = b.op("ConvTranspose", &[&dy, &filter], attributes);
    Ok(channels_last(b, &x))
}

fn pool(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let op = match site.call().name {
        "MaxPool" => "MaxPool",
        "AvgPool" => "AveragePool",
        _ => return Err(missing()),
    };
    let options = site.raw("options")?;
    let (window, strides) = (options.field("window")?, options.field("strides")?);
    let edges =
        pads(options.field("padding")?, &site.input_shape(0)?[1..3], window, strides, [1, 1]);
    let attributes = [edges, ("kernel_shape", pair(window)), ("strides", pair(strides))];
    let x = channels_first(b, &inputs[0]);
    let y = b.op(op, &[&x], attributes);
    Ok(channels_last(b, &y))
}

/// The name of the rule of an axis of images.
fn rule(line: &Value) -> Found<String> {
    let value = field(line, "rule").ok_or("has no rule")?;
    let (name, _) = value.variant()?;
    let backward = line.field::<bool>("backward")?;
    Ok(if backward { "gradient".to_string() } else { name.to_string() })
}

/// A resize by the products with the weights of rows and columns: what ONNX's op does differently, or not at all.
fn by_matrices(b: &mut Builder, site: &Site, x: &Out) -> Found<Out> {
    let same = |name| {
        site.raw(name).map_err(|_| "has images of unknown size, which ONNX lacks".to_string())
    };
    let weights = |b: &mut Builder, name| -> Found<Out> {
        let weights = weights_of_line(same(name)?)?;
        let out = b.constant(&weights.into());
        Ok(match site.dtype() {
            DType::F32 => out,
            dtype => b.cast(&out, dtype),
        })
    };
    let (rows, columns) = (weights(b, "rows")?, weights(b, "columns")?);
    let shape = site.input_shape(0)?;
    let merged = site.number(|trace| {
        let shape = &site.inputs[0][trace].shape;
        (shape[2] * shape[3]) as i64
    })?;
    let x = if site.input_dtype(0) == site.dtype() { x.clone() } else { b.cast(x, site.dtype()) };
    let lines = b.reshape(&x, &[shape[0].clone(), shape[1].clone(), merged]);
    let lines = b.op("MatMul", &[&rows, &lines], []);
    let height = site.number(|trace| size_of(site, trace, "rows"))?;
    let apart = b.reshape(&lines, &[shape[0].clone(), height, shape[2].clone(), shape[3].clone()]);
    let y = b.op("MatMul", &[&columns, &apart], []);
    let shape = site.output_shape()?;
    Ok(b.reshape(&y, &shape))
}

/// The size of an axis of the result.
fn size_of(site: &Site, trace: usize, axis: &str) -> i64 {
    let line = field(&site.calls[trace].attributes, axis);
    let end = |line: &Value| {
        let backward = line.field("backward").unwrap_or(false);
        line.field::<i64>(if backward { "from" } else { "to" })
    };
    line.map_or(Ok(0), end).unwrap_or(0)
}

fn resample(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let line = |trace: usize, name| -> Found<&Value> {
        field(&site.calls[trace].attributes, name).ok_or_else(|| format!("has no {name}"))
    };
    let rules = [rule(line(0, "rows")?)?, rule(line(0, "columns")?)?];
    let changed: Vec<&String> = rules.iter().filter(|name| *name != "Keep").collect();
    let Some(name) = changed.first().filter(|one| changed.iter().all(|other| other == *one)) else {
        return match changed.is_empty() {
            true => Ok(inputs[0].clone()),
            false => by_matrices(b, site, &inputs[0]),
        };
    };
    let half = ("coordinate_transformation_mode", Text("half_pixel"));
    let attributes = match &name[..] {
        "Nearest" => {
            vec![half, ("mode", Text("nearest")), ("nearest_mode", Text("round_prefer_ceil"))]
        }
        "Linear" => vec![half, ("mode", Text("linear"))],
        _ => return by_matrices(b, site, &inputs[0]),
    };
    let x = channels_first(b, &inputs[0]);
    let shape = site.input_shape(0)?;
    let sizes = [
        shape[0].clone(),
        shape[3].clone(),
        site.number(|trace| size_of(site, trace, "rows"))?,
        site.number(|trace| size_of(site, trace, "columns"))?,
    ];
    let sizes = b.vector(&sizes);
    let none = Out::new();
    let y = b.op("Resize", &[&x, &none, &none, &sizes], attributes);
    let y = channels_last(b, &y);
    let y = if site.dtype() == site.input_dtype(0) { y } else { b.cast(&y, site.dtype()) };
    // Positions and channels may be one axis here.
    let shape = site.output_shape()?;
    Ok(b.reshape(&y, &shape))
}
