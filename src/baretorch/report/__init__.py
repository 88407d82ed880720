"""Present results in the terminal and as a page; nothing is computed here."""
