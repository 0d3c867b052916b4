"""The web service of one table: it owns the device, runs the session and shows pages to people."""
