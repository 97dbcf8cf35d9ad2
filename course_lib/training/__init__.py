"""Train the models. Imports transformer alone, and shows nothing by itself."""
