//! The engine of Backstay behind HTTP: an OpenAI and Anthropic compatible gateway.
