"""Both SDKs behind one small face, so that a test is written once. The SDKs are used as they come:
only the base URL is set, and a hook counts the requests they really send."""

import json

import anthropic
import openai

from folds import Answer, AnthropicFold, OpenAiFold, finish_of
from plant import TRIAGE

SYSTEM = (TRIAGE / "prompt.txt").read_text()


class OpenAi:
    name = "openai"
    Fold = OpenAiFold
    provider = "openai"
    errors = openai
    family = openai.OpenAIError

    def __init__(self, url: str, key="sdk-test", **settings):
        self.sent = []
        self.http = openai.DefaultHttpxClient(event_hooks={"request": [self.sent.append]})
        self.sdk = openai.OpenAI(base_url=url + "/v1", api_key=key, http_client=self.http, **settings)

    def close(self):
        self.sdk.close()

    @staticmethod
    def body(model, text, schema=None, tools=None, cap=None, system=None, **more):
        messages = [{"role": "system", "content": system}] if system else []
        body = {"model": model, "messages": [*messages, {"role": "user", "content": text}], **more}
        if schema:
            format = {"name": "reply", "schema": schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": format}
        if tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in tools]
        if cap:
            body["max_tokens"] = cap
        return body

    def say(self, model, text, headers=None, **asked) -> Answer:
        body = self.body(model, text, **asked)
        raw = self.sdk.chat.completions.with_raw_response.create(**body, extra_headers=headers)
        whole = raw.parse()
        assert isinstance(whole, openai.types.chat.ChatCompletion), whole
        return self.answer_of(whole, dict(raw.headers))

    @staticmethod
    def answer_of(whole, headers=None) -> Answer:
        choice = whole.choices[0]
        assert whole.object == "chat.completion" and choice.message.role == "assistant"
        calls = choice.message.tool_calls or []
        return Answer(
            text=choice.message.content or "",
            # This dialect puts a refusal into a field and says "stop".
            finish="refusal" if choice.message.refusal else finish_of(choice.finish_reason),
            input_tokens=whole.usage.prompt_tokens if whole.usage else None,
            output_tokens=whole.usage.completion_tokens if whole.usage else None,
            tools=[(call.id, call.function.name, json.loads(call.function.arguments)) for call in calls],
            headers=headers or {},
            extra=whole.model_extra or {},
        )

    def open_stream(self, model, text, **asked):
        """The SDK's plain stream; iterate with `deltas`."""
        usage = {"include_usage": True}
        return self.sdk.chat.completions.create(**self.body(model, text, **asked), stream=True, stream_options=usage)

    @staticmethod
    def deltas(stream):
        """The text pieces of a plain stream as they come."""
        for chunk in stream:
            for choice in chunk.choices:
                if choice.delta.content:
                    yield choice.delta.content

    def stream(self, model, text, **asked) -> Answer:
        """Accumulates a plain stream by hand."""
        fold = self.Fold()
        with self.open_stream(model, text, **asked) as stream:
            for chunk in stream:
                fold.take(chunk)
        return fold.whole()

    def helper(self, model, text, **asked) -> Answer:
        """Uses the SDK's own accumulating helper and returns its final message."""
        body = self.body(model, text, **asked)
        with self.sdk.chat.completions.stream(**body, stream_options={"include_usage": True}) as stream:
            return self.answer_of(stream.get_final_completion())

    def parse(self, model, text, shape):
        """Structured output by the SDK's own way: a pydantic model in, an instance out."""
        body = self.body(model, text)
        return self.sdk.chat.completions.parse(**body, response_format=shape).choices[0].message.parsed

    def after_tools(self, model, text, answer: Answer, results: list[str], tools) -> Answer:
        """The second turn: the calls and what they gave."""
        calls = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for i, name, arguments in answer.tools
        ]
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": None, "tool_calls": calls}]
        messages += [
            {"role": "tool", "tool_call_id": call[0], "content": result} for call, result in zip(answer.tools, results)
        ]
        body = self.body(model, text, tools=tools)
        body["messages"] = messages
        return self.answer_of(self.sdk.chat.completions.create(**body))

    @staticmethod
    def code(error) -> str | None:
        return error.code


class Anthropic:
    name = "anthropic"
    Fold = AnthropicFold
    provider = "anthropic"
    errors = anthropic
    family = anthropic.AnthropicError

    def __init__(self, url: str, key="sdk-test", **settings):
        self.sent = []
        self.http = anthropic.DefaultHttpxClient(event_hooks={"request": [self.sent.append]})
        self.sdk = anthropic.Anthropic(base_url=url, api_key=key, http_client=self.http, **settings)

    def close(self):
        self.sdk.close()

    @staticmethod
    def body(model, text, schema=None, tools=None, cap=None, system=None, **more):
        body = {"model": model, "max_tokens": cap or 300, "messages": [{"role": "user", "content": text}], **more}
        if system:
            body["system"] = system
        if schema:
            body["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        if tools:
            body["tools"] = [
                {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
                for tool in tools
            ]
        return body

    def say(self, model, text, headers=None, **asked) -> Answer:
        raw = self.sdk.messages.with_raw_response.create(**self.body(model, text, **asked), extra_headers=headers)
        whole = raw.parse()
        assert isinstance(whole, anthropic.types.Message), whole
        return self.answer_of(whole, dict(raw.headers))

    @staticmethod
    def answer_of(whole, headers=None) -> Answer:
        assert whole.type == "message" and whole.role == "assistant"
        return Answer(
            text="".join(block.text for block in whole.content if block.type == "text"),
            finish=finish_of(whole.stop_reason),
            input_tokens=whole.usage.input_tokens,
            output_tokens=whole.usage.output_tokens,
            tools=[(block.id, block.name, block.input) for block in whole.content if block.type == "tool_use"],
            headers=headers or {},
            extra=whole.model_extra or {},
        )

    def open_stream(self, model, text, **asked):
        return self.sdk.messages.create(**self.body(model, text, **asked), stream=True)

    @staticmethod
    def deltas(stream):
        for event in stream:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                yield event.delta.text

    def stream(self, model, text, **asked) -> Answer:
        fold = self.Fold()
        with self.open_stream(model, text, **asked) as stream:
            for event in stream:
                fold.take(event)
        return fold.whole()

    def helper(self, model, text, **asked) -> Answer:
        with self.sdk.messages.stream(**self.body(model, text, **asked)) as stream:
            return self.answer_of(stream.get_final_message())

    def parse(self, model, text, shape):
        return self.sdk.messages.parse(**self.body(model, text), output_format=shape).parsed_output

    def after_tools(self, model, text, answer: Answer, results: list[str], tools) -> Answer:
        used = [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in answer.tools]
        given = [
            {"type": "tool_result", "tool_use_id": call[0], "content": result}
            for call, result in zip(answer.tools, results)
        ]
        body = self.body(model, text, tools=tools)
        body["messages"] += [{"role": "assistant", "content": used}, {"role": "user", "content": given}]
        return self.answer_of(self.sdk.messages.create(**body))

    @staticmethod
    def code(error) -> str | None:
        """The stable code, which this dialect's error object has room for beside its type."""
        body = error.body if isinstance(error.body, dict) else {}
        return body.get("error", {}).get("code")


BOTH = [OpenAi, Anthropic]
PROVIDERS = ["openai", "anthropic"]
