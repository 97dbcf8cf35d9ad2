"""Pictures and widgets of given arrays. Imports no model."""
