//! Holds the numbers of docs/breaker.md to the code: the same harness in brief, and the page's own
//! tables in full where they are quick enough.

use std::fs;
use std::path::Path;

#[path = "../examples/breaker/simulate.rs"]
mod simulate;
#[path = "../examples/breaker/table.rs"]
mod table;

use simulate::Traffic;
use table::Effort;

const BRIEF: Effort = Effort { days: 2, trials: 41 };

#[test]
fn the_default_rule_opens_far_less_often_for_nothing_than_the_bare_one() {
    let traffic = |rate, failing| Traffic { rate, failing };
    for (rate, failing, bare_at_least, default_at_most) in [
        (0.2, 0.05, 50.0, 10.0),
        (1.0, 0.05, 5.0, 2.0),
        (1.0, 0.08, 100.0, 40.0),
        (5.0, 0.05, 0.0, 1.0),
    ] {
        let [bare, _, surely, default] = table::false_openings(traffic(rate, failing), BRIEF);
        assert!(bare >= bare_at_least, "{rate} {failing}: bare {bare}");
        assert!(default <= default_at_most, "{rate} {failing}: default {default}");
        assert!(surely <= default_at_most, "{rate} {failing}: surely {surely}");
    }
}

#[test]
fn a_total_outage_opens_it_within_five_calls_at_any_traffic() {
    for (rate, most) in [(0.2, 45.0), (1.0, 9.0), (5.0, 1.8)] {
        let [_, _, surely, default] = table::times_to_open(rate, 1.0, BRIEF);
        let default = default.unwrap();
        assert!(default <= most, "{rate}: {default}");
        assert!(surely.is_none_or(|surely| surely > default), "{rate}: the row is what is quick");
    }
    // A third failing at 0.2 calls a second: the stretch sees it in minutes, a plain window in an
    // hour or not.
    let [_, _, surely, default] = table::times_to_open(0.2, 0.3, BRIEF);
    assert!(default.unwrap() < 200.0 && surely.is_none_or(|surely| surely > 300.0));
}

#[test]
fn the_page_has_every_row_of_the_tables_and_the_command_that_prints_them() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/breaker.md");
    let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(page.contains("cargo run --release -p backstay-decide --example breaker"));
    let first = |line: &str| line.split('|').nth(1).map(|cell| cell.trim().to_owned());
    for line in
        table::all(Effort { days: 0, trials: 0 }).lines().filter(|line| line.starts_with("| "))
    {
        let cell = first(line).unwrap();
        let told = page
            .lines()
            .filter(|line| line.starts_with("| "))
            .any(|row| first(row).unwrap() == cell);
        assert!(
            told,
            "docs/breaker.md has no row `{cell}`: run the command and put its tables there"
        );
    }
}
