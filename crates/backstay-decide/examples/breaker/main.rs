//! Measures the breaker's rule beside simpler ones, over simulated days: how often it opens though
//! nothing is wrong, and how soon it opens when something is.
//!
//! ```text
//! cargo run --release -p backstay-decide --example breaker
//! ```
#![expect(clippy::print_stdout, reason = "its table is its result")]

mod simulate;
mod table;

fn main() {
    print!("{}", table::all(table::Effort { days: 60, trials: 201 }));
}
