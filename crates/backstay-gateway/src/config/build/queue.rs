//! `[queue]`, and what `[keys.NAME]` says of it.

use std::cmp::Reverse;

use backstay::policy::Queueing;
use backstay_decide::queue::{Class, MOST_CLASSES, Rules};

use super::{Loading, Section, ticked};
use crate::config::file::KeyTable;
use crate::config::queue_words::QueueTable;

/// The most calls that may wait.
const MOST_WAITING: u64 = 1_000_000;

/// The largest share of a class.
const MOST_SHARE: u64 = 1_000;

impl Loading<'_> {
    /// The gateway's seats and the queue in front of them.
    pub(super) fn queue(&mut self, table: &QueueTable) -> Queueing {
        self.in_range(&["queue", "seats"], table.seats.into(), 1..=u64::MAX);
        self.in_range(&["queue", "count"], table.count, 0..=MOST_WAITING);
        let default = Rules::default();
        let classes = if table.classes.is_empty() { default.classes } else { self.classes(table) };
        let count = usize::try_from(table.count).unwrap_or(usize::MAX);
        Queueing { seats: table.seats, rules: Rules { classes, count, bytes: table.bytes } }
    }

    fn classes(&mut self, table: &QueueTable) -> Vec<Class> {
        if table.classes.len() > MOST_CLASSES {
            let message = format!("{} classes are too many", table.classes.len());
            let help = format!("at most {MOST_CLASSES}");
            self.wrong(&["queue", "classes"], "out-of-range", message, &help);
        }
        let mut kept: u64 = 0;
        for (name, class) in &table.classes {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if name.is_empty() || name.len() > 40 || !name.chars().all(is_word) {
                let message = "a class is named by letters, digits, `-` and `_`, at most 40";
                self.wrong(&["queue", "classes", name], "bad-name", message.into(), "");
            }
            let path = ["queue", "classes", name, "share"];
            self.in_range(&path, class.share.into(), 1..=MOST_SHARE);
            kept += u64::from(class.kept);
            if kept >= table.seats.into() && class.kept > 0 {
                let message =
                    format!("{kept} kept seats of {} leave none to the others", table.seats);
                let help = "all `kept` together less than `seats`";
                self.wrong(&["queue", "classes", name, "kept"], "out-of-range", message, help);
            }
        }
        let mut classes: Vec<Class> = table
            .classes
            .iter()
            .map(|(name, class)| Class {
                name: name.as_str().into(),
                share: class.share,
                kept: class.kept,
            })
            .collect();
        // The sort is stable, so names decide where shares do not.
        classes.sort_by_key(|class| Reverse(class.share));
        classes
    }

    /// The classes that a key names: its own, and those it may use.
    pub(super) fn key_classes(
        &mut self,
        name: &str,
        table: &KeyTable,
        queue: &Queueing,
    ) -> (Option<String>, Vec<String>) {
        let named = table.classes.iter().map(|class| ("classes", class));
        let own = table.priority.iter().map(|class| ("priority", class));
        for (key, class) in named.chain(own) {
            if queue.class(class).is_none() {
                self.unknown_class(&["keys", name, key], class, queue);
            }
        }
        if let Some(own) = &table.priority
            && !table.classes.is_empty()
            && !table.classes.contains(own)
        {
            let message = format!("`priority` is `{own}`, which is not among `classes`");
            let help = format!("add it there, or choose one of {}", ticked(&words(&table.classes)));
            self.wrong(&["keys", name, "priority"], "not-allowed", message, &help);
        }
        let first = || table.classes.iter().min_by_key(|class| queue.class(class)).cloned();
        (table.priority.clone().or_else(first), table.classes.clone())
    }

    fn unknown_class(&mut self, path: &[&str], name: &str, queue: &Queueing) {
        let classes = queue.rules.classes.iter();
        let names = classes.map(|class| (class.name.to_string(), ())).collect();
        self.unknown(path, Section::Classes, name, &names);
    }
}

fn words(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
