//! Streams: what breaks before the first content is rerouted unseen, what breaks after it is told
//! once inside the stream, and nothing that is cut ever ends like something whole.

use backstay_wire::Dialect;
use futures_util::future::join_all;
use serde_json::Value;

use crate::client::Seen;
use crate::told::{self, Told};
use crate::world::{
    BOTH, HELLO, Setup, TICKET, TRIAGE, World, pairs, provider, request, short, streamed, triaged,
};

pub(crate) const ROUTE: &str = "deadline = \"6s\"\n\
    timeouts = { connect = \"500ms\", first_token = \"600ms\", gap = \"400ms\", total = \"3s\" }\n\
    max_output_tokens = 600";

/// How a stream ends that was released.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// Whole, with the text a healthy provider would have sent.
    Whole,
    /// With one error of this code.
    Broken(&'static str),
    /// With one error, whose code the provider's dialect decides: `OpenAI`'s, Anthropic's.
    Either(&'static str, &'static str),
}

use Ends::{Broken, Either, Whole};

#[rustfmt::skip]
const RELEASED: &[(&str, Ends)] = &[
    ("healthy",            Whole),
    ("byte-drip",          Whole),
    ("crlf",               Whole),
    ("no-done",            Whole),
    ("double-terminal",    Whole),
    ("loop+n=20",          Whole),
    ("stream-cut",         Broken("provider_stream_cut")),
    ("short-body",         Broken("provider_stream_cut")),
    ("stream-end-early",   Broken("provider_stream_cut")),
    ("no-finish",          Broken("provider_stream_cut")),
    ("null-finish",        Broken("provider_stream_cut")),
    ("stream-stall",       Broken("provider_stream_stalled")),
    ("hang-body",          Broken("provider_stream_stalled")),
    ("malformed-chunk",    Broken("reply_malformed")),
    // What goes on behind its finish is either cut there or was not finished: nobody can tell.
    ("content-after-finish", Broken("reply_malformed")),
    ("unknown-finish",     Broken("reply_unknown_finish")),
    ("healthy+n=90+gap=50ms", Broken("provider_total_timeout")),
    ("error-event",        Either("provider_error", "provider_overloaded")),
];

/// Behaviours that are each played between every caller and every target, by a route of their own.
struct Grid {
    /// What its routes' names begin with.
    kind: &'static str,
    behaviours: Vec<String>,
}

/// [`Setup::alone`] or [`Setup::backed`].
type Added = fn(Setup, &str, &str, &[&str], &str) -> Setup;

impl Grid {
    fn of(kind: &'static str, behaviours: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { kind, behaviours: behaviours.into_iter().map(Into::into).collect() }
    }

    fn name(&self, at: usize, caller: Dialect, target: Dialect) -> String {
        format!("{}{at}-{}{}", self.kind, short(caller), short(target))
    }

    fn cells(&self) -> impl Iterator<Item = (usize, Dialect, Dialect)> {
        (0..self.behaviours.len())
            .flat_map(|at| pairs().map(move |(caller, target)| (at, caller, target)))
    }

    /// The world with all its routes, each `added` with what stands in `route`.
    async fn start(&self, added: Added, route: &str) -> World {
        let setup = self.cells().fold(Setup::new(), |setup, (at, caller, target)| {
            let name = self.name(at, caller, target);
            added(setup, &name, provider(target), &[&self.behaviours[at]], route)
        });
        setup.start().await
    }

    /// Plays all of it at once. Returns everything that `one` finds wrong with a route of that name.
    async fn play(
        &self,
        one: impl AsyncFn(usize, Dialect, Dialect, &str) -> Vec<String>,
    ) -> String {
        let calls = self.cells().map(async |(at, caller, target)| {
            let name = self.name(at, caller, target);
            let wrongs = one(at, caller, target, &name).await;
            let told =
                wrongs.into_iter().map(|wrong| format!("{} {name}: {wrong}", self.behaviours[at]));
            told.collect::<Vec<_>>()
        });
        join_all(calls).await.concat().join("\n")
    }
}

