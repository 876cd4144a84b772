//! A drill as it is played: the file's tables, checked and with everything filled in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use backstay_mock::Mock;
use serde_json::Value;

use super::file::{
    AskTable, CaseTable, DialectWord, ExpectTable, File, MemberTable, RowTable, Steps,
};
use super::judge::{Answer, Right};
use super::rules::Rules;
use super::told::Usage;
use super::waits::{self, Pace, length};

/// The largest file: a thousand cases fit.
const MAX_FILE: u64 = 1 << 20;
/// Most requests of a case: a mock's log keeps 20,000, with retries.
const MAX_REQUESTS: usize = 5_000;
/// Most requests under way at once.
const MAX_AT_ONCE: usize = 256;

/// A drill.
#[derive(Debug)]
pub(super) struct Drill {
    pub title: String,
    /// In the order of the tiers; not empty.
    pub fleet: Vec<MemberTable>,
    /// Tables of our gateway's config.
    pub gateway: toml::Table,
    /// Not empty.
    pub rows: Vec<RowTable>,
    /// Not empty.
    pub cases: Vec<Arc<Case>>,
}

/// One fault, and what must hold.
#[derive(Debug)]
pub(super) struct Case {
    pub name: String,
    /// The name as a route of a config has it; unique.
    pub slug: String,
    /// Members in the order they are asked; not empty.
    pub tiers: Vec<String>,
    pub play: Play,
    /// In order of time.
    pub weather: Vec<Turn>,
    /// After so long the weather begins again.
    pub every: Option<Duration>,
    pub route: toml::Table,
    pub ask: Ask,
    pub right: Vec<Right>,
    pub codes: Vec<String>,
    pub rules: Rules,
}

/// `member -> behaviours`, one a request, the last for ever. Not empty lists.
pub(super) type Play = BTreeMap<String, Vec<String>>;

/// From a moment on, members play something else.
#[derive(Debug)]
pub(super) struct Turn {
    /// Since the first request.
    pub at: Duration,
    pub play: Play,
}

/// What the caller asks.
#[derive(Debug)]
pub(super) struct Ask {
    pub dialect: DialectWord,
    pub form: Form,
    pub prompt: String,
    pub schema: Option<Value>,
    pub answer: Answer,
    pub deadline: Duration,
    /// At least 1.
    pub requests: usize,
    /// At least 1.
    pub at_once: usize,
    /// The distance between two requests; zero: none is kept.
    pub apart: Duration,
}

/// Whether a stream is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    Stream,
}

/// Reads the drill at `path`.
///
/// # Errors
/// The file cannot be read, or the first thing that is wrong in it.
pub(super) fn load(path: &Path, pace: Pace) -> anyhow::Result<Drill> {
    let size = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
    ensure!(size <= MAX_FILE, "{} is larger than {MAX_FILE} bytes", path.display());
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    read(&text, pace).with_context(|| path.display().to_string())
}

/// Reads a drill.
///
/// # Errors
/// The first thing that is wrong in it.
pub(super) fn read(text: &str, pace: Pace) -> anyhow::Result<Drill> {
    let file: File = toml::from_str(&waits::filled(text, pace)?)?;
    ensure!(!file.fleet.is_empty(), "[[fleet]]: at least one member is wanted");
    ensure!(!file.row.is_empty(), "[[row]]: at least one is wanted");
    ensure!(!file.case.is_empty(), "[[case]]: at least one is wanted");
    let members: Vec<String> = file.fleet.iter().map(|member| member.name.clone()).collect();
    for name in &members {
        ensure!(*name == slug(name) && !name.is_empty(), "[[fleet]] `{name}`: a-z, 0-9 and - only");
    }
    ensure!(unique(&members), "[[fleet]]: two members have one name");
    let reader = Reader { members, ask: file.ask };
    let cases: anyhow::Result<Vec<_>> = file
        .case
        .into_iter()
        .map(|table| {
            let name = table.name.clone();
            reader.case(table).map(Arc::new).with_context(|| format!("case `{name}`"))
        })
        .collect();
    let cases = cases?;
    let slugs: Vec<&String> = cases.iter().map(|case| &case.slug).collect();
    ensure!(unique(&slugs), "[[case]]: two cases have one name");
    Ok(Drill { title: file.title, fleet: file.fleet, gateway: file.gateway, rows: file.row, cases })
}

