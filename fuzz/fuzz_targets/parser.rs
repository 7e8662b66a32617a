//! Programs: lexer, parser, checker, the tree as it is printed, and what lowering refuses.
#![no_main]

use std::sync::Arc;

use jensen_stan::lower::refusals;
use jensen_stan::{NoIncludes, check, pretty};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let checked = check(text, "x.stan", &NoIncludes);
    drop(checked.render(false));
    drop(pretty::show_tree(text, "x.stan", &NoIncludes));
    if let Some(program) = checked.program {
        drop(refusals(&Arc::new(program)));
    }
});
