"""``sabot play``: plays at a table by its rules, with a device that shuffles and deals.

| module | what it does |
| --- | --- |
| `table_run` | opens the table, plays rounds, prints the summary |
| `recorded_table`, `table_record` | the procedure with its people, and its record on disk |
| `device_control` | the device's state by its events; waiting, clearing, emptying |
| `deck_handling`, `shoe_handling` | decks and shoes: brought, shuffled, cut, loaded, removed |
| `shuffle_proofs` | commitment, nonce and reveal of each shuffle |
| `round_play`, `three_card_table`, `mini_table` | the course of a round, and what each game adds |
| `irregularity_reports`, `card_entry` | what people report, and cards that no reader saw |
| `round_printer` | a line or a JSON object for each round |
"""
