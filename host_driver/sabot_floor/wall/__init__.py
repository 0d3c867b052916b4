"""The wall: which tables of a site need a person, and since when. It reads; it commands no machine."""
