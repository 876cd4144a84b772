"""Puts the pieces of a stream together by hand, in words that both dialects share."""

import json
from dataclasses import dataclass, field

FINISHES = {
    "tool_calls": "tools",
    "content_filter": "refusal",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tools",
}


def finish_of(word: str) -> str:
    """stop, length, tools, refusal, or another word as it came."""
    return FINISHES.get(word, word)


@dataclass
class Answer:
    """What one call gave, in words both dialects share."""

    text: str
    finish: str  # in the words of `finish_of`
    input_tokens: int | None = None
    output_tokens: int | None = None
    tools: list[tuple[str, str, dict]] = field(default_factory=list)  # id, name, arguments
    headers: dict = field(default_factory=dict)
    pieces: int = 0  # text deltas, for a stream
    extra: dict = field(default_factory=dict)  # fields of the body that the SDK's own type does not have

    def json(self):
        return json.loads(self.text)


class OpenAiFold:
    """The chunks of a plain stream put together by hand."""

    def __init__(self):
        self.answer, self.parts, self.calls = Answer("", ""), [], {}

    def take(self, chunk) -> str:
        """Takes one chunk and says what text it had."""
        assert chunk.object == "chat.completion.chunk"
        self.answer.extra |= chunk.model_extra or {}
        if chunk.usage:
            self.answer.input_tokens = chunk.usage.prompt_tokens
            self.answer.output_tokens = chunk.usage.completion_tokens
        before = len(self.parts)
        for choice in chunk.choices:
            self._take_choice(choice)
        return "".join(self.parts[before:])

    def _take_choice(self, choice):
        if choice.delta.content:
            self.parts.append(choice.delta.content)
        for call in choice.delta.tool_calls or []:
            known = self.calls.setdefault(call.index, ["", "", ""])
            known[0] = call.id or known[0]
            known[1] += (call.function.name or "") if call.function else ""
            known[2] += (call.function.arguments or "") if call.function else ""
        if choice.finish_reason:
            self.answer.finish = finish_of(choice.finish_reason)

    def whole(self) -> Answer:
        self.answer.text, self.answer.pieces = "".join(self.parts), len(self.parts)
        self.answer.tools = [(i, name, json.loads(arguments)) for i, name, arguments in self.calls.values()]
        return self.answer


class AnthropicFold:
    """The events of a plain stream put together by hand."""

    def __init__(self):
        self.answer, self.parts, self.calls, self.ended = Answer("", ""), [], {}, False

    def take(self, event) -> str:
        """Takes one event and says what text it had."""
        answer, text = self.answer, ""
        answer.extra |= event.model_extra or {}
        if event.type == "message_start":
            answer.input_tokens = event.message.usage.input_tokens
        elif event.type == "content_block_start" and event.content_block.type == "tool_use":
            self.calls[event.index] = [event.content_block.id, event.content_block.name, ""]
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            text = event.delta.text
            self.parts.append(text)
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            self.calls[event.index][2] += event.delta.partial_json
        elif event.type == "message_delta":
            answer.finish = finish_of(event.delta.stop_reason)
            answer.input_tokens = event.usage.input_tokens or answer.input_tokens
            answer.output_tokens = event.usage.output_tokens
        elif event.type == "message_stop":
            self.ended = True
        return text

    def whole(self) -> Answer:
        assert self.ended, "a stream must end in message_stop"
        self.answer.text, self.answer.pieces = "".join(self.parts), len(self.parts)
        self.answer.tools = [(i, name, json.loads(arguments or "{}")) for i, name, arguments in self.calls.values()]
        return self.answer
