"""Speech to letters: tasks, models, criterions, a trainer."""
