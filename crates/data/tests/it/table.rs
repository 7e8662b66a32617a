//! Tests the reader of tables. The tests cover accepted input, and messages about mistakes.

use jensen_data::table_csv::{Header, parse};
use jensen_data::{Cells, DataSet, Table};
use proptest::prelude::*;

fn read(text: &str) -> Table {
    parse(text.as_bytes(), "t.csv", Header::Auto).unwrap()
}

fn error(text: &str) -> String {
    parse(text.as_bytes(), "t.csv", Header::Auto)
        .unwrap_err()
        .to_string()
}

/// Returns the numbers of a column, with `None` for NaN so that they can be compared.
fn numbers(table: &Table, name: &str) -> Vec<Option<f64>> {
    let column = table.numbers(name).unwrap();
    column.iter().map(|x| (!x.is_nan()).then_some(*x)).collect()
}

#[test]
fn separators_headers_quotes_and_missing_values() {
    let table =
        read("# made by hand\nage,\"home, town\",y\n31,Bonn,1\nNA,\"a \"\"b\"\"\",0\r\n 7 ,,.\n\n");
    assert_eq!(table.names(), ["age", "home, town", "y"]);
    assert_eq!(table.rows(), 3);
    assert_eq!(numbers(&table, "age"), [Some(31.0), None, Some(7.0)]);
    assert_eq!(numbers(&table, "y"), [Some(1.0), Some(0.0), None]);
    let town = table.column("home, town").unwrap();
    assert_eq!(
        town.cells,
        Cells::Words(vec![Some("Bonn".into()), Some("a \"b\"".into()), None])
    );
    assert_eq!(town.levels(), ["Bonn", "a \"b\""]);
    assert_eq!(town.cells.missing(), [2]);

    for separator in [";", "\t", "  "] {
        let text = format!("x{separator}y\n1{separator}2.5\n3{separator}-4e-1\n");
        let table = read(&text);
        assert_eq!(
            numbers(&table, "y"),
            [Some(2.5), Some(-0.4)],
            "{separator:?}"
        );
    }
    // If there is no header, columns are numbered, and a column is identified by its number.
    let table = read("1,g\n2,b\n");
    assert_eq!(table.names(), ["V1", "V2"]);
    assert_eq!(numbers(&table, "1"), [Some(1.0), Some(2.0)]);
    // A first row that consists only of words is a header unless the caller decides otherwise.
    let table = parse(b"a,b\nc,d\n", "t.csv", Header::No).unwrap();
    assert_eq!(table.rows(), 2);
    let table = parse(b"1,2\n3,4\n", "t.csv", Header::Yes).unwrap();
    assert_eq!(table.names(), ["1", "2"]);
}

#[test]
fn codes_follow_levels() {
    let table = read("k,n\nb,2\na,10\n,2\n");
    let k = table.column("k").unwrap();
    assert_eq!(k.codes(&k.levels()).unwrap(), [Some(1), Some(0), None]);
    let n = table.column("n").unwrap();
    assert_eq!(n.levels(), ["2", "10"]);
    let message = n.codes(&["2".into()]).unwrap_err().to_string();
    assert!(message.contains("`10` in row 2"), "{message}");
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    let cases = [
        (
            "a,b\n1,2\n3\n",
            "t.csv:3:1: this row has 1 cell, but the first one has 2",
        ),
        ("a,b\n1,2\n3,4,5\n", "t.csv:3:5: this row has 3 cells"),
        ("a,a\n1,2\n", "t.csv:1:3: two columns are called `a`"),
        ("a,b\n1,\"2\n3,4\n", "t.csv:2:3: this quote is not closed"),
        ("a,b\n", "the table has no rows"),
        ("", "the table has no rows"),
    ];
    for (text, expected) in cases {
        let message = error(text);
        assert!(message.contains(expected), "{text:?}: {message}");
    }
    let bytes = b"a,b\n1,\xff\n";
    let message = parse(bytes, "t.csv", Header::Auto).unwrap_err().to_string();
    assert!(
        message.starts_with("t.csv:2:3: the file is not UTF-8"),
        "{message}"
    );
}

#[test]
fn words_among_numbers_are_pointed_at_when_numbers_are_asked_for() {
    let table = read("x,rate\n1,0.5\n2,\"o,7\"\n3,0.25\n");
    let message = table.numbers("rate").unwrap_err().to_string();
    assert!(
        message.starts_with("t.csv:3:3: the column `rate` needs numbers"),
        "{message}"
    );
    let message = table.column("rat").unwrap_err().to_string();
    assert!(message.contains("did you mean `rate`"), "{message}");
    let message = table.column("zzzz").unwrap_err().to_string();
    assert!(message.contains("it has `x`, `rate`"), "{message}");
}

fn npy(kind: &str, fortran: bool, shape: &str, body: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(body);
    bytes
}

