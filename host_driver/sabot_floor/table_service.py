"""Publishing a table from the service that owns it."""

from pathlib import Path

from sabot_driver import Client
from sabot_floor.connection import TableSettings
from sabot_floor.errors import NothingMayLeave, WithoutFiles
from sabot_floor.publisher import READER, PublishedTable, PublisherThread, TablePublisher
from sabot_floor.row_sources import device_source, record_source
from sabot_floor.state_entry import state_entry
from sabot_session.threaded_session import ThreadedSession
from sabot_table.house_policy import HousePolicy
from sabot_table.rule_text_files import FloorTerms
from sabot_table.rule_texts import FloorLevel
from sabot_table.ruleset import RuleSet


def leaving_terms(rules: RuleSet, policy: HousePolicy | None) -> FloorTerms:
    """What may leave a table, and whether notes may come in; `NothingMayLeave` if nothing may leave."""
    text = rules.fixed.floor
    terms = text if policy is None else policy.floor_terms(text)
    if terms.leaves is FloorLevel.NONE:
        from_text = policy is None or text.leaves is FloorLevel.NONE
        whose = rules.text if from_text or policy is None else f"the house policy '{policy.name}'"
        raise NothingMayLeave(f"{whose} lets nothing leave the table")
    return terms


def publish_table(
    settings: TableSettings,
    client: Client,
    record: Path | None,
    rules: RuleSet,
    policy: HousePolicy | None,
    run: ThreadedSession,
) -> PublisherThread:
    """Publish a table in a thread until that is closed; close it before the session and the client.

    What may leave, and whether notes may come in, is the rule text's, or less if the house ``policy`` says
    so. `NothingMayLeave` if nothing may, `WithoutFiles` if journal or record are only in memory.
    """
    terms = leaving_terms(rules, policy)
    level = terms.leaves
    journal = client.journal
    if journal.path is None or record is None:
        raise WithoutFiles("this table keeps its journal and record in memory")
    path = journal.path
    if journal.reader_position(READER) == 0:
        journal.set_reader_position(READER, 0)  # from now on pruning keeps what was not archived

    def make() -> list[TablePublisher]:
        sources = [
            device_source(path, level, lambda id: journal.set_reader_position(READER, id)),
            record_source(record, level),
        ]
        pc = journal.chain.chain.public
        notes = run.receive_note if terms.notes else None
        table = PublishedTable(level, pc, sources, run, lambda seen: state_entry(seen, rules, level), notes)
        return [TablePublisher(settings, table)]

    return PublisherThread(make)
