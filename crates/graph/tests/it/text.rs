//! Tests the text form: printing, parsing back, and malformed texts.

use crate::random_graphs::{build, config, noise, recipes};
use jensen_graph::{Graph, evaluate};
use proptest::prelude::*;

fn gradient_graph(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let z = graph.input_node(0);
    let value = graph.outputs()[0];
    let gradient = graph.gradient(value, &[z])[0];
    graph.set_outputs(vec![value, gradient]);
    graph
}

fn with_records() -> Graph {
    let mut graph = Graph::new();
    let z = graph.input(3);
    let shared = graph.shared_input(2);
    let x = graph.record(&[0.5, f64::INFINITY, -0.0, 1e-310, 1.0 / 3.0, -2.5e300], 2);
    let column = graph.record_indices(&[2, 0, 1]);
    let picked = graph.gather_record(z, column);
    let count = graph.records_in_batch();
    let terms = [picked, x].map(|x| graph.sum(x));
    let spread = graph.sum(shared);
    let total = graph.add_all(&[terms[0], terms[1], count, spread]);
    graph.set_outputs(vec![total]);
    graph
}

proptest! {
    #![proptest_config(config(300, 5))]

    #[test]
    fn printed_graphs_parse_to_the_same_graph(recipe in recipes(30)) {
        let graph = gradient_graph(&build(&recipe));
        let text = graph.to_string();
        let parsed = Graph::parse(&text).expect("printed graphs parse");
        prop_assert_eq!(parsed.len(), graph.len());
        prop_assert_eq!(parsed.to_string(), text);
        let z = noise(recipe.dim, 5);
        let bits = |graph: &Graph| -> Vec<u64> {
            evaluate(graph, &[&z], None).concat().iter().map(|x| x.to_bits()).collect()
        };
        prop_assert_eq!(bits(&parsed), bits(&graph));
        // A parsed graph can be extended, and equal expressions are recognised as in any other graph.
        let mut more = parsed;
        let before = more.len();
        let z = more.input_node(0);
        prop_assert_eq!((more.len(), z.index()), (before, 0));
    }

    #[test]
    fn any_text_is_answered(text in "(?s).{0,200}") {
        if let Err(error) = Graph::parse(&text) {
            prop_assert!(error.line >= 1 && !error.message.is_empty());
        }
    }

    #[test]
    fn damaged_texts_are_answered(
        recipe in recipes(12),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..6_u8, "[ -~]"), 1..5),
    ) {
        let text = gradient_graph(&build(&recipe)).to_string() + &with_records().to_string();
        // Half of the texts contain only one graph, so that the test also damages its inner parts.
        let text = if recipe.dim % 2 == 0 {
            with_records().to_string()
        } else {
            text
        };
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        for (at, kind, letter) in damage {
            let k = at.index(lines.len());
            let chars: Vec<char> = lines[k].chars().collect();
            let j = at.index(chars.len() + 1).min(chars.len());
            match kind {
                0 => {
                    lines.remove(k);
                }
                1 => lines.swap(k, 0),
                2 => lines[k] = chars[..j].iter().collect(),
                3 => lines[k] = chars[..j].iter().chain([&' ']).chain(&chars[j..]).collect(),
                4 => lines[k] = lines[k].replacen(['1', '2', '3'], &letter, 1),
                _ => lines[k] = lines[k].replacen(['[', ']', '%', '='], &letter, 1),
            }
            if lines.is_empty() {
                break;
            }
        }
        if let Ok(graph) = Graph::parse(&lines.join("\n")) {
            prop_assert!(jensen_graph::verify::verify(&graph).is_ok());
        }
    }
}

#[test]
fn numbers_come_back_bit_for_bit() {
    let numbers = [
        0.0,
        -0.0,
        0.1,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        f64::from_bits(0x7ff0_0000_0000_0001),
    ];
    let mut graph = Graph::new();
    let table = graph.vector(&numbers);
    graph.set_outputs(vec![table]);
    let parsed = Graph::parse(&graph.to_string()).expect("printed graphs parse");
    let back = parsed.constant_value(table).expect("a constant");
    let bits = |numbers: &[f64]| -> Vec<u64> { numbers.iter().map(|x| x.to_bits()).collect() };
    assert_eq!(bits(back), bits(&numbers));
}

