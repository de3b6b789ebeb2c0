"""One run: the information barrier, sessions, engines, exact regret."""
