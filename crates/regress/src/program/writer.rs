//! A program under construction, with its blocks and its data.

use std::collections::BTreeSet;

use jensen_data::{Coordinates, DataSet, Labels, Value};

use super::groups::Part;
use crate::prior::Priors;
use crate::regression::Regression;

/// A block of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// The functions block.
    Functions,
    /// The data block.
    Data,
    /// The transformed data block.
    Known,
    /// The parameters block.
    Parameters,
    /// The transformed parameters block.
    Derived,
    /// The model block.
    Model,
    /// The generated quantities block.
    Generated,
}

const BLOCKS: [(Block, &str); 7] = [
    (Block::Functions, "functions"),
    (Block::Data, "data"),
    (Block::Known, "transformed data"),
    (Block::Parameters, "parameters"),
    (Block::Derived, "transformed parameters"),
    (Block::Model, "model"),
    (Block::Generated, "generated quantities"),
];

/// A program under construction.
pub struct Writer<'a> {
    pub regression: &'a Regression,
    pub priors: Priors,
    pub data: DataSet,
    pub coordinates: Coordinates,
    pub shown: Vec<String>,
    /// Correlated group effects of several parameters, keyed by the name that these effects share.
    pub joint: Vec<(String, Vec<Part>)>,
    /// Whether the program predicts new rows. In that case it reads parameters from the draws and has no priors.
    pub predicting: bool,
    lines: Vec<(Block, String)>,
    declared: BTreeSet<String>,
    /// The names of data variables with one value per row.
    pub by_row: BTreeSet<String>,
    names: Vec<(String, String)>,
}

impl<'a> Writer<'a> {
    pub fn new(regression: &'a Regression, priors: Priors) -> Self {
        let mut writer = Self {
            regression,
            priors,
            data: DataSet::new(),
            coordinates: Coordinates::default(),
            shown: Vec::new(),
            joint: Vec::new(),
            predicting: false,
            lines: Vec::new(),
            declared: BTreeSet::new(),
            by_row: BTreeSet::from(["N".to_owned()]),
            names: Vec::new(),
        };
        writer.int("N", "", regression.rows.len(), "rows");
        writer
    }

    /// Adds a line to a block.
    pub fn line(&mut self, block: Block, text: impl Into<String>) {
        self.lines.push((block, text.into()));
    }

    /// Adds a prior to the model block and to `lprior`.
    pub fn prior(&mut self, target: &str, density: &str) {
        self.line(Block::Model, format!("{target} ~ {density};"));
        let inside = density
            .strip_suffix(')')
            .and_then(|rest| rest.split_once('('));
        let (name, arguments) = inside.unwrap_or((density, ""));
        self.priors
            .terms
            .push(format!("{name}_lpdf({target} | {arguments})"));
    }

    fn datum(&mut self, kind: &str, name: &str, comment: &str, value: Option<Value>) {
        let Some(value) = value else { return };
        if self.declared.insert(name.to_owned()) {
            let comment = match comment {
                "" => String::new(),
                comment => format!(" // {}", comment.replace(['\n', '\r'], " ")),
            };
            self.line(Block::Data, format!("{kind} {name};{comment}"));
            self.data.insert(name, value);
            if kind.contains("[N") {
                self.by_row.insert(name.to_owned());
            }
        }
    }

    /// Declares an integer in the data.
    pub fn int(&mut self, name: &str, bounds: &str, value: usize, comment: &str) {
        let bounds = if bounds.is_empty() {
            "<lower=0>"
        } else {
            bounds
        };
        self.datum(
            &format!("int{bounds}"),
            name,
            comment,
            Some(Value::int(value as i64)),
        );
    }

    /// Declares a number in the data.
    pub fn real(&mut self, name: &str, bounds: &str, value: f64, comment: &str) {
        self.datum(
            &format!("real{bounds}"),
            name,
            comment,
            Some(Value::real(value)),
        );
    }

    /// Declares a vector of numbers in the data.
    pub fn vector(&mut self, name: &str, kind: &str, values: Vec<f64>, comment: &str) {
        let value = Value::reals(vec![values.len()], values).ok();
        self.datum(kind, name, comment, value);
    }

    /// Declares several integers in the data.
    pub fn ints(&mut self, name: &str, kind: &str, values: Vec<i64>, comment: &str) {
        let value = Value::ints(vec![values.len()], values).ok();
        self.datum(kind, name, comment, value);
    }

    /// Declares a matrix with these columns in the data.
    pub fn matrix(
        &mut self,
        name: &str,
        kind: &str,
        columns: &[Vec<f64>],
        rows: usize,
        comment: &str,
    ) {
        let mut values = Vec::with_capacity(rows * columns.len());
        for row in 0..rows {
            values.extend(columns.iter().map(|column| column[row]));
        }
        let value = Value::reals(vec![rows, columns.len()], values).ok();
        self.datum(kind, name, comment, value);
    }

    /// Declares columns of numbers in the data as an array of rows. The elements are integers if `kind` says so.
    pub fn table(&mut self, name: &str, kind: &str, columns: &[Vec<f64>], comment: &str) {
        let rows = columns.first().map_or(0, Vec::len);
        let mut values = Vec::with_capacity(rows * columns.len());
        for row in 0..rows {
            values.extend(columns.iter().map(|column| column[row]));
        }
        let shape = vec![rows, columns.len()];
        let value = match kind.contains(" int") {
            true => Value::ints(shape, values.iter().map(|x| *x as i64).collect()),
            false => Value::reals(shape, values),
        };
        self.datum(kind, name, comment, value.ok());
    }

    /// Adds labels for the positions along a dimension.
    pub fn label(&mut self, dimension: &str, labels: Labels) {
        self.coordinates.coords.insert(dimension.to_owned(), labels);
    }

    /// Names the dimensions of a variable, and labels the positions along each of them.
    pub fn dims(&mut self, variable: &str, dims: &[(&str, Vec<String>)]) {
        let names = dims.iter().map(|(name, _)| Some((*name).to_owned()));
        self.coordinates
            .dims
            .insert(variable.to_owned(), names.collect());
        for (name, labels) in dims {
            self.label(name, Labels::Words(labels.clone()));
        }
    }

    /// Converts a name in the table to characters that a Stan name may contain. If two names would become equal,
    /// numbers are added to distinguish them.
    pub fn identifier(&mut self, name: &str) -> String {
        if let Some((_, known)) = self.names.iter().find(|(other, _)| other == name) {
            return known.clone();
        }
        let words = name.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let plain = words.join("_");
        let taken = |text: &str| self.names.iter().any(|(_, known)| known == text);
        let mut made = plain.clone();
        let mut number = 2;
        while made.is_empty() || taken(&made) {
            made = format!("{plain}{number}");
            number += 1;
        }
        self.names.push((name.to_owned(), made.clone()));
        made
    }

    /// Removes all lines of a block.
    pub fn clear(&mut self, block: Block) {
        self.lines.retain(|(of, _)| *of != block);
    }

    /// Returns the text of the program.
    pub fn text(&self, heading: &str) -> String {
        let mut text = heading.to_owned();
        for (block, name) in BLOCKS {
            let mut lines = self.lines.iter().filter(|(of, _)| *of == block).peekable();
            if lines.peek().is_none() {
                continue;
            }
            text += &format!("{name} {{\n");
            for (_, line) in lines {
                for part in line.trim_start_matches('\n').lines() {
                    let indent = if block == Block::Functions { "" } else { "  " };
                    text += &format!("{indent}{part}\n");
                }
            }
            text += "}\n";
        }
        text
    }
}
