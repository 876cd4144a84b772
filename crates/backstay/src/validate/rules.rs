//! Layer 3: what must hold of a reply beyond its shape, as CEL expressions. The only file that
//! knows the crate `cel`.
//!
//! A rule sees two variables: `reply`, the JSON value (for a reply in text, the text), and `input`,
//! the text that the reply is about. It must come out true or false. One that cannot be evaluated,
//! because a key is missing, say, has not held: the reply is refused, and the error says so.
//!
//! The evaluator has no budget of its own, so what may make it long is bounded: the expression when
//! it is compiled, the sizes of `reply` and `input` when it is run.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use backstay_decide::fault::Fault;
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedExpr};
use cel::{Context, Env, Program};
use serde_json::Value;

use super::{Asked, Checked, Layer, Problem, Unfit, clipped, deep};

/// The most bytes of an expression. A long rule has 200.
const MAX_CHECK: usize = 2_000;

/// The most brackets open at once in an expression: the parser goes down the stack with each.
const MAX_OPEN: usize = 24;

/// The deepest tree of an expression. The evaluator takes 25 KiB a level in a debug build, out of
/// the 2 MiB of a worker thread.
const MAX_DEPTH: u32 = 32;

/// The most loops (`all`, `exists`, `map`, `filter`) inside each other.
const MAX_LOOPS: u32 = 3;

/// The most bytes of `input`, and of a reply in text.
const MAX_TEXT: usize = 1024 * 1024;

/// The most steps of one evaluation, by estimate: the values in the reply to the power of the loops
/// inside each other, each step once for every 4 KiB of text. A step takes about 3 microseconds in a debug build.
const MAX_STEPS: u64 = 2_000_000;

/// What an expression may call: CEL's standard functions and macros.
static STANDARD: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// The names of types, which an expression may compare `type(x)` with.
const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "type", "uint"];

/// Why a rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleFault {
    /// The expression is too long or too deep.
    #[error("rule '{name}' is too large: {what}")]
    TooLarge {
        /// The rule's name.
        name: String,
        /// Which limit it breaks.
        what: String,
    },
    /// The expression is not CEL.
    #[error("rule '{name}' does not parse at line {line}, column {column}: {problem}")]
    Syntax {
        /// The rule's name.
        name: String,
        /// From 1; 0 where the parser does not say.
        line: usize,
        /// From 1, in characters; 0 where the parser does not say.
        column: usize,
        /// What the parser expected.
        problem: String,
    },
    /// The expression uses a name that no rule knows.
    #[error(
        "rule '{name}' uses '{unknown}' at line {line}, column {column}; a rule sees `reply`, `input` and the functions of CEL"
    )]
    UnknownName {
        /// The rule's name.
        name: String,
        /// The variable or function it uses.
        unknown: String,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
    },
    /// `input` is not a JSON pointer.
    #[error(
        "rule '{name}' has the input '{pointer}', which is no JSON pointer such as `/messages/0/content`"
    )]
    BadInput {
        /// The rule's name.
        name: String,
        /// What stands there.
        pointer: String,
    },
}

/// One rule, compiled.
pub struct Rule {
    name: String,
    message: String,
    input: Option<String>,
    program: Program,
    loops: u32,
}

impl Rule {
    /// Compiles the rule `name` from the expression `check`, which must come out true.
    ///
    /// `message` is what is told when it does not; `None` names the rule and the expression.
    /// `input` is a JSON pointer into the request; `None` is the last user message.
    ///
    /// # Errors
    ///
    /// See [`RuleFault`]; all of them are for whoever wrote the rule to mend.
    pub fn compile(
        name: &str,
        check: &str,
        message: Option<&str>,
        input: Option<&str>,
    ) -> Result<Self, RuleFault> {
        let too_large = |what: String| RuleFault::TooLarge { name: name.to_owned(), what };
        if check.len() > MAX_CHECK {
            return Err(too_large(format!("{} bytes, {MAX_CHECK} are allowed", check.len())));
        }
        if open_at_once(check) > MAX_OPEN {
            return Err(too_large(format!("more than {MAX_OPEN} brackets open at once")));
        }
        if let Some(pointer) =
            input.filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/'))
        {
            return Err(RuleFault::BadInput { name: name.to_owned(), pointer: pointer.to_owned() });
        }
        let (program, loops) = measured(name, check)?;
        let message =
            message.map_or_else(|| format!("rule '{name}' does not hold: {check}"), str::to_owned);
        Ok(Self { name: name.to_owned(), message, input: input.map(str::to_owned), program, loops })
    }

