//! The `jensen` command.

use std::process::ExitCode;

#[global_allocator]
static MEMORY: jensen_cli::Memory = jensen_cli::Memory;

fn main() -> ExitCode {
    ExitCode::from(jensen_cli::main(std::env::args_os()))
}
