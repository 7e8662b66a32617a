//! Files of result folders; the first byte says which.
#![no_main]

use jensen_data::FitSummary;
use jensen_graph::Graph;
use jensen_run::Checkpoint;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((file, bytes)) = bytes.split_first() else {
        return;
    };
    match file % 3 {
        0 => {
            // What is read is written as it was, up to the order of its parts.
            if let Ok(checkpoint) = Checkpoint::decode(bytes) {
                let again = Checkpoint::decode(&checkpoint.encode()).expect("its own bytes");
                assert_eq!(again.encode(), checkpoint.encode());
            }
        }
        1 => {
            if let Ok(summary) = serde_json::from_slice::<FitSummary>(bytes) {
                drop(serde_json::to_string(&summary).expect("a summary is JSON"));
            }
        }
        _ => {
            let text = String::from_utf8_lossy(bytes);
            if let Ok(graph) = Graph::parse(&text) {
                let again = Graph::parse(&graph.to_string()).expect("its own text");
                assert_eq!(again.to_string(), graph.to_string());
            }
        }
    }
});