#[test]
fn record_columns_and_shared_inputs_print() {
    let text = with_records().to_string();
    let expected = "\
r0 = values 2 [0.5, inf, -0.0, 1e-310, 0.3333333333333333, -2.5e300]
r1 = indices [2, 0, 1]
in0 = lane [3]
in1 = shared [2]
%0: [3] lane = input in0
%1: [2] shared = input in1
%2: [2/record] shared = record r0
%3: [1/record] lane = gather_record r1 %0
%4: [] shared = record_count
%5: [] lane = sum %3
%6: [] shared = sum %2
%7: [] shared = sum %1
%8: [] lane = add %5 %6
%9: [] shared = add %4 %7
%10: [] lane = add %8 %9
outputs %10
";
    assert_eq!(text, expected);
    assert_eq!(
        Graph::parse(&text)
            .expect("printed graphs parse")
            .to_string(),
        text
    );
}

#[test]
fn parsing_does_not_simplify() {
    let text = "\
# 0 + z, twice
c0 = [0.0]
c1 = [0.0]
in0 = lane [2]

%0: [2] lane = input in0
%1: [] constant = const c0
%2: [2] lane = add %0 %1 @4
%3: [2] lane = add %0 %1
outputs %2 %3
";
    let graph = Graph::parse(text).expect("well formed");
    assert_eq!(graph.len(), 4);
    let sites: Vec<u32> = graph.ids().map(|id| graph.node(id).site).collect();
    assert_eq!(sites, [0, 0, 4, 0]);
}

#[test]
fn long_tables_are_cut_short_in_summaries_only() {
    let mut graph = Graph::new();
    let table = graph.vector(&noise(1000, 1));
    graph.set_outputs(vec![table]);
    let summary = graph.summary().to_string();
    assert!(summary.len() < 400, "{summary}");
    assert!(summary.contains("… 1000 in all"), "{summary}");
    assert!(Graph::parse(&summary).is_err());
    assert!(Graph::parse(&graph.to_string()).is_ok());
}

#[test]
fn mistakes_are_named_with_their_line() {
    let good = "\
c0 = [1.0, 2.0]
i0 = [0, 1, 1]
r0 = values 1 [1.0, 2.0]
r1 = indices [0, 1]
in0 = lane [2]
%0: [2] lane = input in0
%1: [2] constant = const c0
%2: [3] lane = gather i0 %0
%3: [4] lane = matmul m=2 k=1 n=2 %0 %1
%4: [2] lane = scatter i0:%2 all:%1
outputs %0
";
    assert_eq!(Graph::parse(good).err(), None);
    let cases = [
        ("c0 = [1.0, 2.0]", "c1 = [1.0, 2.0]", 1, "expected `c0`"),
        ("c0 = [1.0, 2.0]", "c0 = [1.0, x]", 1, "found `x`"),
        ("c0 = [1.0, 2.0]", "c0 = 1.0", 1, "brackets"),
        ("[0, 1, 1]", "[0, -1, 1]", 2, "whole number"),
        ("[0, 1, 1]", "[0, 2, 1]", 8, "index 2 is out of range"),
        ("values 1 [1.0", "values 3 [1.0", 3, "whole records"),
        ("indices [0, 1]", "indices [0]", 4, "1 records"),
        ("lane [2]\n%0", "constant [2]\n%0", 5, "an input is"),
        ("%0: [2] lane", "%1: [2] lane", 6, "expected `%0:`"),
        ("%0: [2] lane", "%0: [3] lane", 6, "shape"),
        ("%0: [2] lane", "%0: [2] shared", 6, "is lane, not shared"),
        ("input in0", "input in1", 6, "no `in1`"),
        ("input in0", "put in0", 6, "no operation is called `put`"),
        ("const c0", "const c9", 7, "no `c9`"),
        ("gather i0 %0", "gather i0", 8, "0 arguments"),
        ("gather i0 %0", "gather i0 %2", 8, "no `%2`"),
        ("m=2 k=1", "m=2 k=2", 9, "factor"),
        ("m=2 k=1", "m=99999 k=99999", 9, "too large"),
        ("all:%1", "%1", 10, "expected `map:%node`"),
        ("all:%1", "r0:%1", 10, "source"),
        ("outputs %0", "outputs %5", 11, "no `%5`"),
        (
            "outputs %0",
            "%5: [] lane = sum %0",
            11,
            "without a line of outputs",
        ),
        (
            "outputs %0",
            "outputs %0\nc1 = []",
            12,
            "nothing may follow",
        ),
    ];
    for (from, to, line, message) in cases {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        let error = Graph::parse(&text).expect_err(to);
        assert!(
            error.line == line && error.message.contains(message),
            "{to}: {error}, expected line {line}: {message}"
        );
    }
}
