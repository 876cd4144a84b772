"""What the tests ask for: two tools, and a shape as a schema and as a pydantic model."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

TOOLS = [
    {
        "name": "find_order",
        "description": "Looks an order up by its number.",
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "string", "description": "the number"}},
            "required": ["order"],
            "additionalProperties": False,
        },
    },
    {
        "name": "refund",
        "description": "Pays money back for an order.",
        "parameters": {
            "type": "object",
            "properties": {"order": {"type": "string"}, "cents": {"type": "integer"}},
            "required": ["order", "cents"],
            "additionalProperties": False,
        },
    },
]


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    mood: Literal["good", "bad"]
    score: int
    reason: str


SCHEMA = {
    "type": "object",
    "properties": {
        "mood": {"type": "string", "enum": ["good", "bad"]},
        "score": {"type": "integer"},
        "reason": {"type": "string"},
    },
    "required": ["mood", "score", "reason"],
    "additionalProperties": False,
}
