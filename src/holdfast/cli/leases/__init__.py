"""The commands `holdfast lock …` and `holdfast leader …`: programs that run under a lease."""
