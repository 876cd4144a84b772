//! What the scanner accepts, finds and says.

use super::*;

fn keys(body: &str) -> Vec<(String, String)> {
    let scanned = scan(body.as_bytes(), MAX_DEPTH).unwrap();
    scanned.keys().map(|(k, s)| (k.to_owned(), body.get(s.clone()).unwrap().to_owned())).collect()
}

fn fault(body: &[u8]) -> String {
    scan(body, MAX_DEPTH).unwrap_err().to_string()
}

fn edited(body: &str, edits: &[Edit]) -> String {
    let scanned = scan(body.as_bytes(), MAX_DEPTH).unwrap();
    String::from_utf8(scanned.edit(body.as_bytes(), edits)).unwrap()
}

fn set(key: &'static str, json: &str) -> Edit {
    Edit::Set(key, json.to_owned())
}

#[test]
fn the_spans_of_top_level_values_are_found() {
    let found =
        keys("\n{ \"model\" : \"m\\\"x\" ,\"messages\":[{\"a\":[1,{}]}, 2]\t,\"n\":-1.5e3}\n");
    let want = [("model", "\"m\\\"x\""), ("messages", "[{\"a\":[1,{}]}, 2]"), ("n", "-1.5e3")];
    let found: Vec<_> = found.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(found, want);
    assert!(keys("{}").is_empty());
    assert!(keys(" { } ").is_empty());
}

#[test]
fn an_escaped_key_is_unescaped_and_a_repeated_one_means_its_last_value() {
    let body = br#"{"mod\u0065l":"a","model":"b","x\ud83d\ude00":1}"#;
    let scanned = scan(body, MAX_DEPTH).unwrap();
    assert_eq!(scanned.string(body, "model").unwrap().unwrap(), "b");
    assert_eq!(scanned.unsigned(body, "x😀").unwrap(), Some(1));
    assert_eq!(scanned.keys().filter(|(k, _)| *k == "model").count(), 2);
}

