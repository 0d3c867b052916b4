"""The page of the modes: a diagram of each half and the table of what commands ask for."""

from sabot_protocol import meanings, modes

_TOP = """# The modes of the two halves

Generated from `protocol/sabot_protocol/modes.py` by `make generate`: do not edit. The firmware takes no other
step than these. If a device reports another step, the host knows that something is wrong.

"""


def render() -> str:
    """The text of ``docs/modes.md``."""
    parts = [_TOP]
    halves = (
        ("The shuffler half", "ShufflerState", modes.SHUFFLER_STEPS),
        ("The shoe half", "ShoeState", modes.SHOE_STEPS),
    )
    for title, enum, steps in halves:
        parts.append(f"## {title}\n\n```mermaid\nstateDiagram-v2\n    [*] --> starting\n")
        parts += [f"    {start} --> {end}: {when}\n" for start, end, when in steps]
        parts.append("```\n\n| state | is |\n| --- | --- |\n")
        names = list(dict.fromkeys(start for start, _, _ in steps))
        parts += [f"| {name} | {meanings.MEMBERS[f'{enum}.{name}']} |\n" for name in names]
        parts.append("\n")
    parts.append("## What a command asks for\n\n| command | shuffler | shoe |\n| --- | --- | --- |\n")
    for name, shuffler, shoe in modes.COMMANDS:
        cells = [", ".join(states) or "any" for states in (shuffler, shoe)]
        parts.append(f"| `{name}` | {cells[0]} | {cells[1]} |\n")
    parts.append(
        "\nIn any other state the device refuses the command with `wrong_state`. That error names the half,\n"
        "its state and the allowed states. A rule may forbid a command that the state allows. Then the\n"
        "device refuses it with `not_allowed` and the reason.\n"
    )
    return "".join(parts)
