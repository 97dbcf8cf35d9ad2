"""How .venv is made: checks, the choice of torch, pip with progress, and the stamp."""
