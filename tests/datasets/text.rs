//! Text lines, records of fixed length, CSV and lists of files, as datasets.

#![allow(clippy::unwrap_used)]

use crate::support::folder;

use std::io::Write;
use std::path::PathBuf;

use folder::Folder;
use serde::Deserialize;
use wgrad::data::csv::{CsvDataset, CsvOptions, CsvReader, by_name, required};
use wgrad::data::{
    CompressionType, Dataset, FixedLengthRecordDataset, Item, ListFilesOptions, TextLineDataset,
};
use wgrad::{Error, Result};

fn all<T: Item>(dataset: &Dataset<T>) -> Result<Vec<T>> {
    dataset.iter().collect()
}

fn pack(bytes: &[u8], packed: CompressionType) -> Vec<u8> {
    let level = flate2::Compression::fast();
    match packed {
        CompressionType::Gzip => {
            let mut to = flate2::write::GzEncoder::new(Vec::new(), level);
            to.write_all(bytes).unwrap();
            to.finish().unwrap()
        }
        CompressionType::Zlib => {
            let mut to = flate2::write::ZlibEncoder::new(Vec::new(), level);
            to.write_all(bytes).unwrap();
            to.finish().unwrap()
        }
        _ => bytes.to_vec(),
    }
}

const PACKED: [CompressionType; 3] =
    [CompressionType::None, CompressionType::Gzip, CompressionType::Zlib];

/// Checks that a pass saved after any number of elements continues with the same ones.
fn resumes<T: Item + PartialEq + std::fmt::Debug>(dataset: &Dataset<T>) {
    let whole = all(dataset).unwrap();
    for given in 0..=whole.len() {
        let mut iter = dataset.iter();
        iter.by_ref().take(given).for_each(drop);
        let rest = dataset.resume(&iter.save().unwrap()).unwrap();
        assert_eq!(rest.collect::<Result<Vec<T>>>().unwrap(), whole[given..], "after {given}");
    }
}

#[test]
fn lines_of_several_files_are_read() {
    let folder = Folder::new("lines");
    for packed in PACKED {
        let files = [
            folder.write("a", &pack("one\r\n\ntwö\rx\n".as_bytes(), packed)),
            folder.write("b", &pack(b"", packed)),
            folder.write("c", &pack(b"\nlast", packed)),
        ];
        let dataset = TextLineDataset::new(&files[..]).compression_type(packed).buffer_size(3);
        let dataset = dataset.build().unwrap();
        assert_eq!(all(&dataset).unwrap(), ["one", "", "twö\rx", "", "last"]);
        resumes(&dataset);
    }
}

#[test]
fn a_line_that_is_no_text_is_an_error_and_the_next_one_comes() {
    let folder = Folder::new("utf8");
    let path = folder.write("a", b"one\nab\xff\xfe\nthree\n");
    let dataset = TextLineDataset::new(&path).build().unwrap();
    let mut lines = dataset.iter();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    let error = lines.next().unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with(&format!(
            "{}: line 2 is not valid UTF-8 from its byte 2 on",
            path.display()
        )),
        "{error}"
    );
    assert_eq!(lines.next().unwrap().unwrap(), "three");
    assert!(lines.next().is_none());
}

#[test]
fn a_missing_file_is_one_error_and_the_next_file_comes() {
    let folder = Folder::new("missing");
    let here = folder.write("here", b"one\ntwo");
    let files = [folder.path("gone"), here.clone(), folder.path(""), here];
    let lines: Vec<Result<String>> =
        TextLineDataset::new(&files[..]).build().unwrap().iter().collect();
    assert_eq!(lines.len(), 6);
    assert!(matches!(&lines[0], Err(Error::Io(io)) if io.path == files[0]));
    let folder = lines[3].as_ref().unwrap_err().to_string();
    assert!(folder.contains("it is a folder and not a file"), "{folder}");
}

#[test]
fn records_of_one_length_are_read() {
    let folder = Folder::new("fixed");
    for packed in PACKED {
        let files = [
            folder.write("a", &pack(b"##abcdef.", packed)),
            folder.write("b", &pack(b"##.", packed)),
            folder.write("c", &pack(b"##ghi.", packed)),
        ];
        let dataset = FixedLengthRecordDataset::new(&files[..], 3).compression_type(packed);
        let dataset = dataset.header_bytes(2).footer_bytes(1).build().unwrap();
        assert_eq!(all(&dataset).unwrap(), [b"abc", b"def", b"ghi"]);
        resumes(&dataset);
    }
}

