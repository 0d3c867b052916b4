"""One table as people run it: what must happen now, who did what, and the record of every round."""
