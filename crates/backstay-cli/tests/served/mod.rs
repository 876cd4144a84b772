//! `backstay serve` as a process of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A gateway that is ended with the test.
pub(crate) struct Served {
    pub(crate) child: Child,
    address: String,
}

impl Served {
    /// Serves `config`, in a file with this `name` in it, and says what it has to say to `stderr`.
    pub(crate) fn start(name: &str, config: &str, stderr: impl Into<Stdio>) -> Self {
        let name = format!("backstay-{}-{name}.toml", std::process::id());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_backstay"))
            .args(["serve", "--listen", "127.0.0.1:0", "-c"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        std::fs::remove_file(file).unwrap();
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { child, address }
    }

    /// The whole response to a request that begins with `start`; each line of `headers` with its end.
    pub(crate) fn ask(&self, start: &str, headers: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let length = body.len();
        let head = format!("host: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n");
        let request = format!("{start} HTTP/1.1\r\n{head}\r\n{body}");
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
