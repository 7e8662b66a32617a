//! The `jensen` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(jensen_cli::main(std::env::args_os()))
}
