//! Any history of calls, against an account of the rule kept apart.

use super::*;

/// What may happen to a breaker, at the next moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(u64),
    Offer(Elsewhere, Suits),
    Force,
    Asked(u64),
    Started(usize),
    Note(usize, Verdict),
    Release(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop::sample::select(vec![
        Verdict::Success,
        Verdict::Success,
        Verdict::Failure,
        Verdict::Failure,
        Verdict::Soft,
        Verdict::Neutral,
    ]);
    let elsewhere = prop::sample::select(vec![Elsewhere::Live, Elsewhere::Nobody]);
    let suits = prop::sample::select(vec![Suits::Test, Suits::Test, unfit()]);
    prop_oneof![
        3 => (0_u64..40).prop_map(Event::Wait),
        8 => (elsewhere, suits).prop_map(|(elsewhere, suits)| Event::Offer(elsewhere, suits)),
        1 => Just(Event::Force),
        1 => (0_u64..60).prop_map(Event::Asked),
        2 => (0_usize..12).prop_map(Event::Started),
        9 => (0_usize..12, verdict).prop_map(|(ix, verdict)| Event::Note(ix, verdict)),
        1 => (0_usize..12).prop_map(Event::Release),
    ]
}

fn some_limits() -> impl Strategy<Value = Limits> {
    let brief = Limits {
        min_calls: 4,
        failures: 0,
        canary: Canary { passes: 2, at_once: 2, patience: secs(50), ..Limits::default().canary },
        probation: Probation { min_calls: 2, lasts: secs(30), ..Limits::default().probation },
        ..Limits::default()
    };
    prop::sample::select(vec![
        limits(),
        brief,
        Limits { stretch: Duration::ZERO, ..brief },
        Limits { mode: Mode::MetricsOnly, ..brief },
        Limits::QUALITY,
        Limits::THROTTLING,
        Limits::COMBINED,
    ])
}

/// A plain account of what a breaker should know: every outcome since its circuit last changed.
#[derive(Default)]
struct Account {
    counted: Vec<(Moment, bool)>,
    row: u32,
}

impl Account {
    fn note(&mut self, verdict: Verdict, now: Moment) {
        match verdict {
            Verdict::Neutral => return,
            Verdict::Success => self.row = 0,
            Verdict::Failure => self.row += 1,
            Verdict::Soft => {}
        }
        self.counted.push((now, verdict != Verdict::Success));
    }

    /// Whether a failure at `now` opens, by the rule as the documentation words it.
    fn opens(&self, now: Moment, limits: &Limits, (row, least): (u32, u32)) -> bool {
        if row > 0 && self.row >= row {
            return true;
        }
        let slice = |at: Moment| at.since_origin().as_nanos() / (limits.window.as_nanos() / 12);
        let inside = |at: Moment| slice(at) + 12 > slice(now);
        let mut seen: Vec<_> = self.counted.iter().filter(|(at, _)| inside(*at)).collect();
        if seen.len() < least as usize {
            let kept = limits.min_calls.max(limits.probation.min_calls).min(least) as usize;
            let young = self.counted.iter().filter(|(at, _)| now.since(*at) <= limits.stretch);
            seen = young.rev().take(kept).collect();
        }
        if seen.len() < least as usize {
            return false;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few hundred calls")]
        let (n, bad) = (seen.len() as f64, seen.iter().filter(|(_, bad)| *bad).count() as f64);
        // Wilson's bound is above the limit exactly if the rate is further above it than `z`
        // standard deviations of the limit.
        let over = bad / n - limits.rate;
        over > limits.z * (limits.rate * (1.0 - limits.rate) / n).sqrt()
    }
}

/// The passes of a run, never taken off the list: reports may be late, lost, or made twice.
struct Run {
    bench: Bench,
    account: Account,
    passes: Vec<(Pass, Moment)>,
    dice: Seeded,
    now: Moment,
    forced: usize,
    trace: Vec<String>,
}

impl Run {
    fn new(limits: Limits, seed: u64) -> Self {
        let (bench, account) = (Bench::new(limits), Account::default());
        let (passes, dice, trace) = (Vec::new(), Seeded::new(seed), Vec::new());
        Self { bench, account, passes, dice, now: at(100), forced: 0, trace }
    }

    /// Of the twelve youngest passes, the one with this number.
    fn pass(&self, ix: usize) -> Option<(Pass, Moment)> {
        let (pass, until) = self.passes.iter().rev().nth(ix)?;
        Some((copy(pass), *until))
    }

