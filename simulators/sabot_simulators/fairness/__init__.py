"""Evidence that shuffled decks are uniform: real shuffles, and tests of the order the cards really have."""
