//! Feeds any bytes to a stream of jsonmend in pieces of any size: one shot and stream must agree,
//! and what a snapshot says is committed must be in the document.
//!
//! The first byte picks the status, the next eight are the sizes of the pieces, used in turn.

#![no_main]

use jsonmend::{Mender, Node, Policy, Status, Stream, ValueKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((head, raw)) = bytes.split_at_checked(9) else { return };
    let (Ok(raw), [pick, sizes @ ..]) = (std::str::from_utf8(raw), head) else { return };
    let status = [Status::Unknown, Status::Stopped, Status::Cut][usize::from(pick % 3)];
    let mender = Mender::new(Policy::standard());
    let mut stream = Stream::new(mender);
    let mut rest = raw.as_bytes();
    let mut committed = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((usize::from(size % 32) + 1).min(rest.len()));
        stream.feed(piece);
        rest = behind;
        let snapshot = stream.snapshot();
        if let Some(root) = snapshot.root() {
            std::hint::black_box(root.to_value());
            committed.clear();
            collect(root, String::new(), &|node| snapshot.is_committed(node), &mut committed);
        }
    }
    let finished = stream.finish(status);
    let whole = mender.mend(raw, status);
    assert_eq!(finished.outcome.name(), whole.name());
    let value = |document: &jsonmend::Document| document.root(raw).map(Node::to_value);
    assert_eq!(finished.outcome.document().map(value), whole.document().map(value));
    let Some(root) = whole.document().and_then(|document| document.root(raw)) else { return };
    for (path, value) in committed {
        let now = root.pointer(&path).map(Node::to_value);
        assert_eq!(now, Some(value), "{path} was committed");
    }
});

fn collect(
    node: Node<'_>,
    path: String,
    is_committed: &dyn Fn(Node<'_>) -> bool,
    out: &mut Vec<(String, serde_json::Value)>,
) {
    match node.kind() {
        ValueKind::Array => {
            for (index, item) in node.items().enumerate() {
                collect(item, format!("{path}/{index}"), is_committed, out);
            }
        }
        ValueKind::Object => {
            for (key, value) in node.members() {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{path}/{key}"), is_committed, out);
            }
        }
        _ if is_committed(node) => out.push((path, node.to_value())),
        _ => {}
    }
}