#[test]
fn faults_say_what_was_expected_and_where() {
    let rows: &[(&[u8], &str)] = &[
        (b"", "expected an object, found an empty body at line 1, column 1"),
        (b"[1]", "expected an object, found '[' at line 1, column 1"),
        (b"\xef\xbb\xbf{}", "expected an object, found byte 0xef at line 1, column 1"),
        (
            b"{",
            "expected a key in double quotes or '}', found the end of the body at line 1, column 2",
        ),
        (b"{\n  'a': 1}", "expected a key in double quotes or '}', found ''' at line 2, column 3"),
        (b"{\"a\" 1}", "expected a colon after the key, found '1' at line 1, column 6"),
        (
            b"{\"a\":1,}",
            "expected a key in double quotes after the comma, found '}' at line 1, column 8",
        ),
        (b"{\"a\":[1,]}", "expected a value, found ']' at line 1, column 9"),
        (
            b"{\"a\":1 \"b\":2}",
            "expected a comma or '}' after a value, found a string at line 1, column 8",
        ),
        (b"{\"a\":[1 2]}", "expected a comma or ']' after an item, found '2' at line 1, column 9"),
        (b"{\"a\":nul}", "expected a value, found 'n' at line 1, column 6"),
        (b"{\"a\":01}", "expected a comma or '}' after a value, found '1' at line 1, column 7"),
        (b"{\"a\":1.}", "expected a digit in a number, found '}' at line 1, column 8"),
        (b"{\"a\":1e999}", "a number is out of range at line 1, column 6"),
        (b"{\"a\":\"x", "a string has no closing quote at line 1, column 6"),
        (
            b"{\"a\":\"x\ny\"}",
            "a control character in a string must be escaped at line 1, column 8",
        ),
        (b"{\"a\":\"\\q\"}", "a backslash in a string starts no known escape at line 1, column 7"),
        (b"{\"a\":\"\\u12\"}", "\\u in a string needs four hex digits at line 1, column 7"),
        (b"{\"a\":\"\\ud800\"}", "\\u in a string is half of a pair at line 1, column 13"),
        (b"{\"a\":\"\xff\"}", "a string is not valid UTF-8 at line 1, column 7"),
        (b"{} x", "expected nothing after the object, found 'x' at line 1, column 4"),
    ];
    for (body, want) in rows {
        let want = format!("the request body is not valid JSON: {want}");
        assert_eq!(fault(body), want, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn a_hundred_thousand_brackets_are_a_clean_fault() {
    for open in ["[", "{\"a\":"] {
        let body = format!("{{\"a\":{}", open.repeat(100_000));
        assert!(fault(body.as_bytes()).contains("the nesting is deeper than 127 levels"));
    }
}

#[test]
fn the_depth_counts_the_object_itself() {
    assert!(scan(b"{}", 1).is_ok());
    assert!(scan(b"{\"a\":[]}", 1).is_err());
    assert!(scan(b"{\"a\":[]}", 2).is_ok());
    assert!(scan(b"{}", 0).is_err());
    let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    for n in [126, 127] {
        let body = nested(n);
        let built = serde_json::from_str::<serde_json::Value>(&body).is_ok();
        assert_eq!(scan(body.as_bytes(), usize::MAX).is_ok(), built, "{n}");
    }
}

#[test]
fn the_getters_say_which_type_they_want() {
    let body = br#"{"s":"x\ny","n":16,"neg":-1,"half":1.5,"yes":true,"nil":null,"a/b":[]}"#;
    let scanned = scan(body, MAX_DEPTH).unwrap();
    assert_eq!(scanned.string(body, "s").unwrap().unwrap(), "x\ny");
    assert_eq!(scanned.unsigned(body, "n").unwrap(), Some(16));
    assert_eq!(scanned.boolean(body, "yes").unwrap(), Some(true));
    assert_eq!(scanned.string(body, "nil").unwrap(), None);
    assert_eq!(scanned.string(body, "none").unwrap(), None);
    let note = |result: Result<(), Malformed>| result.unwrap_err().to_string();
    assert_eq!(note(scanned.string(body, "n").map(drop)), "/n: expected a string, found a number");
    assert_eq!(
        note(scanned.unsigned(body, "neg").map(drop)),
        "/neg: expected a whole number from 0, found a negative number"
    );
    assert_eq!(
        note(scanned.unsigned(body, "half").map(drop)),
        "/half: expected a whole number from 0, found a number with a fraction"
    );
    assert_eq!(
        note(scanned.boolean(body, "a/b").map(drop)),
        "/a~1b: expected true or false, found an array"
    );
    assert!(scanned.unsigned(b"{}", "n").unwrap().is_none(), "a foreign body is no panic");
}

#[test]
fn a_plain_string_is_borrowed() {
    let body = br#"{"model":"gpt"}"#;
    let scanned = scan(body, MAX_DEPTH).unwrap();
    assert!(matches!(scanned.string(body, "model").unwrap(), Some(Cow::Borrowed("gpt"))));
}

#[test]
fn edits_touch_only_their_own_bytes() {
    let body = "{ \"a\" : 1 ,\n \"b\":\t2,\"c\":3 }";
    assert_eq!(edited(body, &[]), body);
    assert_eq!(edited(body, &[set("b", "[9]")]), "{ \"a\" : 1 ,\n \"b\":\t[9],\"c\":3 }");
    assert_eq!(edited(body, &[set("d", "4")]), "{ \"a\" : 1 ,\n \"b\":\t2,\"c\":3,\"d\":4 }");
    assert_eq!(edited(body, &[Edit::Remove("a")]), "{ \"b\":\t2,\"c\":3 }");
    assert_eq!(edited(body, &[Edit::Remove("b")]), "{ \"a\" : 1 ,\n \"c\":3 }");
    assert_eq!(edited(body, &[Edit::Remove("c")]), "{ \"a\" : 1 ,\n \"b\":\t2 }");
    assert_eq!(edited(body, &[Edit::Remove("b"), Edit::Remove("c")]), "{ \"a\" : 1 }");
    let all = [Edit::Remove("a"), Edit::Remove("b"), Edit::Remove("c")];
    assert_eq!(edited(body, &all), "{  }");
    assert_eq!(edited(body, &[&all[..], &[set("z", "0")]].concat()), "{ \"z\":0 }");
    assert_eq!(edited("{}", &[set("a", "1"), set("b", "2")]), "{\"a\":1,\"b\":2}");
    assert_eq!(edited(body, &[Edit::Remove("none")]), body);
}

#[test]
fn a_repeated_key_is_set_once_and_the_last_edit_of_a_key_counts() {
    let body = r#"{"a":1,"b":2,"a":3}"#;
    assert_eq!(edited(body, &[set("a", "9")]), r#"{"b":2,"a":9}"#);
    assert_eq!(edited(body, &[Edit::Remove("a")]), r#"{"b":2}"#);
    assert_eq!(edited(body, &[set("b", "7"), Edit::Remove("b")]), r#"{"a":1,"a":3}"#);
    assert_eq!(edited("{}", &[set("q", "1"), set("q", "2")]), r#"{"q":2}"#);
    assert_eq!(edited(r#"{"\u0061":1}"#, &[set("a", "2")]), r#"{"\u0061":2}"#);
}

#[test]
fn an_edit_allocates_its_buffer_once() {
    let body = br#"{"model":"m","stream":false}"#;
    let scanned = scan(body, MAX_DEPTH).unwrap();
    let out = scanned.edit(body, &[set("model", "\"longer\""), set("n", "1")]);
    let bound = body.len() + "\"longer\"".len() + "model".len() + 4 + 1 + "n".len() + 4;
    assert_eq!(out.capacity(), bound);
}
