"""The table: games, rule sets, settlement, exact odds and procedure. Pure: it knows no device."""
