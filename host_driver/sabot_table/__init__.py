"""Games, rule sets, settlement, exact odds and procedure of a table. Pure: it imports no device code."""
