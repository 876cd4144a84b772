// Reads streams with the Node SDKs. One ask a line comes in as JSON, one outcome a line goes out,
// as they end; `node.py` is the other end.

import { createInterface } from 'node:readline';

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import Anthropic from '@anthropic-ai/sdk';
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod';
import { jsonSchema, streamObject, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';

// Standard output is for outcomes.
console.log = console.info = console.error;

const KEY = 'sdk-test';
const Verdict = z.strictObject({ mood: z.enum(['good', 'bad']), score: z.int(), reason: z.string() });

/** Goes through the loop over a stream, as a caller's own error does. */
class Left extends Error {}

/** The text that has come so far, and when to leave. */
class Reading {
  pieces = 0;
  abort = new AbortController();

  constructor(ask) {
    this.ask = ask;
    this.timer = ask.leave_within === null ? null : setTimeout(() => this.abort.abort(), ask.leave_within * 1000);
  }

  take(text) {
    if (text) this.pieces += 1;
    if (this.ask.leave_after !== null && this.pieces >= this.ask.leave_after) throw new Left();
  }

  /** What the SDKs take beside the body. A Node SDK says no longest silence of its own. */
  get options() {
    const silence = this.ask.silence === null ? {} : { 'x-stainless-read-timeout': String(this.ask.silence) };
    return { headers: { ...this.ask.headers, ...silence }, signal: this.abort.signal };
  }
}

const said = (ask) => [{ role: 'user', content: ask.text }];

// --- openai ---

const openai = (ask) => new OpenAI({ baseURL: `${ask.url}/v1`, apiKey: KEY });

function openaiBody(ask) {
  const body = { model: ask.model, messages: said(ask), stream_options: { include_usage: true } };
  if (ask.what === 'tools') body.tools = ask.tools.map((one) => ({ type: 'function', function: one }));
  if (ask.what === 'shape') body.response_format = zodResponseFormat(Verdict, 'verdict');
  return body;
}

async function openaiCreate(ask, reading) {
  const stream = await openai(ask).chat.completions.create({ ...openaiBody(ask), stream: true }, reading.options);
  const calls = [];
  let text = '', finish = null, usage = null;
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason } of chunk.choices) {
      finish = finish_reason ?? finish;
      text += delta.content ?? '';
      for (const call of delta.tool_calls ?? []) {
        const known = (calls[call.index] ??= ['', '', '']);
        known[0] ||= call.id ?? '';
        known[1] += call.function?.name ?? '';
        known[2] += call.function?.arguments ?? '';
      }
      reading.take(delta.content);
    }
  }
  return {
    text, finish, usage: [usage?.prompt_tokens, usage?.completion_tokens],
    tools: calls.map(([id, name, given]) => [id, name, JSON.parse(given)]),
    value: ask.what === 'shape' ? Verdict.parse(JSON.parse(text)) : null,
  };
}

async function openaiStream(ask, reading) {
  const stream = openai(ask).chat.completions.stream(openaiBody(ask), reading.options);
  for await (const chunk of stream) reading.take(chunk.choices[0]?.delta.content);
  const whole = await stream.finalChatCompletion();
  const { message, finish_reason } = whole.choices[0];
  return {
    text: message.content ?? '', finish: finish_reason,
    usage: [whole.usage?.prompt_tokens, whole.usage?.completion_tokens],
    tools: (message.tool_calls ?? []).map((call) => [call.id, call.function.name, JSON.parse(call.function.arguments)]),
    value: message.parsed ?? null,
  };
}

// --- anthropic ---

const anthropic = (ask) => new Anthropic({ baseURL: ask.url, apiKey: KEY });

function anthropicBody(ask) {
  const body = { model: ask.model, max_tokens: 300, messages: said(ask) };
  if (ask.what === 'tools') {
    body.tools = ask.tools.map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
  }
  if (ask.what === 'shape') body.output_config = { format: zodOutputFormat(Verdict) };
  return body;
}

async function anthropicCreate(ask, reading) {
  const stream = await anthropic(ask).messages.create({ ...anthropicBody(ask), stream: true }, reading.options);
  const calls = new Map();
  let text = '', finish = null, input, output, ended = false;
  for await (const event of stream) {
    if (event.type === 'message_start') input = event.message.usage.input_tokens;
    if (event.type === 'content_block_start' && event.content_block.type === 'tool_use') {
      calls.set(event.index, [event.content_block.id, event.content_block.name, '']);
    }
    if (event.type === 'content_block_delta' && event.delta.type === 'input_json_delta') {
      calls.get(event.index)[2] += event.delta.partial_json;
    }
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') {
      text += event.delta.text;
      reading.take(event.delta.text);
    }
    if (event.type === 'message_delta') {
      finish = event.delta.stop_reason;
      input = event.usage.input_tokens || input;
      output = event.usage.output_tokens;
    }
    if (event.type === 'message_stop') ended = true;
  }
  if (!ended) throw new Error('a stream must end in message_stop');
  return {
    text, finish, usage: [input, output],
    tools: [...calls.values()].map(([id, name, given]) => [id, name, JSON.parse(given || '{}')]),
    value: ask.what === 'shape' ? Verdict.parse(JSON.parse(text)) : null,
  };
}

