//! Training and measuring over many batches without keeping the page from drawing.
