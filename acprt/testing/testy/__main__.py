"""`python -m acprt.testing.testy`: the scripted agent on stdin and stdout, until EOF."""

from acprt.runtime.run import run
from acprt.testing.testy.agent import agent

if __name__ == "__main__":
    run(agent())
