"""testy, the scripted agent: it says and asks everything that ACP knows, on command, the same way every time.

`testy.agent()` makes it for both versions of the protocol, `python -m acprt.testing.testy` serves it on stdio. What it
does follows from the text of the prompt alone (`testy.commands`); it has no model, no clock and no dice.
"""

from acprt.testing.testy.agent import agent, agent_v1
from acprt.testing.testy.agent_v2 import agent_v2
from acprt.testing.testy.commands import (
    CallTool,
    Command,
    Echo,
    Greet,
    Help,
    ListTools,
    RunScenario,
    Scenario,
    parse,
    prompt_of,
)

__all__ = [
    "CallTool",
    "Command",
    "Echo",
    "Greet",
    "Help",
    "ListTools",
    "RunScenario",
    "Scenario",
    "agent",
    "agent_v1",
    "agent_v2",
    "parse",
    "prompt_of",
]
