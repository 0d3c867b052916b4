"""The whole system from one seed, in virtual time: mechanism, board program, cables, driver, people."""
