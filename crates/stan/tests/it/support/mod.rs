//! Reads data for tests from JSON values.
#![allow(dead_code)] // Not every test file uses everything.

pub mod agreement;
pub mod corpus;

use std::collections::BTreeMap;
use std::sync::Arc;

use jensen_stan::NoIncludes;
use jensen_stan::check;
use jensen_stan::interpret::{BoundModel, DataSource, Elements, EvalError, Input, Interpreter};
use jensen_stan::program::Program;
use serde_json::Value;

/// Named numbers, arrays and tuples.
#[derive(Default)]
pub struct JsonData {
    entries: BTreeMap<String, Node>,
}

struct Node {
    shape: Vec<usize>,
    ints: Vec<i64>,
    reals: Vec<f64>,
    whole: bool,
    slots: Vec<Node>,
}

impl Node {
    fn read(value: &Value) -> Node {
        let mut node = Node {
            shape: Vec::new(),
            ints: Vec::new(),
            reals: Vec::new(),
            whole: true,
            slots: Vec::new(),
        };
        if let Value::Object(slots) = value {
            node.slots = slots.values().map(Node::read).collect();
            return node;
        }
        let mut at = value;
        while let Value::Array(list) = at {
            node.shape.push(list.len());
            match list.first() {
                Some(first) => at = first,
                None => break,
            }
        }
        node.push(value);
        node
    }

    fn push(&mut self, value: &Value) {
        match value {
            Value::Array(list) => list.iter().for_each(|v| self.push(v)),
            Value::String(text) => {
                self.whole = false;
                self.reals
                    .push(text.to_lowercase().parse().expect("a number"));
            }
            number => {
                self.whole &= number.is_i64();
                self.ints.push(number.as_i64().unwrap_or(0));
                self.reals.push(number.as_f64().expect("a number"));
            }
        }
    }

    fn input(&self) -> Input<'_> {
        let elements = if !self.slots.is_empty() {
            Elements::Tuple(self.slots.iter().map(Node::input).collect())
        } else if self.whole {
            Elements::Ints(&self.ints)
        } else {
            Elements::Reals(&self.reals)
        };
        Input {
            shape: &self.shape,
            elements,
        }
    }
}

impl JsonData {
    /// Parses the entries of a JSON object.
    pub fn parse(text: &str) -> JsonData {
        let value: Value = serde_json::from_str(text).expect("JSON");
        let entries = value.as_object().expect("an object");
        JsonData {
            entries: entries
                .iter()
                .map(|(name, value)| (name.clone(), Node::read(value)))
                .collect(),
        }
    }
}

impl DataSource for JsonData {
    fn get(&self, name: &str) -> Option<Input<'_>> {
        self.entries.get(name).map(Node::input)
    }

    fn names(&self) -> Vec<&str> {
        self.entries.keys().map(String::as_str).collect()
    }
}

/// Parses a program, which must not have errors.
pub fn program(source: &str) -> Arc<Program> {
    let checked = check(source, "model.stan", &NoIncludes);
    match checked.program {
        Some(program) => Arc::new(program),
        None => panic!("{}", checked.render(false)),
    }
}

/// Binds a program to its data.
pub fn bind(source: &str, data: &str) -> Result<BoundModel, Box<EvalError>> {
    Interpreter::default().bind(program(source), &JsonData::parse(data), &mut |_| {})
}

/// Returns the numbers of a JSON list.
pub fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|x| x.as_f64().expect("a number"))
        .collect()
}

/// Returns |a − b| relative to |b|, or to 1 if |b| is smaller.
pub fn error(a: f64, b: f64) -> f64 {
    (a - b).abs() / b.abs().max(1.0)
}
