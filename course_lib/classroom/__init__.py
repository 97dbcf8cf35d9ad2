"""Exercises, their check, quizzes, and the file that the learner writes."""

from course_lib.classroom.display import check, show_solution
from course_lib.classroom.exercises import EXERCISES
from course_lib.classroom.lesson_map import lesson_map
from course_lib.classroom.quiz import quiz
from course_lib.classroom.verdict import CheckFailed

__all__ = ["EXERCISES", "CheckFailed", "check", "lesson_map", "quiz", "show_solution"]
