"""What the floor countersigns, in words: a row's number alone tells a person nothing."""

from sabot_session.rows import Actor, Authentication, Row
from sabot_table.procedure import TableRole


def name_of(actor: Actor) -> str:
    """Who did something, for a line."""
    if actor.person:
        return actor.person if actor.how is Authentication.SIMULATED else f"{actor.role} {actor.person}"
    return "the machine" if actor.role is TableRole.DEVICE else f"the {actor.role}"


def act_in_words(row: Row) -> str:
    """The act or report that a row asks the floor to countersign: what, in which round, and by whom."""
    who = name_of(row.actor)
    match row.kind:
        case "void":
            return f"the void of round {row.round_id} by {who}: {row.data['why']}"
        case "count_stub":
            return f"the stub of round {row.round_id}, counted by {who}"
        case "clear_fault":
            fault = str(row.data["fault"]).replace("_", " ")
            if row.round_id:
                return f"the fault cleared in round {row.round_id} by {who}: {fault}"
            return f"the fault cleared by {who}: {fault}"
    kind = row.kind.replace("_", " ")
    return f"what {who} did: {kind}"
