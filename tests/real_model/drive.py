"""Sends the triage tickets through the gateway and prints what came back. Standard library only."""

import argparse
import collections
import json
import pathlib
import statistics
import time
import urllib.error
import urllib.request

# The route's deadline is 60 s; the rest is for the way.
PATIENCE = 75.0
ROUTES = {"with-schema": "json_schema sent", "without-schema": "prompt alone"}
FIELDS = {"category": str, "priority": int, "summary": str, "evidence": str, "needs_human": bool}
CATEGORIES = {"billing", "shipping", "technical", "other"}


def ask(url: str, route: str, system: str, ticket: str) -> dict:
    body = {
        "model": route,
        "temperature": 0,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": ticket}],
    }
    request = urllib.request.Request(
        url + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    began = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            headers, whole = reply.headers, json.load(reply)
        said = {"answer": value_of(whole["choices"][0]["message"]["content"])}
    except urllib.error.HTTPError as refused:
        headers, error = refused.headers, json.load(refused)["error"]
        said = {"code": error.get("code") or f"http {refused.code}", "message": error.get("message", "")}
    except OSError as broken:  # no HTTP answer at all: refused, cut, or later than PATIENCE
        headers, said = {}, {"code": "no http answer", "message": str(broken)}
    attempts = int(headers.get("x-backstay-attempts") or 0)
    return {**said, "attempts": attempts, "seconds": time.monotonic() - began}


def value_of(text: str):
    """The reply's JSON, or its text where it is none: `holds` refuses that."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def holds(answer, ticket: str) -> bool:
    """The schema and the rules by hand: what the gateway calls valid is checked once more here."""
    return (
        isinstance(answer, dict)
        and set(answer) == set(FIELDS)
        and all(type(answer[name]) is kind for name, kind in FIELDS.items())
        and answer["category"] in CATEGORIES
        and 1 <= answer["priority"] <= 4
        and len(answer["summary"]) <= 200
        and answer["evidence"] != ""
        and answer["evidence"] in ticket
        and (answer["priority"] != 1 or answer["needs_human"])
    )


def run(url: str, route: str, system: str, tickets: list[dict]) -> dict:
    rows = []
    began = time.monotonic()
    for number, ticket in enumerate(tickets, 1):
        rows.append({"id": ticket["id"], **ask(url, route, system, ticket["text"])})
        if number % 10 == 0:
            print(f"{route}: {number} of {len(tickets)}", flush=True)
    answered = [(row, ticket) for row, ticket in zip(rows, tickets) if "answer" in row]
    good = [(row, ticket) for row, ticket in answered if holds(row["answer"], ticket["text"])]

    def agree(field):
        return sum(row["answer"][field] == ticket["label"][field] for row, ticket in good)

    seconds = sorted(row["seconds"] for row in rows)
    return {
        "tickets": len(rows),
        "valid": len(good),
        "called valid, but is not": len(answered) - len(good),
        "valid at the first try": sum(row["attempts"] == 1 for row, _ in good),
        "typed failures": len(rows) - len(answered),
        "failures by code": dict(collections.Counter(row["code"] for row in rows if "code" in row)),
        "attempts": sum(row["attempts"] for row in rows),
        "attempts beyond the first": sum(max(row["attempts"] - 1, 0) for row in rows),
        "category as labelled": agree("category"),
        "priority as labelled": agree("priority"),
        "needs_human as labelled": agree("needs_human"),
        "median seconds a ticket": round(statistics.median(seconds), 2),
        "longest ticket, seconds": round(seconds[-1], 2),
        "seconds in all": round(time.monotonic() - began, 1),
        "rows": rows,
    }


def table(results: dict) -> str:
    names = [name for name in results["with-schema"] if name != "rows"]
    lines = ["| | " + " | ".join(ROUTES[route] for route in results) + " |", "|---" * (len(results) + 1) + "|"]
    for name in names:
        cells = []
        for result in results.values():
            value = result[name]
            if isinstance(value, dict):
                value = ", ".join(f"{code} {count}" for code, count in sorted(value.items())) or "none"
            cells.append(str(value))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("triage", type=pathlib.Path)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--tickets", type=int, default=1000, help="only the first N")
    order = parser.parse_args()
    system = (order.triage / "prompt.txt").read_text()
    lines = (order.triage / "tickets.jsonl").read_text().splitlines()
    tickets = [json.loads(line) for line in lines if line][: order.tickets]
    results = {route: run(order.url, route, system, tickets) for route in ROUTES}
    order.result.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    print()
    print(table(results))
    print(f"\nevery reply is in {order.result}")


if __name__ == "__main__":
    main()
