"""What every web service here has: who is let in, what a request must pass, sockets, streams of views."""
