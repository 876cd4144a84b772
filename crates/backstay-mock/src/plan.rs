//! Turns an order and a request into what is to happen on the connection.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::ask::{Ask, Dialect, Endpoint, Form};
use crate::behaviour::{Damage, Kind, Play, Snag, Wire};
use crate::clock::http_date;
use crate::damage::{self, Occasion};
use crate::dialect::{self, Tag, errors, lists};
use crate::dice::Dice;
use crate::order::{After, Order, Params};
use crate::prose::{self, Words};
use crate::reel::{Carries, Length, SETTLE, Step};
use crate::said::{self, Finish, Said};
use crate::{Settings, snag};

/// What is to happen.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Before anything is sent.
    pub(crate) wait: Duration,
    pub(crate) act: Act,
}

#[derive(Debug)]
pub(crate) enum Act {
    Reply(Reply),
    /// Resets the connection instead of a reply.
    Reset,
    /// Sends nothing for so long, then closes.
    Hold(Duration),
}

/// A response: its head and the steps of its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) steps: Vec<Step>,
    pub(crate) length: Length,
    pub(crate) carries: Carries,
}

/// What a plan is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) ask: &'a Ask,
    pub(crate) order: &'a Order,
    /// What is played: the order's kind, or healthy when its `times` are over.
    pub(crate) kind: Kind,
    /// Which call with this model and first user message it is; the first is 1.
    pub(crate) turn: u32,
    pub(crate) tag: Tag,
}

/// Default of `wait`.
const WAIT: Duration = Duration::from_secs(3);
/// Default of `hold`: longer than any client waits, and still an end.
const HOLD: Duration = Duration::from_mins(10);

pub(crate) const JSON: &str = "application/json";
pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const EVENTS: &str = "text/event-stream; charset=utf-8";

impl Params {
    pub(crate) fn hold(&self) -> Duration {
        self.hold.unwrap_or(HOLD)
    }
}

impl Plan {
    pub(crate) fn of(scene: Scene<'_>) -> Self {
        let params = &scene.order.params;
        let mut wait = params.delay;
        let act = match scene.kind {
            Kind::Status(refusal) => {
                let wrong = errors::refusal(refusal, scene.ask, scene.tag);
                let mut reply = Reply::error(wrong, scene.ask.dialect(), scene.tag);
                advise(&mut reply.headers, params);
                Act::Reply(reply)
            }
            Kind::RejectsPrefill if scene.ask.prefill.is_some() => {
                let (dialect, tag) = (scene.ask.dialect(), scene.tag);
                Act::Reply(Reply::error(errors::no_prefill(dialect, tag), dialect, tag))
            }
            Kind::Transport(Wire::Reset) => Act::Reset,
            Kind::Transport(Wire::Silence) => Act::Hold(params.hold()),
            Kind::Transport(Wire::SlowHeaders) => {
                wait += params.wait.unwrap_or(WAIT);
                Act::Reply(healthy(scene))
            }
            Kind::Transport(Wire::SlowFirst) => {
                let late = params.wait.unwrap_or(WAIT);
                let mut reply = healthy(scene);
                if streamed(scene.ask) {
                    reply.steps.insert(0, Step::Wait(late));
                } else {
                    wait += late;
                }
                Act::Reply(reply)
            }
            Kind::Transport(wire) => Act::Reply(broken_off(healthy(scene), wire, params.hold())),
            Kind::Structure(damage) => Act::Reply(structure(scene, damage)),
            Kind::Stream(fault) => Act::Reply(snagged(scene, fault)),
            Kind::Tools(play) => Act::Reply(tools(scene, play)),
            Kind::Healthy | Kind::RejectsPrefill => Act::Reply(healthy(scene)),
        };
        Self { wait, act }
    }
}

impl Reply {
    /// A body with its length.
    pub(crate) fn plain(status: u16, body: Bytes, content_type: &'static str) -> Self {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        let length = Length::Exact(u64::try_from(body.len()).unwrap_or(u64::MAX));
        let steps = if body.is_empty() { Vec::new() } else { vec![Step::Send(body)] };
        Self { status, headers, steps, length, carries: Carries::Body }
    }

    pub(crate) fn error(wrong: errors::Wrong, dialect: Dialect, tag: Tag) -> Self {
        Self::plain(wrong.status, wrong.body, wrong.content_type).named(dialect, tag)
    }

    pub(crate) fn stream(steps: Vec<Step>) -> Self {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Self { status: 200, headers, steps, length: Length::Open, carries: Carries::Events }
    }

