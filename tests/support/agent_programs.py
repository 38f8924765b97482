"""Stand-ins for the command lines of agents: `python agent_programs.py
claude|codex|copilot|gemini WORDS…`, as strict with their words as they are.

To `echo X` they answer X in their own stream; anything else fails as a wrong key does.
`STAND_IN_STREAM` names a file that is printed instead, `STAND_IN_SEEN` one that gets what the
program saw."""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()


def program(name: str) -> list[str]:
    """The words that start one of them."""
    return [sys.executable, str(HERE), name]


def lines(*events: Mapping[str, Any]) -> str:
    """A stream of these events."""
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def claude_said(text: str) -> str:
    """A run in which Claude answers at once."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "stop_reason": "end_turn",
    }
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
    }
    message["usage"] = {**usage, "output_tokens": 1}
    return lines(
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s1",
            "tools": ["Bash", "Read"],
            "model": "claude-sonnet-4-5",
            "uuid": "u0",
        },
        {
            "type": "assistant",
            "message": {**message, "content": [{"type": "text", "text": text}]},
            "session_id": "s1",
            "uuid": "u1",
        },
        {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "duration_ms": 1234,
            "duration_api_ms": 1100,
            "num_turns": 1,
        }
        | {
            "result": text,
            "session_id": "s1",
            "total_cost_usd": 0.0125,
            "usage": usage,
            "permission_denials": [],
            "uuid": "u2",
        },
    )


def claude_refused(text: str, error: str, status: int | None) -> str:
    """A run in which the API refuses Claude Code, which says so in a message of its own."""
    message = {
        "id": "m0",
        "type": "message",
        "role": "assistant",
        "model": "<synthetic>",
        "content": [{"type": "text", "text": text}],
    }
    return lines(
        {
            "type": "system",
            "subtype": "init",
            "session_id": "s1",
            "tools": [],
            "model": "claude-sonnet-4-5",
            "uuid": "u0",
        },
        {"type": "assistant", "message": message, "session_id": "s1", "uuid": "u1", "error": error},
        {
            "type": "result",
            "subtype": "success",
            "is_error": True,
            "api_error_status": status,
            "duration_ms": 90,
            "num_turns": 1,
        }
        | {
            "result": text,
            "session_id": "s1",
            "total_cost_usd": 0,
            "usage": {"input_tokens": 0, "output_tokens": 0},
            "uuid": "u2",
        },
    )


def codex_said(text: str) -> str:
    """A run in which Codex answers at once."""
    return lines(
        {"type": "thread.started", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"},
        {"type": "turn.started"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": text}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 24763, "cached_input_tokens": 24448, "output_tokens": 122},
        },
    )


def codex_failed(message: str) -> str:
    """A run whose turn fails."""
    return lines(
        {"type": "thread.started", "thread_id": "0199a213-81c0-7800-8aa1-bbab2a035a53"},
        {"type": "turn.started"},
        {"type": "error", "message": message},
        {"type": "turn.failed", "error": {"message": message}},
    )


def copilot_event(
    kind: str, /, *, at: str = "2026-07-26T09:00:00.000Z", **data: Any
) -> Mapping[str, Any]:
    """One event of a Copilot session."""
    return {"type": kind, "data": data, "id": "e1", "timestamp": at, "parentId": None}


def copilot_ended(code: int = 0) -> Mapping[str, Any]:
    """Copilot's last line."""
    usage = {"premiumRequests": 1, "totalApiDurationMs": 8123, "sessionDurationMs": 9876}
    return {
        "type": "result",
        "timestamp": "2026-07-26T09:00:09.876Z",
        "sessionId": "s1",
        "exitCode": code,
        "usage": usage,
    }


def copilot_said(text: str) -> str:
    """A run in which Copilot answers at once."""
    return lines(
        copilot_event(
            "session.start",
            sessionId="s1",
            version=1,
            producer="copilot-agent",
            copilotVersion="1.0.63",
        ),
        copilot_event("user.message", content="…"),
        copilot_event("assistant.turn_start", turnId="0"),
        copilot_event(
            "assistant.message", messageId="m1", content=text, toolRequests=[], outputTokens=12
        ),
        copilot_event("assistant.turn_end", turnId="0"),
        copilot_ended(),
    )


def copilot_failed(kind: str, message: str, status: int | None = None) -> str:
    """A run that ends with an error of the session."""
    code: dict[str, Any] = {"statusCode": status} if status else {}
    error = copilot_event("session.error", errorType=kind, message=message, **code)
    return lines(copilot_event("session.start", sessionId="s1"), error, copilot_ended(1))


