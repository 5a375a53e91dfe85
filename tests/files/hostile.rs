//! Small files that claim large contents: readers use at most a few times the file's size in memory, or refuse it first.

#![allow(clippy::unwrap_used)]

use crate::mutations::peak;

use peak::peak;
use wgrad::data::csv::{CsvOptions, CsvReader, by_name, required};
use wgrad::data::tfrecord::TfRecordWriter;
use wgrad::image;
use wgrad::summary::EventReader;

/// A field of a message: its number, and bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 127 {
        field.push(length as u8 | 128);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(bytes);
    field
}

/// An event file of one record with these values.
fn events(values: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let values: Vec<u8> = values.into_iter().flat_map(|value| field(1, &value)).collect();
    let mut writer = TfRecordWriter::new(Vec::new(), "events");
    writer.write(field(5, &values)).unwrap();
    writer.close().unwrap()
}

/// A tag's metadata is stored once, however many values have the tag.
#[test]
fn a_description_is_there_once() {
    let plugin = [field(1, b"scalars"), field(2, &[7; 200_000])].concat();
    let metadata = [field(1, &plugin), field(3, &[b'x'; 300_000])].concat();
    let first = [field(1, b"t"), field(9, &metadata)].concat();
    // The others have only a number.
    let number = [&[0x15][..], &1f32.to_le_bytes()].concat();
    let other = [field(1, b"t"), number].concat();
    let file = events(std::iter::once(first).chain(std::iter::repeat_n(other, 40_000)));
    let (read, most) =
        peak(|| EventReader::new(&file[..], "events").collect::<Result<Vec<_>, _>>().unwrap());
    assert_eq!(read.len(), 40_001);
    assert!(read.iter().all(|event| event.description.len() == 300_000));
    assert!(read.iter().all(|event| event.plugin_content.len() == 200_000));
    assert!(most < 100 * file.len() as i64, "{most} bytes for a file of {}", file.len());
}

/// A value that represents many gets memory according to its own bytes, not those of its record.
#[test]
fn a_record_of_many_tensors_is_bounded_by_each() {
    // Type FLOAT, with a shape [100000] and one value.
    let shape = field(2, &field(2, &[&[0x08][..], &[0xa0, 0x8d, 0x06]].concat()));
    let tensor = [&[0x08, 1][..], &shape, &field(5, &1f32.to_le_bytes())].concat();
    let value = [field(1, b"t"), field(8, &tensor)].concat();
    let file = events(std::iter::repeat_n(value, 10_000));
    let (read, most) = peak(|| EventReader::new(&file[..], "events").collect::<Vec<_>>());
    let error = read.into_iter().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("does not fit into its"), "{error}");
    assert!(most < 100 * file.len() as i64, "{most} bytes for a file of {}", file.len());
}

/// Two bytes of a file are an empty value, which is not returned; the reader does not allocate hundreds of bytes for each.
#[test]
fn a_record_of_empty_values_is_skipped() {
    let number = [&field(1, b"t")[..], &[0x15], &2.5f32.to_le_bytes()].concat();
    let file = events(std::iter::repeat_n(Vec::new(), 500_000).chain([number]));
    let (read, most) =
        peak(|| EventReader::new(&file[..], "events").collect::<Result<Vec<_>, _>>().unwrap());
    assert_eq!(read.iter().map(|event| event.scalar()).collect::<Vec<_>>(), [Some(2.5)]);
    assert!(most < 40 * file.len() as i64, "{most} bytes for a file of {}", file.len());
}

/// A header with more columns than any record has: each record's time and memory depend on its own fields.
#[test]
fn a_header_of_many_columns_costs_once() {
    #[derive(serde::Deserialize, Debug)]
    struct Row {
        #[allow(dead_code)]
        wanted: f32,
    }
    const COLUMNS: usize = 200_000;
    let header = format!("{}{}", "n".repeat(100_000), ",n".repeat(COLUMNS - 1));
    let text = format!("{header}\n{}{}\n", "1\n".repeat(COLUMNS), ",".repeat(COLUMNS - 1));
    let options = CsvOptions::new().header(true);
    let mut rows = CsvReader::new(text.as_bytes(), "x.csv", by_name::<Row>(), options).unwrap();
    rows.next().unwrap().unwrap_err();
    let mut last = String::new();
    let ((), most) = peak(|| {
        for error in rows.by_ref().take(COLUMNS - 1) {
            last = error.unwrap_err().to_string();
        }
    });
    assert_eq!(
        last,
        "x.csv, line 200001: the record has 1 fields, and 200000 are expected. Fix it, or choose columns by \
         select_cols."
    );
    assert!(most < 10_000, "{most} bytes");
    // A message quotes a bounded part of the header.
    let error = rows.next().unwrap().unwrap_err().to_string();
    assert!(
        error.len() < 1000 && error.contains(" and 199980 more: missing field `wanted`"),
        "{error}"
    );
    assert!(rows.next().is_none());
    let options = CsvOptions::new().header(true).select_cols(vec![0]);
    let mut rows =
        CsvReader::new(text.as_bytes(), "x.csv", (required::<bool>(),), options).unwrap();
    assert!(rows.next().unwrap().unwrap().0);
    let error = rows.by_ref().nth(COLUMNS - 1).unwrap().unwrap_err().to_string();
    assert!(error.len() < 400 && error.contains(&"n".repeat(80)), "{error}");
}

/// A GIF whose frames are a few bytes each but cover the whole canvas when shown. `hostile_images` has WebPs of this kind.
#[test]
fn an_animation_of_tiny_frames_on_a_great_canvas_is_refused() {
    // 4000 x 4000, no global palette; frames of one pixel with a palette of two colours.
    let mut gif = b"GIF89a\xa0\x0f\xa0\x0f\x00\x00\x00".to_vec();
    for _ in 0..16 {
        gif.extend(b"\x2c\0\0\0\0\x01\0\x01\0\x80\0\0\0\xff\xff\xff\x02\x02\x44\x01\0");
    }
    gif.push(b';');
    let (read, most) = peak(|| image::decode_frames(&gif, 3));
    let error = read.unwrap_err().to_string();
    assert!(error.contains("max_animation_pixels"), "{error}");
    // Four frames, stored in a list that grows by doubling.
    assert!(most < 3 * (4 * 4000 * 4000 * 3), "{most} bytes");
    // A single frame is treated like any picture.
    assert!(image::decode_gif(&gif).is_err());
    assert!(image::decode_image(&gif, 3).is_ok());
}
