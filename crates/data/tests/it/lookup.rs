//! Tests that variables are looked up by name and type. The tests cover conversions, and messages about data that do
//! not fit the model.

use std::borrow::Cow;

use jensen_data::{DataSet, Value};

fn data() -> DataSet {
    let text = r#"{"N": 8, "x": 1.5, "two": 2.0, "y": [1,2,3,4,5,6,7], "sigma_y": [1.5, 2.0], "M": [[1,2,3],[4,5,6]],
                   "one": [5], "none": [], "t": {"1": 1, "2": 2.5}, "half": [[1, 2], [3, 4.5]], "whole": [1.0, 2.0]}"#;
    DataSet::from_json(text.as_bytes(), "data.json").unwrap()
}

#[test]
fn fitting_values_are_returned_without_copies_where_possible() {
    let data = data();
    assert_eq!(data.int("N").unwrap(), 8);
    assert_eq!(data.real("N").unwrap(), 8.0);
    assert_eq!(data.real("x").unwrap(), 1.5);
    assert_eq!(data.ints("M", &[2, 3]).unwrap(), [1, 2, 3, 4, 5, 6]);
    assert!(matches!(
        data.reals("sigma_y", &[2]).unwrap(),
        Cow::Borrowed([1.5, 2.0])
    ));
    assert_eq!(
        *data.reals("M", &[2, 3]).unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
}

#[test]
fn arrays_without_elements_may_be_missing_or_any_empty_list() {
    let data = data();
    for name in ["none", "absent"] {
        assert!(
            data.reals_as(name, &[0, 3], "matrix[0,3]")
                .unwrap()
                .is_empty()
        );
        assert!(data.ints(name, &[0]).unwrap().is_empty());
    }
    assert!(data.reals("y", &[0]).is_err());
    assert!(data.reals("none", &[1]).is_err());
}

#[test]
fn messages_name_variable_expected_and_found() {
    let data = data();
    let cases = [
        (
            data.reals("y", &[8]).map(drop),
            "data variable `y`: expected array[8] real, found 7 numbers (shape [7])",
        ),
        (
            data.int("x").map(drop),
            "data variable `x`: expected int, found 1.5",
        ),
        (
            data.int("two").map(drop),
            "data variable `two`: expected int, found 2.0: an integer must not have a decimal point or exponent",
        ),
        (
            data.ints("half", &[2, 2]).map(drop),
            "data variable `half`: expected array[2,2] int, found half[2,2] = 4.5",
        ),
        (
            data.ints("whole", &[2]).map(drop),
            "data variable `whole`: expected array[2] int, found 2 numbers (shape [2]) of which some have \
             a decimal point or exponent, but integers must not have one",
        ),
        (
            data.int("one").map(drop),
            "data variable `one`: expected int, found 1 number (shape [1]); write the number without brackets",
        ),
        (
            data.ints("N", &[1]).map(drop),
            "data variable `N`: expected array[1] int, found the single number 8; write it in brackets",
        ),
        (
            data.reals_as("M", &[3, 2], "matrix[3,2]").map(drop),
            "data variable `M`: expected matrix[3,2], found 6 numbers (shape [2, 3]); the outermost list is the first \
             dimension (a matrix is a list of its rows)",
        ),
        (
            data.reals("none", &[2]).map(drop),
            "data variable `none`: expected array[2] real, found an empty array (shape [0])",
        ),
        (
            data.real("t").map(drop),
            "data variable `t`: expected real, found a tuple of 2",
        ),
        (
            data.entry("N", "")
                .and_then(|e| e.field(1, 2, "tuple(int, real)"))
                .map(drop),
            "data variable `N`: expected tuple(int, real), found the single number 8",
        ),
        (
            data.entry("t", "")
                .and_then(|t| t.field(2, 2, "").and_then(|f| f.ints(&[], "int").map(drop))),
            "data variable `t.2`: expected int, found 2.5",
        ),
        (
            data.reals_as("sigmay", &[2], "vector[2]").map(drop),
            "data variable `sigmay` is missing: expected vector[2]; did you mean `sigma_y`?",
        ),
        (
            data.int("n").map(drop),
            "data variable `n` is missing: expected int; did you mean `N`?",
        ),
    ];
    for (result, message) in cases {
        assert_eq!(result.unwrap_err().to_string(), message);
    }
}

#[test]
fn a_missing_variable_without_near_name_lists_some_that_are_there() {
    let error = data().int("groups").unwrap_err().to_string();
    assert!(error.ends_with(
        "the data holds `N`, `x`, `two`, `y`, `sigma_y`, `M`, `one`, `none`, `t`, `half`, `whole`"
    ));
    let mut many = DataSet::new();
    for i in 0..20 {
        assert!(many.insert(format!("v{i}"), Value::int(i)));
    }
    assert!(!many.insert("v0", Value::int(1)));
    assert!(
        many.int("groups")
            .unwrap_err()
            .to_string()
            .ends_with("`v11` and 8 more")
    );
    assert!(
        DataSet::new()
            .int("N")
            .unwrap_err()
            .to_string()
            .ends_with("the data have no variables")
    );
}

#[test]
fn values_must_fill_their_shape() {
    assert!(Value::reals(vec![2, 2], vec![1.0; 3]).is_err());
    assert!(Value::ints(vec![usize::MAX, 2], vec![]).is_err());
    assert!(Value::ints(vec![usize::MAX, 0, 2], vec![]).is_ok());
}

#[test]
fn columns_of_a_table_are_arrays() {
    let text = b"school,y,k,gap\nChoate,28.5,2,1\nAndover,-3,1,\nChoate,7,2,3\n";
    let data = DataSet::from_csv(text, "schools.csv").unwrap();
    assert_eq!(data.rows(), Some(3));
    assert_eq!(data.ints("k", &[3]).unwrap(), [2, 1, 2]);
    assert_eq!(*data.reals("y", &[3]).unwrap(), [28.5, -3.0, 7.0]);
    // The words in alphabetical order are Andover and Choate.
    assert_eq!(data.ints("school", &[3]).unwrap(), [2, 1, 2]);
    // A column with an empty cell cannot be used as data. If a program needs the column, the error contains the
    // location of the cell.
    assert!(data.get("gap").is_none());
    let why = data.refusal("gap").unwrap().to_string();
    assert!(
        why.contains("schools.csv:3:14") && why.contains("a value in every row"),
        "{why}"
    );
    assert!(
        data.words("school")
            .unwrap()
            .to_string()
            .contains("schools.csv:2")
    );
    assert!(data.words("k").is_none());
    let error = DataSet::from_csv(b"a,b\n1,2\n3\n", "short.csv").unwrap_err();
    assert!(error.to_string().contains("short.csv:3"), "{error}");
}

#[test]
fn a_column_of_numbers_and_words_is_not_numbered() {
    let data = DataSet::from_csv(b"y,n\n10,1\n2,2\nunknown,3\n", "mixed.csv").unwrap();
    assert!(data.get("y").is_none() && data.get("n").is_some());
    let why = data.refusal("y").unwrap().to_string();
    assert!(
        why.contains("mixed.csv:4") && why.contains("unknown"),
        "{why}"
    );
}
