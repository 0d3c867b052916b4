"""A table's program that plays until it is killed: URL, key folder and journal on its command line."""

import sys
from pathlib import Path

from tests.driver.chaos import Player

from sabot_driver import Keyring, connect

keyring, journal = Keyring(Path(sys.argv[2])), Path(sys.argv[3])
with connect(sys.argv[1], keyring=keyring, journal=journal, simulator=True) as client:
    sys.stdout.write("up\n")
    sys.stdout.flush()
    player = Player(client)
    while not player.step(10**9):
        pass
