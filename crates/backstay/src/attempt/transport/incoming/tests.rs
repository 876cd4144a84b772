//! Bodies over real sockets, from a server that writes what it is told.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Incoming;
use crate::attempt::transport::{Transport, answered};

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const END: &str = "0\r\n\r\n";

/// Long enough for what was written to reach the other side of a loopback connection.
const ARRIVES: Duration = Duration::from_millis(50);

/// One event a chunk, as most providers send them.
fn event(number: usize) -> String {
    let event = format!("data: {number}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

fn events(count: usize) -> String {
    (0..count).map(event).collect()
}

/// A server on a port of its own, and how many connections it took.
struct Server {
    url: String,
    taken: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each request on each connection with `answer`.
    async fn of(answer: impl Fn(usize) -> Vec<String> + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let taken = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        let counted = Arc::clone(&taken);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                connections.spawn(serve(socket, answer.clone()));
            }
        });
        Self { url, taken, _tasks: tasks }
    }

    fn connections(&self) -> usize {
        self.taken.load(Ordering::SeqCst)
    }
}

/// Writes the parts of each answer with a pause between two, until the caller leaves.
async fn serve(mut socket: TcpStream, answer: impl Fn(usize) -> Vec<String>) {
    let mut heard = vec![0; 4_096];
    for turn in 0.. {
        if !matches!(socket.read(&mut heard).await, Ok(1..)) {
            return;
        }
        for part in answer(turn) {
            if part.is_empty() {
                sleep(Duration::from_millis(2)).await;
            }
            if socket.write_all(part.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn get(transport: &Transport, server: &Server) -> Incoming {
    let request = Request::get(&server.url).body(Full::<Bytes>::default()).unwrap();
    let sent = timeout(Duration::from_secs(5), transport.send(request, Duration::from_secs(1)));
    sent.await.expect("an answer in time").unwrap().into_body()
}

async fn text(body: Incoming) -> String {
    let all = timeout(Duration::from_secs(20), body.collect()).await.expect("an end in time");
    String::from_utf8(all.unwrap().to_bytes().to_vec()).unwrap()
}

/// The frames that one look at `body` finds.
async fn frames_at_hand(body: &mut Incoming) -> usize {
    let mut body = pin!(body);
    let mut frames = 0;
    poll_fn(|cx| {
        while let Poll::Ready(Some(Ok(_))) = body.as_mut().poll_frame(cx) {
            frames += 1;
        }
        Poll::Ready(())
    })
    .await;
    frames
}

#[tokio::test]
async fn all_events_that_have_come_are_read_in_one_look() {
    let server = Server::of(|_| {
        let slow = vec![String::new(); 20];
        [vec![CHUNKED.to_owned() + &event(0)], slow, vec![events(300)]].concat()
    })
    .await;
    let mut body = get(&Transport::new(), &server).await;
    assert_eq!(frames_at_hand(&mut body).await, 1);
    sleep(2 * ARRIVES).await;
    assert_eq!(frames_at_hand(&mut body).await, 300);
}

#[tokio::test]
async fn a_connection_carries_the_next_request_once_its_body_is_read() {
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let server = Server::of(move |turn| match turn % 5 {
        0 => vec![CHUNKED.to_owned(), events(10), String::new(), events(10), END.to_owned()],
        1 => vec![CHUNKED.to_owned() + END],
        2 => {
            vec![whole.to_owned(), String::new(), "by".to_owned(), String::new(), "tes".to_owned()]
        }
        3 => vec![CHUNKED.to_owned(), String::new(), "0\r\nx-last: 1\r\n\r\n".to_owned()],
        _ => vec![whole.to_owned() + "bytes"],
    })
    .await;
    let transport = Transport::new();
    for turn in 0..25 {
        let said = text(get(&transport, &server).await).await;
        let expected = [20 * 9, 0, 5, 0, 5][turn % 5];
        assert_eq!(said.len(), expected, "turn {turn}: {said:?}");
        // The library gives the connection back a moment after the end.
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_that_was_read_and_is_still_there_holds_up_no_other_request() {
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let server = Server::of(move |turn| {
        let pause = String::new();
        match turn % 3 {
            0 => vec![CHUNKED.to_owned(), pause, events(3), END.to_owned()],
            1 => vec![whole.to_owned(), pause, "bytes".to_owned()],
            _ => vec![CHUNKED.to_owned(), pause, "0\r\nx-last: 1\r\n\r\n".to_owned()],
        }
    })
    .await;
    let transport = Transport::new();
    let mut read = Vec::new();
    for _ in 0..12 {
        let mut body = get(&transport, &server).await;
        while !body.is_end_stream()
            && body.frame().await.is_some_and(|frame| frame.unwrap().is_data())
        {}
        read.push(body);
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_nobody_reads_holds_up_its_own_connection_only() {
    let server =
        Server::of(|_| vec![CHUNKED.to_owned(), String::new(), events(5), END.to_owned()]).await;
    let transport = Transport::new();
    let mut unread = get(&transport, &server).await;
    assert_eq!(frames_at_hand(&mut unread).await, 0, "driven from now on");
    for _ in 0..5 {
        assert_eq!(text(get(&transport, &server).await).await.lines().count(), 10);
    }
    assert_eq!(text(unread).await.lines().count(), 10);
}

#[tokio::test]
async fn a_dropped_body_closes_its_connection_at_once() {
    let (mut body, mut socket) = answered(&(CHUNKED.to_owned() + &event(0))).await;
    assert_eq!(frames_at_hand(&mut body).await, 1);
    drop(body);
    let mut heard = [0; 16];
    let closed = timeout(Duration::from_millis(500), socket.read(&mut heard)).await;
    assert!(matches!(closed, Ok(Ok(0) | Err(_))), "{closed:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_body_fails_it() {
    let (mut body, socket) = answered(&(CHUNKED.to_owned() + &events(2))).await;
    sleep(ARRIVES).await;
    assert_eq!(frames_at_hand(&mut body).await, 2);
    drop(socket);
    let last = timeout(Duration::from_secs(5), body.frame()).await.unwrap();
    assert!(last.is_some_and(|last| last.is_err()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_stream_is_forgotten_where_readers_and_connections_move_between_threads() {
    let server = Server::of(|turn| {
        let parts = (0..120).map(|part| match (part + turn) % 3 {
            0 => String::new(),
            1 => event(part),
            _ => events(part % 7),
        });
        [vec![CHUNKED.to_owned()], parts.collect(), vec![END.to_owned()]].concat()
    })
    .await;
    let (server, transport) = (Arc::new(server), Transport::new());
    let mut readers = JoinSet::new();
    for reader in 0..64 {
        let (server, transport) = (Arc::clone(&server), transport.clone());
        readers.spawn(async move {
            for turn in 0..10 {
                let mut body = get(&transport, &server).await;
                if (reader + turn) % 4 == 0 {
                    // Read in part, by another task, and dropped there.
                    let mut other = JoinSet::new();
                    other.spawn(async move { body.frame().await.unwrap().unwrap() });
                    other.join_next().await.unwrap().unwrap();
                    continue;
                }
                assert!(text(body).await.starts_with("data: "));
            }
        });
    }
    let all = async {
        while let Some(done) = readers.join_next().await {
            done.unwrap();
        }
    };
    timeout(Duration::from_mins(1), all).await.expect("every stream came to its end");
}

#[test]
fn a_runtime_that_ends_closes_the_connections_of_its_requests() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let transport = Transport::new();
    let sent = transport.clone();
    let request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
    let sending = runtime.spawn(async move { sent.send(request, Duration::from_secs(1)).await });
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut heard = [0; 4_096];
    assert!(std::io::Read::read(&mut socket, &mut heard).unwrap() > 0);
    // The head is waited for when the runtime goes; the pools and their owner live on.
    runtime.shutdown_timeout(Duration::from_secs(1));
    let closed = std::io::Read::read(&mut socket, &mut heard);
    assert!(matches!(closed, Ok(0)), "{closed:?}");
    drop((sending, transport));
}