/// The letters and digits of a name, in lower case, everything else a hyphen.
pub(super) fn slug(name: &str) -> String {
    let letters =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
    letters.collect::<String>().split_whitespace().collect::<Vec<_>>().join("-")
}

fn unique<T: Ord>(names: &[T]) -> bool {
    names.iter().collect::<BTreeSet<_>>().len() == names.len()
}

/// Checks the cases of one file.
struct Reader {
    members: Vec<String>,
    /// What holds where a case says nothing.
    ask: AskTable,
}

impl Reader {
    fn case(&self, table: CaseTable) -> anyhow::Result<Case> {
        let slug = slug(&table.name);
        ensure!(!slug.is_empty(), "a name has a letter or a digit");
        let tiers = table.tiers.unwrap_or_else(|| self.members.clone());
        ensure!(!tiers.is_empty(), "tiers: at least one is wanted");
        self.known(tiers.iter())?;
        let turns: anyhow::Result<Vec<Turn>> = table
            .weather
            .iter()
            .map(|turn| Ok(Turn { at: length(&turn.at)?, play: self.play(&turn.play)? }))
            .collect();
        let mut weather = turns.context("weather")?;
        weather.sort_by_key(|turn| turn.at);
        let every = table.every.as_deref().map(length).transpose().context("every")?;
        if every.is_some_and(|every| weather.last().is_none_or(|last| every <= last.at)) {
            bail!("every: the last change of the weather comes before it");
        }
        let ask = self.ask(&slug, table.ask).context("ask")?;
        let play = self.play(&table.play).context("play")?;
        let mut rules = self.rules(&table.expect).context("expect")?;
        rules.faulty = tiers.first().filter(|first| play.contains_key(*first)).cloned();
        Ok(Case {
            slug,
            tiers,
            play,
            weather,
            every,
            route: table.route,
            ask,
            right: if table.expect.right.is_empty() {
                vec![Right::Answer]
            } else {
                table.expect.right.clone()
            },
            codes: table.expect.codes.clone(),
            rules,
            name: table.name,
        })
    }

    fn known<'a>(&self, mut names: impl Iterator<Item = &'a String>) -> anyhow::Result<()> {
        match names.find(|name| !self.members.contains(name)) {
            Some(name) => {
                bail!("no member is called `{name}`; there are {}", self.members.join(", "))
            }
            None => Ok(()),
        }
    }

    fn play(&self, table: &BTreeMap<String, Steps>) -> anyhow::Result<Play> {
        self.known(table.keys())?;
        let scripts = table.iter().map(|(member, steps)| {
            let steps = steps.list();
            ensure!(!steps.is_empty(), "`{member}`: at least one behaviour is wanted");
            for step in steps {
                Mock::can_play(step).map_err(anyhow::Error::msg)?;
            }
            Ok((member.clone(), steps.to_vec()))
        });
        scripts.collect()
    }

    fn ask(&self, slug: &str, own: AskTable) -> anyhow::Result<Ask> {
        let file = self.ask.clone();
        let schema = own.schema.or(file.schema);
        let prompt =
            own.prompt.or(file.prompt).unwrap_or_else(|| "Tell me about lighthouses.".into());
        let deadline = own.deadline.or(file.deadline).context("deadline: it must be given")?;
        let answer = match own.answer.or(file.answer).context("answer: it must be given")? {
            Value::String(text) if schema.is_none() => Answer::Text(text),
            value if schema.is_some() => Answer::Json(value),
            _ => bail!("answer: a text is wanted where there is no schema"),
        };
        let apart = own.apart.or(file.apart).as_deref().map(length).transpose().context("apart")?;
        let apart = apart.unwrap_or_default();
        let requests = match own.lasting.or(file.lasting) {
            Some(lasting) => count(length(&lasting).context("lasting")?, apart)?,
            None => own.requests.or(file.requests).unwrap_or(1),
        };
        ensure!((1..=MAX_REQUESTS).contains(&requests), "requests: 1 to {MAX_REQUESTS} are wanted");
        let at_once = own.at_once.or(file.at_once).unwrap_or(1);
        ensure!((1..=MAX_AT_ONCE).contains(&at_once), "at_once: 1 to {MAX_AT_ONCE} are wanted");
        Ok(Ask {
            dialect: own.dialect.or(file.dialect).unwrap_or_default(),
            form: if own.stream.or(file.stream) == Some(true) { Form::Stream } else { Form::Whole },
            // By this mark a provider knows which answer is meant.
            prompt: format!("{prompt} {}", mark(slug)),
            schema,
            answer,
            deadline: length(&deadline).context("deadline")?,
            requests,
            at_once,
            apart,
        })
    }

    fn rules(&self, table: &ExpectTable) -> anyhow::Result<Rules> {
        let named = table.attempts.keys().chain(table.spacing.keys());
        self.known(named.chain(&table.severed).chain(&table.answered_by))?;
        let spacing: anyhow::Result<BTreeMap<_, _>> =
            table.spacing.iter().map(|(name, wait)| Ok((name.clone(), length(wait)?))).collect();
        Ok(Rules {
            attempts: table.attempts.clone(),
            faulty: None,
            spacing: spacing.context("spacing")?,
            within: table.within.as_deref().map(length).transpose().context("within")?,
            answered_by: table.answered_by.clone(),
            usage: table.usage.map(|[input, output]| Usage { input, output }),
            cost: table.cost,
            severed: table.severed.clone(),
        })
    }
}