    /// Whether the breaker still waits for this pass.
    fn is_awaited(&self, (pass, until): &(Pass, Moment)) -> bool {
        let breaker = &self.bench.breaker;
        match pass.kind {
            Kind::Bystander => false,
            Kind::Canary(number) => {
                self.now < *until && breaker.slots.iter().any(|slot| slot.number == number)
            }
            Kind::Ordinary | Kind::Forced => pass.epoch == breaker.epoch,
        }
    }

    fn step(&mut self, event: Event) -> Result<(), TestCaseError> {
        let before = self.bench.clone();
        match event {
            Event::Wait(seconds) => self.now = self.now.plus(secs(seconds)),
            Event::Asked(seconds) => self.bench.breaker.rest_until(self.now.plus(secs(seconds))),
            Event::Offer(elsewhere, suits) => {
                self.offer(Ask { elsewhere, suits, ..ask(self.now) })?;
            }
            Event::Force => {
                let admission = self.bench.breaker.force(&alone(self.now), &self.bench.limits);
                self.changed(&before, admission.change)?;
                let pass =
                    admission.pass.map_err(|_| TestCaseError::fail("a forced call was denied"))?;
                self.forced += usize::from(pass.is_probe());
                self.passes.push((pass, self.now.plus(LEASE)));
            }
            Event::Started(ix) => {
                let Some(held) = self.pass(ix) else { return Ok(()) };
                let is_awaited = self.is_awaited(&held);
                let change = self.bench.breaker.started(&held.0, self.now, &self.bench.limits);
                prop_assert!(is_awaited || self.bench == before, "a stale pass counted");
                self.changed(&before, change)?;
            }
            Event::Note(ix, verdict) => self.note(ix, verdict)?,
            Event::Release(ix) => {
                let Some(held) = self.pass(ix) else { return Ok(()) };
                let state = before.state(self.now);
                let is_awaited = self.is_awaited(&held);
                self.bench.breaker.release(held.0);
                prop_assert!(is_awaited || self.bench.state(self.now) == state);
                self.changed(&before, None)?;
            }
        }
        self.always()
    }

    fn offer(&mut self, ask: Ask) -> Result<(), TestCaseError> {
        self.bench.breaker.offer(self.now, &self.bench.limits);
        let before = self.bench.clone();
        let looked = before.breaker.look(&ask, &before.limits);
        let admission = self.bench.breaker.admit(&ask, &self.bench.limits);
        prop_assert_eq!(looked.err(), admission.pass.as_ref().err().copied());
        self.changed(&before, admission.change)?;
        let is_acting = before.limits.mode == Mode::Automatic;
        if admission.pass.is_ok() {
            let is_open = matches!(self.bench.state(self.now), State::Open { .. });
            prop_assert!(!(is_open && is_acting), "a call went to an open target");
            prop_assert!(self.now >= self.bench.breaker.asked, "it had asked to be left alone");
        }
        if let Err(denied) = &admission.pass {
            prop_assert!(denied.until.is_some_and(|until| until >= self.now));
        }
        self.passes.extend(admission.pass.ok().map(|pass| (pass, self.now.plus(LEASE))));
        Ok(())
    }

    fn note(&mut self, ix: usize, verdict: Verdict) -> Result<(), TestCaseError> {
        let Some(held) = self.pass(ix) else { return Ok(()) };
        let before = self.bench.clone();
        let is_awaited = self.is_awaited(&held);
        let kind = held.0.kind;
        let Bench { breaker, limits } = &mut self.bench;
        let change = breaker.note(held.0, verdict, self.now, limits, &mut self.dice);
        if !is_awaited {
            prop_assert_eq!(change, None);
            prop_assert_eq!(self.bench.state(self.now), before.state(self.now));
            prop_assert_eq!(&self.bench.breaker.window, &before.breaker.window);
            return Ok(());
        }
        if verdict == Verdict::Neutral {
            prop_assert_eq!(change, None);
            prop_assert_eq!(&self.bench.breaker.window, &before.breaker.window);
            prop_assert_eq!(self.bench.breaker.row, before.breaker.row);
        }
        if kind == Kind::Ordinary {
            let whole = before.breaker.is_whole(self.now, &before.limits);
            let Limits { failures, min_calls, probation, .. } = before.limits;
            let rule = if whole {
                (failures, min_calls)
            } else {
                (probation.failures, probation.min_calls)
            };
            self.account.note(verdict, self.now);
            let opens = matches!(verdict, Verdict::Failure | Verdict::Soft)
                && self.account.opens(self.now, &before.limits, rule);
            prop_assert_eq!(change.is_some(), opens, "by the account: {:?}", self.account.counted);
            let is_first = matches!(change, Some(Transition::Opened { .. }));
            prop_assert!(change.is_none() || is_first == whole);
        } else if before.state(self.now) == self.bench.state(self.now) {
            // A test that was carried past its probation counts like any other call.
            if self.bench.breaker.window != before.breaker.window {
                self.account.note(verdict, self.now);
            }
        } else if self.bench.breaker.window != before.breaker.window {
            self.account.note(verdict, self.now);
        }
        self.changed(&before, change)
    }

