//! `backstay serve` whose standard error nobody reads: its pipe is full, and what is logged waits for ever.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, and its steps stand outside of test functions too"
)]

mod served;

use std::io::{PipeReader, Read, Write};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use backstay_mock::{Mock, Settings};
use served::Served;
use tokio::time::Instant;

/// What a pipe of Linux holds, and at least what another system's does.
const FULL: usize = 64 << 10;

const BODY: &str = r#"{"model":"odd","messages":[{"role":"user","content":"hello"}]}"#;

/// Every call of `odd` logs an error, and is answered by the second tier.
fn config(base: &str) -> String {
    let target = |name: &str, model: &str| {
        format!("[models.{name}]\nprovider = \"mock\"\nmodel = \"{model}\"\npinned = true\n")
    };
    format!(
        "[server]\ncall_log = \"off\"\ndrain = \"1s\"\n\
         [providers.mock]\ndialect = \"openai_chat\"\nbase_url = \"{base}\"\nauth = \"none\"\n{}{}\
         [routes.odd]\ntiers = [\"one\", \"two\"]\ndeadline = \"5s\"\n",
        target("one", "unknown-finish"),
        target("two", "healthy")
    )
}

/// A gateway, and the end of its standard error that is not read.
struct Unread {
    served: Served,
    unread: PipeReader,
}

impl Unread {
    fn start(test: &str, base: &str) -> Self {
        let (unread, mut full) = std::io::pipe().unwrap();
        full.write_all(&vec![b'x'; FULL]).unwrap();
        let served = Served::start(&format!("unread-{test}"), &config(base), full);
        Self { served, unread }
    }

    /// The whole response.
    fn ask(&self, start: &str, body: &str) -> String {
        self.served.ask(start, "", body)
    }

    /// Waits until readiness says `words`. It is 200 all the while.
    fn told(&self, words: &str) {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let seen = self.ask("GET /health/ready", "");
            assert!(seen.starts_with("HTTP/1.1 200 OK\r\n"), "{seen}");
            if seen.contains(words) {
                return;
            }
            assert!(Instant::now() < end, "{words:?} is not told: {seen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to end, and waits.
    fn stop(&mut self) -> ExitStatus {
        let pid = self.served.child.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(status) = self.served.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "it hangs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_a_log_that_nobody_reads_and_it_is_told() {
    let mock = Mock::start(Settings::default()).await.unwrap();
    let mut served = Unread::start("calls", &mock.openai_base());
    for number in 0..20 {
        let began = Instant::now();
        let seen = served.ask("POST /v1/chat/completions", BODY);
        assert!(seen.starts_with("HTTP/1.1 200 OK\r\n"), "{seen}");
        assert!(seen.contains("x-backstay-target: two"), "{seen}");
        assert!(began.elapsed() < Duration::from_secs(2), "call {number}: {:?}", began.elapsed());
    }
    served.told("\r\n\r\ndegraded\nlog: no answer for ");
    let metrics = served.ask("GET /metrics", "");
    for line in ["backstay_degraded{part=\"log\"} 1\n", "backstay_log_lines_dropped 0\n"] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }
    // Somebody reads again: what waited comes, in order, and all is well.
    let mut read = vec![0; FULL];
    served.unread.read_exact(&mut read).unwrap();
    served.told("\r\n\r\nready\n");
    assert!(served.stop().success());
    let mut log = String::new();
    served.unread.read_to_string(&mut log).unwrap();
    assert_eq!(log.matches("a reply ended in a way not known here").count(), 20, "{log}");
    assert!(log.trim_end().ends_with("press Ctrl-C again to cut them"), "{log}");
    mock.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_does_not_wait_for_who_reads_the_log() {
    let mock = Mock::start(Settings::default()).await.unwrap();
    let mut served = Unread::start("stop", &mock.openai_base());
    served.ask("POST /v1/chat/completions", BODY);
    let began = Instant::now();
    assert!(served.stop().success());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    mock.stop().await;
}
