//! `backstay serve` plays the faults that callers ask for: no provider is needed.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CONFIG: &str = r#"
[server]
call_log = "off"
[providers.nobody]
dialect = "openai_chat"
base_url = "http://127.0.0.1:1/v1"
[models.main]
provider = "nobody"
model = "m"
pinned = true
[routes.main]
tiers = ["main"]
deadline = "5s"
"#;

const BODY: &str = r#"{"model":"main","messages":[{"role":"user","content":"hello"}]}"#;

/// A gateway that is ended with the test.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn start() -> Self {
        let name = format!("backstay-simulate-{}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, CONFIG).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_backstay"))
            .args(["serve", "--listen", "127.0.0.1:0", "-c"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        std::fs::remove_file(file).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    /// The whole response to a request with this header.
    fn ask(&self, header: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
        let length = BODY.len();
        let request = format!("{head}content-length: {length}\r\n{header}\r\n\r\n{BODY}");
        socket.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        socket.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_served_gateway_plays_what_is_asked_for_and_names_the_nearest_of_what_is_not() {
    let served = Served::start();
    for (header, status, words) in [
        ("x-backstay-simulate: healthy", "200 OK", "x-backstay-notes: simulated healthy"),
        ("x-backstay-simulate: context-exceeded", "400 Bad Request", "context_length_exceeded"),
        ("x-backstay-simulate: silent", "400 Bad Request", "the nearest is `silence`"),
        ("accept: */*", "502 Bad Gateway", "provider_unreachable"),
    ] {
        let response = served.ask(header);
        assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{header}: {response}");
        assert!(response.contains(words), "{header}: {response}");
    }
}