    /// One cause, one change, one new epoch; and the numbers of a rest add up.
    fn changed(&mut self, before: &Bench, change: Option<Transition>) -> Result<(), TestCaseError> {
        let epochs = self.bench.breaker.epoch - before.breaker.epoch;
        let Some(change) = change else {
            prop_assert_eq!(epochs, 0);
            return Ok(());
        };
        self.trace.push(format!("{:?} {change}", self.now));
        match change {
            Transition::Restored { .. } => prop_assert_eq!(epochs, 0),
            Transition::Opened { until, rest, .. } | Transition::Reopened { until, rest, .. } => {
                prop_assert_eq!(epochs, 1);
                prop_assert_eq!(until, self.now.plus(rest.length()));
                prop_assert!(until >= self.bench.breaker.asked);
                let limits = &self.bench.limits;
                let half = (rest.since_first / 2).clamp(limits.shortest_rest, limits.longest_rest);
                let spread = half.mul_f64(limits.jitter);
                prop_assert!(
                    half.saturating_sub(spread) <= rest.thrown && rest.thrown <= half + spread
                );
                self.account = Account::default();
            }
            Transition::Closed { started, finished, .. } => {
                let canary = self.bench.limits.canary;
                prop_assert!(finished > 0 && started >= finished);
                prop_assert!(started >= canary.passes || !canary.patience.is_zero());
                prop_assert!(epochs >= 1);
                self.account = Account::default();
            }
            Transition::HalfOpened { .. } => prop_assert_eq!(epochs, 1),
        }
        Ok(())
    }

    /// What holds at every moment.
    fn always(&self) -> Result<(), TestCaseError> {
        let Bench { breaker, limits } = &self.bench;
        // Tests in flight: never more than may be, but for those that were forced in.
        prop_assert!(
            breaker.in_flight(self.now) as usize <= limits.canary.at_once as usize + self.forced
        );
        // Permits are conserved: each slot is one pass that did not come back.
        for slot in &breaker.slots {
            let owners =
                self.passes.iter().filter(|(pass, _)| pass.kind == Kind::Canary(slot.number));
            prop_assert_eq!(owners.count(), 1);
        }
        // Half-open always ends: once the leases are over, a call that has no other target is let in.
        let later = self.now.plus(LEASE).plus(limits.longest_rest * 6 / 5).max(breaker.asked);
        prop_assert_eq!(breaker.look(&alone(later), limits), Ok(()));
        prop_assert!(breaker.slots.len() <= MAX_CANARIES);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_history_keeps_the_rules(
        limits in some_limits(),
        events in prop::collection::vec(event(), 0..150),
        seed: u64,
    ) {
        let (mut run, mut again) = (Run::new(limits, seed), Run::new(limits, seed));
        for event in events {
            run.step(event)?;
            again.step(event)?;
        }
        prop_assert_eq!(run.trace, again.trace, "the same seed, another story");
        // At quiescence nothing is held.
        for (pass, _) in run.passes {
            run.bench.breaker.release(pass);
        }
        prop_assert_eq!(run.bench.breaker.slots, []);
    }

    /// The clock may jump: nothing panics, and the target is never lost.
    #[test]
    fn no_jump_of_the_clock_shuts_a_target_for_good(
        limits in some_limits(),
        steps in prop::collection::vec((any::<u32>(), 0..3_usize), 0..80),
        seed: u64,
    ) {
        let mut run = Run::new(limits, seed);
        for (moment, what) in steps {
            run.now = at(u64::from(moment));
            let ask = alone(run.now);
            let admission = match what {
                0 => run.bench.breaker.admit(&ask, &limits),
                _ => run.bench.breaker.force(&ask, &limits),
            };
            if let Ok(pass) = admission.pass {
                let verdict = if what == 2 { Verdict::Success } else { Verdict::Failure };
                let _ = run.bench.breaker.note(pass, verdict, run.now, &limits, &mut run.dice);
            }
        }
        run.now = at(u64::from(u32::MAX));
        run.always()?;
    }
}
