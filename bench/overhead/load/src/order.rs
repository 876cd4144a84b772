//! Reads the command line, and builds the requests that are sent.

use crate::cpu;
use crate::http;
use crate::report::Case;
use crate::window::{Plan, Server};
use std::time::Duration;

/// How a wrong command line is answered.
pub const USAGE: &str = "usage: load requests|streams --upstream PORT:PID --reference PORT:PID --gateway PORT:PID \
     [--rounds N] [--seconds S] [--chunks N] [--binary BYTES] [--json FILE]";

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// Whole requests, and one kind of stream, through one route.
    Requests,
    /// Streams in each of the gateway's modes.
    Streams,
}

/// What the command line said.
#[derive(Debug)]
pub struct Order {
    /// What is compared.
    pub subject: Subject,
    /// The mock provider.
    pub upstream: Server,
    /// The proxy that the gateway is compared with.
    pub reference: Server,
    /// The gateway.
    pub gateway: Server,
    /// Gateway windows per case, 1 to 50.
    pub rounds: u32,
    /// Length of one window of plain requests.
    pub window: Duration,
    /// Content chunks the upstream sends in a stream with gaps, at least 1.
    pub chunks: u64,
    /// Resident bytes of the gateway before any load.
    pub idle_rss: u64,
    /// Size of the stripped binary.
    pub binary: u64,
    /// Where the JSON goes; none prints the table alone.
    pub json: Option<String>,
}

impl Order {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// What is missing or not understood, for a person.
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let subject = match words.next().as_deref() {
            Some("requests") => Subject::Requests,
            Some("streams") => Subject::Streams,
            _ => return Err("what to compare is missing".to_owned()),
        };
        let (mut upstream, mut reference, mut gateway) = (None, None, None);
        let (mut rounds, mut seconds, mut chunks, mut binary, mut json) =
            (4_u64, 2_u64, 200, 0, None);
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
            match name.as_str() {
                "--upstream" => upstream = Some(server(&value)?),
                "--reference" => reference = Some(server(&value)?),
                "--gateway" => gateway = Some(server(&value)?),
                "--rounds" => rounds = number(&value)?.clamp(1, 50),
                "--seconds" => seconds = number(&value)?.clamp(1, 60),
                "--chunks" => chunks = number(&value)?.max(1),
                "--binary" => binary = number(&value)?,
                "--json" => json = Some(value),
                _ => return Err(format!("unknown option {name}")),
            }
        }
        let gateway = gateway.ok_or("--gateway is missing")?;
        Ok(Self {
            subject,
            upstream: upstream.ok_or("--upstream is missing")?,
            reference: reference.ok_or("--reference is missing")?,
            gateway,
            rounds: rounds as u32,
            window: Duration::from_secs(seconds),
            chunks,
            idle_rss: cpu::resident(gateway.pid),
            binary,
            json,
        })
    }

    /// The load of `case` on the model or route `model`.
    pub fn plan(&self, model: &str, case: &Case) -> Plan {
        Plan {
            request: request(model, case),
            connections: case.connections,
            warm_up: Duration::from_millis(500),
            window: self.window,
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn server(text: &str) -> Result<Server, String> {
    let (port, pid) = text.split_once(':').ok_or_else(|| format!("{text} is not PORT:PID"))?;
    let port = port.parse().map_err(|_| format!("{port} is not a port"))?;
    let pid = pid.parse().map_err(|_| format!("{pid} is not a process id"))?;
    Ok(Server { port, pid })
}

/// A whole chat request with a body of `case.bytes` bytes, filled up with words. A stream may be as
/// long as its chunks need.
pub fn request(model: &str, case: &Case) -> Vec<u8> {
    let (stream, cap) = if case.chunks > 0 {
        ("\"stream\":true,\"stream_options\":{\"include_usage\":true},", 256.max(case.chunks * 8))
    } else {
        ("", 256)
    };
    let frame = |filler: &str| {
        format!(
            "{{\"model\":\"{model}\",{stream}\"max_tokens\":{cap},\"temperature\":0,\"messages\":[\
             {{\"role\":\"system\",\"content\":\"Answer in one line.\"}},\
             {{\"role\":\"user\",\"content\":\"{filler}\"}}]}}"
        )
    };
    let room = case.bytes.saturating_sub(frame("").len());
    let filler: String =
        "The parcel has not arrived and nobody answers. ".chars().cycle().take(room).collect();
    http::request("/v1/chat/completions", &frame(&filler))
}
