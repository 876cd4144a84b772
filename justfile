# Names only: what they do is in scripts/ and xtask/.

# lists the names
default:
    @just --list

# all that must hold before a change lands
check:
    .ci/run

# every test
test:
    scripts/test

# sixty tickets through a bad day
demo:
    cargo run --release -- demo

# the house rules that clippy cannot see
tidy:
    cargo xtask tidy

# writes every file in the house format
fmt:
    cargo fmt --all

# the reference of the library, in target/doc
docs:
    cargo doc --workspace --no-deps --locked

# CPU, latency and memory beside nginx
bench-overhead *args:
    bench/overhead/run {{args}}

# CPU of a streamed chunk beside nginx, and the time to the first text, in each mode
bench-streams *args:
    bench/streams/run {{args}}

# what a decision costs, beside other libraries and in instructions
bench-decide *args:
    bench/decide/run {{args}}

# what the stream guards catch, take for a loop wrongly, and cost
bench-detectors *args:
    bench/detectors/run {{args}}

# outages, cancels and a backfill, with processes of their own
resilience *args:
    tests/resilience/run {{args}}

# a thousand streams for ten minutes, memory watched
soak *args:
    tests/soak/run {{args}}

# faults against the gateway: a file, and --fast for short waits
drill file *args:
    cargo run --release -- drill {{file}} {{args}}

# the long checks
nightly *steps:
    scripts/nightly {{steps}}
