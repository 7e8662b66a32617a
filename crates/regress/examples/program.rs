//! Writes the program and the data of a regression: `program TABLE PREFIX FAMILY FORMULA…`.

use jensen_data::Table;
use jensen_regress::{Frame, Regression, Request, program};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, prefix, family, formulas @ ..] = arguments.as_slice() else {
        panic!("TABLE PREFIX FAMILY FORMULA…");
    };
    let table = Table::read(table.as_ref()).expect("a table");
    let request = Request {
        formulas: formulas.to_vec(),
        family: Some(family.clone()),
        ..Request::default()
    };
    let made = Regression::new(&request, &Frame::of_table(&table))
        .and_then(|regression| program(&regression));
    match made {
        Ok(made) => {
            std::fs::write(format!("{prefix}.stan"), made.text).expect("a place to write to");
            std::fs::write(format!("{prefix}.json"), made.data.to_json())
                .expect("a place to write to");
        }
        Err(error) => println!("error: {error}"),
    }
}