#[test]
fn arrays_of_numpy() {
    let reals: Vec<u8> = (0..6).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    let table = Table::from_npy(&npy("<f8", false, "(3, 2)", &reals), "a.npy").unwrap();
    assert_eq!(table.numbers("V2").unwrap(), [1.0, 3.0, 5.0]);
    let table = Table::from_npy(&npy("<f8", true, "(3, 2)", &reals), "a.npy").unwrap();
    assert_eq!(table.numbers("V2").unwrap(), [3.0, 4.0, 5.0]);
    let big: Vec<u8> = [-2i32, 7].iter().flat_map(|i| i.to_be_bytes()).collect();
    let table = Table::from_npy(&npy(">i4", false, "(2,)", &big), "a.npy").unwrap();
    assert_eq!(table.numbers("V").unwrap(), [-2.0, 7.0]);

    let bad = [
        (npy("<c16", false, "(1,)", &[0; 16]), "type `<c16`"),
        (npy("<f8", false, "(4,)", &[0; 16]), "needs 32"),
        (
            npy("<f8", false, "(1, 1, 1)", &[0; 8]),
            "vectors or matrices",
        ),
        (b"PK".to_vec(), "does not begin"),
    ];
    for (bytes, expected) in bad {
        let message = Table::from_npy(&bytes, "a.npy").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}

/// The file was written by `numpy.savez_compressed("a.npz", x=numpy.array([[1., 2.], [3., 4.]]), y=numpy.array([5, 6],
/// "i1"))` of numpy 2.
const NPZ: &str = include_str!("../numpy.npz.hex");

#[test]
fn archives_of_numpy() {
    let digits: Vec<u8> = NPZ.bytes().filter(u8::is_ascii_hexdigit).collect();
    let bytes: Vec<u8> = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let table = Table::from_npz(&bytes, "a.npz").unwrap();
    assert_eq!(table.names(), ["x1", "x2", "y"]);
    assert_eq!(table.numbers("x2").unwrap(), [2.0, 4.0]);
    assert_eq!(table.numbers("y").unwrap(), [5.0, 6.0]);
    // A file that is truncated at any position causes an error, never a panic.
    for end in 0..bytes.len() {
        assert!(Table::from_npz(&bytes[..end], "a.npz").is_err(), "{end}");
    }
}

proptest! {
    #[test]
    fn whatever_the_bytes_reading_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, "t", Header::Auto);
        let _ = Table::from_npz(&bytes, "t");
        let mut array = b"\x93NUMPY\x01\x00".to_vec();
        array.extend(&bytes);
        let _ = Table::from_npy(&array, "t");
        let mut archive = bytes.clone();
        archive.extend(b"PK\x05\x06\0\0\0\0\x01\0\x01\0\0\0\0\0\0\0\0\0\0\0");
        let _ = Table::from_npz(&archive, "t");
    }

    #[test]
    fn whatever_the_text_reading_does_not_panic(text in "[a-c0-9,;\" .\\n-]{0,80}") {
        if let Ok(table) = parse(text.as_bytes(), "t", Header::Auto) {
            for column in table.columns() {
                prop_assert_eq!(column.cells.len(), table.rows());
                let _ = column.numbers();
            }
        }
    }
}

/// The time that it takes to find columns, words and locations must be proportional to the size of the file.
#[test]
fn wide_tables_take_no_more_time_than_long_ones() {
    use std::fmt::Write;
    let columns = 40_000;
    let mut text = String::new();
    for row in 0..4 {
        for column in 0..columns {
            let comma = if column == 0 { "" } else { "," };
            let _ = match (row, column % 4) {
                (0, _) => write!(text, "{comma}name{column}"),
                (_, 0) => write!(text, "{comma}word{row}"),
                (2, 1) => write!(text, "{comma}"),
                _ => write!(text, "{comma}{}.5", row * column),
            };
        }
        text.push('\n');
    }
    let begun = std::time::Instant::now();
    let table = Table::parse(text.as_bytes(), "wide.csv").unwrap();
    for column in 0..columns {
        assert_eq!(
            table.column(&format!("name{column}")).unwrap().cells.len(),
            3
        );
    }
    let words: String = (0..40_000).map(|row| format!("w{row}\n")).collect();
    let long = Table::parse(format!("x\n{words}").as_bytes(), "long.csv").unwrap();
    let column = long.column("x").unwrap();
    let codes = column.codes(&column.levels()).unwrap();
    assert!(codes.iter().all(Option::is_some));
    let taken = begun.elapsed();
    assert!(taken.as_secs() < 8, "{taken:?}");
    // A missing value is rejected in the last column as it is in the first column.
    let data = DataSet::from_csv(text.as_bytes(), "wide.csv").unwrap();
    assert!(data.refusal("name1").is_some() && data.refusal("name39997").is_some());
    assert!(data.refusal("name39998").is_none());
}

/// A cell that is written for a word must not contain control codes for a terminal or a formula for a spreadsheet.
#[test]
fn words_are_harmless_cells() {
    use jensen_data::table_csv::quoted;
    for (word, cell) in [
        ("plain", "plain"),
        ("-1.5e3", "-1.5e3"),
        ("a,b", "\"a,b\""),
        ("=cmd()", "'=cmd()"),
        ("@x", "'@x"),
        ("-x", "'-x"),
        ("a\u{1b}[31m", "a\\u001b[31m"),
        ("a\u{202e}b", "a\\u202eb"),
        ("two\nlines", "\"two\nlines\""),
    ] {
        assert_eq!(quoted(word), cell);
    }
}
