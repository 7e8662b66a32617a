//! Tests the reader of Stan JSON. The tests cover the values of accepted input, and the errors that all other input
//! causes.

use jensen_data::{DataError, DataSet, Elements, Value};

fn read(text: &str) -> DataSet {
    DataSet::from_json(text.as_bytes(), "data.json").unwrap_or_else(|e| panic!("{text}\n{e}"))
}

/// Returns the message of a parse error without the position and the excerpt, followed by the line and the column.
fn refuse(text: &str) -> (String, usize, usize) {
    match DataSet::from_json(text.as_bytes(), "data.json") {
        Err(DataError::Parse(e)) => (e.message, e.line, e.column),
        other => panic!("{text}\n{other:?}"),
    }
}

#[test]
fn values_keep_shape_and_row_major_order() {
    let data = read(
        r#"{"N": 3, "x": 1.5, "big": 12345678901234567890, "low": -9223372036854775808,
            "y": [1, 2, 3], "mixed": [1, 2.5], "X": [[1,2,3],[4,5,6]],
            "a": [[[1],[2]],[[3],[4]],[[5],[6]]], "none": [], "rows": [[],[]], "e": 1e3, "z": [[1,-2],[0.5,3]]}"#,
    );
    let cases: Vec<(&str, Value)> = vec![
        ("N", Value::int(3)),
        ("x", Value::real(1.5)),
        ("big", Value::real(12345678901234567890.0)),
        ("low", Value::int(i64::MIN)),
        ("y", Value::ints(vec![3], vec![1, 2, 3]).unwrap()),
        ("mixed", Value::reals(vec![2], vec![1.0, 2.5]).unwrap()),
        (
            "X",
            Value::ints(vec![2, 3], vec![1, 2, 3, 4, 5, 6]).unwrap(),
        ),
        (
            "a",
            Value::ints(vec![3, 2, 1], vec![1, 2, 3, 4, 5, 6]).unwrap(),
        ),
        ("none", Value::ints(vec![0], vec![]).unwrap()),
        ("rows", Value::ints(vec![2, 0], vec![]).unwrap()),
        ("e", Value::real(1000.0)),
        (
            "z",
            Value::reals(vec![2, 2], vec![1.0, -2.0, 0.5, 3.0]).unwrap(),
        ),
    ];
    assert_eq!(data.len(), cases.len());
    for ((name, value), (expected_name, expected)) in data.iter().zip(&cases) {
        assert_eq!((name, value), (*expected_name, expected));
    }
}

#[test]
fn non_finite_numbers_are_read_bare_and_quoted() {
    let data = read(
        r#"{"v": [NaN, Infinity, -Infinity, Inf, -Inf, "NaN", "Inf", "+inf", "-inf", "-Infinity", "infinity", "nan"]}"#,
    );
    let v = data.reals("v", &[12]).unwrap();
    let inf = f64::INFINITY;
    let expected = [
        f64::NAN,
        inf,
        -inf,
        inf,
        -inf,
        f64::NAN,
        inf,
        inf,
        -inf,
        -inf,
        inf,
        f64::NAN,
    ];
    for (x, e) in v.iter().zip(expected) {
        assert!(
            x.to_bits() == e.to_bits() || (x.is_nan() && e.is_nan()),
            "{x} is not {e}"
        );
    }
}