/// What is wrong with a stream that must be whole.
pub(crate) fn not_whole(seen: &Seen, told: &Told) -> Vec<String> {
    let mut wrongs = Vec::new();
    if seen.status != 200 || !seen.header("content-type").starts_with("text/event-stream") {
        wrongs.push(format!("status {} {}", seen.status, seen.text()));
    }
    let ends = told.ends();
    if ends != told::WHOLE {
        wrongs.push(format!("terminals, errors, late, broken: {ends:?}: {}", seen.text()));
    }
    if told.finish.is_none() || told.text.is_empty() {
        wrongs.push(format!("no finish or no text: {told:?}"));
    }
    wrongs
}

/// What is wrong with a stream that must end in one error.
pub(crate) fn not_broken(dialect: Dialect, seen: &Seen, told: &Told, code: &str) -> Vec<String> {
    let mut wrongs = Vec::new();
    if (told.terminals, told.late, told.errors.len()) != (0, 0, 1) {
        wrongs.push(format!("not one error at the end: {}", seen.text()));
        return wrongs;
    }
    wrongs.extend(told::not_an_error(dialect, &told.errors[0], code));
    if seen.status != 200 || seen.header("x-backstay-tier") != "1" {
        wrongs.push(format!("status {} {:?}", seen.status, seen.headers));
    }
    wrongs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_released_stream_is_whole_or_ends_in_exactly_one_error_of_the_callers_dialect() {
    // A drip of single bytes takes its time on a busy machine.
    let route = ROUTE.replace("\"600ms\"", "\"2s\"").replace("\"400ms\"", "\"900ms\"");
    let sized = |behaviour: &str| {
        let size = if behaviour.contains('+') { "" } else { "+size=400" };
        format!("{behaviour}{size}")
    };
    let grid = Grid::of("s", RELEASED.iter().map(|row| sized(row.0)));
    let world = grid.start(Setup::backed, &route).await;
    let one = async |at: usize, caller: Dialect, target: Dialect, name: &str| {
        let (_, ends) = RELEASED[at];
        let seen = world.ask(caller, &streamed(request(caller, name, HELLO))).await;
        let told = told::stream(caller, &seen);
        let code = match ends {
            Whole => "",
            Broken(code) => code,
            Either(openai, _) if target == Dialect::OpenaiChat => openai,
            Either(_, anthropic) => anthropic,
        };
        let mut wrongs = match ends {
            Whole => not_whole(&seen, &told),
            Broken(_) | Either(..) => not_broken(caller, &seen, &told, code),
        };
        if told.text.is_empty() {
            wrongs.push("nothing of the text came".into());
        }
        let (first, second) =
            (world.settled_log(&format!("{name}-1")).await, world.log(&format!("{name}-2")));
        if (first.len(), second.len()) != (1, 0) {
            wrongs.push(format!("{} and {} requests", first.len(), second.len()));
        }
        wrongs
    };
    let wrongs = grid.play(one).await;
    world.stop().await;
    assert!(wrongs.is_empty(), "{wrongs}");
}

/// Failures before the first content, and the requests to the first of two tiers.
#[rustfmt::skip]
const GATED: &[(&str, usize)] = &[
    ("status-500", 2),
    ("reset", 2),
    ("silence", 1),
    ("keepalive-forever", 1),
    ("stream-cut+at=0", 2),
    ("stream-end-early+at=0", 2),
    ("stream-stall+at=0", 1),
    ("malformed-chunk+at=0", 2),
    ("error-event+at=0", 2),
    ("empty-200", 2),
    ("empty-content", 2),
    ("html-stream", 2),
    ("reset-after-headers", 2),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_before_the_first_content_is_rerouted_unseen() {
    // Long waits of the throttled kind must stay under a quarter of what is left.
    let route = ROUTE.replace("\"6s\"", "\"8s\"");
    let grid = Grid::of("g", GATED.iter().map(|row| row.0));
    let world = grid.start(Setup::backed, &route).await;
    let one = async |at: usize, caller: Dialect, _: Dialect, name: &str| {
        let (_, tries) = GATED[at];
        let seen = world.ask(caller, &streamed(request(caller, name, HELLO))).await;
        let told = told::stream(caller, &seen);
        let mut wrongs = not_whole(&seen, &told);
        let first = world.settled_log(&format!("{name}-1")).await.len();
        if (first, seen.header("x-backstay-tier")) != (tries + seen.resent(), "2") {
            wrongs.push(format!("{first} tries, not {tries}; {:?}", seen.headers));
        }
        wrongs
    };
    let wrongs = grid.play(one).await;
    world.stop().await;
    assert!(wrongs.is_empty(), "{wrongs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_never_begins_is_a_typed_failure_with_a_status() {
    let rows = [
        ("keepalive-forever", 504, "provider_first_token_timeout"),
        ("html-stream", 502, "reply_malformed"),
        ("empty-200", 502, "provider_stream_cut"),
        ("empty-content", 502, "reply_empty"),
        ("stream-stall+at=0", 504, "provider_first_token_timeout"),
        ("malformed-chunk+at=0", 502, "reply_malformed"),
    ];
    let grid = Grid::of("n", rows.iter().map(|row| row.0));
    let world = grid.start(Setup::alone, ROUTE).await;
    let one = async |at: usize, caller: Dialect, _: Dialect, name: &str| {
        let (_, status, code) = rows[at];
        let seen = world.ask(caller, &streamed(request(caller, name, HELLO))).await;
        let mut wrongs = told::not_typed(caller, &seen, status, code);
        let log = world.settled_log(&format!("{name}-1")).await;
        if log.len() != 3 {
            wrongs.push(format!("{} tries", log.len()));
        }
        wrongs
    };
    let wrongs = grid.play(one).await;
    world.stop().await;
    assert!(wrongs.is_empty(), "{wrongs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_reply_where_a_stream_was_asked_for_is_told_as_a_stream() {
    let grid = Grid::of("j", ["json-not-stream"]);
    let world = grid.start(Setup::alone, ROUTE).await;
    let one = async |_, caller: Dialect, _, name: &str| {
        let seen = world.ask(caller, &streamed(request(caller, name, HELLO))).await;
        let mut wrongs = not_whole(&seen, &told::stream(caller, &seen));
        if seen.attempts() != 1 {
            wrongs.push(format!("{} attempts", seen.attempts()));
        }
        wrongs
    };
    let wrongs = grid.play(one).await;
    world.stop().await;
    assert!(wrongs.is_empty(), "{wrongs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_with_a_schema_streams_only_what_has_passed() {
    let route = format!("{ROUTE}\n{TRIAGE}");
    let rows = [
        ("healthy", 1),
        ("fenced", 1),
        ("right-on-second", 2),
        ("enum-miss", 4),
        ("stream-cut", 3),
        ("malformed-chunk", 3),
        ("no-done", 1),
        ("stream-stall", 2),
        ("invented-quote", 4),
    ];
    let grid = Grid::of("b", rows.iter().map(|row| row.0));
    let world = grid.start(Setup::backed, &route).await;
    let one = async |at: usize, caller: Dialect, _: Dialect, name: &str| {
        let (_, calls) = rows[at];
        let seen = world.ask(caller, &streamed(request(caller, name, TICKET))).await;
        let told = told::stream(caller, &seen);
        let mut wrongs = not_whole(&seen, &told);
        let value: Value = serde_json::from_str(&told.text).unwrap_or_default();
        if value != triaged() {
            wrongs.push(format!("not the answer: {}", told.text));
        }
        if seen.attempts() != calls {
            wrongs.push(format!("{} calls, not {calls}", seen.attempts()));
        }
        wrongs
    };
    let wrongs = grid.play(one).await;
    world.stop().await;
    assert!(wrongs.is_empty(), "{wrongs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_call_that_is_streamed_upstream_is_folded_and_guarded() {
    let route = format!("{ROUTE}\nupstream = \"stream\"");
    let rows = [
        ("healthy", 200, "", 1),
        ("no-done", 200, "", 1),
        ("crlf", 200, "", 1),
        ("json-not-stream", 200, "", 1),
        ("tool-call", 200, "", 1),
        ("double-terminal", 200, "", 1),
        ("stream-cut", 502, "provider_stream_cut", 3),
        ("stream-end-early", 502, "provider_stream_cut", 3),
        ("no-finish", 502, "provider_stream_cut", 3),
        ("stream-stall", 504, "provider_stream_stalled", 3),
        ("malformed-chunk", 502, "reply_malformed", 3),
        ("content-after-finish", 502, "reply_malformed", 3),
        ("keepalive-forever", 504, "provider_first_token_timeout", 3),
        ("unknown-finish", 502, "reply_unknown_finish", 1),
    ];
    let grid = Grid::of("f", rows.iter().map(|row| row.0));
    let world = grid.start(Setup::alone, &route).await;
    let one = async |at: usize, caller: Dialect, _: Dialect, name: &str| {
        let (_, status, code, tries) = rows[at];
        let seen = world.ask(caller, &request(caller, name, HELLO)).await;
        let mut wrongs = Vec::new();
        if status == 200 {
            let told = told::plain(caller, &seen.json());
            let said = !told.text.is_empty() || !told.calls.is_empty();
            if seen.status != 200 || !said || told.finish.is_none() || told.usage.is_none() {
                wrongs.push(format!("{} {}", seen.status, seen.text()));
            }
        } else {
            wrongs.extend(told::not_typed(caller, &seen, status, code));
        }
        let log = world.settled_log(&format!("{name}-1")).await;
        if log.len() != tries || !log.iter().all(|entry| entry.stream) {
            wrongs.push(format!("{} tries, not {tries}", log.len()));
        }
        wrongs
    };
    let wrongs = grid.play(one).await;
    world.stop().await;
    assert!(wrongs.is_empty(), "{wrongs}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_plain_calls_are_streamed_upstream_by_themselves_and_short_ones_are_not() {
    let no_cap = ROUTE.replace("max_output_tokens = 600", "");
    let world = Setup::new()
        .alone("unknown", "openai", &["healthy"], &no_cap)
        .alone("short", "openai", &["healthy"], ROUTE)
        .alone("asked", "openai", &["healthy"], &format!("{no_cap}\nupstream = \"as_asked\""))
        .start()
        .await;
    let dialect = Dialect::OpenaiChat;
    for (name, streams) in [("unknown", true), ("short", false), ("asked", false)] {
        let seen = world.ask(dialect, &request(dialect, name, HELLO)).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        assert_eq!(seen.header("content-type"), "application/json");
        assert_eq!(world.log(&format!("{name}-1"))[0].stream, streams, "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_usage_event_goes_only_to_those_who_asked() {
    let world = Setup::new()
        .alone("o", "openai", &["healthy"], ROUTE)
        .alone("a", "anthropic", &["healthy"], ROUTE)
        .start()
        .await;
    let dialect = Dialect::OpenaiChat;
    for target in BOTH {
        let mut body = streamed(request(dialect, short(target), HELLO));
        let told = told::stream(dialect, &world.ask(dialect, &body).await);
        assert_eq!(told.usage, None, "{target:?}");
        body["stream_options"] = serde_json::json!({"include_usage": true});
        let told = told::stream(dialect, &world.ask(dialect, &body).await);
        assert!(told.usage.is_some_and(|(_, output)| output > 0), "{target:?}");
    }
    world.stop().await;
}

/// Used by the module beside this one.
pub(crate) fn whole(world: &World, dialect: Dialect, seen: &Seen) {
    let _ = world;
    let told = told::stream(dialect, seen);
    assert_eq!(not_whole(seen, &told), [""; 0]);
}
