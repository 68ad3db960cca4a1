"""The command `holdfast doctor`: findings about a store and its queues, each with evidence and a remedy."""
