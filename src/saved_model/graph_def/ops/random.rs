//! Random numbers. Stateless ones equal TensorFlow's for the seed; others come from this crate's generator.

use super::call::{Call, Entry, Results, any, many};
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::random;
use crate::saved_model::graph_def::value::Value;

pub(super) static OPS: &[Entry] = &[
    any("RandomStandardNormal", |call| Ok(Value::Tensor(random::normal(call.sizes(0)?)?))),
    any("RandomUniform", |call| Ok(Value::Tensor(random::uniform(call.sizes(0)?)?))),
    any("RandomUniformInt", |call| {
        let (low, high) = (int(call, 1)?, int(call, 2)?);
        Ok(Value::Tensor(random::global().uniform_int(call.sizes(0)?, low, high)?))
    }),
    any("StatelessRandomGetAlg", |_| Ok(Value::int(HostDType::I32, 1))),
    // The seed passes through both results, to be hashed where the numbers are drawn.
    many("StatelessRandomGetKeyCounter", &["key", "counter"], |call| {
        let seed = call.input(0)?.clone();
        Ok(Results::from_iter([seed.clone(), seed]))
    }),
    any("StatelessRandomNormal", |call| {
        Ok(Value::Tensor(random::stateless_normal(call.sizes(0)?, seed(call)?)?))
    }),
    any("StatelessRandomNormalV2", |call| {
        Ok(Value::Tensor(random::stateless_normal(call.sizes(0)?, seed(call)?)?))
    }),
    any("StatelessRandomUniform", |call| {
        Ok(Value::Tensor(random::stateless_uniform(call.sizes(0)?, seed(call)?)?))
    }),
    any("StatelessRandomUniformIntV2", |call| {
        let (low, high) = (int(call, 4)?, int(call, 5)?);
        let numbers = random::stateless_uniform_int(call.sizes(0)?, seed(call)?, low, high)?;
        Ok(Value::Tensor(numbers))
    }),
    any("StatelessRandomUniformV2", |call| {
        Ok(Value::Tensor(random::stateless_uniform(call.sizes(0)?, seed(call)?)?))
    }),
    any("StatelessTruncatedNormalV2", |call| {
        Ok(Value::Tensor(random::stateless_truncated_normal(call.sizes(0)?, seed(call)?)?))
    }),
    any("TruncatedNormal", |call| Ok(Value::Tensor(random::truncated_normal(call.sizes(0)?)?))),
];

fn int(call: &Call<'_>, at: usize) -> Result<i32> {
    let value = call.int(at)?;
    i32::try_from(value).map_err(|_| {
        Error::DType(message!(
            "its bound {value} is beyond 32 bits, which random integers have here."
        ))
    })
}

/// The two numbers of a seed, which input 1 holds.
fn seed(call: &Call<'_>) -> Result<[i32; 2]> {
    match call.ints(1)?[..] {
        [a, b] => {
            // A seed of 64 bits whose values fit is the same seed.
            let fits = |v: i64| {
                i32::try_from(v).map_err(|_| {
                    Error::DType(message!("its seed {v} is beyond 32 bits, which seeds have here."))
                })
            };
            Ok([fits(a)?, fits(b)?])
        }
        ref other => {
            Err(Error::Shape(message!("a seed has two numbers, and {other:?} were found.")))
        }
    }
}
