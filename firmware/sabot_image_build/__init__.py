"""What is flashed onto a board: built on a computer, the same bytes every time."""