def gemini_event(kind: str, /, **fields: Any) -> Mapping[str, Any]:
    """One event of Gemini's stream."""
    return {"type": kind, "timestamp": "2026-11-22T09:25:04.310Z", **fields}


def gemini_ended(error: Mapping[str, Any] | None = None, **stats: int) -> Mapping[str, Any]:
    """Gemini's last line."""
    ended = {"status": "error", "error": error} if error else {"status": "success"}
    stats = {"total_tokens": 0, "input_tokens": 0, "output_tokens": 0, "cached": 0} | stats
    return gemini_event("result", **ended, stats={**stats, "duration_ms": 971, "tool_calls": 0})


def gemini_said(text: str) -> str:
    """A run in which Gemini CLI answers at once."""
    return lines(
        gemini_event("init", session_id="s1", model="gemini-2.5-flash"),
        gemini_event("message", role="user", content="…"),
        gemini_event("message", role="assistant", content=text, delta=True),
        gemini_ended(total_tokens=150, input_tokens=100, output_tokens=20, cached=30),
    )


def gemini_failed(body: Mapping[str, Any] | str) -> str:
    """A run that ends with an error of the API."""
    message = body if isinstance(body, str) else json.dumps({"error": body})
    error = {"type": "unknown", "message": f"[API Error: {message}]"}
    return lines(
        gemini_event("init", session_id="s1", model="gemini-2.5-flash"), gemini_ended(error)
    )


def _claude(words: argparse.ArgumentParser) -> None:
    words.add_argument("-p", "--print", action="store_true", required=True)
    words.add_argument("--output-format", choices=["stream-json"], required=True)
    words.add_argument("--verbose", action="store_true", required=True)
    for name in (
        "--model",
        "--max-turns",
        "--system-prompt",
        "--append-system-prompt",
        "--permission-mode",
        "--allowedTools",
    ):
        words.add_argument(name)


def _codex(words: argparse.ArgumentParser) -> None:
    words.add_argument("subcommand", choices=["exec"])
    words.add_argument("--json", action="store_true", required=True)
    words.add_argument("--color", choices=["never"], required=True)
    words.add_argument("--skip-git-repo-check", action="store_true")
    words.add_argument("--model", "-m")
    words.add_argument("--config", "-c", action="append")
    words.add_argument(
        "--sandbox", "-s", choices=["read-only", "workspace-write", "danger-full-access"]
    )
    words.add_argument("prompt", choices=["-"])


def _copilot(words: argparse.ArgumentParser) -> None:
    words.add_argument("--output-format", choices=["json"], required=True)
    for name in ("--no-color", "--no-ask-user", "--allow-all-tools"):
        words.add_argument(name, action="store_true")
    words.add_argument("--model")
    words.add_argument("--allow-tool", action="append")


def _gemini(words: argparse.ArgumentParser) -> None:
    words.add_argument("--output-format", choices=["stream-json"], required=True)
    words.add_argument("--skip-trust", action="store_true", required=True)
    words.add_argument("--model")
    words.add_argument("--approval-mode", choices=["default", "auto_edit", "yolo", "plan"])


_PROGRAMS = {
    "claude": (
        _claude,
        claude_said,
        claude_refused("Invalid API key · Fix external API key", "authentication_failed", 401),
    ),
    "codex": (
        _codex,
        codex_said,
        codex_failed("unexpected status 401 Unauthorized: Missing bearer authentication in header"),
    ),
    "copilot": (
        _copilot,
        copilot_said,
        copilot_failed("authentication", "No authentication information found."),
    ),
    "gemini": (
        _gemini,
        gemini_said,
        gemini_failed({"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}),
    ),
}


def main(name: str, words: Sequence[str]) -> int:
    declare, said, refused = _PROGRAMS[name]
    parser = argparse.ArgumentParser(name, allow_abbrev=False)
    declare(parser)
    parser.parse_args(words)
    prompt = sys.stdin.read()
    if seen := os.environ.get("STAND_IN_SEEN"):
        Path(seen).write_text(
            json.dumps(
                {
                    "words": words,
                    "prompt": prompt,
                    "cwd": str(Path.cwd()),
                    "environment": dict(os.environ),
                }
            )
        )
    if scripted := os.environ.get("STAND_IN_STREAM"):
        sys.stdout.write(Path(scripted).read_text())
        return 0
    if prompt.startswith("echo "):
        sys.stdout.write(said(prompt.removeprefix("echo ")))
        return 0
    sys.stdout.write(refused)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
