//! The providers of a drill: a mock for each member, and what each saw.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use backstay_mock::{Answer, End, Entry, Mock, Settings};
use tokio::time::Instant;

use super::file::DialectWord;
use super::judge;
use super::plan::{Case, Drill, Play, mark};
use super::rules::{Hit, Seen};

/// Mocks that run.
#[derive(Debug)]
pub(super) struct Fleet {
    /// In the order of the file.
    members: Vec<(String, Mock)>,
    names: Names,
}

/// Under which names a fleet is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// `CASE.MEMBER`: cases can run side by side.
    OfCases,
    /// Any name means the case that is played.
    Any,
}

/// How long a call may still be under way at a provider after its caller has its end.
const SETTLE: Duration = Duration::from_secs(1);

impl Fleet {
    /// Starts a mock for each member, in order at `addresses`; where they end, on free ports.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub(super) async fn start(
        drill: &Drill,
        addresses: &[SocketAddr],
        names: Names,
    ) -> anyhow::Result<Self> {
        let answers: Vec<Answer> = drill.cases.iter().map(|case| answer(case)).collect();
        let mut members = Vec::with_capacity(drill.fleet.len());
        for (at, member) in drill.fleet.iter().enumerate() {
            let mut settings = Settings { answers: answers.clone(), ..Settings::default() };
            if let Some(address) = addresses.get(at) {
                settings.listen = *address;
            }
            let listen = settings.listen;
            let mock = Mock::start(settings)
                .await
                .with_context(|| format!("{} cannot listen on {listen}", member.name))?;
            members.push((member.name.clone(), mock));
        }
        Ok(Self { members, names })
    }

    /// The base URL of a member for a dialect. Empty: there is no such member.
    pub(super) fn base_url(&self, member: &str, dialect: DialectWord) -> String {
        self.mock(member).map_or_else(String::new, |mock| match dialect {
            DialectWord::OpenaiChat => mock.openai_base(),
            DialectWord::Anthropic => mock.anthropic_base(),
        })
    }

    fn mock(&self, member: &str) -> Option<&Mock> {
        self.members.iter().find(|(name, _)| name == member).map(|(_, mock)| mock)
    }

    /// Gets ready for a case: everybody plays what it says, and who is not in it is healthy.
    pub(super) fn begin(&self, case: &Case) {
        for (member, mock) in &self.members {
            if self.names == Names::Any {
                mock.reset();
            }
            let steps =
                case.play.get(member).map_or_else(|| vec!["healthy".to_owned()], Clone::clone);
            self.script(mock, &case.slug, member, &steps);
        }
    }

    /// Everybody is healthy, whatever is asked, and forgets what was.
    pub(super) fn rest(&self) {
        for (_, mock) in &self.members {
            mock.reset();
            mock.script("*", &["healthy"]);
        }
    }

    /// Whether the first of `tiers` was asked since the last rest, and nobody else.
    pub(super) fn was_only_asked(&self, tiers: &[String]) -> bool {
        let was_asked = |mock: &Mock| mock.log().iter().any(|entry| !entry.model.is_empty());
        self.members.iter().all(|(name, mock)| was_asked(mock) == (tiers.first() == Some(name)))
    }

    /// From now on members play this.
    pub(super) fn play(&self, case: &Case, play: &Play) {
        for (member, steps) in play {
            if let Some(mock) = self.mock(member) {
                self.script(mock, &case.slug, member, steps);
            }
        }
    }

    fn script(&self, mock: &Mock, slug: &str, member: &str, steps: &[String]) {
        let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
        match self.names {
            Names::OfCases => mock.script(&model(slug, member), &steps),
            Names::Any => mock.script("*", &steps),
        }
    }

    /// What each member saw of `case`, once nothing of it is under way any more; waits up to a second.
    pub(super) async fn seen(&self, case: &Case) -> Seen {
        let end = Instant::now() + SETTLE;
        loop {
            let logs = self.members.iter().map(|(member, mock)| self.of_case(mock, case, member));
            let logs: Vec<Vec<Entry>> = logs.collect();
            let pending = logs.iter().flatten().any(|entry| entry.end == End::Pending);
            if pending && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
            let hits = logs.into_iter().map(|log| log.into_iter().map(Hit::from).collect());
            return self.members.iter().map(|(member, _)| member.clone()).zip(hits).collect();
        }
    }

    fn of_case(&self, mock: &Mock, case: &Case, member: &str) -> Vec<Entry> {
        let log = mock.log().into_iter();
        match self.names {
            Names::OfCases => {
                let model = model(&case.slug, member);
                log.filter(|entry| entry.model == model).collect()
            }
            Names::Any => log.filter(|entry| !entry.model.is_empty()).collect(),
        }
    }

    /// Ends every mock.
    pub(super) async fn stop(&self) {
        for (_, mock) in &self.members {
            mock.stop().await;
        }
    }
}

/// The name of a member's model for a case.
pub(super) fn model(slug: &str, member: &str) -> String {
    format!("{slug}.{member}")
}

fn answer(case: &Case) -> Answer {
    let contains = mark(&case.slug);
    match &case.ask.answer {
        judge::Answer::Text(text) => {
            Answer { contains, reply: serde_json::Value::Null, text: Some(text.clone()) }
        }
        judge::Answer::Json(value) => Answer { contains, reply: value.clone(), text: None },
    }
}
