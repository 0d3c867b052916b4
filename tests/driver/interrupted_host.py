"""A program that is interrupted at random moments: a folder, and how often, on its command line.

Prints how many calls were interrupted, and 'whole' if link and journal are as if nothing had been.
"""

import signal
import sys
from pathlib import Path
from random import Random

from tests.conformance.table import Table
from tests.conformance.targets import Pty

from sabot_driver import ReceivedEvent
from sabot_protocol.host.messages import Locate, Located

armed = False


def strike(number: int, frame: object) -> None:
    """What Ctrl-C does."""
    if armed:
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, strike)
random = Random(5)
folder = Path(sys.argv[1])
target = Pty(folder)
client = target.connect(journal=folder / "journal.db")
interrupted = 0
for _ in range(int(sys.argv[2])):
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, random.uniform(20e-6, 1.5e-3))
        for _ in range(4):
            client.ask(Locate(1), timeout=30)
        armed = False
    except KeyboardInterrupt:
        armed = False
        interrupted += 1
signal.setitimer(signal.ITIMER_REAL, 0)
client.ask(Locate(9), timeout=30)
Table(client).wait_for(Located, 0, seconds=9)
told = list(client.events(0, timeout=0))
numbers = [each.n for each in told if isinstance(each, ReceivedEvent)]
whole = numbers == list(range(1, len(told) + 1)) and not client.loop.connection._open
target.close()
sys.stdout.write(f"{interrupted} {'whole' if whole else 'broken'}\n")