#[test]
fn tuples_become_slots() {
    let data = read(
        r#"{"t": {"2": [1.5, 2], "1": 7}, "ts": [{"1": 1, "2": [1, 2]}, {"2": [3, 4], "1": 5}]}"#,
    );
    let t = data.entry("t", "").unwrap();
    assert_eq!(t.field(1, 2, "").unwrap().ints(&[], "int").unwrap(), [7]);
    let second = t.field(2, 2, "").unwrap();
    assert_eq!(second.name(), "t.2");
    assert_eq!(*second.reals(&[2], "vector[2]").unwrap(), [1.5, 2.0]);

    let ts = data.get("ts").unwrap();
    assert_eq!((ts.shape(), ts.len()), (&[2][..], 2));
    let Elements::Tuple(slots) = ts.elements() else {
        panic!("{ts:?}")
    };
    assert_eq!(slots[0], Value::ints(vec![2], vec![1, 5]).unwrap());
    assert_eq!(slots[1], Value::ints(vec![2, 2], vec![1, 2, 3, 4]).unwrap());
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: texts and what is said of them"
)]
fn errors_say_what_and_where() {
    let cases = [
        (
            "{\"x\": [1, 2\n",
            "data variable `x[2]`: the file ends where",
            2,
            1,
        ),
        ("", "the file is empty, expected one JSON object", 1, 1),
        ("[1]", "expected one JSON object of variables", 1, 1),
        ("{\"x\": 1} 2", "expected the end of the file", 1, 10),
        (
            "{\n \"x\": 1,\n \"x\": 2}",
            "data variable `x` appears twice",
            3,
            2,
        ),
        (
            "{\"x\": [[1,2],[3]]}",
            "data variable `x[2]`: ragged array: this list has 1 element,",
            1,
            14,
        ),
        (
            "{\"x\": [[1,2],3]}",
            "data variable `x[2]`: ragged array: a number where",
            1,
            14,
        ),
        (
            "{\"x\": [1,[2]]}",
            "data variable `x[2]`: ragged array: a list where",
            1,
            10,
        ),
        (
            "{\"x\": [[],3]}",
            "data variable `x[2]`: ragged array: a number where",
            1,
            11,
        ),
        (
            "{\"x\": [[], [1]]}",
            "data variable `x[2]`: ragged array: this list has 1 element,",
            1,
            12,
        ),
        (
            "{\"x\": [1,{\"1\":2}]}",
            "data variable `x[2]`: ragged array: a tuple where",
            1,
            10,
        ),
        (
            "{\"x\": [{\"1\":2},1]}",
            "data variable `x[2]`: ragged array: a number where",
            1,
            16,
        ),
        (
            "{\"x\": [{\"1\":2},{\"2\":1}]}",
            "data variable `x[2]`: `2` is not a slot",
            1,
            17,
        ),
        (
            "{\"x\": {\"1\":2,\"3\":1}}",
            "data variable `x`: tuple slot 2 is missing",
            1,
            7,
        ),
        (
            "{\"x\": {\"1\":2,\"1\":1}}",
            "data variable `x`: tuple slot 1 appears twice",
            1,
            14,
        ),
        (
            "{\"x\": {\"mu\":2}}",
            "data variable `x`: `mu` is not a slot",
            1,
            8,
        ),
        (
            "{\"x\": {\"1\":[1,null]}}",
            "data variable `x.1[2]`: null is not a number",
            1,
            15,
        ),
        (
            "{\"x\": \"abc\"}",
            "data variable `x`: a string is not a number",
            1,
            7,
        ),
        (
            "{\"x\": [true]}",
            "data variable `x[1]`: a boolean is not a number; write 0 or 1",
            1,
            8,
        ),
        (
            "{\"x\": 01}",
            "data variable `x`: a number must not begin with 0",
            1,
            7,
        ),
        (
            "{\"x\": 1.}",
            "data variable `x`: digits must follow the decimal point",
            1,
            9,
        ),
        (
            "{\"x\": 1e}",
            "data variable `x`: digits must follow the exponent",
            1,
            9,
        ),
        (
            "{\"x\": 1e999}",
            "data variable `x`: the number is too large",
            1,
            7,
        ),
        (
            "{\"x\": +1}",
            "data variable `x`: expected a number or a list, found `+`",
            1,
            7,
        ),
        (
            "{\"x\": [1 2]}",
            "data variable `x[1]`: expected `,` or `]`, found `2`",
            1,
            10,
        ),
        (
            "{\"x\": [1,]}",
            "data variable `x[2]`: expected a number or a list, found `]`",
            1,
            10,
        ),
        ("{x: 1}", "expected the name of a variable", 1, 2),
        ("{\"x\" 1}", "expected `:`", 1, 6),
        ("{\"x: 1}", "this string has no closing quote", 1, 2),
        ("{\"\\q\": 1}", "this string has an invalid escape", 1, 2),
    ];
    for (text, message, line, column) in cases {
        let (found, l, c) = refuse(text);
        assert!(found.starts_with(message), "{text}\n{found}");
        assert_eq!((l, c), (line, column), "{text}\n{found}");
    }
}

#[test]
fn the_excerpt_is_short_and_the_caret_points_at_the_location() {
    let long = format!(
        "{{\"x\": [{}oops, {}]}}",
        "1, ".repeat(5000),
        "2, ".repeat(5000)
    );
    let error = DataSet::from_json(long.as_bytes(), "d.json").unwrap_err();
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines[0].starts_with("d.json:1:15008: data variable `x[5001]`: expected a number"),
        "{text}"
    );
    assert!(lines[1].chars().count() < 90, "{text}");
    let caret = lines[2].find('^').unwrap();
    assert_eq!(
        lines[1].chars().skip(caret).take(4).collect::<String>(),
        "oops"
    );
}

#[test]
fn text_that_is_not_utf8_is_refused_at_the_byte() {
    let error = DataSet::from_json(b"{\n\"a\xff\": 1}", "d.json").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("d.json:2:3: the file is not UTF-8"),
        "{error}"
    );
    assert_eq!(
        read("\u{feff}{\"caf\\u00e9\": 1}")
            .names()
            .collect::<Vec<_>>(),
        ["café"]
    );
}

#[test]
fn nesting_is_bounded() {
    let (message, ..) = refuse(&format!("{{\"x\": {}", "[".repeat(1_000_000)));
    assert!(
        message.starts_with("more than 64 nested lists"),
        "{message}"
    );
    let (message, ..) = refuse(&format!("{{\"x\": {}", "{\"1\": ".repeat(100_000)));
    assert!(
        message.starts_with("more than 64 nested lists"),
        "{message}"
    );
}

#[test]
fn doubles_are_read_to_the_nearest() {
    let texts = [
        "0.1",
        "1.7976931348623157e308",
        "5e-324",
        "2.2250738585072011e-308",
        "123456789.123456789",
        "-0.0",
    ];
    let data = read(&format!("{{\"v\": [{}]}}", texts.join(",")));
    let v = data.reals("v", &[texts.len()]).unwrap();
    for (x, text) in v.iter().zip(texts) {
        assert_eq!(
            x.to_bits(),
            text.parse::<f64>().unwrap().to_bits(),
            "{text}"
        );
    }
}