#[test]
fn a_remainder_is_reported_in_numbers() {
    let folder = Folder::new("remainder");
    for (packed, records) in [(CompressionType::None, 0), (CompressionType::Gzip, 2)] {
        let path = folder.write("a", &pack(b"#abcdefgh..", packed));
        let dataset = FixedLengthRecordDataset::new(&path, 3).compression_type(packed);
        let dataset = dataset.header_bytes(1).footer_bytes(2).build().unwrap();
        let mut iter = dataset.iter();
        assert_eq!(iter.by_ref().take(records).filter(Result::is_ok).count(), records);
        let error = iter.next().unwrap().unwrap_err().to_string();
        let wanted = "4 bytes are left after 2 records of 3 bytes and a header of 1; they should be the footer of 2.";
        assert!(error.contains(wanted), "{error}");
        assert!(iter.next().is_none());
    }
    let path = folder.write("a", b"##");
    for (header, footer, words) in [
        (3, 0, "the header should take 3 bytes, and the file has 2"),
        (1, 2, "1 bytes are left after 0 records"),
    ] {
        let dataset =
            FixedLengthRecordDataset::new(&path, 1).header_bytes(header).footer_bytes(footer);
        let error = all(&dataset.build().unwrap()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn options_without_a_meaning_are_refused() {
    let text = |result: Result<()>| result.unwrap_err().to_string();
    let fixed = FixedLengthRecordDataset::new("x", 0).build().map(drop);
    assert!(text(fixed).contains("record_bytes is 0"));
    let reads = TextLineDataset::new("x").num_parallel_reads(0).build().map(drop);
    assert!(text(reads).contains("TextLineDataset: num_parallel_reads is 0"));
    let buffer = TextLineDataset::new("x").buffer_size(0).build().map(drop);
    assert!(text(buffer).contains("buffer_size is 0"));
    let csv = |dataset: CsvDataset<(i64, i64)>| text(dataset.build().map(drop));
    let dataset = || CsvDataset::new("x", (0i64, 0i64));
    assert!(csv(dataset().field_delim(b'"')).contains("field_delim is '\"'"));
    assert!(csv(dataset().select_cols([1])).contains("select_cols is [1], and 2 columns"));
    assert!(csv(dataset().select_cols([1, 1])).contains("must ascend"));
    let nameless = CsvDataset::new("x", by_name::<(i64, i64)>()).build().map(drop);
    assert!(text(nameless).contains("call header(true)"));
}

#[derive(Deserialize, Debug, Clone, PartialEq)]
struct Cat {
    name: String,
    #[serde(default)]
    lives: i64,
    weight: Option<f32>,
}

type Row = (String, i64, f32);

fn rows(text: &str, options: CsvOptions) -> Vec<Result<Row>> {
    let columns = (required::<String>(), 9i64, required::<f32>());
    CsvReader::new(text.as_bytes(), "cats.csv", columns, options).unwrap().collect()
}

#[test]
fn fields_become_the_values_of_their_columns() {
    let row = |name: &str, lives, weight| (name.to_string(), lives, weight);
    let plain = CsvOptions::new();
    for (text, wanted) in [
        ("Tom,1,4.5\nAnn,,2\n", vec![row("Tom", 1, 4.5), row("Ann", 9, 2.0)]),
        ("Tom,1,4.5\r\n\r\nAnn, -2 ,1e3", vec![row("Tom", 1, 4.5), row("Ann", -2, 1000.0)]),
        ("\"a, \"\"b\"\"\nc\",1,inf\n", vec![row("a, \"b\"\nc", 1, f32::INFINITY)]),
        ("", vec![]),
        ("\n\n", vec![]),
    ] {
        let found: Vec<Row> = rows(text, plain.clone()).into_iter().collect::<Result<_>>().unwrap();
        assert_eq!(found, wanted, "{text:?}");
    }
    let options =
        CsvOptions::new().header(true).field_delim(b';').na_value("NA").use_quote_delim(false);
    let found = rows("a;b;c\n\"Tom;NA;1\n", options);
    assert_eq!(*found[0].as_ref().unwrap(), row("\"Tom", 9, 1.0));
    let options = CsvOptions::new().select_cols(vec![0, 3, 4]);
    assert_eq!(*rows("Tom,x,y,3,1,z\n", options)[0].as_ref().unwrap(), row("Tom", 3, 1.0));
}

#[test]
fn a_bad_field_is_an_error_and_the_next_record_comes() {
    let text =
        "name,lives,weight\nTom,1,4.5\n\nAnn,two,3\nBob,1\nJim,1,2,3\n,1,2\nKit,1,\nEva,,6\n";
    let found = rows(text, CsvOptions::new().header(true));
    assert_eq!(found.len(), 7);
    assert!(found[0].is_ok() && found[6].is_ok());
    for (at, wanted) in [
        (1, "cats.csv, line 4: column 1 (\"lives\") should be i64, and it is \"two\". "),
        (2, "cats.csv, line 5: the record has 2 fields, and 3 are expected. "),
        (3, "cats.csv, line 6: the record has 4 fields, and 3 are expected. "),
        (4, "cats.csv, line 7: column 0 (\"name\") is required (String), and it is empty. "),
        (5, "cats.csv, line 8: column 2 (\"weight\") is required (f32), and it is empty. "),
    ] {
        let error = found[at].as_ref().unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn quotes_that_nobody_closes_are_refused() {
    for text in ["Tom,1,\"4\nAnn,1,2\n", "\"", "Tom,1,\"4.5", "a,\"\"\"\n"] {
        let last = rows(text, CsvOptions::new()).pop().unwrap().unwrap_err().to_string();
        assert_eq!(
            last,
            "cats.csv: the record that begins on line 1 ends the file within quotes. Close them.",
            "{text}"
        );
    }
    let long = format!("Tom,1,2\n\"{}\",1,2\nAnn,1,2\n", "x".repeat(5000));
    assert_eq!(rows(&long, CsvOptions::new()).len(), 3);
    let found = rows(&long, CsvOptions::new().max_record_bytes(1000));
    assert_eq!(found.len(), 2, "nobody knows where the next record begins");
    let error = found[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("line 2 has more than 1000 bytes (max_record_bytes)"), "{error}");
}

#[test]
fn datasets_of_csv_files_are_saved_anywhere() {
    let folder = Folder::new("csv");
    for packed in PACKED {
        let files = [
            folder
                .write("a", &pack(b"name,lives,weight\r\nTom,1,4.5\r\n\"A\r\nB\",,2\r\n", packed)),
            folder.write("b", &pack(b"name,lives,weight\n", packed)),
            folder.write("c", &pack(b"name,lives,weight\n\nKit,3,1", packed)),
        ];
        let columns = (required::<String>(), 9i64, required::<f32>());
        let dataset = CsvDataset::new(&files[..], columns).header(true).compression_type(packed);
        let dataset = dataset.build().unwrap();
        let wanted = [("Tom", 1, 4.5), ("A\r\nB", 9, 2.0), ("Kit", 3, 1.0)];
        assert_eq!(all(&dataset).unwrap(), wanted.map(|(name, l, w)| (name.to_string(), l, w)));
        resumes(&dataset);
    }
    // A line after resuming has its number, a column its name.
    let path = folder.write("bad", b"name,lives\nTom,1\nAnn,x\n");
    let dataset = CsvDataset::new(&path, ("", 0i64)).header(true).build().unwrap();
    let mut iter = dataset.iter();
    iter.next();
    let error =
        dataset.resume(&iter.save().unwrap()).unwrap().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("line 3: column 1 (\"lives\")"), "{error}");
}

#[test]
fn columns_that_are_all_alike_and_structs_by_name() {
    let pixels =
        CsvReader::new(&b"1,2,3\n4,,6\n"[..], "x", vec![0u8; 3], CsvOptions::new()).unwrap();
    assert_eq!(pixels.collect::<Result<Vec<_>>>().unwrap(), [[1, 2, 3], [4, 0, 6]]);

    let text = "weight,colour,name\n4.5,black,Tom\nNA,white,Ann\nheavy,grey,Jim\n";
    let options = CsvOptions::new().header(true).na_value("NA");
    let cats = CsvReader::new(text.as_bytes(), "cats.csv", by_name::<Cat>(), options).unwrap();
    let cats: Vec<Result<Cat>> = cats.collect();
    let cat = |name: &str, weight| Cat { name: name.into(), lives: 0, weight };
    assert_eq!(*cats[0].as_ref().unwrap(), cat("Tom", Some(4.5)));
    assert_eq!(*cats[1].as_ref().unwrap(), cat("Ann", None));
    let error = cats[2].as_ref().unwrap_err().to_string();
    assert!(
        error.starts_with(
            "cats.csv, line 4: column 0 (\"weight\") is \"heavy\", which cannot become "
        ),
        "{error}"
    );
    let options = CsvOptions::new().header(true);
    let mut cats =
        CsvReader::new(&b"weight\n1\n"[..], "cats.csv", by_name::<Cat>(), options).unwrap();
    let error = cats.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("missing field `name`"), "{error}");
}

#[test]
fn files_are_listed_sorted_or_shuffled() {
    let folder = Folder::new("list");
    let names: Vec<PathBuf> = (0..20).map(|i| folder.write(&format!("{i:02}.txt"), b"")).collect();
    folder.write("other.bin", b"");
    let pattern = folder.path("*.txt").display().to_string();
    let sorted =
        Dataset::list_files_with(&pattern, ListFilesOptions::new().shuffle(false)).unwrap();
    assert_eq!(all(&sorted).unwrap(), names);
    let seeded = || Dataset::list_files_with(&pattern, ListFilesOptions::new().seed(3)).unwrap();
    let (first, second) = (seeded(), seeded());
    let passes = [all(&first).unwrap(), all(&first).unwrap()];
    assert_eq!([all(&second).unwrap(), all(&second).unwrap()], passes);
    assert_ne!(passes[0], passes[1]);
    for mut pass in passes {
        assert_ne!(pass, names);
        pass.sort();
        assert_eq!(pass, names);
    }
    let error =
        Dataset::list_files(folder.path("*.png").display().to_string()).unwrap_err().to_string();
    assert!(error.contains("no file matches"), "{error}");
    assert!(Dataset::list_files("[").unwrap_err().to_string().contains("is not a valid pattern"));
    // A dataset of names works like a list.
    std::fs::write(&names[4], "four").unwrap();
    std::fs::write(&names[7], "seven").unwrap();
    let lines = TextLineDataset::new(&sorted).build().unwrap();
    assert_eq!(all(&lines).unwrap(), ["four", "seven"]);
    resumes(&lines);
}