    /// The rule's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong, if the rule does not hold.
    fn broken(&self, reply: &Measured, asked: &Asked<'_>) -> Option<String> {
        let cannot =
            |why: &str| Some(format!("rule '{}' could not be evaluated: {why}", self.name));
        let input = (asked.input)(self.input.as_deref());
        if input.len() > MAX_TEXT {
            return cannot("the input is too long");
        }
        let pages = 1 + u64::try_from((input.len() + reply.bytes) / 4096).unwrap_or(u64::MAX);
        if reply.nodes.saturating_pow(self.loops).saturating_mul(pages) > MAX_STEPS {
            return cannot("the reply is too large for it");
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut names = Context::with_env(Arc::clone(&STANDARD));
            names.add_variable_from_value("reply", reply.value.clone());
            names.add_variable_from_value("input", input);
            self.program.execute(&names)
        }));
        match outcome {
            Ok(Ok(cel::Value::Bool(true))) => None,
            Ok(Ok(cel::Value::Bool(false))) => Some(self.message.clone()),
            Ok(Ok(other)) => cannot(&format!("it gives {}, not true or false", other.type_of())),
            Ok(Err(error)) => cannot(&clipped(&error.to_string(), 160)),
            Err(_) => cannot("the evaluator failed"),
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A reply as the rules see it.
struct Measured {
    value: cel::Value,
    nodes: u64,
    bytes: usize,
}

/// Checks every rule, in order.
pub(super) fn check(rules: &[Rule], checked: &Checked, asked: &Asked<'_>) -> Result<(), Unfit> {
    if rules.is_empty() {
        return Ok(());
    }
    let mut nodes = 0;
    let value = match checked.value() {
        Some(value) => seen(&value, &mut nodes),
        None => checked.text.clone().into(),
    };
    let reply = Measured { value, nodes: nodes.max(1), bytes: checked.text.len() };
    let problems: Vec<Problem> = if reply.bytes > MAX_TEXT {
        vec![Problem::new("", "size", "the reply is too long for the rules")]
    } else {
        let broken = |rule: &Rule| {
            let message = rule.broken(&reply, asked)?;
            Some(Problem::new("", rule.name.clone(), message))
        };
        rules.iter().filter_map(broken).collect()
    };
    if problems.is_empty() {
        return Ok(());
    }
    Err(Unfit::of(Fault::SemanticError, Layer::Rules, problems))
}

/// A JSON value as CEL has it. Whole numbers become `int`, or `uint` past its range, so that
/// `reply.priority == 1` compares the same kind.
fn seen(value: &Value, nodes: &mut u64) -> cel::Value {
    *nodes += 1;
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => {
            let whole = number.as_i64().map(cel::Value::Int);
            let whole = whole.or_else(|| number.as_u64().map(cel::Value::UInt));
            whole.unwrap_or_else(|| cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)))
        }
        Value::String(text) => text.clone().into(),
        Value::Array(items) => {
            cel::Value::List(Arc::new(items.iter().map(|item| seen(item, nodes)).collect()))
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.clone(), seen(member, nodes)));
            members.collect::<HashMap<String, cel::Value>>().into()
        }
    }
}

