"""Draws the tables of ``follower`` for the docs: ``python -m sabot_driver.diagram docs/states.md``."""

import re
import sys
from pathlib import Path

from transitions.extensions import GraphMachine

from sabot_driver.follower import Steps, machine
from sabot_protocol.modes import SHOE_STEPS, SHUFFLER_STEPS

HEAD = """# States

What the host's follower (`sabot_driver.follower`) takes for possible, drawn by `transitions` from the machines it
follows with, which are made from the same tables as the firmware's [modes](modes.md). Written by `make generate`; do not edit this page. A step
that is not here is logged and told to listeners as `step_not_allowed`, and then followed, because the device is
the truth. After a reboot, or where events are lost, nothing is known until the next event.
"""  # noqa: E501


class _Model:
    """What a machine of `transitions` hangs its state on."""


def mermaid(steps: Steps) -> str:
    """One half's work as a Mermaid diagram."""
    drawn = machine(steps, GraphMachine, from_unknown=False, model=_Model(), graph_engine="mermaid", title="")
    text = str(drawn.get_combined_graph().draw(None))
    arrows = re.findall(r"^ +(\w+ --> \w+)", text, flags=re.MULTILINE)
    order = {name: place for place, name in enumerate(dict.fromkeys(source for source, _, _ in steps))}
    arrows.sort(key=lambda arrow: [order[name] for name in arrow.split(" --> ")])
    return "\n".join(["stateDiagram-v2", "  direction LR", *(f"  {arrow}" for arrow in arrows)])


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, steps in (("The shuffler half", SHUFFLER_STEPS), ("The shoe half", SHOE_STEPS)):
        parts.append(f"\n## {title}\n\n```mermaid\n{mermaid(steps)}\n```\n")
    return "".join(parts)


def main(path: str) -> None:
    """Write the page."""
    Path(path).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
