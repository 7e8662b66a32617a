//! `jensen show`.

use jensen::data::read_text;
use jensen::program::Includes;
use jensen::stan::{self, pretty};

use crate::args::{ShowArgs, StageName};
use crate::density::{Terms, build};
use crate::failure::{CommandResult, Exit, Failure, print};

pub fn run(args: &ShowArgs) -> CommandResult {
    let name = args.model.display().to_string();
    let includes = Includes::of_folders(&args.build.include);
    let read = || Ok::<_, Failure>(stan::in_todays_syntax(read_text(&args.model)?));
    let text = match args.stage {
        StageName::Tokens => pretty::show_tokens(&read()?, &name, &includes),
        StageName::Ast => pretty::show_tree(&read()?, &name, &includes),
        StageName::Program => {
            let checked = stan::check(&read()?, &name, &includes);
            match &checked.program {
                Some(program) => pretty::print_program(program),
                None => return Err(Failure::input(checked.render(false))),
            }
        }
        StageName::Graph => {
            let model = build(&args.model, args.data.path(), &args.build, Terms::ALL)?;
            model.graph_density().graph().to_string()
        }
    };
    print(&text)?;
    Ok(Exit::Done)
}
