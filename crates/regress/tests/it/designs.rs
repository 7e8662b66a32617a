//! Compares design matrices with those of R's `model.matrix`, which `tools/oracle/model_matrix.R` stored.

use jensen_data::Table;
use jensen_data::table_csv::{Header, parse};
use jensen_regress::{
    Contrasts, Design, Evaluator, Formula, Frame, Result, States, design, expand,
};
use serde_json::Value;

const TABLE: &[u8] = include_bytes!("../data/table.csv");

pub fn table() -> Frame {
    let table: Table = parse(TABLE, "table.csv", Header::Yes).unwrap();
    Frame::of_table(&table)
}

fn made(
    formula: &str,
    frame: &Frame,
    states: &mut States,
    learning: bool,
    contrasts: Contrasts,
) -> Result<Design> {
    let formula = Formula::parse(&format!("y ~ {formula}"))?;
    let terms = expand(&formula.text, &formula.right, &[])?;
    let mut evaluator = Evaluator {
        frame,
        states,
        learning,
        text: &formula.text,
    };
    design(&terms, contrasts, &mut evaluator)
}

fn compare(stored: &str, contrasts: Contrasts) {
    let frame = table();
    let rows: Value = serde_json::from_str(stored).unwrap();
    for row in rows.as_array().unwrap() {
        let formula = row["formula"].as_str().unwrap();
        let mut states = States::new();
        let found = made(formula, &frame, &mut states, true, contrasts).unwrap();
        let names: Vec<&str> = row["names"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_str().unwrap())
            .collect();
        assert_eq!(found.names, names, "{formula}");
        for ((name, column), expected) in names
            .iter()
            .zip(&found.columns)
            .zip(row["columns"].as_array().unwrap())
        {
            for (x, expected) in column.iter().zip(expected.as_array().unwrap()) {
                let expected = expected.as_f64().unwrap();
                assert!(
                    (x - expected).abs() < 1e-10 * (1.0 + expected.abs()),
                    "{formula}, {name}: {x}, in R {expected}"
                );
            }
        }
        // New rows must have the same columns that these rows had in the fit.
        let few = frame.at(&[17, 3, 8]);
        let again = made(formula, &few, &mut states, false, contrasts).unwrap();
        assert_eq!(again.names, found.names, "{formula}");
        for (few, all) in again.columns.iter().zip(&found.columns) {
            for (x, row) in few.iter().zip([17, 3, 8]) {
                assert!(
                    (x - all[row]).abs() < 1e-12,
                    "{formula}: {x}, in the fit {}",
                    all[row]
                );
            }
        }
    }
}

#[test]
fn columns_are_those_of_r() {
    compare(include_str!("../data/designs.json"), Contrasts::Treatment);
}

#[test]
fn contrasts_are_those_of_r() {
    compare(include_str!("../data/designs_sum.json"), Contrasts::Sum);
    compare(
        include_str!("../data/designs_helmert.json"),
        Contrasts::Helmert,
    );
}

fn rest(column: &[f64], units: &[Vec<f64>]) -> (Vec<f64>, f64) {
    let mut rest = column.to_vec();
    // The projection runs twice, because rounding leaves a residual after the first run.
    for unit in units.iter().chain(units) {
        let along: f64 = unit.iter().zip(&rest).map(|(u, x)| u * x).sum();
        rest.iter_mut().zip(unit).for_each(|(x, u)| *x -= along * u);
    }
    let length = rest.iter().map(|x| x * x).sum::<f64>().sqrt();
    (rest, length)
}

fn basis(columns: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut units: Vec<Vec<f64>> = Vec::new();
    for column in columns {
        let (left, length) = rest(column, &units);
        if length > 1e-8 * rest(column, &[]).1 {
            units.push(left.into_iter().map(|x| x / length).collect());
        }
    }
    units
}

#[test]
fn columns_span_the_space_of_those_of_formulaic() {
    let frame = table();
    let rows: Vec<Value> =
        serde_json::from_str(include_str!("../data/designs_formulaic.json")).unwrap();
    assert!(rows.len() >= 60);
    for row in &rows {
        let formula = row["formula"].as_str().unwrap();
        let found = made(
            formula,
            &frame,
            &mut States::new(),
            true,
            Contrasts::Treatment,
        )
        .unwrap();
        let theirs: Vec<Vec<f64>> = serde_json::from_value(row["columns"].clone()).unwrap();
        let (own, other) = (basis(&found.columns), basis(&theirs));
        assert_eq!(own.len(), other.len(), "{formula}");
        for unit in &other {
            let (_, left) = rest(unit, &own);
            assert!(
                left < 1e-9,
                "{formula}: {left} of a column is not in the span"
            );
        }
    }
}