/// Parses an expression and bounds what it may cost; tells how many loops are inside each other.
fn measured(name: &str, check: &str) -> Result<(Program, u32), RuleFault> {
    let outcome = deep(|| {
        let program = parsed(name, check)?;
        let walk = Walk::through(program.expression());
        Ok((program, walk))
    });
    // None: the parser panicked. It is generated, and goes over its input by bytes.
    let (program, walk) =
        outcome.unwrap_or_else(|| Err(syntax(name, 0, 0, "not an expression")))?;
    let too_large = |what| Err(RuleFault::TooLarge { name: name.to_owned(), what });
    if walk.deepest > MAX_DEPTH {
        return too_large(format!("nested deeper than {MAX_DEPTH} levels"));
    }
    if walk.loops > MAX_LOOPS {
        let loops = walk.loops;
        return too_large(format!("{loops} loops inside each other, {MAX_LOOPS} are allowed"));
    }
    if let Some((unknown, id)) = walk.unknown {
        let offset = program.source_info().offset_for(id).map_or(0, |(start, _)| start);
        let (line, column) = place(check, usize::try_from(offset).unwrap_or(0));
        return Err(RuleFault::UnknownName { name: name.to_owned(), unknown, line, column });
    }
    Ok((program, walk.loops))
}

fn parsed(name: &str, check: &str) -> Result<Program, RuleFault> {
    let errors = match STANDARD.compile(check) {
        Ok(program) => return Ok(program),
        Err(errors) => errors.errors,
    };
    let number = |at: isize| usize::try_from(at).unwrap_or(0);
    let (line, column, problem) = errors.first().map_or((0, 0, "not an expression"), |first| {
        (number(first.pos.0), number(first.pos.1), first.msg.as_str())
    });
    // The crate's words for it are those of its debugger.
    let problem = if problem.contains("Recursion") { "nested too deeply" } else { problem };
    Err(syntax(name, line, column, problem))
}

fn syntax(name: &str, line: usize, column: usize, problem: &str) -> RuleFault {
    RuleFault::Syntax { name: name.to_owned(), line, column, problem: clipped(problem, 200) }
}

/// The line and column, from 1, of the byte `offset` of `text`.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    (line, before.chars().rev().take_while(|letter| *letter != '\n').count() + 1)
}

