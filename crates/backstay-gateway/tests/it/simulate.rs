//! Faults that callers ask for: what they change for the one call, and that they change nothing else.

use std::sync::Arc;

use backstay_gateway::simulate::{Playing, Simulator};
use backstay_mock::{Mock, Settings};
use backstay_wire::Dialect;
use tokio::sync::OnceCell;

use crate::client::Seen;
use crate::told;
use crate::world::{HELLO, Setup, World, pairs, provider, request, short};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"6s\"\nmax_output_tokens = 300\nmax_attempts = 3";

/// A mock that starts when it is needed.
#[derive(Debug, Default)]
struct Played(OnceCell<Mock>);

impl Simulator for Played {
    fn check(&self, order: &str) -> Result<(), String> {
        Mock::can_play(order)
    }

    fn play<'a>(&'a self, order: &'a str, model: &'a str, dialect: Dialect) -> Playing<'a> {
        Box::pin(async move {
            let mock = self.0.get_or_try_init(|| Mock::start(Settings::default())).await?;
            mock.script(model, &[order]);
            let base = match dialect {
                Dialect::OpenaiChat => mock.openai_base(),
                Dialect::Anthropic => mock.anthropic_base(),
            };
            base.parse().map_err(std::io::Error::other)
        })
    }
}

fn setup() -> Setup {
    Setup::new().simulator(Arc::new(Played::default()))
}

async fn ask(world: &World, headers: &[(&str, &str)]) -> Seen {
    world.ask_with(OPENAI, headers, &request(OPENAI, "main", HELLO)).await
}

/// What the row of a call says of faults.
fn row(world: &World, seen: &Seen) -> String {
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    row.expect("a log").expect("a row").simulated
}

fn simulating(order: &str) -> [(&str, &str); 1] {
    [("x-backstay-simulate", order)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_stands_in_for_the_first_tier_and_the_next_one_is_real() {
    let mut setup = setup();
    for (caller, target) in pairs() {
        let name = format!("{}{}", short(caller), short(target));
        setup = setup.backed(&name, provider(target), &["healthy"], ROUTE);
    }
    let world = setup.start().await;
    for (caller, target) in pairs() {
        let name = format!("{}{}", short(caller), short(target));
        let headers = simulating("status-503");
        let seen = world.ask_with(caller, &headers, &request(caller, &name, HELLO)).await;
        assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"), "{name}");
        assert!(seen.header("x-backstay-notes").contains("simulated status-503"), "{name}");
        let (first, second) = (format!("{name}-1"), format!("{name}-2"));
        assert_eq!((world.log(&first).len(), world.log(&second).len()), (0, 1), "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_kept_of_a_fault_but_its_row() {
    let world = setup().backed("main", "openai", &["healthy"], ROUTE).start().await;
    for _ in 0..7 {
        let seen = ask(&world, &simulating("quota-429")).await;
        assert_eq!(
            (seen.header("x-backstay-tier"), row(&world, &seen).as_str()),
            ("2", "quota-429")
        );
    }
    let seen = ask(&world, &[]).await;
    assert_eq!(seen.header("x-backstay-tier"), "1", "the real target is untouched");
    assert_eq!(row(&world, &seen), "");
    let standings = world.engine().standings();
    assert!(standings.iter().all(|standing| standing.target != "simulated"), "{standings:?}");
    let metrics = world.get("/metrics").await.text();
    let real = metrics.lines().filter(|line| line.contains("route=\"main\""));
    let calls = real.filter(|line| line.starts_with("backstay_calls_total"));
    assert!(calls.clone().count() == 1 && calls.clone().all(|line| line.ends_with(" 1")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_for_some_attempts_is_healthy_after_them() {
    let world = setup().backed("main", "openai", &["healthy"], ROUTE).start().await;
    for order in ["status-500@1", "status-500; times=1", "status-500-once", "status-500+times=1"] {
        let seen = ask(&world, &simulating(order)).await;
        let told = (seen.status, seen.attempts(), seen.header("x-backstay-tier"));
        assert_eq!(told, (200, 2, "1"), "{order}");
    }
    assert_eq!((world.log("main-1").len(), world.log("main-2").len()), (0, 0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_that_nobody_knows_is_a_400_that_names_the_nearest() {
    let world = setup().backed("main", "openai", &["healthy"], ROUTE).start().await;
    for (order, words) in [
        ("stream-cutt", "the nearest is `stream-cut`"),
        ("status-500+colour=red", "is no parameter of `status-500`"),
        ("", "no behaviour is called ``"),
    ] {
        let seen = ask(&world, &simulating(order)).await;
        assert_eq!(told::not_typed(OPENAI, &seen, 400, "invalid_request"), [""; 0], "{order}");
        assert!(seen.text().contains(words), "{order}: {}", seen.text());
    }
    assert!(world.log("main-1").is_empty());
    world.stop().await;
    let without = Setup::new().backed("main", "openai", &["healthy"], ROUTE).start().await;
    let seen = ask(&without, &simulating("status-503")).await;
    assert_eq!(told::not_typed(OPENAI, &seen, 400, "invalid_request"), [""; 0]);
    without.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_there_are_keys_only_a_developers_may() {
    let keys = "[keys.app]\ntoken = \"app-token-1\"\n[keys.dev]\ntoken = \"dev-token-1\"\ndev = true\n\
        tokens_per_day = 5000\n";
    let world = setup().tables(keys).backed("main", "openai", &["healthy"], ROUTE).start().await;
    let order = ("x-backstay-simulate", "status-500@1");
    let seen = ask(&world, &[("authorization", "Bearer app-token-1"), order]).await;
    assert_eq!(told::not_typed(OPENAI, &seen, 403, "forbidden"), [""; 0]);
    assert!(seen.text().contains("dev = true"), "{}", seen.text());
    // Its day would not bear one of them: 20,000 tokens.
    let order = ("x-backstay-simulate", "healthy+prompt_tokens=20000");
    for _ in 0..2 {
        let seen = ask(&world, &[("authorization", "Bearer dev-token-1"), order]).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
    }
    world.stop().await;
}