    /// Adds the headers by which a provider names a response.
    pub(crate) fn named(mut self, dialect: Dialect, tag: Tag) -> Self {
        let own: &[(HeaderName, &'static str)] = match dialect {
            Dialect::OpenAi => &[
                (HeaderName::from_static("openai-processing-ms"), "12"),
                (HeaderName::from_static("openai-version"), "2020-10-01"),
            ],
            Dialect::Anthropic => &[(
                HeaderName::from_static("anthropic-organization-id"),
                "00000000-0000-4000-8000-00000000b5a1",
            )],
        };
        for (name, value) in own {
            self.headers.insert(name.clone(), HeaderValue::from_static(value));
        }
        let (name, id) = match dialect {
            Dialect::OpenAi => (HeaderName::from_static("x-request-id"), tag.id("req_")),
            Dialect::Anthropic => (HeaderName::from_static("request-id"), tag.id("req_01")),
        };
        put(&mut self.headers, name, &id);
        self
    }
}

fn put(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Adds what the order says about trying again.
fn advise(headers: &mut HeaderMap, params: &Params) {
    match &params.after {
        Some(After::Seconds(seconds)) => put(headers, RETRY_AFTER, seconds),
        Some(After::Date(ahead)) => put(headers, RETRY_AFTER, &http_date(*ahead)),
        Some(After::Millis(millis)) => {
            put(headers, HeaderName::from_static("retry-after-ms"), millis);
        }
        Some(After::Garbage) => put(headers, RETRY_AFTER, "when the cows come home"),
        None => {}
    }
    if let Some(again) = params.should_retry {
        let name = HeaderName::from_static("x-should-retry");
        headers.insert(name, HeaderValue::from_static(if again { "true" } else { "false" }));
    }
}

fn streamed(ask: &Ask) -> bool {
    matches!(ask.form, Form::Stream { .. })
}

fn dice(scene: Scene<'_>) -> Dice {
    let dice = Dice::of(scene.settings.seed, &[&scene.ask.model]).throw();
    Dice::from_digest(dice ^ scene.ask.last_digest)
}

/// What a healthy model says.
fn good(scene: Scene<'_>, words: Words) -> Said {
    let dice = dice(scene);
    let mut said = match said::answer(scene.ask, scene.settings, &dice, words) {
        Some(answered) => Said::structured(answered.place, damage::whole(&answered)),
        None => Said::prose(&scene.order.params, &mut dice.clone(), words),
    };
    let begun = scene.ask.prefill.as_deref();
    if let Some(rest) = begun.and_then(|begun| said.text.strip_prefix(begun)) {
        said.text = rest.to_owned();
    }
    said
}

fn healthy(scene: Scene<'_>) -> Reply {
    spoken(scene, good(scene, Words::Plain))
}

/// Puts a reply on the wire as the caller asked for it.
fn spoken(scene: Scene<'_>, mut said: Said) -> Reply {
    said.respect(scene.ask.max_tokens);
    as_it_is(scene, said)
}

/// As [`spoken`], without regard for the cap.
fn as_it_is(scene: Scene<'_>, said: Said) -> Reply {
    if streamed(scene.ask) && small(scene).is_none() {
        let events = events(scene, said);
        let steps = snag::paced(events, scene.order.params.gap);
        return Reply::stream(steps).named(scene.ask.dialect(), scene.tag);
    }
    whole(scene, said)
}

/// The body of an endpoint that has no reply of a model.
fn small(scene: Scene<'_>) -> Option<Bytes> {
    match scene.ask.endpoint {
        Endpoint::Chat | Endpoint::Messages => None,
        Endpoint::Embeddings => Some(lists::embeddings(scene.ask, scene.settings.seed)),
        Endpoint::CountTokens => Some(lists::token_count(scene.ask)),
    }
}

fn whole(scene: Scene<'_>, mut said: Said) -> Reply {
    let body = small(scene).unwrap_or_else(|| {
        said.count(scene.ask, &scene.order.params);
        dialect::body(scene.ask, &said, scene.tag)
    });
    Reply::plain(200, body, JSON).named(scene.ask.dialect(), scene.tag)
}

fn events(scene: Scene<'_>, mut said: Said) -> Vec<crate::strip::Event> {
    said.count(scene.ask, &scene.order.params);
    // A word and a half a chunk, as real streams have it, unless the order says.
    let usual = said.written().div_ceil(8).clamp(1, 4_000);
    let chunks = scene.order.params.chunks.unwrap_or(usual);
    dialect::events(scene.ask, &said, scene.tag, chunks)
}

/// The transport behaviours that begin a healthy reply and break it off.
fn broken_off(mut reply: Reply, wire: Wire, hold: Duration) -> Reply {
    if let Length::Exact(bytes) = reply.length {
        reply.headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
        reply.length = Length::Open;
    }
    let end = match wire {
        Wire::ResetAfterHeaders => {
            reply.steps.clear();
            Step::Reset
        }
        Wire::ShortBody => Step::Cut,
        _ => Step::Wait(hold),
    };
    snag::halve(&mut reply.steps);
    reply.steps.push(Step::Wait(SETTLE));
    let after = matches!(end, Step::Wait(_)).then_some(Step::Cut);
    reply.steps.push(end);
    reply.steps.extend(after);
    reply
}

fn structure(scene: Scene<'_>, fault: Damage) -> Reply {
    let (dialect, tag) = (scene.ask.dialect(), scene.tag);
    if small(scene).is_some() {
        return healthy(scene);
    }
    let odd = match fault {
        Damage::EmptyBody if streamed(scene.ask) => {
            return Reply::stream(Vec::new()).named(dialect, tag);
        }
        Damage::EmptyBody => Some((Bytes::new(), JSON)),
        Damage::Page => Some((Bytes::from_static(errors::PAGE_200.as_bytes()), HTML)),
        Damage::JsonArray => Some((Bytes::from_static(b"[{\"message\":\"hello\"}]"), JSON)),
        Damage::ErrorIn200 => Some((Bytes::from(errors::late(dialect, tag).to_string()), JSON)),
        _ => None,
    };
    if let Some((body, content_type)) = odd {
        return Reply::plain(200, body, content_type).named(dialect, tag);
    }
    let params = &scene.order.params;
    let occasion = Occasion {
        turn: scene.turn,
        wrong: params.wrong.unwrap_or(2),
        need: params.need.unwrap_or(400),
        behind: params.size.unwrap_or(2_000),
    };
    let dice = dice(scene);
    let answered = said::answer(scene.ask, scene.settings, &dice, Words::Plain);
    let said = damage::damaged(fault, scene.ask, answered, dice, occasion);
    match said.finish {
        // Already cut, or with a finish that a second cut would overwrite.
        Finish::Stop | Finish::ToolUse => spoken(scene, said),
        _ => as_it_is(scene, said),
    }
}

fn tools(scene: Scene<'_>, play: Play) -> Reply {
    // With the tool's result in hand, the model answers; an agent's loop would not end otherwise.
    if scene.ask.after_tool || small(scene).is_some() {
        return healthy(scene);
    }
    let dice = dice(scene);
    let count = if play == Play::Parallel { 2 } else { 1 };
    let calls = (0..count).map(|at| said::tool_call(scene.ask, at, &dice)).collect();
    let mut said = Said { calls, finish: Finish::ToolUse, ..Said::default() };
    match play {
        Play::ArgsTruncated => damage::cut_at_half(&mut said, Finish::Length),
        Play::ArgsInvalid => {
            for call in &mut said.calls {
                // A brace less and a bare word more: no parser takes it, and mending it is a guess.
                call.arguments
                    .truncate(prose::head(&call.arguments, call.arguments.len() - 1).len());
                call.arguments.push_str(", oops");
            }
        }
        Play::Call | Play::Parallel => {}
    }
    if play == Play::ArgsTruncated { as_it_is(scene, said) } else { spoken(scene, said) }
}

/// The stream behaviours, and what each means for a plain reply.
fn snagged(scene: Scene<'_>, fault: Snag) -> Reply {
    let params = &scene.order.params;
    let (dialect, tag) = (scene.ask.dialect(), scene.tag);
    let said = match fault {
        Snag::SplitUtf8 => good(scene, Words::Wide),
        Snag::Loop => looped(params, &mut dice(scene)),
        _ => good(scene, Words::Plain),
    };
    if !streamed(scene.ask) || small(scene).is_some() {
        return snag::plain(fault, scene, said, whole);
    }
    match fault {
        Snag::JsonNotStream => return whole(scene, said),
        Snag::PageStream => {
            let page = Bytes::from_static(errors::PAGE_200.as_bytes());
            return Reply::plain(200, page, HTML).named(dialect, tag);
        }
        _ => {}
    }
    let mut said = said;
    said.respect(scene.ask.max_tokens);
    let steps = snag::steps(fault, events(scene, said), params, dialect, tag);
    Reply::stream(steps).named(dialect, tag)
}

fn looped(params: &Params, dice: &mut Dice) -> Said {
    let phrase = prose::line(dice, 6, Words::Plain) + ". ";
    Said { text: phrase.repeat(params.chunks.unwrap_or(200).max(2)), ..Said::default() }
}
