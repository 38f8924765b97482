"""The real command-line agents, from npm: where they are, and how they ask a model on loopback."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

PACKAGES = {
    "claude": "@anthropic-ai/claude-code@2.1.330",
    "codex": "@openai/codex@0.169.0",
    "copilot": "@github/copilot@1.0.102",
    "gemini": "@google/gemini-cli@0.61.0",
}
#: The models that targets name; the others have theirs from their settings.
MODELS = {"claude": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
_INSTALL = ("npm", "install", "--no-audit", "--no-fund", "--prefix")


def installed(folder: Path) -> Path:
    """The folder of the commands, which npm installs into `folder` unless they are there; skips
    the test where it cannot."""
    commands = folder / "node_modules" / ".bin"
    if all((commands / name).exists() for name in PACKAGES):
        return commands
    if shutil.which("npm") is None:
        pytest.skip("npm, which installs the agents, is not on this machine")
    try:
        done = subprocess.run(
            [*_INSTALL, str(folder), *PACKAGES.values()],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("npm does not install the agents within 5 minutes")
    if done.returncode:
        pytest.skip(f"npm cannot install the agents: {done.stderr.strip()[-300:]}")
    return commands


def configure(
    name: str, url: str, home: Path, codex_home: Path, servers: Mapping[str, Any]
) -> Mapping[str, str]:
    """Points an agent at a model server, and at MCP servers on standard input and output, which
    Claude Code is told in its arguments instead; its variables."""
    match name:
        case "claude":
            return {
                "ANTHROPIC_BASE_URL": url,
                "ANTHROPIC_API_KEY": "sk-ant-test",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            }
        case "codex":
            lines = [
                'model = "gpt-5.1-codex"\nmodel_provider = "local"',
                f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"',
                'env_key = "LOCAL_KEY"\nwire_api = "responses"',
            ]
            for server, program in servers.items():
                lines.append(f'[mcp_servers.{server}]\ncommand = "{program["command"]}"')
                lines.append(f"args = {json.dumps(program['args'])}")
            (codex_home / "config.toml").write_text("\n".join(lines) + "\n")
            return {"CODEX_HOME": str(codex_home), "LOCAL_KEY": "sk-local-test"}
        case "copilot":
            (home / ".copilot").mkdir(exist_ok=True)
            copilot = {
                server: {**program, "type": "local", "tools": ["*"]}
                for server, program in servers.items()
            }
            settings = json.dumps({"mcpServers": copilot})
            (home / ".copilot" / "mcp-config.json").write_text(settings)
            return {
                "COPILOT_OFFLINE": "true",
                "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
                "COPILOT_PROVIDER_API_KEY": "sk-copilot-test",
                "COPILOT_MODEL": "gpt-4.1",
            }
    (home / ".gemini").mkdir(exist_ok=True)
    gemini = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "mcpServers": {server: {**program, "trust": True} for server, program in servers.items()},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(gemini))
    return {"GEMINI_API_KEY": "AIzaTest", "GOOGLE_GEMINI_BASE_URL": url}