async function anthropicStream(ask, reading) {
  const stream = anthropic(ask).messages.stream(anthropicBody(ask), reading.options);
  for await (const event of stream) {
    reading.take(event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? event.delta.text : null);
  }
  const whole = await stream.finalMessage();
  const blocks = (type) => whole.content.filter((block) => block.type === type);
  return {
    text: blocks('text').map((block) => block.text).join(''), finish: whole.stop_reason,
    usage: [whole.usage.input_tokens, whole.usage.output_tokens],
    tools: blocks('tool_use').map((block) => [block.id, block.name, block.input]),
    value: whole.parsed_output ?? null,
  };
}

// --- ai-sdk ---

const MODELS = {
  openai: (ask) => createOpenAI({ baseURL: `${ask.url}/v1`, apiKey: KEY }).chat(ask.model),
  compatible: (ask) => {
    const settings = { name: 'backstay', includeUsage: true, supportsStructuredOutputs: true };
    return createOpenAICompatible({ baseURL: `${ask.url}/v1`, apiKey: KEY, ...settings })(ask.model);
  },
  anthropic: (ask) => createAnthropic({ baseURL: `${ask.url}/v1`, apiKey: KEY })(ask.model),
};

/** This SDK hands an error of the stream on as a part, as the provider's own object or text. */
class ErrorPart extends Error {
  constructor(error) {
    super(error?.message ?? String(error));
    this.error = error;
  }
}

function aiSdk(kind) {
  return async (ask, reading) => {
    // It pays no heed to `x-should-retry`, and its retries wait for seconds.
    const { headers, signal } = reading.options;
    const call = { model: MODELS[kind](ask), prompt: ask.text, headers, abortSignal: signal, maxRetries: 0, onError() {} };
    if (ask.what === 'shape') return aiObject(streamObject({ ...call, schema: Verdict }), reading);
    const tools = ask.tools.map((one) => [
      one.name, tool({ description: one.description, inputSchema: jsonSchema(one.parameters) }),
    ]);
    return aiText(streamText(ask.what === 'tools' ? { ...call, tools: Object.fromEntries(tools) } : call), reading);
  };
}

async function aiText(result, reading) {
  const out = { text: '', finish: null, usage: [], tools: [], value: null };
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw new ErrorPart(part.error);
    if (part.type === 'tool-call') out.tools.push([part.toolCallId, part.toolName, part.input]);
    if (part.type === 'finish') {
      out.finish = part.finishReason;
      out.usage = [part.totalUsage.inputTokens, part.totalUsage.outputTokens];
    }
    if (part.type === 'text-delta') {
      out.text += part.text;
      reading.take(part.text);
    }
  }
  return out;
}

async function aiObject(result, reading) {
  const out = { text: '', finish: null, usage: [], tools: [], value: null };
  result.object.catch(() => {});
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw new ErrorPart(part.error);
    if (part.type === 'finish') {
      out.finish = part.finishReason;
      out.usage = [part.usage.inputTokens, part.usage.outputTokens];
    }
    if (part.type === 'text-delta') {
      out.text += part.textDelta;
      reading.take(part.textDelta);
    }
  }
  out.value = await result.object;
  return out;
}

// --- asks and outcomes ---

const WAYS = {
  'openai-node-create': { read: openaiCreate, own: OpenAI.APIError },
  'openai-node-stream': { read: openaiStream, own: OpenAI.APIError },
  'anthropic-node-create': { read: anthropicCreate, own: Anthropic.APIError },
  'anthropic-node-stream': { read: anthropicStream, own: Anthropic.APIError },
  'ai-sdk-openai': { read: aiSdk('openai'), own: ErrorPart },
  'ai-sdk-compatible': { read: aiSdk('compatible'), own: ErrorPart },
  'ai-sdk-anthropic': { read: aiSdk('anthropic'), own: ErrorPart },
};

/** The stable code, wherever the SDK keeps the error's body; null where it keeps none. */
function codeOf(error) {
  const body = error.error?.responseBody;
  const places = [error, error.error, error.error?.error, body && (JSON.parse(body).error ?? JSON.parse(body))];
  return places.find((place) => typeof place?.code === 'string')?.code ?? null;
}

async function outcome(ask) {
  const way = WAYS[ask.way];
  const reading = new Reading(ask);
  try {
    const found = await way.read(ask, reading);
    // The ai-sdk ends an aborted stream without an error.
    return reading.abort.signal.aborted ? { pieces: reading.pieces } : { ...found, pieces: reading.pieces };
  } catch (error) {
    if (error instanceof Left || reading.abort.signal.aborted) {
      // The other SDKs close the connection when the loop is left; the ai-sdk does when it is told to.
      if (way.own === ErrorPart) reading.abort.abort();
      return { pieces: reading.pieces };
    }
    const own = error instanceof way.own;
    return { pieces: reading.pieces, error: error.constructor.name, own, code: codeOf(error), said: String(error.message) };
  } finally {
    clearTimeout(reading.timer);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const ask = JSON.parse(line);
  outcome(ask).then((found) => process.stdout.write(`${JSON.stringify({ id: ask.id, ...found })}\n`));
}
