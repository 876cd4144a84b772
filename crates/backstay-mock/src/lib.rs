//! A model provider that misbehaves on request, over real sockets.
