"""What to write into an editor's settings so that it starts an agent: one snippet for each editor.

Pure: a name and a command in, text out. A comment line says where it belongs. The shapes are those of the editors' (or
their plug-ins') own documentation; nothing here touches anybody's settings.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

__all__ = ["EDITORS", "snippet"]

EDITORS = ["zed", "jetbrains", "neovim", "emacs", "vscode"]


def snippet(editor: str, name: str, command: Sequence[str]) -> str:
    """The settings that let `editor` start `command` as the agent `name`. Raises KeyError for an unknown editor."""
    return {"zed": _zed, "jetbrains": _jetbrains, "neovim": _neovim, "emacs": _emacs, "vscode": _vscode}[editor](
        name, command
    )


def _zed(name: str, command: Sequence[str]) -> str:
    settings = {"agent_servers": {name: {"type": "custom", **_server(command)}}}
    return f"// Zed: settings.json (command palette: `zed: open settings file`)\n{_json(settings)}"


def _jetbrains(name: str, command: Sequence[str]) -> str:
    settings = {"agent_servers": {name: _server(command)}}
    return f"// JetBrains: ~/.jetbrains/acp.json (AI Chat: Configure ACP Agents)\n{_json(settings)}"


def _vscode(name: str, command: Sequence[str]) -> str:
    settings = {"acp.agents": {name: _server(command)}}
    return f"// VS Code: settings.json, with the extension formulahendry.acp-client\n{_json(settings)}"


def _neovim(name: str, command: Sequence[str]) -> str:
    words = ", ".join(_lua(word) for word in command)
    return textwrap.dedent(f"""\
        -- Neovim: with the plug-in olimorris/codecompanion.nvim
        require("codecompanion").setup({{
          adapters = {{
            acp = {{
              [{_lua(name)}] = function()
                return {{
                  name = {_lua(name)},
                  formatted_name = {_lua(name)},
                  type = "acp",
                  roles = {{ llm = "assistant", user = "user" }},
                  commands = {{ default = {{ {words} }} }},
                  defaults = {{ mcpServers = {{}}, timeout = 20000 }},
                  parameters = {{
                    protocolVersion = 1,
                    clientCapabilities = {{ fs = {{ readTextFile = true, writeTextFile = true }} }},
                    clientInfo = {{ name = "CodeCompanion.nvim", version = "1.0.0" }},
                  }},
                  handlers = {{
                    setup = function() return true end,
                    auth = function() return true end,
                    form_messages = function(self, messages, capabilities)
                      return require("codecompanion.adapters.acp.helpers").form_messages(self, messages, capabilities)
                    end,
                    on_exit = function() end,
                  }},
                }}
              end,
            }},
          }},
          interactions = {{ chat = {{ adapter = {_lua(name)} }} }},
        }})
        """)


def _emacs(name: str, command: Sequence[str]) -> str:
    symbol = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)
    words = " ".join(_lisp(word) for word in command[1:])
    return textwrap.dedent(f"""\
        ;; Emacs: init.el, with the package agent-shell; start it with M-x agent-shell
        (with-eval-after-load 'agent-shell
          (add-to-list
           'agent-shell-agent-configs
           (agent-shell-make-agent-config
            :identifier '{symbol}
            :mode-line-name {_lisp(name)}
            :buffer-name {_lisp(name)}
            :shell-prompt {_lisp(f"{name}> ")}
            :shell-prompt-regexp {_lisp(f"{name}> ")}
            :client-maker (lambda (buffer)
                            (acp-make-client :command {_lisp(command[0])}
                                             :command-params '({words})
                                             :context-buffer buffer)))))
        """)


def _server(command: Sequence[str]) -> dict[str, object]:
    return {"command": command[0], "args": list(command[1:]), "env": {}}


def _json(settings: object) -> str:
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _lua(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # the escapes of both are the same for what a command holds


def _lisp(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