/// The most brackets open at once; those in strings count too.
fn open_at_once(check: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0_usize);
    for letter in check.chars() {
        match letter {
            '(' | '[' | '{' => open += 1,
            ')' | ']' | '}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// What one walk over an expression finds.
#[derive(Default)]
struct Walk {
    /// The most loops inside each other.
    loops: u32,
    /// Levels of the tree.
    deepest: u32,
    /// The first name nobody knows, and the id of the node that has it.
    unknown: Option<(String, u64)>,
    /// Loops and nodes around the node, and the variables the loops bind.
    around: u32,
    above: u32,
    bound: Vec<String>,
}

impl Walk {
    fn through(expression: &IdedExpr) -> Self {
        let mut walk = Self::default();
        walk.visit(expression);
        walk
    }

    fn visit(&mut self, node: &IdedExpr) {
        self.above += 1;
        self.deepest = self.deepest.max(self.above);
        self.inside(node);
        self.above -= 1;
    }

    fn inside(&mut self, node: &IdedExpr) {
        match &node.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.meet(name, node.id),
            Expr::Select(select) => self.visit(&select.operand),
            Expr::List(list) => list.elements.iter().for_each(|element| self.visit(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Struct(made) => made.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Call(call) => {
                if !callable(&call.func_name) {
                    self.note(&call.func_name, node.id);
                }
                call.target.iter().for_each(|target| self.visit(target));
                call.args.iter().for_each(|argument| self.visit(argument));
            }
            Expr::Comprehension(each) => self.each(each),
        }
    }

    fn each(&mut self, each: &ComprehensionExpr) {
        self.visit(&each.iter_range);
        self.visit(&each.accu_init);
        let before = self.bound.len();
        self.bound.extend([each.iter_var.clone(), each.accu_var.clone()]);
        self.bound.extend(each.iter_var2.clone());
        self.around += 1;
        self.loops = self.loops.max(self.around);
        self.visit(&each.loop_cond);
        self.visit(&each.loop_step);
        self.visit(&each.result);
        self.around -= 1;
        self.bound.truncate(before);
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::StructField(field) => self.visit(&field.value),
            EntryExpr::MapEntry(entry) => {
                self.visit(&entry.key);
                self.visit(&entry.value);
            }
        }
    }

    fn meet(&mut self, name: &str, id: u64) {
        let known = matches!(name, "reply" | "input") || TYPES.contains(&name);
        if !known && !self.bound.iter().any(|bound| bound == name) {
            self.note(name, id);
        }
    }

    fn note(&mut self, name: &str, id: u64) {
        if self.unknown.is_none() {
            self.unknown = Some((clipped(name, 60), id));
        }
    }
}

/// Whether CEL has a function or operator of that name. The crate says so only by refusing to let
/// one be added again.
fn callable(name: &str) -> bool {
    let is_word = name.starts_with(|first: char| first.is_alphabetic());
    let mut names = Context::with_env(Arc::clone(&STANDARD));
    !is_word || names.add_function(name, || true).is_err()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(check: &str) -> Rule {
        Rule::compile("r", check, None, None).unwrap()
    }

    fn fault(check: &str) -> RuleFault {
        Rule::compile("r", check, None, None).unwrap_err()
    }

    fn errors(rules: &[Rule], reply: &Value, input: &str) -> Vec<String> {
        let parsed = crate::validate::syntax::Parsed::strict(reply.to_string()).unwrap();
        let checked = parsed.into_checked();
        let asked = Asked { input: &|_| input.to_owned(), ..Asked::nothing() };
        check(rules, &checked, &asked).err().map(|unfit| unfit.errors).unwrap_or_default()
    }

    fn holds(check: &str) -> bool {
        let reply = json!({
            "p": 1, "f": 2.0, "big": u64::MAX, "l": [1, 2, 3], "s": "abc", "n": null,
            "o": {"a": {"b": true}}
        });
        let errors = errors(&[rule(check)], &reply, "hello abc");
        assert!(errors.len() <= 1 && !errors.iter().any(|e| e.contains("could not")), "{errors:?}");
        errors.is_empty()
    }

    #[test]
    fn expressions_over_the_reply_and_the_input_come_out_as_they_read() {
        let right = [
            "reply.p == 1",
            "reply.p == 1.0",
            "reply.f == 2",
            "reply.p != 1 || reply.o.a.b",
            "reply.big > 1",
            "reply.big == 18446744073709551615u",
            "reply.p in [1, 2]",
            "reply.l.all(x, x > 0)",
            "reply.l.exists(x, x == 3)",
            "reply.l.filter(x, x > 1) == [2, 3]",
            "reply.l.size() == 3 && size(reply.s) == 3",
            "reply.s.startsWith('ab') && reply.s.endsWith('c')",
            "reply.s.matches('^a.c$')",
            "input.contains(reply.s)",
            "has(reply.o.a) && !has(reply.o.z)",
            "reply.n == null",
            "type(reply.p) == int && type(reply.f) == double",
            "reply['p'] == 1",
            "reply.p == 1 || reply.z == 1",
        ];
        for check in right {
            assert!(holds(check), "{check}");
            assert!(!holds(&format!("!({check})")), "not: {check}");
        }
    }

    #[test]
    fn a_broken_rule_says_its_message_or_names_itself() {
        let told = Rule::compile("r", "reply.p == 2", Some("p must be 2"), None).unwrap();
        let errors =
            errors(&[told, rule("reply.p == 1"), rule("reply.p == 3")], &json!({"p": 1}), "");
        assert_eq!(errors, ["p must be 2", "rule 'r' does not hold: reply.p == 3"]);
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_has_not_held_and_says_why() {
        let rows = [
            ("reply.z == 1", "rule 'r' could not be evaluated: No such key: z"),
            ("reply.p", "rule 'r' could not be evaluated: it gives int, not true or false"),
            ("reply.p / 0 == 1", "rule 'r' could not be evaluated: Division by zero of Int(1)"),
        ];
        for (check, expected) in rows {
            assert_eq!(errors(&[rule(check)], &json!({"p": 1}), ""), [expected]);
        }
        for check in ["reply.p.contains('x')", "reply.p + 'x' == ''", "reply.s.matches('(')"] {
            let errors = errors(&[rule(check)], &json!({"p": 1, "s": ""}), "");
            assert!(errors[0].starts_with("rule 'r' could not be evaluated: "), "{errors:?}");
        }
    }

    #[test]
    fn an_expression_that_does_not_parse_is_told_with_its_place() {
        for (check, at) in [("reply.p ==", (1, 11)), ("reply.p\n== == 1", (2, 4)), ("", (1, 1))] {
            let RuleFault::Syntax { line, column, .. } = fault(check) else { panic!("{check}") };
            assert_eq!((line, column), at, "{check}");
        }
        let unknown = [("'é' == 'é' && zz", "zz", 15), ("reply.frob(1)", "frob", 11)];
        for (check, name, at) in unknown {
            let RuleFault::UnknownName { unknown, column, .. } = fault(check) else { panic!() };
            assert_eq!((unknown.as_str(), column), (name, at), "{check}");
        }
        let pointer = Rule::compile("r", "true", None, Some("messages")).unwrap_err();
        assert!(matches!(pointer, RuleFault::BadInput { .. }));
    }

    #[test]
    fn an_expression_too_large_or_too_deep_is_refused_before_it_is_run() {
        let many = |piece: &str, count: usize| piece.repeat(count);
        let large = [
            "true".to_owned() + &many("&&true", 500),
            many("(", 30) + "true" + &many(")", 30),
            "1".to_owned() + &many("+1", 200) + " == 1",
            "reply".to_owned() + &many(".a", 500) + " == 1",
            "reply.l.all(a, reply.l.all(b, reply.l.all(c, reply.l.all(d, true))))".to_owned(),
        ];
        for check in large {
            assert!(matches!(fault(&check), RuleFault::TooLarge { .. }), "{check}");
        }
        assert!(matches!(fault(&(many("true?true:", 190) + "true")), RuleFault::Syntax { .. }));
    }

    #[test]
    fn a_rule_that_would_take_too_long_is_not_run() {
        let nested = rule("reply.l.all(a, reply.l.all(b, a == b))");
        let flat = rule("reply.l.all(a, a == 1)");
        let long: Vec<u32> = vec![1; 2_000];
        let errors_of = |rule| errors(&[rule], &json!({ "l": long }), "");
        assert_eq!(
            errors_of(nested),
            ["rule 'r' could not be evaluated: the reply is too large for it"]
        );
        assert_eq!(errors_of(flat), [""; 0]);
        let input = "x".repeat(MAX_TEXT + 1);
        assert_eq!(
            errors(&[rule("true")], &json!(1), &input),
            ["rule 'r' could not be evaluated: the input is too long"]
        );
    }

    #[test]
    fn odd_text_never_panics_the_parser_nor_the_evaluator() {
        let alphabet: Vec<char> =
            "reply.input()[]{}'\"\\!?:&|=<>+-*/%,.0123xuebr@$`~é \n\u{0}".chars().collect();
        let seeds = [
            "reply.p == 1",
            "input.contains(reply.s)",
            "reply.l.all(x, x > 0)",
            "'\\u00e9' + b'x'",
        ];
        // xorshift64: the same texts on every run.
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut next = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
        };
        for round in 0..600 {
            let mut text: Vec<char> = seeds[round % seeds.len()].chars().collect();
            for _ in 0..=next(6) {
                let at = next(text.len() + 1);
                match next(3) {
                    0 if at < text.len() => drop(text.remove(at)),
                    1 => text.truncate(at),
                    _ => text.insert(at, alphabet[next(alphabet.len())]),
                }
            }
            let text: String = text.into_iter().collect();
            if let Ok(rule) = Rule::compile("r", &text, None, None) {
                errors(&[rule], &json!({"p": 1, "s": "a", "l": [1]}), "a");
            }
        }
    }
}
