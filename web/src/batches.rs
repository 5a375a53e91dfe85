//! [`Batches`]: shuffled images, a batch at a time.
//!
//! The dataset shuffles the images' indices instead of their pixels, so it needs little memory.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::Promise;
use ndarray::ArrayD;
use wasm_bindgen::prelude::*;
use wgrad::data::{self, DatasetIter, mnist};

use crate::args::{show_number, whole};
use crate::error::{Result, bad_type};
use crate::images::{Images, pair};

type Places = DatasetIter<ArrayD<i64>>;

/// Endless batches of images. Each pass through the images has a new order, drawn from the global generator.
#[wasm_bindgen]
pub struct Batches {
    images: Rc<mnist::Images>,
    /// `None` while the next batch is being made.
    places: Rc<Cell<Option<Places>>>,
}

fn next(images: &mnist::Images, places: Option<wgrad::Result<ArrayD<i64>>>) -> Result<JsValue> {
    let Some(places) = places.transpose()? else { return Ok(JsValue::UNDEFINED) };
    let places: Vec<usize> = places.into_iter().map(|place| place as usize).collect();
    Ok(pair(images, &places)?.into())
}

impl Batches {
    fn take(&self) -> Result<Places> {
        self.places.take().ok_or_else(|| {
            bad_type("Batches.next: the batch before is on its way. Await it.".to_string())
        })
    }
}

#[wasm_bindgen]
impl Batches {
    /// The next batch, `{ x, y }` as `Images.batch` returns it; `undefined` if there are no images.
    #[wasm_bindgen(unchecked_return_type = "{ x: Tensor; y: Tensor } | undefined")]
    pub fn next(&self) -> Result<JsValue> {
        let mut places = self.take()?;
        let found = places.next();
        self.places.set(Some(places));
        next(&self.images, found)
    }

    /// Like `next`, but lets the page draw and handle events after each 8 ms of work.
    #[wasm_bindgen(
        js_name = nextAsync,
        unchecked_return_type = "Promise<{ x: Tensor; y: Tensor } | undefined>"
    )]
    pub fn next_async(&self) -> Result<Promise> {
        let (images, home) = (self.images.clone(), self.places.clone());
        let places = self.take()?;
        Ok(crate::error::promise(async move {
            let found = places.next_async().await;
            home.set(Some(places));
            next(&images, found)
        }))
    }
}

#[wasm_bindgen]
impl Images {
    /// Endless shuffled batches.
    pub fn batches(&self, #[wasm_bindgen(js_name = batchSize)] size: f64) -> Result<Batches> {
        let count = self.0.len();
        let size = whole(size).filter(|size| *size > 0).ok_or_else(|| {
            bad_type(format!(
                "Images.batches: batchSize is {}; it must be a whole number from 1.",
                show_number(size)
            ))
        })?;
        let places = data::range(0..count as i64).shuffle(count.max(1)).batch(size).repeat(None);
        let places = Rc::new(Cell::new(Some(places.iter())));
        Ok(Batches { images: self.0.clone(), places })
    }
}
