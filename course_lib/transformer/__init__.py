"""The subject: attention and the models made of it. Imports torch alone."""
