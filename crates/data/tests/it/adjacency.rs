//! Tests graphs of regions. The same graph is read in three formats, and mistakes must cause clear messages.

use jensen_data::Adjacency;
use proptest::prelude::*;

fn parse(text: &str) -> Adjacency {
    Adjacency::parse(text.as_bytes(), "g").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn three_formats_of_one_graph() {
    // The graph is the path 1 - 2 - 3 with the additional node 4 next to 2.
    let expected = [vec![1], vec![0, 2, 3], vec![1], vec![1]];
    let texts = [
        "4\n1 1 2\n2 3 1 3 4\n3 1 2\n4 1 2\n",
        // In this text, nodes are numbered from 0, they are in another order, and everything is on one line.
        "4 # nodes\n2 1 1  0 1 1 1 3 0 2 3 3 1 1",
        r#"{"num": [1, 3, 1, 1], "adj": [2, 1, 3, 4, 2, 2], "N": 4}"#,
        "from,to\n1,2\n2,3\n4,2\n2,1\n",
        "0 1\n1 2\n3 1\n",
    ];
    for text in texts {
        let graph = parse(text);
        assert_eq!(graph.neighbours(), expected, "{text}");
        assert_eq!((graph.nodes(), graph.edges()), (4, 3));
    }
}

#[test]
fn mistakes_are_reported_with_their_location() {
    let cases = [
        (
            "3\n1 1 2\n2 1 1\n",
            "g:3:6: the file ends where one of 3 nodes",
        ),
        (
            "2\n1 1 x\n2 1 1\n",
            "g:2:5: expected the number of a node, found `x`",
        ),
        (
            "2\n1 1 3\n2 1 1\n",
            "g:2:5: there is no node 3: nodes are numbered from 1 to 2",
        ),
        (
            "2\n1 1 1\n2 1 1\n",
            "g:2:5: the node 1 is listed as its own neighbour",
        ),
        (
            "3\n1 2 2 2\n2 1 1\n3 0\n",
            "g:2:7: the neighbour 2 is listed twice",
        ),
        (
            "3\n1 1 2\n2 1 3\n3 1 2\n",
            "g:2:5: the node 1 lists 2 as a neighbour, but not the other way round",
        ),
        (
            "2\n1 1 2\n1 1 2\n",
            "g:3:1: the node 1 appears for the second time",
        ),
        ("2\n1 5 2\n", "g:2:3: 5 neighbours are too many"),
        ("1 2 3\n", "g:1:5: an edge is two numbers on one line"),
        ("2 2\n", "g:1:1: an edge joins two different nodes"),
        (
            r#"{"num": [1, 1], "adj": [2]}"#,
            "`num` adds up to 2 neighbours, but `adj` lists 1",
        ),
        (
            r#"{"num": [1, 0], "adj": [2]}"#,
            "the node 1 lists 2 as a neighbour",
        ),
        (r#"{"num": [1]}"#, "`adj` is missing"),
    ];
    for (text, expected) in cases {
        let message = Adjacency::parse(text.as_bytes(), "g")
            .unwrap_err()
            .to_string();
        assert!(message.contains(expected), "{text:?}: {message}");
    }
}

proptest! {
    #[test]
    fn whatever_the_text_reading_does_not_panic(text in "[0-4 ,\\n{}#a\":\\[\\]]{0,60}") {
        let _ = Adjacency::parse(text.as_bytes(), "g");
    }

    #[test]
    fn a_graph_read_back_is_the_graph_written(edges in proptest::collection::btree_set((0usize..9, 0usize..9), 1..20)) {
        let edges: Vec<(usize, usize)> = edges.into_iter().filter(|(a, b)| a != b).collect();
        let graph = Adjacency::from_edges(10, &edges).unwrap();
        let mut text = "10\n".to_string();
        for (i, list) in graph.neighbours().iter().enumerate() {
            let numbers: Vec<String> = list.iter().map(usize::to_string).collect();
            text += &format!("{i} {} {}\n", list.len(), numbers.join(" "));
        }
        prop_assert_eq!(parse(&text), graph);
    }
}