/// How many requests are sent in so long.
fn count(lasting: Duration, apart: Duration) -> anyhow::Result<usize> {
    ensure!(!apart.is_zero(), "lasting: apart must be given with it");
    Ok(usize::try_from(lasting.as_millis().div_ceil(apart.as_millis().max(1)))?)
}

/// What stands in a prompt to tell the cases apart.
pub(super) fn mark(slug: &str) -> String {
    format!("(drill: {slug})")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
title = "t"
[waits]
after = ["2", "1"]
[ask]
deadline = "9s"
answer = "yes"
[[fleet]]
name = "first"
[[fleet]]
name = "second"
[[row]]
name = "defaults"
allow = ["pass"]
[[case]]
name = "429, with Retry-After"
play = { first = ["status-429+after={after}", "healthy"] }
"#;

    fn wrong(from: &str, to: &str) -> String {
        assert!(FILE.contains(from), "{from}");
        format!("{:#}", read(&FILE.replace(from, to), Pace::Real).unwrap_err())
    }

    #[test]
    fn a_case_is_filled_in_from_the_file_and_the_defaults() {
        let drill = read(FILE, Pace::Fast).unwrap();
        let case = &drill.cases[0];
        assert_eq!(case.slug, "429-with-retry-after");
        assert_eq!(case.play["first"], ["status-429+after=1", "healthy"]);
        assert_eq!(case.tiers, ["first", "second"]);
        assert_eq!((case.ask.requests, case.ask.at_once, case.ask.form), (1, 1, Form::Whole));
        assert!(case.ask.prompt.ends_with("(drill: 429-with-retry-after)"));
        assert_eq!(case.right, [Right::Answer]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (from, to, words) in [
            (
                "status-429",
                "status-42",
                "case `429, with Retry-After`: play: no behaviour is called",
            ),
            ("{ first =", "{ thirst =", "no member is called `thirst`; there are first, second"),
            ("\"9s\"", "\"soon\"", "ask: deadline: `soon` is no length of time"),
            ("deadline = \"9s\"", "", "deadline: it must be given"),
            ("answer = \"yes\"", "answer = 7", "a text is wanted where there is no schema"),
            ("answer = \"yes\"", "answer = \"yes\"\nlasting = \"1s\"", "apart must be given"),
            ("answer = \"yes\"", "answer = \"yes\"\nrequests = 0", "requests: 1 to 5000"),
            ("\"second\"", "\"first\"", "two members have one name"),
            ("\"second\"", "\"A b\"", "a-z, 0-9 and - only"),
            ("name = \"429, with Retry-After\"", "name = \"?\"", "a letter or a digit"),
            ("[\"pass\"]", "[\"good\"]", "unknown variant `good`"),
            ("[[row]]\nname = \"defaults\"\nallow = [\"pass\"]", "", "missing field `row`"),
        ] {
            let told = wrong(from, to);
            assert!(told.contains(words), "{words}: {told}");
        }
    }

    #[test]
    fn weather_must_end_before_it_begins_again() {
        let end = "play = { first = [\"status-429+after={after}\", \"healthy\"] }";
        let turns = "weather = [{ at = \"2s\", play = { first = \"healthy\" } }]\nevery = \"2s\"";
        assert!(wrong(end, turns).contains("every"));
    }
}
