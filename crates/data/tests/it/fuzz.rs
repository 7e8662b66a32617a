//! Tests that readers never panic. For arbitrary or damaged input, they must return data or an error.

use jensen_data::{DataSet, Elements, Value};
use proptest::collection::vec;
use proptest::prelude::*;

const JSON: &str = r#"{"N": 3, "y": [1.5, -2e3, NaN], "M": [[1,2],[3,4]], "t": [{"1": 1, "2": [1, 2]}], "s": "-inf", "é": []}"#;
const RDUMP: &str = "N <- 3L # n\ny <- c(1.5, -2e3, Inf)\nM <- structure(1:6, .Dim = c(2L, 3L))\n\"z\" <- integer(0); q <- 4:1\n";

fn consistent(value: &Value) -> bool {
    let size: usize = value.shape().iter().product();
    match value.elements() {
        Elements::Int(v) => v.len() == size,
        Elements::Real(v) => v.len() == size,
        Elements::Tuple(slots) => slots
            .iter()
            .all(|s| s.shape().starts_with(value.shape()) && consistent(s)),
    }
}

fn survive(bytes: &[u8]) -> Result<(), TestCaseError> {
    for result in [
        DataSet::from_json(bytes, "fuzz"),
        DataSet::from_rdump(bytes, "fuzz"),
    ] {
        match result {
            Ok(data) => prop_assert!(data.iter().all(|(_, v)| consistent(v))),
            Err(e) => prop_assert!(e.to_string().lines().count() <= 4, "{}", e),
        }
    }
    Ok(())
}

fn damage(text: &str, edits: &[(usize, u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (at, kind, with) in edits {
        let at = at % (bytes.len() + 1);
        let end = match kind % 3 {
            0 => at,
            1 => (at + with.len()).min(bytes.len()),
            _ => (at + 1).min(bytes.len()),
        };
        bytes.splice(at..end, with.iter().copied());
    }
    bytes
}

fn token() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ",",
        ":",
        "\"",
        "\"1\":",
        "\"2\":",
        "1",
        "-",
        "2.5",
        "e9",
        "NaN",
        "null",
        "<-",
        "c(",
        "structure(",
        ".Dim=",
        "integer(",
        "L",
        "#",
        "\n",
        " ",
        "é",
        "\\u00",
        "Inf",
        "x",
        "9999999999999999999",
    ];
    prop_oneof![
        8 => (0..pieces.len()).prop_map(move |i| pieces[i].as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..4),
    ]
}

fn nested() -> impl Strategy<Value = serde_json::Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(serde_json::Value::from),
    ];
    number.prop_recursive(4, 40, 4, |inner| {
        vec(inner, 0..4).prop_map(serde_json::Value::from)
    })
}

/// Returns the shape of nested lists, or `None` if they are not rectangular. The levels below an empty list are
/// unknown.
fn shape_of(value: &serde_json::Value) -> Option<Vec<usize>> {
    let serde_json::Value::Array(items) = value else {
        return Some(Vec::new());
    };
    let mut shapes = items.iter().map(shape_of);
    let Some(first) = shapes.next() else {
        return Some(vec![0]);
    };
    let first = first?;
    shapes
        .all(|s| s.as_ref() == Some(&first))
        .then(|| [vec![items.len()], first].concat())
}

fn flatten(value: &serde_json::Value, out: &mut Vec<f64>) {
    match value {
        serde_json::Value::Array(items) => items.iter().for_each(|i| flatten(i, out)),
        number => out.extend(number.as_f64()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in vec(any::<u8>(), 0..200)) {
        survive(&bytes)?;
    }

    #[test]
    fn arbitrary_tokens(tokens in vec(token(), 0..40)) {
        let tail = tokens.concat();
        survive(&tail)?;
        survive(&[b"{\"x\": ", &tail[..]].concat())?;
        survive(&[b"x <- ", &tail[..]].concat())?;
    }

    #[test]
    fn damaged_files(edits in vec((any::<usize>(), any::<u8>(), token()), 1..6), cut in 0usize..200) {
        for text in [JSON, RDUMP] {
            let bytes = damage(text, &edits);
            survive(&bytes)?;
            survive(&bytes[..cut.min(bytes.len())])?;
        }
    }

    /// For rectangular lists, the reader returns the same numbers as serde_json. Ragged lists are rejected.
    #[test]
    fn lists_agree_with_a_json_tree(tree in nested()) {
        let text = format!("{{\"x\": {tree}}}");
        let read = DataSet::from_json(text.as_bytes(), "fuzz");
        match shape_of(&tree) {
            None => prop_assert!(read.is_err(), "{}", text),
            Some(shape) => {
                let data = read.map_err(|e| TestCaseError::fail(format!("{text}\n{e}")))?;
                let mut expected = Vec::new();
                flatten(&tree, &mut expected);
                let found = data.reals("x", &shape).map_err(|e| TestCaseError::fail(e.to_string()))?;
                prop_assert!(found.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits())), "{}", text);
            }
        }
    }
}

#[test]
fn the_files_that_are_damaged_are_sound_to_begin_with() {
    assert_eq!(DataSet::from_json(JSON.as_bytes(), "").unwrap().len(), 6);
    assert_eq!(DataSet::from_rdump(RDUMP.as_bytes(), "").unwrap().len(), 5);
}
