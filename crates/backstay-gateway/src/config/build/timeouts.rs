//! `timeouts` of `[routes.NAME]`.

use std::time::Duration;

use backstay::policy::{Timeouts, Timer};

use super::Loading;
use crate::config::file::{RouteTable, TimeoutsTable};
use crate::config::words::{Length, TimerText};

impl Loading<'_> {
    /// The limits of one attempt, with what is left out filled in.
    pub(super) fn timeouts(&mut self, name: &str, table: &RouteTable) -> Timeouts {
        let (written, deadline) = (&table.timeouts, table.deadline.0);
        self.timer(&["routes", name, "deadline"], deadline);
        let total = set(written.total);
        let whole = total.map_or(("deadline", deadline), |Length(total)| ("total", total));
        self.written_timers(name, written, whole);
        if whole.1 > deadline {
            let message = format!(
                "`total` ({}) is longer than `deadline` ({})",
                Length(whole.1),
                table.deadline
            );
            let path = ["routes", name, "timeouts", "total"];
            self.doubt(&path, "longer-than-deadline", message, "the deadline cuts every attempt");
        }
        let auto = Timeouts::auto(whole.1);
        let or = |written: Option<TimerText>, auto: Timer| {
            set(written).map_or(auto, |Length(length)| Timer::Set(length.min(whole.1)))
        };
        let least = |written: Option<Length>, least| written.map_or(least, |Length(least)| least);
        Timeouts {
            connect: written.connect.map(|Length(connect)| connect.min(whole.1)),
            first_token: or(written.first_token, auto.first_token),
            gap: or(written.gap, auto.gap),
            total: or(written.total, auto.total),
            least_first_token: least(written.least_first_token, auto.least_first_token),
            least_gap: least(written.least_gap, auto.least_gap),
        }
    }

    /// Checks what was written of the timers, alone and against the `whole`, by its key.
    fn written_timers(
        &mut self,
        name: &str,
        written: &TimeoutsTable,
        (whole_key, whole): (&str, Duration),
    ) {
        let keys = [
            ("connect", written.connect),
            ("first_token", set(written.first_token)),
            ("gap", set(written.gap)),
            ("total", set(written.total)),
            ("least_first_token", written.least_first_token),
            ("least_gap", written.least_gap),
        ];
        for (key, length) in keys {
            let Some(Length(length)) = length else { continue };
            let path = ["routes", name, "timeouts", key];
            self.timer(&path, length);
            if length > whole && key != "total" {
                let (length, whole) = (Length(length), Length(whole));
                let message = format!("`{key}` ({length}) is longer than `{whole_key}` ({whole})");
                self.wrong(&path, "longer-than-whole", message, "it could never be reached");
            }
        }
    }
}

fn set(written: Option<TimerText>) -> Option<Length> {
    written.and_then(TimerText::set)
}
