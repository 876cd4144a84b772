# What the comparisons with nginx share: the mock provider, nginx and the gateway, started and ended by
# process id. Sourced by a `run` that has set `root`; `set_up FOLDER CONFIG` then fills in
#
#   dir, load, binary       the folder of the run, the load generator, the gateway's size in bytes
#   upstream, mock          port and process id of the mock
#   gateway_port, gateway   of the gateway
#   nginx_port, reference   of nginx
#
# A `run` that has more than these marks to replace in CONFIG lists them in `marks` as sed options.

overhead=$root/bench/overhead
target=${CARGO_TARGET_DIR:-$root/target}
marks=()
pids=()
pin=

# With `pin` set, runs a program on core $1 only: who wakes whom where moves a single connection by a tenth.
on() { local core=$1; shift; if [ -n "$pin" ]; then exec taskset -c "$core" "$@"; else exec "$@"; fi; }

finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap finish EXIT
trap 'exit 130' INT TERM

find_nginx() {
    nginx=$(command -v nginx || { [ -x /usr/sbin/nginx ] && echo /usr/sbin/nginx; } || true)
    [ -n "$nginx" ] && return
    echo "skipped: nginx is not installed (apt-get install nginx-light)"
    [ "${BACKSTAY_REQUIRE:-}" = all ] && exit 1
    exit 0
}

build() {
    if [ -z "${BACKSTAY_BIN:-}" ]; then
        # As it is shipped.
        (cd "$root" && CARGO_TARGET_DIR=$target cargo build --profile dist -q -p backstay-cli)
        BACKSTAY_BIN=$target/dist/backstay
    fi
    CARGO_TARGET_DIR=$target/bench-load cargo build --release -q --manifest-path "$overhead/load/Cargo.toml"
    load=$target/bench-load/release/load
}

# Waits until a program has said where it listens, at most ten seconds, and prints the port.
port_of() {
    local log=$1 pid=$2 port
    for _ in $(seq 200); do
        port=$(sed -n 's|.*listening on http://127\.0\.0\.1:\([0-9]*\).*|\1|p' "$log" | head -n 1)
        if [ -n "$port" ]; then echo "$port"; return 0; fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    echo "no listening line in $log:" >&2
    tail -n 20 "$log" >&2
    return 1
}

fill() { sed -e "s|@DIR@|$dir|g" -e "s|@UPSTREAM@|$upstream|g" -e "s|@PORT@|${port:-0}|g" "${marks[@]}" "$1"; }

start_nginx() { # it cannot pick a free port, so a few are tried
    local port
    nginx_port=
    for _ in $(seq 10); do
        port=$((20000 + RANDOM % 20000))
        fill "$overhead/nginx.conf.in" >"$dir/nginx.conf"
        on 0 "$nginx" -e "$dir/nginx-error.log" -c "$dir/nginx.conf" >"$dir/nginx.log" 2>&1 &
        reference=$!
        for _ in $(seq 40); do
            if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then nginx_port=$port; break; fi
            kill -0 "$reference" 2>/dev/null || break
            sleep 0.05
        done
        # Another program may own the port; nginx has then ended by itself.
        if [ -n "$nginx_port" ] && kill -0 "$reference" 2>/dev/null; then pids+=("$reference"); return; fi
        wait "$reference" 2>/dev/null || true
        nginx_port=
    done
    echo "nginx did not start:" >&2
    tail -n 20 "$dir/nginx-error.log" >&2
    exit 1
}

set_up() { # the folder of the run, the gateway's configuration
    dir=$target/$1
    find_nginx
    build
    rm -rf "$dir" && mkdir -p "$dir"
    cp "$BACKSTAY_BIN" "$dir/backstay-stripped" && strip -s "$dir/backstay-stripped"
    binary=$(stat -c %s "$dir/backstay-stripped")
    on 1 "$BACKSTAY_BIN" mock --listen 127.0.0.1:0 >"$dir/mock.log" 2>&1 &
    mock=$!; pids+=("$mock")
    upstream=$(port_of "$dir/mock.log" "$mock")
    fill "$2" >"$dir/backstay.toml"
    on 0 "$dir/backstay-stripped" serve -c "$dir/backstay.toml" --listen 127.0.0.1:0 >"$dir/gateway.log" 2>&1 &
    gateway=$!; pids+=("$gateway")
    gateway_port=$(port_of "$dir/gateway.log" "$gateway")
    start_nginx
    sleep 1 # the gateway is idle for a moment before its memory is read
    echo "$(nproc) cores${pin:+ (gateway and nginx on the first, all else on the second)}, load average $(cut -d' ' -f1-3 /proc/loadavg), $("$nginx" -v 2>&1), $("$BACKSTAY_BIN" --version)"
    echo
}

compare() { # requests or streams, options of the load generator …
    local subject=$1
    shift
    (on 1 "$load" "$subject" --upstream "$upstream:$mock" --reference "$nginx_port:$reference" \
        --gateway "$gateway_port:$gateway" --binary "$binary" --json "$dir/result.json" "$@")
}
