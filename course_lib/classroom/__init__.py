"""Exercises, their check, quizzes, and the file that the learner writes."""
