"""Find, fetch and load real weights."""
