//! Backstay's way, in turns with the peers.

use std::hint::black_box;

use backstay::validate::Schema;
use jsonmend::{Mender, Policy, Status};

use crate::{WINDOWS, best, median, peers, reply, rounds, time};

pub(crate) fn measure(text: &str) {
    let schema = Schema::compile(&reply::schema()).expect("a schema");
    let mender = Mender::new(Policy::standard());
    let outcome = mender.mend(text, Status::Stopped);
    let node = outcome.document().and_then(|document| document.root(text)).expect("a value");
    assert!(schema.check_node(node).is_ok(), "the reply must fit");
    let run = || {
        let outcome = mender.mend(black_box(text), Status::Stopped);
        let node = outcome.document().and_then(|document| document.root(text)).expect("a value");
        black_box(schema.check_node(node).is_ok());
    };
    let (validator, rounds) = (peers::validator(), rounds(text));
    let turns: Vec<(f64, f64)> = (0..WINDOWS)
        .map(|_| (time(rounds, || peers::run(text, &validator)), time(rounds, run)))
        .collect();
    let ratio = median(turns.iter().map(|(peers, ours)| ours / peers).collect());
    let whole = median(turns.iter().map(|(_, ours)| *ours).collect());
    let parse = best(rounds, || {
        black_box(mender.mend(black_box(text), Status::Stopped));
    });
    let check = best(rounds, || {
        black_box(schema.check_node(black_box(node)).is_ok());
    });
    println!(
        "              ours  {whole:>8.2} µs ({parse:.2} + {check:.2}), x{ratio:.2} of the peers"
    );
}
